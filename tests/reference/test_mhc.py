"""Hyper-connections: coefficients, Sinkhorn, collapse and expansion."""

import math

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import mhc

from .tiny import gap, vectors


def sinkhorn_by_hand(scores, iterations, eps):
    """The steps of the reference on plain lists, one matrix."""
    n = len(scores)
    matrix = []
    for row in scores:
        e = [math.exp(z - max(row)) for z in row]
        matrix.append([x / sum(e) + eps for x in e])

    def columns():
        for j in range(n):
            total = sum(matrix[i][j] for i in range(n)) + eps
            for i in range(n):
                matrix[i][j] /= total

    columns()
    for _ in range(iterations - 1):
        for row in matrix:
            total = sum(row) + eps
            row[:] = [x / total for x in row]
        columns()
    return matrix


def test_the_recorded_split_is_reproduced():
    case = vectors()["mhc_split"]
    got = mhc.split_mixes(np.array(case["mixes"])[0], case["scale"], np.array(case["base"]), 4, 20, 1e-6)
    assert gap(got.pre, case["pre"][0]) < 1e-6
    assert gap(got.post, case["post"][0]) < 1e-6
    assert gap(got.mix, case["comb"][0]) < 1e-6
    assert gap(got.mix.sum(axis=-2), case["col_sums"][0]) < 5e-7
    assert gap(got.mix.sum(axis=-1), case["row_sums"][0]) < 5e-7


def test_sinkhorn_is_the_procedure_done_by_hand():
    """eps = 0.01 makes every place where it is added visible."""
    for iterations in (1, 2, 5):
        scores = np.random.default_rng(iterations).standard_normal((4, 4)) * 2
        for eps in (0.01, 1e-6):
            got = mhc.sinkhorn(scores[None], iterations, eps)[0]
            assert gap(got, sinkhorn_by_hand(scores.tolist(), iterations, eps)) < 1e-12


def test_columns_are_normalised_last():
    mix = mhc.sinkhorn(np.random.default_rng(0).standard_normal((1, 4, 4)) * 3, 2, 1e-9)
    assert gap(mix.sum(axis=-2), np.ones((1, 4))) < 1e-8
    assert gap(mix.sum(axis=-1), np.ones((1, 4))) > 1e-4


def test_expansion_sums_over_the_first_index_of_the_mixing_matrix():
    """All of stream 0 goes to stream 1 and nothing else: S_01 = 1."""
    mix = np.zeros((1, 2, 2))
    mix[0, 0, 1] = 1
    streams, y = np.array([[[5.0], [7.0]]]), np.array([[10.0]])
    got = mhc.expand(streams, y, mhc.Coefficients(np.zeros((1, 2)), np.array([[1.0, 2.0]]), mix))
    assert got.tolist() == [[[10.0], [25.0]]]


def test_collapse_weighs_the_streams():
    assert mhc.collapse(np.array([[[1.0, 2.0], [3.0, 4.0]]]), np.array([[2.0, 10.0]])).tolist() == [[32.0, 44.0]]


def test_the_first_collapse_takes_stream_zero_alone():
    assert mhc.one_hot(2, 4).tolist() == [[1, 0, 0, 0]] * 2
    streams = np.random.default_rng(0).standard_normal((2, 4, 3))
    np.testing.assert_array_equal(mhc.collapse(streams, mhc.one_hot(2, 4)), streams[:, 0])


def test_coefficients_normalise_over_all_streams_at_once():
    config = ModelConfig.tiny(norm_eps=1e-6)
    rng = np.random.default_rng(1)
    streams, projection = (
        rng.standard_normal((3, 4, 5)) * [[[1.0], [10.0], [0.1], [3.0]]],
        rng.standard_normal((24, 20)),
    )
    base, scale = rng.standard_normal(24), np.array([0.7, 1.3, 1.1])
    got = mhc.coefficients(streams, projection, base, scale, config)
    for t in range(3):
        f = [x for stream in streams[t] for x in stream]
        root = math.sqrt(sum(x * x for x in f) / 20 + 1e-6)
        m = [sum(projection[k, i] * f[i] for i in range(20)) / root for k in range(24)]
        pre = [1 / (1 + math.exp(-(m[k] * 0.7 + base[k]))) + 1e-6 for k in range(4)]
        post = [2 / (1 + math.exp(-(m[4 + k] * 1.3 + base[4 + k]))) for k in range(4)]
        scores = [[m[8 + 4 * i + j] * 1.1 + base[8 + 4 * i + j] for j in range(4)] for i in range(4)]
        assert gap(got.pre[t], pre) < 1e-12
        assert gap(got.post[t], post) < 1e-12
        assert gap(got.mix[t], sinkhorn_by_hand(scores, 20, 1e-6)) < 1e-12


def test_equal_scores_keep_the_mean_of_the_streams():
    mix = mhc.sinkhorn(np.zeros((1, 4, 4)), 20, 1e-6)
    assert gap(mix, np.full((1, 4, 4), 0.25)) < 1e-6
