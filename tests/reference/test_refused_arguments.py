"""Arguments that no mechanism can use are refused in words, not answered or left to fail further in."""

import numpy as np
import pytest

from deepseek_edu.reference import attention, indexer, mhc, moe, optimisers, rope, scheduler

from .tiny import tiny_model

HEADS = np.ones((1, 4, 3))
REFUSED = {
    "a negative choice": (lambda: indexer.top_k(np.ones((1, 4)), [4], -1), "k must be 0 or more; got -1"),
    "more experts than there are": (
        lambda: moe.route(np.ones((1, 4)), np.zeros(4), 5),
        "k must be 1 … 4, the number of experts; got 5",
    ),
    "no expert": (lambda: moe.route(np.ones((1, 4)), np.zeros(4), 0), "k must be 1 … 4"),
    "unequal groups of heads": (
        lambda: attention.grouped_output(HEADS, np.ones((6, 4)), np.ones((7, 6)), 3),
        "n_groups must divide the number of heads, 4; got 3",
    ),
    "no group of heads": (
        lambda: attention.grouped_output(HEADS, np.ones((6, 4)), np.ones((7, 6)), 0),
        "n_groups must divide the number of heads, 4; got 0",
    ),
    "no step of Sinkhorn": (lambda: mhc.sinkhorn(np.ones((1, 4, 4)), 0, 1e-6), "iterations must be 1 or more; got 0"),
    "rounds that end with columns": (
        lambda: optimisers.balance(np.ones((3, 2)), rounds=2),
        "rounds must be odd and positive; got 2",
    ),
    "no bins": (lambda: scheduler.calibration_error([0.5], [1], bins=0), "bins must be 1 or more; got 0"),
    "no length": (lambda: rope.yarn_frequencies(64, 160000.0, 0, 16), "original_length and turns positive"),
    "no base": (lambda: rope.yarn_frequencies(64, 1.0, 65536, 16), "theta must be above 1"),
    "an id below the vocabulary": (lambda: tiny_model().hash.compress([5, -1]), r"integers 0 … 95; got -1 … 5"),
    "an id above the vocabulary": (lambda: tiny_model().hash.compress([100]), r"integers 0 … 95; got 100 … 100"),
    "ids that are none": (lambda: tiny_model().hash.compress([0.5]), "integers 0 … 95; got float64"),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_it_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_ends_of_what_is_allowed_are():
    assert indexer.top_k(np.ones((1, 4)), [4], 0).shape == (1, 0)
    assert moe.route(np.ones((1, 4)), np.zeros(4), 4)[0].tolist() == [[0, 1, 2, 3]]
    assert tiny_model().hash.compress(np.array([0, 95])).tolist() == [0, 47]
