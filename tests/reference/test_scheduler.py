"""Verification lengths and calibration (tests/oracles/dspark_scheduler_vectors.json)."""

import json

import numpy as np
import pytest

from deepseek_edu.reference import scheduler

from .tiny import ORACLES


def cases():
    content = json.loads((ORACLES / "dspark_scheduler_vectors.json").read_text())["cases"]
    for case in content:
        case["sps"] = {int(tokens): speed for tokens, speed in case["sps"].items()}
    return {case["id"]: case for case in content}


@pytest.mark.parametrize("name", ["smooth-causal", "appendix-a-high", "appendix-a-low"])
def test_causal_lengths_are_the_recorded_ones(name):
    case = cases()[name]
    lengths, throughput = scheduler.causal_lengths(case["confidence"], case["sps"])
    assert lengths.tolist() == case["lengths"]
    if "throughput" in case:
        assert abs(throughput - case["throughput"]) < 1e-9
        assert lengths.sum() == case["capacity"]


def test_lagged_lengths_are_the_recorded_ones():
    case = cases()["lagged"]
    drafts, throughput = scheduler.capacity(case["history"], case["sps"])
    lengths, total, expected = scheduler.lagged_lengths(case["confidence"], case["history"], case["sps"])
    assert (drafts, total, lengths.tolist()) == (case["capacity"], case["capacity"], case["lengths"])
    assert abs(throughput - case["throughput"]) < 1e-4
    assert abs(expected - case["allocation_expected"]) < 1e-9


def test_a_later_confidence_never_changes_an_earlier_decision():
    """One draft does not pay (1.8 · .5 < 1), two would (2.52 · .45 > 1): the best budget depends on the second one."""
    high, low = cases()["appendix-a-high"], cases()["appendix-a-low"]
    assert high["confidence"][0][0] == low["confidence"][0][0]
    assert scheduler.causal_lengths(high["confidence"], high["sps"])[0].tolist() == [0]
    assert scheduler.causal_lengths(low["confidence"], low["sps"])[0].tolist() == [0]
    assert scheduler.capacity(high["confidence"], high["sps"])[0] == 2
    assert scheduler.capacity(low["confidence"], low["sps"])[0] == 0


def test_survivals_multiply_from_left_to_right():
    np.testing.assert_allclose(scheduler.survival([[0.5, 0.5], [1.0, 0.25]]), [[0.5, 0.25], [1.0, 0.25]])


def test_equal_survivals_go_to_the_earlier_position_and_then_the_earlier_request():
    flat = {tokens: 1.0 for tokens in range(2, 7)}
    flat[3] = flat[4] = 1.0
    lengths, _ = scheduler.causal_lengths([[1.0, 1.0], [1.0, 1.0]], {**flat, 4: 0.5, 5: 0.1, 6: 0.1})
    assert lengths.tolist() == [1, 0]


def test_an_unknown_batch_size_is_named():
    with pytest.raises(ValueError, match="an entry for 3 tokens"):
        scheduler.causal_lengths([[0.9], [0.9]], {2: 1.0})


def test_calibration_error_is_the_mean_gap_by_bins():
    """Two bins: ten forecasts of .2 of which five come true (gap .3), ten of .9 of which nine do (gap 0)."""
    probabilities = np.array([0.2] * 10 + [0.9] * 10)
    outcomes = np.array([1] * 5 + [0] * 5 + [1] * 9 + [0])
    assert abs(scheduler.calibration_error(probabilities, outcomes, bins=10) - 0.15) < 1e-12


@pytest.mark.parametrize(
    ("probabilities", "outcomes", "message"),
    [
        ([0.5, 1.5], [1, 0], "probabilities must be"),
        ([float("nan"), 0.5], [1, 0], "probabilities must be"),
        ([[0.5, 0.5]], [[1, 0]], "probabilities must be"),
        ([0.5, 0.5], [1], "outcomes must be"),
    ],
)
def test_a_calibration_of_something_else_is_refused(probabilities, outcomes, message):
    with pytest.raises(ValueError, match=message):
        scheduler.calibration_error(probabilities, outcomes)


def test_temperatures_need_one_count_of_accepted_drafts_for_each_block():
    for logits, accepted in ((np.zeros((4, 3)), np.zeros(3)), (np.zeros(4), np.zeros(4))):
        with pytest.raises(ValueError, match="logits must be"):
            scheduler.fit_temperatures(logits, accepted)


def test_temperatures_undo_an_overconfident_head():
    """Drafts stand by known probabilities; logits twice too large need temperature 2, position by position."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0.5, 1.0, (20_000, 3))
    stands = rng.random((20_000, 3)) < 1 / (1 + np.exp(-logits))
    accepted = np.where(stands.all(axis=1), 3, np.argmin(stands, axis=1))
    temperatures = scheduler.fit_temperatures(2 * logits, accepted)
    assert np.all(np.abs(np.log2(temperatures) - 1) < 0.35), temperatures


@pytest.mark.parametrize(
    ("confidence", "message"),
    [
        ([[1.5, 0.2]], "got 0.2 … 1.5; apply the sigmoid first"),
        ([[float("nan"), 0.2]], "got nan"),
        ([0.5, 0.2], r"got shape \(2,\)"),
    ],
)
def test_confidences_that_are_no_probabilities_are_refused(confidence, message):
    for choose in (scheduler.causal_lengths, scheduler.capacity):
        with pytest.raises(ValueError, match=f"confidence must be probabilities .*{message}"):
            choose(confidence, {1: 1.0, 2: 1.0, 3: 1.0})
