"""The numbers of the dspark widget derived again: exact fractions, plain loops, printed quantiles; mutants."""

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu import widgets
from deepseek_edu.widgets import dspark_round, dspark_schedule, live

VECTORS = Path(__file__).resolve().parents[1] / "oracles" / "dspark_scheduler_vectors.json"
FIRST = ("0.92", "0.86", "0.76", "0.55", "0.42")
SECOND = ("0.94", "0.88", "0.81", "0.73", "0.61")


def view(**values) -> widgets.View:
    return widgets.evaluate("dspark", values)


def raw(**values) -> dict:
    return view(**values).parts[0].raw


def numbers(shown: widgets.View) -> dict:
    return {item.label: item.value for item in shown.parts[1].items}


def edited(old: str, new: str, **values) -> dict:
    """The picture's numbers when one place of the mechanism is written otherwise."""
    source = live.mechanism_source(widgets.get("dspark"))
    assert source.count(old) == 1, old
    answer = json.loads(live.evaluate_json("dspark", json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer["data"]["parts"][0]["raw"]


def survivals(chances: tuple[str, ...]) -> list[Fraction]:
    return [math.prod(map(Fraction, chances[: j + 1])) for j in range(len(chances))]


# Survival


def test_the_first_set_is_best_at_three_drafts_with_2_31_and_0_98():
    found = raw(part="survival")
    expected = survivals(FIRST)
    assert found["survivals"] == pytest.approx([float(s) for s in expected], abs=1e-12)
    assert found["best"] == 3
    assert round(found["expected"][3], 2) == 2.31
    assert round(found["yields"][3], 2) == 0.98
    gains = [sum(expected[:n], Fraction(0)) for n in range(6)]
    costs = [1 + Fraction(9, 20) * n for n in range(6)]
    assert found["yields"] == pytest.approx([float(g / c) for g, c in zip(gains, costs, strict=True)], abs=1e-12)


def test_the_second_set_survives_with_the_printed_numbers():
    shown = view(part="survival", chances="second")
    assert [round(s, 4) for s in shown.parts[0].raw["survivals"]] == [0.94, 0.8272, 0.67, 0.4891, 0.2984]
    assert round(shown.parts[0].raw["expected"][5], 4) == 3.2247
    assert "3.2247" in shown.summary


@settings(max_examples=60, deadline=None)
@given(chances=st.lists(st.integers(0, 100), min_size=5, max_size=5), cost=st.integers(0, 20), bonus=st.booleans())
def test_the_best_length_of_any_chances_and_cost(chances, cost, bonus):
    names = ("first", "second", "third", "fourth", "fifth")
    values = {name: chance / 100 for name, chance in zip(names, chances, strict=True)}
    found = raw(part="survival", cost=cost / 20, bonus=bonus, **values)
    exact = survivals(tuple(str(Fraction(c, 100)) for c in chances))
    yields = [(sum(exact[:n], Fraction(bonus))) / (1 + Fraction(cost, 20) * n) for n in range(6)]
    assert found["yields"] == pytest.approx([float(y) for y in yields], abs=1e-12)
    assert max(yields) - yields[found["best"]] < Fraction(1, 10**9)


def test_the_targets_own_token_can_change_the_best_length():
    assert raw(part="survival", bonus=True)["best"] == 2


# Scheduler


def test_a_changed_chance_and_the_survivals_behind_it_have_the_colour_of_change():
    def changed(**values) -> int:
        return view(part="survival", **values).parts[0].wide.markup.count("k-changed")

    assert changed() == 0
    assert changed(third=0.3) == 1 + 3, "the third chance, and the survivals of drafts 3, 4 and 5"
    assert changed(first=0.5) == 1 + 5
    assert changed(chances="second") == 0, "another printed set is no change of the reader's"


def test_a_changed_confidence_marks_its_request_and_no_other():
    start, lower = (view(part="schedule", confidence=c).parts[0].wide.markup for c in (0.9, 0.4))
    assert start.count("k-changed") == 0
    assert lower.count('class="k-ring k-changed"') == dspark_schedule.DRAFTS
    speeds = [*dspark_schedule.SPEEDS[:5], 20, *dspark_schedule.SPEEDS[6:]]
    own = view(part="schedule", case="own", speeds=speeds).parts[0].wide.markup
    assert own.count("k-changed") == 2, "one speed, and its word in the legend"


def cases() -> dict:
    return {case["id"]: case for case in json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]}


@pytest.mark.parametrize(
    ("name", "id"),
    [("two", "smooth-causal"), ("high", "appendix-a-high"), ("low", "appendix-a-low"), ("lagged", "lagged")],
)
def test_the_worked_cases_are_the_recorded_ones(name, id):
    recorded, case = cases()[id], dspark_schedule.CASES[name]
    assert [list(row) for row in case.confidence] == recorded["confidence"]
    assert {str(tokens): speed for tokens, speed in case.curve.items()} == recorded["sps"]
    found = raw(part="schedule", case=name)
    assert found["lengths"] == recorded["lengths"]
    if "capacity" in recorded:
        assert found["drafts"] == recorded["capacity"]
    if "throughput" in recorded:
        assert found["throughput"][found["drafts"]] == pytest.approx(recorded["throughput"], abs=1e-4)
    if "allocation_expected" in recorded:
        assert found["expected"] == pytest.approx(recorded["allocation_expected"], abs=1e-9)


def queue(confidence: list[list[float]]) -> list[tuple[float, int, int]]:
    """(survival, position, request) of all drafts, the best first."""
    places = [(math.prod(row[: j + 1]), j, request) for request, row in enumerate(confidence) for j in range(len(row))]
    return sorted(places, key=lambda place: (-place[0], place[1], place[2]))


@settings(max_examples=60, deadline=None)
@given(
    confidences=st.lists(st.integers(0, 64), min_size=12, max_size=12),
    speeds=st.lists(st.integers(0, 200), min_size=13, max_size=13),
)
def test_drafts_are_taken_until_the_first_that_does_not_pay(confidences, speeds):
    typed = [c / 64 for c in confidences]
    found = raw(part="schedule", case="own", confidences=typed, speeds=speeds)
    rows = [typed[i : i + 4] for i in (0, 4, 8)]
    order = queue(rows)
    assert [tuple(place) for place in found["order"]] == [(j, request) for _, j, request in order]
    lengths, expected, tokens = [0, 0, 0], 3.0, 3
    for survival, position, request in order:
        if not (expected + survival) * speeds[tokens + 1 - 3] > expected * speeds[tokens - 3]:
            break
        expected, tokens = expected + survival, tokens + 1
        lengths[request] = position + 1
    assert found["lengths"] == lengths
    assert found["expected"] == pytest.approx(expected, abs=1e-9)


def test_a_better_budget_behind_the_stop_is_pointed_out_and_not_taken():
    shown = view(part="schedule", case="high")
    assert shown.parts[0].raw["lengths"] == [0] and shown.parts[0].raw["best"] == 2
    assert any("must not look that far" in getattr(part, "text", "") for part in shown.parts)
    assert not any("must not look" in getattr(part, "text", "") for part in view(part="schedule", case="low").parts)


def test_a_confidence_is_called_a_forecast():
    for case in ("three", "two", "lagged"):
        words = [part.text for part in view(part="schedule", case=case).parts if isinstance(part, widgets.Prose)]
        assert "a forecast, never a certificate" in " ".join(words)


# A round


def test_a_round_follows_the_rule_draft_by_draft():
    for number, how in product(range(1, 7), ("sampled", "greedy")):
        found, one = raw(number=number, how=how), dspark_round.play(number, how == "greedy")
        word, stands = (number - 1) % 6, 0
        for place, draft in enumerate(found["drafts"]):
            p, q = dspark_round.TARGET[word][draft], dspark_round.DRAFTER[word][draft]
            limit = float(draft == dspark_round.TARGET[word].argmax()) if how == "greedy" else min(1, p / q)
            assert found["limits"][place] == pytest.approx(limit, abs=1e-12)
            chance = 0.5 if how == "greedy" else found["chances"][place]
            if chance >= limit:
                positive = np.maximum(dspark_round.TARGET[word] - dspark_round.DRAFTER[word], 0)
                left = np.eye(6)[dspark_round.TARGET[word].argmax()] if how == "greedy" else positive / positive.sum()
                break
            word, stands = draft, stands + 1
        else:
            left = np.eye(6)[dspark_round.TARGET[word].argmax()] if how == "greedy" else dspark_round.TARGET[word]
        assert found["accepted"] == stands
        assert np.asarray(found["left"]) == pytest.approx(left, abs=1e-12)
        assert list(found["emitted"][:-1]) == list(found["drafts"][:stands])
        assert left[found["emitted"][-1]] > 0
        assert how == "greedy" or len(found["chances"]) == min(stands + 1, 5), "nothing behind the first is looked at"
        assert one.looked_at == min(stands + 1, 5)


def test_chances_of_the_toy_sum_to_one():
    for table in (dspark_round.TARGET, dspark_round.DRAFTER):
        assert table.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-12)


