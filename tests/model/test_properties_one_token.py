"""One token in NumPy's arithmetic on the memory of PyTorch's tensors: each function against its formula by hand."""

from math import exp, log1p, sqrt

import numpy as np
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import attention, linear, moe, norms, one_token, rope

from ..reference.test_mhc import sinkhorn_by_hand
from .numbers import WHERE, random
from .tiny import gap


def arrays(*shape, seed=0):
    return random(*shape, seed=seed).numpy()


def test_an_array_is_the_tensors_own_memory():
    tensor = random(3).requires_grad_()
    one_token.array(tensor)[1] = 7
    assert float(tensor.detach()[1]) == 7


def test_a_product_is_the_sum_of_each_row():
    weight, x = arrays(3, 5), arrays(5, seed=1)
    expected = [sum(weight[row, column] * x[column] for column in range(5)) for row in range(3)]
    assert gap(linear.times(weight, x), expected) < 1e-12


def test_a_norm_divides_by_the_root_mean_square_and_multiplies_by_the_gain():
    norm = norms.RMSNorm(6, 0.5, WHERE)
    with torch.no_grad():
        norm.weight.copy_(random(6, seed=1))
    x = arrays(6)
    expected = x / sqrt(sum(x**2) / 6 + 0.5) * norm.weight.detach().numpy()
    assert gap(one_token.normed(x, norm), expected) < 1e-12


def test_only_the_last_channels_turn():
    """Each pair by its own angle, of one vector and of several heads, and back."""
    for shape in ((7,), (3, 7)):
        x, angles = arrays(*shape), np.array([0.3, -1.1])
        turned = one_token.turn(x.copy(), np.exp(1j * angles))
        assert gap(turned[..., :3], x[..., :3]) == 0
        for pair, angle in enumerate(angles):
            a, b = x[..., 3 + 2 * pair], x[..., 4 + 2 * pair]
            assert gap(turned[..., 3 + 2 * pair], a * np.cos(angle) - b * np.sin(angle)) < 1e-12
            assert gap(turned[..., 4 + 2 * pair], a * np.sin(angle) + b * np.cos(angle)) < 1e-12
        assert gap(one_token.turn(turned, np.exp(-1j * angles)), x) < 1e-12


def test_coefficients_are_those_of_the_definition():
    """eps = 0.01 shows every place where it is added; one step of Sinkhorn and several; scores up to 60."""
    for iterations, size in ((1, 1.0), (2, 1.0), (7, 20.0)):
        config = ModelConfig.tiny(hc_eps=0.01, hc_sinkhorn_iters=iterations)
        streams = arrays(4, 32) * np.array([[1.0], [9.0], [0.1], [3.0]])
        projection, base, scale = random(24, 128, seed=1), random(24, seed=2), random(3, seed=3) * size
        pre, post, mix = one_token.coefficients(streams, projection, base, scale, config)
        flat, b, s = streams.reshape(-1), base.numpy(), scale.numpy()
        mixes = projection.numpy() @ flat / np.sqrt(np.mean(flat**2) + config.norm_eps)
        sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
        assert gap(pre, sigmoid(mixes[:4] * s[0] + b[:4]) + 0.01) < 1e-12
        assert gap(post, 2 * sigmoid(mixes[4:8] * s[1] + b[4:8])) < 1e-12
        matrix = (mixes[8:] * s[2] + b[8:]).reshape(4, 4)
        assert gap(mix, sinkhorn_by_hand(matrix.tolist(), iterations, 0.01)) < 1e-12


def test_columns_are_balanced_last():
    config = ModelConfig.tiny(hc_eps=1e-9, hc_sinkhorn_iters=2)
    _, _, mix = one_token.coefficients(arrays(4, 32), random(24, 128, seed=1), random(24), random(3), config)
    assert gap(mix.sum(axis=0), np.ones(4)) < 1e-8
    assert gap(mix.sum(axis=1), np.ones(4)) > 1e-4


def test_expansion_sums_over_the_first_index_of_the_mixing_matrix():
    streams, y, post, mix = arrays(4, 5), arrays(5, seed=1), arrays(4, seed=2), arrays(4, 4, seed=3)
    for j in range(4):
        expected = post[j] * y + sum(mix[i, j] * streams[i] for i in range(4))
        assert gap(one_token.expand(streams, y, post, mix)[j], expected) < 1e-12


