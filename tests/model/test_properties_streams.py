"""Residual streams and positions: hyper-connections, norms and rotations, each against the formula done by hand."""

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import linear, mhc, norms, rope

from ..reference.test_mhc import sinkhorn_by_hand
from ..reference.tiny import vectors
from .tiny import gap


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_first_collapse_takes_stream_zero_alone():
    streams = random(2, 3, 4, 5)
    first = mhc.one_hot(2, 3, 4, torch.float64, "cpu")
    assert torch.equal(mhc.collapse(streams, first), streams[:, :, 0])


def test_a_collapse_is_the_weighted_sum_of_the_streams():
    streams, pre = random(1, 2, 3, 5), random(1, 2, 3, seed=1)
    expected = sum(pre[..., i, None] * streams[:, :, i] for i in range(3))
    assert gap(mhc.collapse(streams, pre), expected) < 1e-12


def test_expansion_sums_over_the_first_index_of_the_mixing_matrix():
    streams, output = random(1, 2, 3, 5), random(1, 2, 5, seed=1)
    post, mix = random(1, 2, 3), random(1, 2, 3, 3, seed=2)
    got = mhc.expand(streams, output, post, mix)
    for j in range(3):
        expected = post[..., j, None] * output + sum(mix[..., i, j, None] * streams[:, :, i] for i in range(3))
        assert gap(got[:, :, j], expected) < 1e-12


def test_sinkhorn_is_the_procedure_done_by_hand():
    """eps = 0.01 makes every place where it is added visible; with and without gradients, one matrix and several."""
    for iterations, eps in ((1, 0.01), (2, 0.01), (5, 0.01), (5, 1e-6)):
        scores = random(3, 4, 4, seed=iterations) * 2
        expected = [sinkhorn_by_hand(matrix.tolist(), iterations, eps) for matrix in scores]
        for matrices in (1, 3):
            for gradients in (True, False):
                with torch.set_grad_enabled(gradients):
                    got = mhc.sinkhorn(scores[:matrices], iterations, eps)
                assert gap(got, expected[:matrices]) < 1e-12


def test_columns_are_normalised_last():
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            mix = mhc.sinkhorn(random(1, 4, 4) * 3, 2, 1e-9)
        assert gap(mix.sum(dim=-2), np.ones((1, 4))) < 1e-8
        assert gap(mix.sum(dim=-1), np.ones((1, 4))) > 1e-4


def test_coefficients_normalise_over_all_streams_at_once():
    """Two streams of very different sizes; pre has an eps, post has none and is doubled."""
    config = ModelConfig.tiny(hc_mult=2, hc_eps=0.01, hc_sinkhorn_iters=1)
    streams = random(1, 1, 2, config.dim) * torch.tensor([[1.0], [50.0]])
    projection, base, scale = random(8, 2 * config.dim, seed=1), random(8, seed=2), random(3, seed=3)
    got = mhc.coefficients(streams, projection, base, scale, config)
    x = streams.flatten().numpy()
    mixes = projection.numpy() @ x / np.sqrt(np.mean(x**2) + 1e-20)
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    b, s = base.numpy(), scale.numpy()
    assert gap(got.pre.flatten(), sigmoid(mixes[:2] * s[0] + b[:2]) + 0.01) < 1e-12
    assert gap(got.post.flatten(), 2 * sigmoid(mixes[2:4] * s[1] + b[2:4])) < 1e-12
    matrix = (mixes[4:] * s[2] + b[4:]).reshape(2, 2)
    assert gap(got.mix[0, 0], sinkhorn_by_hand(matrix.tolist(), 1, 0.01)) < 1e-12


def test_a_norm_divides_by_the_root_of_the_mean_square():
    x = random(2, 3, 8)
    norm = norms.RMSNorm(8, 0.5, {"dtype": torch.float64})
    with torch.no_grad():
        norm.weight.copy_(random(8, seed=1))
        expected = norm.weight * x / torch.sqrt((x**2).mean(dim=-1, keepdim=True) + 0.5)
        assert gap(norm(x), expected) < 1e-12
    assert gap(norms.reciprocal_rms(x, 0.5), 1 / torch.sqrt((x**2).mean(dim=-1, keepdim=True) + 0.5)) < 1e-12


def test_a_product_shared_by_threads_is_the_product():
    """Few rows and many, rows of the matrix that two threads share evenly and that they cannot; any matrix is large."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(linear, "LARGE", 1)
            for rows, outputs in ((1, 6), (16, 6), (17, 6), (1, 5)):
                x, weight = random(2, rows, 4), random(outputs, 4, seed=1)
                assert gap(linear.product(x, weight), torch.einsum("bti,oi->bto", x, weight)) < 1e-12
    finally:
        torch.set_num_threads(threads)


def angles(ratio, positions=(0, 1)):
    """Angles of the released configuration at some positions."""
    rotation = rope.Rotation.at(torch.tensor([positions]), ModelConfig.v41_flash(), ratio, torch.float64)
    return rotation.turns.angle()[0]


def test_layers_with_entries_turn_by_the_recorded_table_whatever_their_ratio():
    for ratio in (1, 2):
        np.testing.assert_allclose(angles(ratio)[1], vectors()["yarn_real_inv_freq"], rtol=2e-6)


def test_layers_without_entries_turn_by_powers_of_ten_thousand():
    np.testing.assert_allclose(angles(0)[1], [10000 ** (-2 * i / 64) for i in range(32)], rtol=1e-9)


def test_adjacent_channels_of_the_tail_turn_together_and_the_others_stay():
    config = ModelConfig.tiny()
    x = random(1, 1, 2, 32)
    positions = torch.tensor([[5]])
    rotation = rope.Rotation.at(positions, config, 0, torch.float64)
    got = rope.rotate_tail(x, rotation)
    for head in range(2):
        assert torch.equal(got[0, 0, head, :24], x[0, 0, head, :24])
        for i in range(4):
            a, b = x[0, 0, head, 24 + 2 * i : 26 + 2 * i].tolist()
            turned = complex(a, b) * np.exp(1j * 5 * 10000 ** (-2 * i / 8))
            assert gap(got[0, 0, head, 24 + 2 * i : 26 + 2 * i], [turned.real, turned.imag]) < 1e-12
    assert gap(rope.rotate_tail(got, rotation, inverse=True), x) < 1e-12
