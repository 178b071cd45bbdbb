"""Router, experts, balance, n-gram memory: each rule of sections 6 and 7 by itself."""

import math

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import engram, losses, moe
from deepseek_edu.reference import engram as numpy_engram

from ..reference.test_engram import real
from .test_properties_streams import random
from .tiny import gap, recorded, tiny_model, token_map

CONFIG = ModelConfig.tiny()
WHERE = {"dtype": torch.float64}


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


# Router


def test_scores_are_the_root_of_softplus():
    logits = numbers(1.0, -9.0, 0.0, 60.0)
    assert gap(moe.router_scores(logits), [math.sqrt(math.log1p(math.exp(z))) for z in logits.tolist()]) < 1e-12


def test_the_correction_bias_never_changes_the_weights():
    scores = numbers(0.4, 0.3, 0.2, 0.1)[None]
    free, free_weights = moe.route(scores, torch.zeros(4), 2, scale=1.5)
    same, same_weights = moe.route(scores, numbers(7, 7, 0, 0), 2, scale=1.5)
    assert free.tolist() == same.tolist() == [[0, 1]]
    assert torch.equal(free_weights, same_weights)
    other, weights = moe.route(scores, numbers(0, 0, 0, 0.35), 2, scale=1.5)
    assert other.tolist() == [[0, 3]]
    assert gap(weights, [[1.5 * 0.4 / 0.5, 1.5 * 0.1 / 0.5]]) < 1e-12


def test_the_weights_of_a_token_sum_to_the_route_scale():
    _, weights = moe.route(random(20, 8).abs(), random(8, seed=1), 3, scale=1.5)
    assert gap(weights.sum(dim=-1), np.full(20, 1.5)) < 1e-12


def test_tokens_without_any_score_get_no_weight():
    assert moe.route(torch.zeros(1, 4), torch.zeros(4), 2)[1].tolist() == [[0.0, 0.0]]


def test_a_bias_is_compared_in_full_precision():
    """1 + 1e-5 and 1 differ in float32 and float64, not in half precision."""
    assert moe.route(numbers(0.5, 0.25, 0.25)[None], numbers(0.0, 1.0, 1.00001), 1)[0].tolist() == [[2]]


def test_a_narrow_model_routes_in_full_precision():
    """Two experts whose logits differ by 2⁻⁹, less than bfloat16 can tell at 1 + 2⁻⁸."""
    gate = moe.Gate(2, ModelConfig.tiny(dim=4, n_heads=4), {"dtype": torch.bfloat16})
    with torch.no_grad():
        gate.weight.copy_(torch.tensor([[1.0, 2**-8, 0.0, 0.0], [1.0, 2**-8, 2**-9, 0.0]]))
    scores, experts, _ = gate(torch.ones(1, 4, dtype=torch.bfloat16), 1)
    assert scores.dtype == torch.float32
    assert experts.tolist() == [[1]]


def gate_with_biases():
    """Two experts with equal scores: text tokens prefer the first, image tokens the second."""
    gate = moe.Gate(2, ModelConfig.tiny(dim=4, n_heads=4), WHERE)
    with torch.no_grad():
        gate.weight.zero_()
        gate.bias.copy_(numbers(1, 0))
        gate.bias_vl.copy_(numbers(0, 1))
    return gate


def test_image_tokens_use_their_own_bias():
    _, experts, _ = gate_with_biases()(random(3, 4), 1, torch.tensor([False, True, False]))
    assert experts.tolist() == [[0], [1], [0]]
    assert gate_with_biases()(random(3, 4), 1)[1].tolist() == [[0], [0], [0]]


# Experts


def swiglu(u, w1, w2, w3, limit, weight=1.0):
    """One expert by hand."""
    gate, up = (w1 @ u).numpy(), (w3 @ u).numpy()
    gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return w2.numpy() @ (weight * gate / (1 + np.exp(-gate)) * up)


def test_the_gate_is_clamped_from_above_only_and_the_other_branch_on_both_sides():
    gate, up = numbers(-9.0, 1.0, 9.0, 1.0), numbers(1.0, -9.0, 1.0, 9.0)
    silu = lambda z: z / (1 + math.exp(-z))  # noqa: E731
    expected = [silu(-9.0), silu(1.0) * -2, silu(2.0), silu(1.0) * 2]
    assert gap(moe.clamped_swiglu(gate, up, 2.0), expected) < 1e-12
    assert gap(moe.clamped_swiglu(gate, up, 0.0), [silu(g) * u for g, u in zip(gate, up, strict=True)]) < 1e-12