def test_attention_is_a_softmax_with_the_unscaled_sink_as_one_more_key_of_value_zero():
    """Two sets of entries; hidden ones of the first set take no weight, and the first set may be hidden altogether."""
    queries, sinks, scale = arrays(3, 4), arrays(3, seed=1) * 3, 0.25
    keys = [random(5, 4, seed=2), random(2, 4, seed=3)]
    for hidden in ([], [1, 4], [0, 1, 2, 3, 4]):
        got = one_token.attend(queries.copy(), keys, np.array(hidden, int), sinks, scale)
        seen = torch.cat([keys[0][[n for n in range(5) if n not in hidden]], keys[1]]).numpy()
        for head in range(3):
            powers = np.exp(scale * seen @ queries[head])
            assert gap(got[head], powers @ seen / (powers.sum() + exp(sinks[head]))) < 1e-12


def test_neighbouring_heads_share_rows_of_the_first_output_matrix():
    config = ModelConfig.tiny(n_heads=4, o_groups=2, o_lora_rank=3)
    mine = attention.Attention(config, WHERE)
    heads = arrays(4, config.head_dim)
    first, second = (matrix.weight.detach().numpy() for matrix in (mine.wo_a, mine.wo_b))
    narrow = [first[3 * group : 3 * group + 3] @ heads[2 * group : 2 * group + 2].reshape(-1) for group in range(2)]
    assert gap(one_token.output(heads, mine), second @ np.concatenate(narrow)) < 1e-12


def test_scores_of_experts_are_the_named_functions_also_of_large_logits():
    logits = np.array([-90.0, -3.0, 0.0, 0.5, 39.0, 41.0, 800.0])
    expected = [sqrt(log1p(exp(z))) if z < 100 else sqrt(z) for z in logits]
    assert gap(one_token.scores_of_experts(logits, "sqrtsoftplus"), expected) < 1e-12
    expected = [1 / (1 + exp(-z)) for z in logits]
    assert gap(one_token.scores_of_experts(logits, "sigmoid"), expected) < 1e-12
    powers = [exp(z - 800) for z in logits]
    assert gap(one_token.scores_of_experts(logits, "softmax"), np.array(powers) / sum(powers)) < 1e-12


def test_of_equal_scores_the_earlier_places_are_taken_and_places_rise():
    assert one_token.largest(np.array([1.0, 3.0, 3.0, 0.0, 3.0]), 2).tolist() == [1, 2]
    assert one_token.largest(np.array([1.0, 3.0, -5.0, 4.0]), 3).tolist() == [0, 1, 3]
    assert one_token.largest(np.array([2.0, 1.0]), 5).tolist() == [0, 1]


def test_chosen_experts_are_weighed_and_clamped_and_the_shared_one_is_added():
    """Gate clamped from above only, the other branch on both sides; the shared expert has a limit of its own."""
    config = ModelConfig.tiny(swiglu_limit=0.2)
    experts, shared = moe.Experts(5, config, WHERE), moe.Expert(6, config, WHERE)
    u, chosen, weights = arrays(32), [4, 1], np.array([0.7, 1.3])
    state = {name: values.numpy() for name, values in experts.state_dict().items()}
    own = {name: values.numpy() for name, values in shared.state_dict().items()}

    def run(matrices, prefix, limit):
        gate, up = matrices[f"{prefix}w1.weight"] @ u, matrices[f"{prefix}w3.weight"] @ u
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
        return matrices[f"{prefix}w2.weight"] @ (gate / (1 + np.exp(-gate)) * up)

    routed = sum(w * run(state, f"{e}.", 0.2) for e, w in zip(chosen, weights, strict=True))
    assert gap(one_token.run_experts(u, experts, chosen, weights), routed) < 1e-12
    for limit in (0.2, 0.0):
        shared.limit = limit
        got = one_token.run_experts(u, experts, chosen, weights, shared)
        assert gap(got, routed + run(own, "", limit or np.inf)) < 1e-12


def test_a_turn_is_that_of_a_rotation_at_the_same_position():
    config = ModelConfig.tiny()
    rotation = rope.Rotation.at(torch.tensor([[11]]), config, 0, torch.float64)
    x = random(1, 1, 2, config.head_dim)
    got = one_token.turn(x[0, 0].numpy().copy(), rotation.turns[0, 0].numpy())
    assert gap(got, rope.rotate_tail(x, rotation)[0, 0]) < 1e-12
