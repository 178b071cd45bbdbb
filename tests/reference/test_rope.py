"""Rotary positions: frequencies, rotation, inverse."""

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import rope

from .tiny import gap, vectors


def turned(x, position, frequencies):
    """The last channels as complex numbers times e^(i·position·f), the others as they are."""
    tail = 2 * len(frequencies)
    kept, pairs = x[:-tail], x[-tail:].reshape(-1, 2)
    result = (pairs[:, 0] + 1j * pairs[:, 1]) * np.exp(1j * position * frequencies)
    return np.concatenate([kept, np.stack([result.real, result.imag], axis=-1).ravel()])


def test_the_frequencies_of_the_released_compressed_layers_are_the_recorded_table():
    for ratio in (1, 2):
        got = rope.layer_frequencies(ModelConfig.v41_flash(), ratio)
        np.testing.assert_allclose(got, vectors()["yarn_real_inv_freq"], rtol=2e-6)


def test_layers_without_compression_use_theta_ten_thousand_without_yarn():
    got = rope.layer_frequencies(ModelConfig.v41_flash(), 0)
    np.testing.assert_allclose(got, [10000 ** (-2 * i / 64) for i in range(32)])


def test_yarn_keeps_fast_pairs_divides_slow_ones_and_mixes_in_between():
    """Pair 15 and below are kept, 25 and above divided by 16; pair 20 is halfway: f·(1/2 + 1/32)."""
    plain = rope.rope_frequencies(64, 160000.0)
    got = rope.yarn_frequencies(64, 160000.0, 65536, 16.0)
    np.testing.assert_array_equal(got[:16], plain[:16])
    np.testing.assert_allclose(got[25:], plain[25:] / 16)
    np.testing.assert_allclose(got[20], plain[20] * 17 / 32)


def test_adjacent_channels_of_the_tail_turn_together():
    rng = np.random.default_rng(0)
    x, positions, frequencies = rng.standard_normal((3, 12)), np.array([0, 5, 1000]), np.array([1.0, 0.3, 0.01])
    got = rope.rotate_tail(x, positions, frequencies)
    assert gap(got, [turned(row, p, frequencies) for row, p in zip(x, positions, strict=True)]) < 1e-12
    np.testing.assert_array_equal(got[:, :6], x[:, :6])


def test_products_depend_on_the_distance_only():
    q, k = np.random.default_rng(1).standard_normal((2, 8))
    frequencies = rope.rope_frequencies(8, 10000.0)
    products = [rope.rotate(q, p + 7, frequencies) @ rope.rotate(k, p, frequencies) for p in (0, 3, 500)]
    np.testing.assert_allclose(products, products[0])


def test_the_inverse_turns_back():
    x = np.random.default_rng(2).standard_normal((4, 2, 10))
    frequencies, positions = rope.rope_frequencies(6, 100.0), np.arange(4)[:, None]
    back = rope.rotate_tail(rope.rotate_tail(x, positions, frequencies), positions, frequencies, inverse=True)
    assert gap(back, x) < 1e-12


def test_whole_numbers_turn_like_floats_and_float32_stays():
    x, frequencies = np.array([1, 0, 1, 0]), np.array([0.1, 0.2])
    got = rope.rotate(x, 1, frequencies)
    assert gap(got, [np.cos(0.1), np.sin(0.1), np.cos(0.2), np.sin(0.2)]) < 1e-12
    assert rope.rotate(x.astype(np.float32), 1, frequencies).dtype == np.float32


def test_wrong_widths_are_refused():
    with pytest.raises(ValueError, match="even"):
        rope.rope_frequencies(7, 10.0)
    with pytest.raises(ValueError, match="at least 6"):
        rope.rotate_tail(np.zeros(4), 0, np.zeros(3))
