"""The small attention model of the first chapters: against a loop over single numbers, and with and without a cache."""

import numpy as np
import pytest

from deepseek_edu.reference import toy_attention as toy


def by_hand(ids, w):
    """Logits [T V] number by number, in Python floats."""
    width = w.embed.shape[1]
    x = [[float(a) + float(b) for a, b in zip(w.embed[id], w.positions[t], strict=True)] for t, id in enumerate(ids)]

    def times(row, matrix):
        return [sum(row[i] * float(matrix[i, j]) for i in range(width)) for j in range(matrix.shape[1])]

    queries, keys, values = ([times(row, matrix) for row in x] for matrix in (w.query, w.key, w.value))
    logits = []
    for t, row in enumerate(x):
        scores = [sum(a * b for a, b in zip(queries[t], keys[s], strict=True)) / width**0.5 for s in range(t + 1)]
        powers = [np.exp(score - max(scores)) for score in scores]
        mixed = [sum(p * values[s][i] for s, p in enumerate(powers)) / sum(powers) for i in range(width)]
        hidden = [a + b for a, b in zip(row, times(mixed, w.output), strict=True)]
        logits.append([logit / width**0.5 for logit in times(hidden, w.embed.T)])
    return np.array(logits)


def test_the_forward_pass_is_what_the_loops_say():
    w, ids = toy.random_weights(3, vocabulary=11, width=4, dtype=np.float64), [2, 7, 7, 1]
    logits, taken = toy.forward(ids, w, toy.Cache(4))
    np.testing.assert_allclose(logits, by_hand(ids, w), atol=1e-6)  # the cache rounds keys and values to float32
    np.testing.assert_allclose(taken.sum(axis=1), 1, rtol=1e-12)
    assert np.array_equal(taken > 0, np.tril(np.ones((4, 4), bool)))


@pytest.mark.parametrize("pieces", [[3, 1, 1], [1, 1, 1, 1, 1], [5], [2, 3]])
def test_cached_and_full_prefix_logits_are_equal_at_every_step(pieces):
    w, ids, cache, done = toy.random_weights(), [12, 37, 9, 21, 6], toy.Cache(), 0
    for piece in pieces:
        logits, _ = toy.forward(ids[done : done + piece], w, cache)
        full, _ = toy.forward(ids[: done + piece], w, toy.Cache())
        np.testing.assert_allclose(logits, full[done:], atol=1e-5)  # float32 sums in another order
        done += piece
        assert len(cache) == done and cache.nbytes == 256 * done


def test_later_tokens_change_no_earlier_logits():
    w = toy.random_weights()
    short, long = (toy.forward(ids, w, toy.Cache())[0] for ids in ([12, 37, 9], [12, 37, 9, 200, 3]))
    np.testing.assert_allclose(short, long[:3], atol=1e-6)


def test_an_off_by_one_position_is_hidden_by_the_prefill_and_shows_at_the_first_decode():
    w, ids, cache, gaps, done = toy.random_weights(1), [12, 37, 9, 21, 6], toy.Cache(), [], 0
    for piece in (3, 1, 1):
        logits, _ = toy.forward(ids[done : done + piece], w, cache, toy.first_position_off_by_one)
        full, _ = toy.forward(ids[: done + piece], w, toy.Cache())
        gaps.append(float(np.abs(logits - full[done:]).max()))
        done += piece
    assert gaps[0] < 1e-5 < 0.1 < min(gaps[1:])


def test_slow_motion_keeps_what_the_forward_pass_computes():
    w, ids = toy.random_weights(3, vocabulary=11, width=4, dtype=np.float64), [2, 7, 7, 1]
    arrays = toy.in_slow_motion(ids, w)
    np.testing.assert_allclose(arrays["logits"], by_hand(ids, w), atol=1e-12)
    np.testing.assert_allclose(arrays["weight"], toy.forward(ids, w, toy.Cache(4))[1], atol=1e-6)  # cache: float32
    assert {name: array.shape for name, array in arrays.items() if name in ("x", "score", "logits")} == {
        "x": (4, 4),
        "score": (4, 4),
        "logits": (4, 11),
    }
    assert np.array_equal(np.isinf(arrays["masked"]), np.triu(np.ones((4, 4), bool), 1))


def test_without_the_mask_each_query_takes_of_all_keys():
    w = toy.random_weights(3, vocabulary=11, width=4, dtype=np.float64)
    arrays = toy.in_slow_motion([2, 7, 1], w, causal=False)
    powers = np.exp(arrays["query"] @ arrays["key"].T / 2)  # the root of 4
    np.testing.assert_allclose(arrays["weight"], powers / powers.sum(axis=1, keepdims=True), rtol=1e-12)


def test_the_work_of_a_step_is_counted_number_by_number():
    for context in (0, 3, 10):
        cached, whole = toy.step_work(context, True), toy.step_work(context, False)
        assert cached == {"projections": 4 * 32 * 32, "attention": 64 * (context + 1), "logits": 256 * 32}
        read = sum(query + 1 for query in range(context + 1))
        assert whole == {"projections": 4096 * (context + 1), "attention": 64 * read, "logits": 8192}
