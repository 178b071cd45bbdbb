"""Losses and update rules."""

import math

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import acceptance, losses, optimisers, weights

from .tiny import gap

RNG = np.random.default_rng


def test_cross_entropy_is_the_mean_surprise():
    logits, targets = RNG(0).standard_normal((3, 5)), np.array([1, 4, 0])
    surprises = [
        math.log(sum(math.exp(z) for z in row)) - row[t] for row, t in zip(logits.tolist(), targets, strict=True)
    ]
    assert abs(losses.cross_entropy(logits, targets) - sum(surprises) / 3) < 1e-12
    weighted = (2 * surprises[0] + surprises[2]) / 3
    assert abs(losses.cross_entropy(logits, targets, np.array([2, 0, 1])) - weighted) < 1e-12
    assert losses.cross_entropy(logits, targets, np.zeros(3)) == 0.0
    assert losses.cross_entropy(np.array([[1e4, -1e4]]), [1]) == 2e4


def test_the_acceptance_rate_is_the_expected_acceptance_of_a_drawn_token():
    draft, target = RNG(1).standard_normal((2, 6))
    q, p = (np.exp(z) / np.exp(z).sum() for z in (draft, target))
    expected = sum(q[v] * acceptance.acceptance_probability(v, p, q) for v in range(6))
    assert abs(losses.acceptance_rate(draft, target) - expected) < 1e-12


def test_the_draft_loss_adds_its_three_parts():
    draft, target = RNG(2).standard_normal((2, 4, 3, 7))
    targets, confidence = RNG(3).integers(0, 7, (4, 3)), RNG(4).standard_normal((4, 3))
    mask = np.ones((4, 3), bool)
    mask[3, 1:] = False
    got = losses.draft_loss(draft, target, targets, confidence, mask, gamma=2.0, factors=(1.0, 0.5, 2.0))
    total = {"cross_entropy": 0.0, "distance": 0.0, "confidence": 0.0}
    size = 0.0
    for n in range(4):
        for k in range(3):
            if not mask[n, k]:
                continue
            weight = math.exp(-k / 2)
            q, p = (np.exp(z[n, k]) / np.exp(z[n, k]).sum() for z in (draft, target))
            rate, sure = np.minimum(p, q).sum(), 1 / (1 + math.exp(-confidence[n, k]))
            total["cross_entropy"] -= weight * math.log(q[targets[n, k]])
            total["distance"] += weight * np.abs(p - q).sum()
            total["confidence"] -= weight * (rate * math.log(sure) + (1 - rate) * math.log(1 - sure))
            size += weight
    for name, value in total.items():
        assert abs(got[name] - value / size) < 1e-12
    expected = (total["cross_entropy"] + 0.5 * total["distance"] + 2 * total["confidence"]) / size
    assert abs(got["loss"] - expected) < 1e-12


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4)])
def test_orthogonalise_gives_the_orthogonal_factor(shape):
    matrix = RNG(5).standard_normal(shape)
    u, _, v = np.linalg.svd(matrix, full_matrices=False)
    assert gap(optimisers.orthogonalise(matrix), u @ v) < 1e-3
    loose = np.linalg.svd(optimisers.orthogonalise(matrix, exact=0), compute_uv=False)
    assert 0.6 < loose.min() < loose.max() < 1.3
    assert np.abs(loose - 1).max() > 0.02  # the last two steps are what makes it exact


def test_a_muon_update_has_its_fixed_size_and_each_head_its_own():
    weight, gradient = np.zeros((8, 4)), RNG(6).standard_normal((8, 4)) * np.repeat([1e-3, 10.0], 4)[:, None]
    new, momentum = optimisers.muon_step(weight, gradient, np.zeros((8, 4)), 1.0, heads=2)
    np.testing.assert_array_equal(momentum, gradient)
    for head in (new[:4], new[4:]):
        assert abs(np.sqrt((head**2).mean()) - 0.18) < 1e-3
        assert gap(head @ head.T, np.eye(4) * 0.18**2 * 4) < 1e-3
    fused, _ = optimisers.muon_step(weight, gradient, np.zeros((8, 4)), 1.0)
    assert np.sqrt((fused[:4] ** 2).mean()) < 0.02  # in one block the small head hardly moves
    with pytest.raises(ValueError, match="divide the 8 rows"):
        optimisers.muon_step(weight, gradient, weight, 1.0, heads=3)


