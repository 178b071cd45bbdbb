"""Router, experts, balance."""

import math

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import moe

from .tiny import gap


def test_scores_are_the_root_of_softplus():
    u, weight = np.array([[1.0, -2.0]]), np.array([[3.0, 1.0], [-1.0, 4.0], [0.0, 0.0]])
    expected = [math.sqrt(math.log1p(math.exp(z))) for z in (1.0, -9.0, 0.0)]
    assert gap(moe.router_scores(u, weight)[0], expected) < 1e-12
    halved = [math.sqrt(math.log1p(math.exp(z / 2))) for z in (1.0, -9.0, 0.0)]
    assert gap(moe.router_scores(u, weight, temperature=2.0)[0], halved) < 1e-12


def test_other_score_functions():
    u, weight = np.array([[1.0]]), np.array([[0.0], [1.0]])
    assert gap(moe.router_scores(u, weight, "sigmoid"), [[0.5, 1 / (1 + math.exp(-1))]]) < 1e-12
    assert gap(moe.router_scores(u, weight, "softmax").sum(), 1.0) < 1e-12


def test_the_correction_bias_never_changes_the_weights():
    scores = np.array([[0.4, 0.3, 0.2, 0.1]])
    free, free_weights = moe.route(scores, np.zeros(4), 2, scale=1.5)
    same, same_weights = moe.route(scores, np.array([7.0, 7.0, 0.0, 0.0]), 2, scale=1.5)
    assert free.tolist() == same.tolist() == [[0, 1]]
    np.testing.assert_array_equal(free_weights, same_weights)
    other, weights = moe.route(scores, np.array([0.0, 0.0, 0.0, 0.35]), 2, scale=1.5)
    assert sorted(other[0].tolist()) == [0, 3]
    assert gap(np.sort(weights[0]), [1.5 * 0.1 / 0.5, 1.5 * 0.4 / 0.5]) < 1e-12


def test_the_weights_of_a_token_sum_to_the_route_scale():
    scores = np.random.default_rng(0).random((20, 8))
    _, weights = moe.route(scores, np.random.default_rng(1).standard_normal(8), 3, scale=1.5)
    assert gap(weights.sum(axis=-1), np.full(20, 1.5)) < 1e-12


def test_tokens_without_any_score_get_no_weight():
    assert moe.route(np.zeros((1, 4)), np.zeros(4), 2)[1].tolist() == [[0.0, 0.0]]


def test_a_bias_is_compared_in_full_precision():
    """1 + 1e-5 and 1 differ in float32 and float64, not in half precision."""
    bias = np.array([0.0, 1.0, 1.00001])
    assert moe.route(np.array([[0.5, 0.25, 0.25]]), bias, 1)[0].tolist() == [[2]]


def test_image_tokens_use_their_own_bias():
    bias = moe.modality_bias(np.array([1.0, 0.0]), np.array([0.0, 1.0]), [False, True])
    assert moe.route(np.full((2, 2), 0.5), bias, 1)[0].tolist() == [[0], [1]]


def expert_by_hand(u, w1, w2, w3, limit, weight=1.0):
    gate, up = w1 @ u, w3 @ u
    gate = np.array([min(g, limit) for g in gate])
    up = np.array([max(-limit, min(v, limit)) for v in up])
    return w2 @ (weight * gate / (1 + np.exp(-gate)) * up)


def test_the_gate_is_clamped_from_above_only_and_the_other_branch_on_both_sides():
    one = np.ones((1, 1))
    for u in (-30.0, -3.0, 0.5, 30.0):
        for sign in (1.0, -1.0):
            got = moe.swiglu(np.array([[u]]), one, one, sign * one, 2.0)
            assert gap(got[0], expert_by_hand(np.array([u]), one, one, sign * one, 2.0)) < 1e-12
    assert abs(moe.swiglu(np.array([[-3.0]]), one, one, one, 2.0)[0, 0] - -3 / (1 + math.exp(3)) * -2) < 1e-12


def test_no_limit_means_no_clamp():
    one = np.ones((1, 1))
    assert abs(moe.swiglu(np.array([[30.0]]), one, one, one, 0.0)[0, 0] - 900) < 1e-6


def test_the_output_is_the_weighted_experts_and_the_shared_one():
    config = ModelConfig.tiny(n_routed_experts=4, n_activated_experts=2, dim=3, moe_inter_dim=5)
    rng = np.random.default_rng(3)
    w = {"gate.weight": rng.standard_normal((4, 3)), "gate.bias": rng.standard_normal(4), "gate.bias_vl": np.zeros(4)}
    for name in ("experts.0", "experts.1", "experts.2", "experts.3", "shared_experts"):
        for matrix, shape in (("w1", (5, 3)), ("w2", (3, 5)), ("w3", (5, 3))):
            w[f"{name}.{matrix}.weight"] = rng.standard_normal(shape)
    u = rng.standard_normal((6, 3))
    got = moe.moe(u, w, 2, config)
    for t in range(6):
        score = np.sqrt(np.log1p(np.exp(w["gate.weight"] @ u[t])))
        chosen = sorted(range(4), key=lambda e: -(score[e] + w["gate.bias"][e]))[:2]
        expected = np.zeros(3)
        for name, weight in [(f"experts.{e}", 1.5 * score[e] / score[chosen].sum()) for e in chosen] + [
            ("shared_experts", 1)
        ]:
            matrices = (w[f"{name}.{m}.weight"] for m in ("w1", "w2", "w3"))
            expected += expert_by_hand(u[t], *matrices, config.swiglu_limit, weight)
        assert gap(got[t], expected) < 1e-12


def test_biases_move_against_the_load_and_rest_without_tokens():
    assert moe.update_bias(np.array([0.5, 0.5]), np.array([3, 1]), 0.1).tolist() == [0.4, 0.6]
    assert moe.update_bias(np.array([0.5, 0.5]), np.array([0, 0]), 0.1).tolist() == [0.5, 0.5]


def test_updating_biases_evens_out_a_skewed_router():
    rng, bias = np.random.default_rng(0), np.zeros(6)
    scores = rng.random((400, 6)) + np.array([0.6, 0.3, 0.0, 0.0, 0.0, 0.0])
    before = moe.expert_load(moe.route(scores, bias, 2)[0], 6)
    for _ in range(400):
        bias = moe.update_bias(bias, moe.expert_load(moe.route(scores, bias, 2)[0], 6), 0.005)
    after = moe.expert_load(moe.route(scores, bias, 2)[0], 6)
    assert before.std() > 70
    assert after.std() < 8


def test_the_sequence_loss_is_least_for_an_even_load():
    even = moe.sequence_balance_loss(np.ones((4, 4)), np.array([[0, 1], [2, 3], [0, 1], [2, 3]]))
    scores = np.tile([3.0, 3.0, 1.0, 1.0], (4, 1))
    skewed = moe.sequence_balance_loss(scores, np.array([[0, 1]] * 4))
    assert abs(even - 1e-4) < 1e-15
    assert abs(skewed - 1e-4 * (2 * 0.375 + 2 * 0.375)) < 1e-15  # f = 2, 2, 0, 0; p = 3/8, 3/8, 1/8, 1/8
