"""Rows of scores compared: by exact fractions, by counting coins, by drawing questions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepseek_edu.reference import comparison

SCORES = st.integers(0, 1000).map(lambda tenths: tenths / 10)


@given(SCORES, SCORES)
def test_differences_and_directions_are_those_of_exact_tenths(before, after):
    gap = Fraction(str(after)) - Fraction(str(before))
    assert comparison.difference(before, after) == float(gap)
    expected = "same" if abs(gap) <= Fraction(3, 10) else "up" if gap > 0 else "down"
    assert comparison.direction(before, after) == expected


def test_a_gap_of_exactly_three_tenths_is_the_same_level():
    for before, after in ((44.7, 45.0), (0.1, 0.4), (80.5, 80.2), (57.4, 57.7)):
        assert comparison.direction(before, after) == "same"


@given(st.integers(0, 999), st.integers(0, 1000))
def test_the_share_of_errors_that_are_gone(before, after):
    expected = 1 - Fraction(1000 - after, 1000 - before)
    assert comparison.error_reduction(before / 10, after / 10) == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize(("up", "down"), [(0, 0), (5, 1), (1, 5), (6, 0), (3, 3), (4, 0), (7, 2)])
def test_the_sign_test_counts_coins(up, down):
    coins = up + down
    uneven = [abs(2 * sum(heads) - coins) >= abs(up - down) for heads in itertools.product((0, 1), repeat=coins)]
    assert comparison.sign_test(up, down) == sum(uneven) / len(uneven)


def test_the_band_covers_about_95_of_100_draws_of_questions():
    rng = np.random.default_rng(0)
    shares, questions = (0.568, 0.606), 400
    draws = rng.binomial(questions, shares, (20_000, 2)) / questions * 100
    gaps = draws[:, 1] - draws[:, 0] - 3.8
    band = comparison.chance_band(56.8, 60.6, questions)
    assert np.mean(np.abs(gaps) <= band) == pytest.approx(0.95, abs=0.01)
    assert comparison.chance_band(56.8, 60.6, 4 * questions) == pytest.approx(band / 2)


def test_a_claim_needs_its_numbers_and_its_kinds_of_evidence():
    told = ("scores", "sizes")
    assert comparison.judge(True, ("scores",), told) == (True, ())
    assert comparison.judge(False, ("scores",), told) == (False, ())
    assert comparison.judge(True, ("scores", "several runs"), told) == (False, ("several runs",))
