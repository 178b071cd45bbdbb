"""Sink attention, low-rank query, grouped output."""

import math

import numpy as np

from deepseek_edu.reference import attention

from .tiny import gap


def test_attention_is_a_softmax_with_one_more_key_of_value_zero():
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 5, 4))
    valid, sinks = rng.random((2, 5)) < 0.6, np.array([-1.0, 0.5, 3.0])
    got = attention.sink_attention(q, k, valid, sinks, 0.5)
    for t in range(2):
        for h in range(3):
            scores = [math.exp(0.5 * float(q[t, h] @ k[t, j])) if valid[t, j] else 0.0 for j in range(5)]
            total = sum(scores) + math.exp(sinks[h])
            expected = sum((s / total * k[t, j] for j, s in enumerate(scores)), np.zeros(4))
            assert gap(got[t, h], expected) < 1e-12


def test_the_sink_is_not_scaled():
    """Score 0 and sink log 3: a quarter of the weight, whatever the scale is."""
    got = attention.sink_attention(np.zeros((1, 1, 2)), np.ones((1, 1, 2)), np.array([[True]]), np.log([3.0]), 0.1)
    assert gap(got, np.full((1, 1, 2), 0.25)) < 1e-12


def test_without_a_valid_entry_the_output_is_zero():
    got = attention.sink_attention(np.ones((1, 2, 3)), np.ones((1, 4, 3)), np.zeros((1, 4), bool), np.zeros(2), 1.0)
    assert not got.any()


def test_large_scores_do_not_overflow():
    q, k = np.full((1, 1, 1), 1e4), np.full((1, 1, 1), 1e2)
    assert attention.sink_attention(q, k, np.array([[True]]), np.array([-1e5]), 1.0).tolist() == [[[100.0]]]


def test_the_query_is_normalised_where_it_is_narrow_and_not_per_head():
    rng = np.random.default_rng(1)
    u, down, up = rng.standard_normal((2, 6)), rng.standard_normal((3, 6)), rng.standard_normal((8, 3))
    gain = np.array([1.0, 2.0, 0.5])
    narrow, queries = attention.low_rank_query(u, down, gain, up, 2, 0.0)
    for t in range(2):
        raw = down @ u[t]
        expected = raw / math.sqrt((raw**2).mean()) * gain
        assert gap(narrow[t], expected) < 1e-12
        assert gap(queries[t], np.stack([up[:4] @ expected, up[4:] @ expected])) < 1e-12


def test_each_group_of_heads_has_its_own_rows_of_the_first_projection():
    rng = np.random.default_rng(2)
    heads, first, second = rng.standard_normal((1, 4, 3)), rng.standard_normal((2 * 5, 6)), rng.standard_normal((7, 10))
    got = attention.grouped_output(heads, first, second, 2)
    narrow = np.concatenate([first[:5] @ heads[0, :2].ravel(), first[5:] @ heads[0, 2:].ravel()])
    assert gap(got[0], second @ narrow) < 1e-12
