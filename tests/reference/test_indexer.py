"""Scores, Top-k and the candidate pool."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deepseek_edu.reference import indexer

from .tiny import gap, vectors


def test_scores_weigh_rectified_products_with_signed_weights():
    rng = np.random.default_rng(0)
    queries, weights, keys = rng.standard_normal((3, 2, 4)), rng.standard_normal((3, 2)), rng.standard_normal((5, 4))
    got = indexer.index_scores(queries, weights, keys)
    for t in range(3):
        for j in range(5):
            expected = sum(weights[t, h] * max(0.0, float(queries[t, h] @ keys[j])) for h in range(2))
            assert abs(got[t, j] - expected) < 1e-12
    assert got.min() < 0


def test_head_weights_are_scaled_by_width_and_number_of_heads():
    u, weight = np.ones((1, 3)), np.ones((16, 3))
    assert gap(indexer.head_weights(u, weight, 4), np.full((1, 16), 3 / 2 / 4)) < 1e-12


scores_and_visible = st.lists(st.integers(-20, 20), min_size=1, max_size=12, unique=True).flatmap(
    lambda row: st.tuples(st.just(row), st.integers(0, len(row)))
)


@given(scores_and_visible, st.integers(1, 6))
def test_top_k_is_the_set_of_the_best_visible_entries_in_rising_order(case, k):
    row, visible = case
    best = sorted(sorted(range(visible), key=lambda j: -row[j])[:k])
    expected = best + [-1] * (min(k, len(row)) - len(best))
    assert indexer.top_k(np.array([row], float), [visible], k)[0].tolist() == expected


def test_each_query_has_its_own_choice():
    got = indexer.top_k(np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]), [3, 3, 1], 2)
    assert got.tolist() == [[0, 1], [1, 2], [0, -1]]


def test_only_pool_members_are_chosen():
    allowed = np.array([[False, True, True, False]])
    assert indexer.top_k(np.array([[9.0, 1.0, 2.0, 8.0]]), [3], 3, allowed).tolist() == [[1, 2, -1]]


def test_equal_scores_go_to_the_earlier_entry():
    assert indexer.top_k(np.zeros((1, 4)), [4], 2).tolist() == [[0, 1]]


def test_the_recorded_candidate_masks_are_reproduced():
    for case in vectors()["select_candidate_blocks"]:
        got = indexer.candidate_pool(
            np.array([case["scores"]]), [case["visible"]], case["topk_blocks"], case["block_size"]
        )
        assert got[0].tolist() == case["mask"]


def test_the_newest_block_is_always_a_candidate():
    assert indexer.candidate_pool(np.array([[9.0, 9.0, 8.0, 8.0, -5.0]]), [5], 1, 2).tolist() == [[False] * 4 + [True]]


def test_a_query_that_sees_nothing_has_no_candidates():
    got = indexer.candidate_pool(np.array([[9.0, 1.0], [9.0, 1.0]]), [0, 1], 2, 1)
    assert got.tolist() == [[False, False], [True, False]]


@given(scores_and_visible, st.integers(1, 4), st.integers(1, 3))
def test_the_pool_is_made_of_the_best_blocks(case, n_blocks, size):
    row, visible = case
    blocks = [range(b, min(b + size, len(row))) for b in range(0, len(row), size)]
    seen = [b for b in range(len(blocks)) if blocks[b][0] < visible]
    value = {b: max(row[j] for j in blocks[b] if j < visible) for b in seen}
    if seen:
        value[seen[-1]] = 10**6
    kept = sorted(seen, key=lambda b: -value[b])[:n_blocks]
    expected = [any(j in blocks[b] for b in kept) for j in range(len(row))]
    assert indexer.candidate_pool(np.array([row], float), [visible], n_blocks, size)[0].tolist() == expected