def mixture():
    torch.manual_seed(1)
    made = moe.MoE(5, 2, CONFIG, WHERE)
    with torch.no_grad():
        made.gate.bias.copy_(random(5))
    return made


def test_the_output_is_the_weighted_experts_and_the_shared_one():
    made, u = mixture(), random(1, 6, CONFIG.dim) * 3
    with torch.no_grad():
        got = made(u)[0]
        _, experts, weights = made.gate(u[0], 2)
        state = made.state_dict()
        for t in range(6):
            total = swiglu(u[0, t], *(state[f"shared_experts.w{i}.weight"] for i in (1, 2, 3)), 1.0)
            for e, weight in zip(experts[t].tolist(), weights[t].tolist(), strict=True):
                total = total + swiglu(u[0, t], *(state[f"experts.{e}.w{i}.weight"] for i in (1, 2, 3)), 1.0, weight)
            assert gap(got[t], total) < 1e-12
            assert gap(made(u[:, t : t + 1])[0, 0], total) < 1e-12  # a token by itself takes another way


def test_padding_is_not_run_and_not_counted():
    made, u = mixture(), random(2, 4, CONFIG.dim)
    valid = torch.tensor([[True] * 4, [True, False, False, False]])
    routing = []
    with torch.no_grad():
        got = made(u, valid, routing=routing)
        whole = made(u)
    assert gap(got[valid], whole[valid]) < 1e-12
    assert got[~valid].abs().max() == 0
    assert len(routing[0][1]) == 5
    assert int(moe.expert_load(routing[0][1], 5).sum()) == 10


def test_padding_neither_enters_routing_nor_moves_a_row():
    """A forward pass with counts routes the counted tokens only, in every layer."""
    model, ids = tiny_model(), torch.tensor(recorded()["ids"][:, :6])
    with torch.no_grad():
        routing = model(ids, counts=[6, 2], with_routing=True).routing
    assert [len(experts) for _, experts in routing] == [8] * 8


def test_the_load_is_a_count_of_tokens():
    assert moe.expert_load(torch.tensor([[0, 2], [2, 1], [2, 0]]), 4).tolist() == [2, 1, 3, 0]


def test_biases_move_against_the_load_and_rest_at_the_mean():
    bias = numbers(0.5, 0.0, -0.5)
    moe.update_bias(bias, torch.tensor([5, 3, 1]), 0.001)
    assert gap(bias, [0.499, 0.0, -0.499]) < 1e-12


def test_the_two_biases_of_a_router_move_by_their_own_loads():
    gate = gate_with_biases()
    moe.update_bias(gate.bias, torch.tensor([4, 0]), 0.25)
    moe.update_bias(gate.bias_vl, torch.tensor([0, 6]), 0.5)
    assert gate.bias.tolist() == [0.75, 0.25]
    assert gate.bias_vl.tolist() == [0.5, 0.5]
    assert not gate.bias.requires_grad


def test_the_balance_loss_is_the_weight_when_even_and_more_when_not():
    even = torch.full((4, 4), 0.25, dtype=torch.float64)
    spread = torch.tensor([[0, 1], [2, 3], [0, 1], [2, 3]])
    assert abs(float(moe.sequence_balance_loss(even, spread, 0.5)) - 0.5) < 1e-12
    scores, experts = numbers(3.0, 1.0, 1.0, 1.0).expand(2, 4), torch.tensor([[0, 1], [0, 2]])
    # share of expert 0 is 1/2, of the others 1/6; f = 4/(2·2) · (2, 1, 1, 0)
    assert abs(float(moe.sequence_balance_loss(scores, experts, 1.0)) - (2 / 2 + 1 / 6 + 1 / 6)) < 1e-12


def test_the_balance_loss_is_one_of_each_sequence_not_of_the_batch():
    """Two sequences, each with one favourite: balanced together, unbalanced one by one."""
    scores = torch.tensor([[3.0, 1.0], [3.0, 1.0], [1.0, 3.0], [1.0, 3.0]], dtype=torch.float64)
    experts = torch.tensor([[0], [0], [1], [1]])
    assert abs(float(losses.balance_loss([(scores, experts)], 2, 1.0)) - 1.5) < 1e-12


