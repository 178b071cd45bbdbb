"""Compressed entries: groups, gates, visibility."""

import math

import numpy as np
import pytest

from deepseek_edu.reference import compressor

from .tiny import gap


def test_visible_entries_are_the_complete_groups():
    for ratio in (1, 2, 3, 4):
        for t in range(20):
            whole = sum(all(token <= t for token in range(j * ratio, (j + 1) * ratio)) for j in range(30))
            assert compressor.visible_entries(t, ratio) == whole


def test_a_group_is_mixed_channel_by_channel_by_its_gates():
    rng = np.random.default_rng(0)
    values, gates = rng.standard_normal((2, 6, 3))
    for ratio in (2, 3):
        got = compressor.pool(values, gates, ratio)
        for j in range(6 // ratio):
            for c in range(3):
                weights = [math.exp(gates[k, c]) for k in range(j * ratio, (j + 1) * ratio)]
                mixed = sum(w * values[k, c] for w, k in zip(weights, range(j * ratio, (j + 1) * ratio), strict=True))
                assert abs(got[j, c] - mixed / sum(weights)) < 1e-12


def test_ratio_one_has_no_gate():
    u, weight = np.random.default_rng(1).standard_normal((2, 4, 4))
    values, gates = compressor.project(u, weight, None)
    assert gates is None
    np.testing.assert_array_equal(compressor.pool(values, gates, 1), u @ weight.T)


def test_waiting_tokens_join_the_first_new_ones():
    values = np.arange(10.0)[:, None]
    first, rows = compressor.split_groups(5, values[4:5], values[5:9], 2)
    assert (first, rows[:, 0].tolist()) == (2, [4.0, 5.0, 6.0, 7.0])
    first, rows = compressor.split_groups(4, values[:0], values[4:5], 2)
    assert (first, len(rows)) == (2, 0)


def test_a_wrong_number_of_waiting_tokens_is_refused():
    with pytest.raises(ValueError, match="waiting must hold 1 tokens"):
        compressor.split_groups(5, np.zeros((0, 1)), np.zeros((2, 1)), 2)
    with pytest.raises(ValueError, match="whole groups of 2"):
        compressor.pool(np.zeros((3, 1)), np.zeros((3, 1)), 2)


def test_latents_have_unit_mean_square():
    got = compressor.latents(np.random.default_rng(2).standard_normal((5, 8)) * 9, np.ones(8), 1e-20)
    assert gap((got**2).mean(axis=-1), np.ones(5)) < 1e-12