def test_momentum_looks_ahead_and_weights_decay():
    ahead, momentum = optimisers.nesterov(np.array([1.0]), np.array([2.0]), 0.5)
    assert (momentum.tolist(), ahead.tolist()) == ([2.0], [2.0])
    new, _ = optimisers.muon_step(np.ones((2, 2)), np.zeros((2, 2)), np.zeros((2, 2)), 0.5)
    assert gap(new, np.full((2, 2), 0.95)) < 1e-12


def test_adamw_steps_are_those_of_its_definition():
    weight, first, second = 1.0, 0.0, 0.0
    m = v = 0.0
    expected = 1.0
    for step, gradient in enumerate([0.5, -0.25, 2.0], start=1):
        weight, first, second = optimisers.adamw_step(weight, gradient, first, second, step, 0.01)
        m, v = 0.9 * m + 0.1 * gradient, 0.95 * v + 0.05 * gradient**2
        corrected = (m / (1 - 0.9**step)) / math.sqrt(v / (1 - 0.95**step))
        expected = expected * (1 - 0.001) - 0.01 * corrected
        assert abs(weight - expected) < 1e-12


def test_balancing_equalises_rows_and_columns_and_leaves_hardly_seen_rows_alone():
    table = RNG(7).standard_normal((50, 8)) * np.geomspace(1e-2, 1e2, 8) * RNG(8).uniform(0.5, 20, (50, 1))
    table[3] = 1e-9
    got = optimisers.balance(table)
    assert not got[3].any()
    seen = np.delete(got, 3, axis=0)
    assert gap(np.sqrt((seen**2).mean(axis=1)), np.ones(49)) < 1e-12
    columns = np.sqrt((seen**2).mean(axis=0))
    assert columns.max() / columns.min() < 1.1
    assert np.sqrt((table**2).mean(axis=0)).max() / np.sqrt((table**2).mean(axis=0)).min() > 1000
    assert np.array_equal(np.sign(got[0]), np.sign(table[0]))


def test_a_balanced_step_has_no_decay():
    weight = np.ones((3, 4))
    new, momentum = optimisers.balanced_step(weight, np.full((3, 4), 2.0), np.zeros((3, 4)), 0.1)
    assert gap(new, weight - 0.018) < 1e-12
    assert gap(momentum, np.full((3, 4), 2.0)) == 0


def test_the_rate_rises_holds_falls_and_holds():
    rate = optimisers.learning_rate
    assert rate(0, 0) == 0
    assert abs(rate(1e11, 1000) - 1.3e-4) < 1e-12
    assert abs(rate(27e12, 10**6) - 2.6e-4) < 1e-12
    assert abs(rate(34e12, 10**6) - (2.6e-4 + 2.6e-5) / 2) < 1e-12
    assert abs(rate(44e12, 10**6) - 2.6e-5) < 1e-12


def test_every_parameter_has_an_update_and_vectors_never_get_muon():
    rules = {name: optimisers.update_rule(name) for name in weights.weight_shapes(ModelConfig.tiny())}
    shapes = weights.weight_shapes(ModelConfig.tiny())
    for name, rule in rules.items():
        if len(shapes[name]) == 1:
            assert rule == "adamw", name
    assert {n for n, r in rules.items() if r == "balanced"} == {
        "embed.weight",
        "head.weight",
        "layers.1.engram.embed.weight",
        "layers.2.engram.embed.weight",
        "mtp.2.markov_head.embed.weight",
        "mtp.2.markov_head.head.weight",
    }
    assert rules["layers.1.attn.indexer.wq_b.weight"] == "head-wise muon"
    assert rules["layers.1.engram.wkv.weight"] == rules["layers.0.hc_attn_fn"] == "muon"
    assert rules["layers.1.engram.q_weight"] == rules["layers.1.engram.embed.scale"] == "adamw"