# The n-gram memory


def test_the_released_rows_of_five_tokens_are_the_recorded_ones():
    config = ModelConfig.v41_flash()
    rules = engram.EngramHash(config, np.arange(config.vocab_size) % config.engram_compressed_vocab_size, "cpu")
    line = torch.tensor([[engram.NO_TOKEN] * 3 + real()["compressed_ids"]])
    np.testing.assert_array_equal(rules.rows(line)[0].swapaxes(0, 1), real()["rows"])


def rules():
    return engram.EngramHash(CONFIG, token_map(), "cpu")


def test_one_row_by_plain_integers():
    """mix = τ₀m₀ ⊕ τ₁m₁, then ⊕ τ₂m₂ …; remainders, each behind the primes before it in its module."""
    made = rules()
    got = made.rows(torch.tensor([[3, 5, 7, 11]]))[0, 0]
    for module in range(2):
        multipliers, primes = made.multipliers[module].tolist(), made.primes[module].tolist()
        mixed, offset, expected = 11 * multipliers[0], 0, []
        for order, token in enumerate((7, 5, 3), start=1):
            mixed ^= token * multipliers[order]
            for prime in primes[order - 1]:
                expected.append(offset + mixed % prime)
                offset += prime
        assert got[module].tolist() == expected


def test_a_blocked_position_hides_everything_before_it():
    made, pad, none = rules(), CONFIG.engram_pad_id // 2, engram.NO_TOKEN
    blocked = made.rows(torch.tensor([[5, none, 7, 11]]))
    assert torch.equal(blocked, made.rows(torch.tensor([[pad, pad, 7, 11]])))
    assert torch.equal(made.rows(torch.tensor([[5, 6, 7, none]])), made.rows(torch.tensor([[pad, pad, pad, pad]])))


def test_an_image_position_reads_padding_and_adds_nothing():
    made = rules()
    mask = torch.tensor([[False, True, False]])
    assert made.compress(torch.tensor([[4, 6, 8]]), mask).tolist() == [[2, engram.NO_TOKEN, 4]]
    layer, streams = tiny_model().layers[1].engram, random(1, 3, 4, CONFIG.dim)
    numbers_of_rows = torch.arange(18).view(1, 3, 6)
    with torch.no_grad():
        got = layer(streams, numbers_of_rows, mask)
    assert torch.equal(got[:, 1], streams[:, 1])
    assert (got[:, [0, 2]] - streams[:, [0, 2]]).abs().max() > 0.01


def test_the_gate_keeps_the_sign_of_a_zero_and_is_never_a_half():
    got = engram.gate(numbers(0.0, -0.0, 4.0, -4.0))
    sigmoid = lambda z: 1 / (1 + math.exp(-z))  # noqa: E731
    assert gap(got, [sigmoid(0.001), sigmoid(-0.001), sigmoid(2.0), sigmoid(-2.0)]) < 1e-12


def test_the_read_is_a_gated_value_in_every_stream():
    layer, streams = tiny_model().layers[1].engram, random(1, 1, 4, CONFIG.dim)
    rows = torch.tensor([[[0, 50, 110, 170, 200, 300]]])
    with torch.no_grad():
        got = layer(streams, rows)[0, 0]
        table = layer.embed.weight * layer.embed.scale.repeat_interleave(32, dim=-1)
        both = (layer.wkv.weight @ table[rows[0, 0]].flatten()).view(5, CONFIG.dim)
        for s in range(4):
            x, key = streams[0, 0, s], both[s]
            dot = (x * layer.q_weight[s] * layer.k_weight[s] * key).sum() / CONFIG.dim**0.5
            dot = float(dot / (x.square().mean() * key.square().mean()).sqrt())
            gate = 1 / (1 + math.exp(-math.copysign(math.sqrt(max(abs(dot), 1e-6)), dot)))
            assert gap(got[s], x + gate * both[4]) < 1e-12


@pytest.mark.parametrize("layer", [1, 2])
def test_multipliers_and_primes_are_those_of_the_reference(layer):
    made, expected = rules(), numpy_engram.EngramHash(CONFIG, token_map())
    assert made.multipliers[layer - 1].tolist() == list(expected.multipliers[layer])
    assert made.primes[layer - 1].tolist() == [list(order) for order in expected.primes[layer]]