def test_rounds_show_everything_from_nothing_stands_to_a_bonus():
    accepted = {raw(number=number)["accepted"] for number in range(1, 7)}
    assert {0, 1, 2, 3, 5} <= accepted
    assert raw(number=2)["accepted"] == 5, "the page says so"


@pytest.mark.parametrize("accepted", range(6))
def test_what_is_taken_back_is_counted_position_by_position(accepted):
    """Positions 8 to 13 went through the target; a global entry of ratio 2 is complete after an odd position."""
    gone = range(9 + accepted, 14)
    counts = {name: count for name, count, _ in dspark_round.undone(accepted)}
    assert counts["Window entries"] == 40 * len(gone)
    assert counts["Global entries, with their index keys"] == len(gone) + 3 * sum(p % 2 for p in gone)
    assert counts["Open groups set back"] == (3 if gone and gone[0] % 2 else 0)
    assert counts["Engram history"] == len(gone)


# Wrong mechanisms


def test_wrong_schedules_and_survivals_move_numbers_that_are_checked_here():
    assert (
        edited("np.cumprod(np.asarray(confidence", "np.cumsum(np.asarray(confidence", part="survival")["survivals"][1]
        > 1
    )
    greedy = edited("if throughput <= best:", "if throughput < 0:", part="schedule", case="high")
    assert greedy["lengths"] == [2]
    assert edited("return 1 + np.cumprod", "return np.cumprod", part="survival")["expected"][3] == pytest.approx(
        1.3125, abs=1e-3
    )
    assert edited("drafts[accepted] == choices[accepted]", "drafts[accepted] >= 0", how="greedy")["accepted"] == 5
