"""The `evidence` widget: the report's rows in exact tenths, predictions, chance, sorted claims, the checklist."""

import json
import math
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu import widgets
from deepseek_edu.widgets import live
from deepseek_edu.widgets.parts import Metrics, Table
from deepseek_edu.widgets.render import render_parts

TABLE = {  # report, table 1, page 24, in tenths of a point
    "mmlu-pro": (683, 741),
    "bigcodebench": (568, 606),
    "humaneval": (695, 794),
    "math": (574, 611),
    "mgsm": (857, 802),
    "longbench": (447, 452),
}
GAPS = {"mmlu-pro": 58, "bigcodebench": 38, "humaneval": 99, "math": 37, "mgsm": -55, "longbench": 5}
SUPPORTED = {"c1", "c4", "c6", "c8"}
WHOLE = {
    "question": "Does V4.1-Flash-Base score higher on MGSM than V4-Flash-Base?",
    "plan": "5 runs of each, same prompts and settings, 2,500 questions.",
    "measure": "Mean accuracy and its 95 % interval.",
    "rule": "If the interval of the difference lies above 1 point: yes. Otherwise undecided.",
}


def view(**values) -> widgets.View:
    return widgets.evaluate("evidence", values)


def raw(**values) -> dict:
    return view(**values).parts[0].raw


def numbers(shown: widgets.View) -> dict:
    metrics = next(part for part in shown.parts if isinstance(part, Metrics))
    return {item.label: item.value for item in metrics.items}


def direction(key: str, level: int = 3) -> str:
    return "same" if abs(GAPS[key]) <= level else "up" if GAPS[key] > 0 else "down"


def test_the_rows_are_those_of_the_report_and_nothing_of_the_new_model_shows_before_it_is_revealed():
    rows = raw(stage="reveal")["rows"]
    assert [(before, after) for _, before, after in rows] == [(a / 10, b / 10) for a, b in TABLE.values()]
    hidden = view()
    seen = " ".join([json.dumps(hidden.data()), *re.findall(r">([^<]+)<", "".join(render_parts(hidden)))])
    assert not any(str(after / 10) in seen for _, after in TABLE.values())


def test_differences_are_exact_and_five_rows_go_up_and_one_down():
    shown = view(stage="reveal")
    assert shown.parts[0].raw["gaps"] == {key: gap / 10 for key, gap in GAPS.items()}
    assert numbers(shown)["Up / same / down"] == "5/0/1"
    assert (numbers(shown)["Largest gain"], numbers(shown)["Largest loss"]) == (9.9, -5.5)


@pytest.mark.parametrize("up", TABLE)
@pytest.mark.parametrize("other", TABLE)
def test_predictions_are_scored(up, other):
    shown = view(stage="reveal", up=up, other=other)
    if up == other:
        assert shown.parts[0].raw["guesses"] == {}
        assert "twice" in view(up=up, other=other).summary
    else:
        assert numbers(shown)["Your predictions"] == (direction(up) == "up") + (direction(other) != "up")


def test_a_prediction_is_made_in_the_picture_too():
    markup = view(up="math", other="mgsm").parts[0].wide.markup
    for control in ("up", "other"):
        assert re.findall(rf'data-set="{control}=([\w-]+)"', markup) == list(TABLE)
    said = re.findall(r'k-box--selected" rx="5"/><text [^>]*>([^<]+)<.*?data-set="(\w+)=(\w+)"', markup)
    assert said == [("up", "up", "math"), ("not up", "other", "mgsm")]
    assert "data-set" not in view(stage="reveal").parts[0].wide.markup


@pytest.mark.parametrize("level", range(11))
def test_what_counts_as_equal_moves_long_bench_alone(level):
    found = raw(stage="reveal", level=level / 10)["directions"]
    assert found == {key: direction(key, level) for key in TABLE}
    assert (found["longbench"] == "same") == (level >= 5)


def test_the_share_of_wrong_answers_that_is_gone():
    table = next(part for part in view(stage="reveal").parts if isinstance(part, Table))
    for row, (before, after) in zip(table.rows, TABLE.values(), strict=True):
        assert row[4] == pytest.approx(float(1 - Fraction(1000 - after, 1000 - before)), abs=1e-12)


@pytest.mark.parametrize(("index", "count"), [(0, 50), (3, 500), (7, 10_000)])
def test_the_band_of_chance_and_what_lies_beyond_it(index, count):
    shown = view(stage="chance", questions=index)
    bands = {}
    for key, (before, after) in TABLE.items():
        variance = sum(Fraction(s, 1000) * Fraction(1000 - s, 1000) for s in (before, after)) / count
        bands[key] = 196 * math.sqrt(variance)
    assert shown.parts[0].raw["band"] == pytest.approx(bands, rel=1e-12)
    assert numbers(shown)["Beyond the band"] == sum(abs(GAPS[key]) / 10 > bands[key] for key in TABLE)
    assert numbers(shown)["Sign test"] == 14 / 64  # 0, 1, 5 or 6 heads of 6: 1 + 6 + 6 + 1


def test_with_500_questions_three_of_six_rows_lie_beyond_chance():
    assert numbers(view(stage="chance", questions=3))["Beyond the band"] == 3


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from([f"c{i}" for i in range(1, 9)])))
def test_any_sorting_is_scored_and_judged_only_when_asked(chosen):
    values = {"part": "claims", **{f"c{i}": f"c{i}" in chosen for i in range(1, 9)}}
    open_view, checked = view(**values), view(**values, check=True)
    assert open_view.parts[0].raw["supported"] == {} and not any(isinstance(p, Table) for p in open_view.parts)
    wrong = chosen ^ SUPPORTED
    assert numbers(checked)["Sorted right"] == 8 - len(wrong)
    table = next(part for part in checked.parts if isinstance(part, Table))
    assert {f"c{i}" for i, row in enumerate(table.rows, 1) if row[1] != row[2]} == wrong
    assert {f"c{i + 1}" for i in table.selected} == wrong
    assert {key for key, yes in checked.parts[0].raw["supported"].items() if yes} == SUPPORTED


def test_every_claim_has_a_reason_and_those_not_supported_name_what_is_missing_or_the_row_against_them():
    reasons = raw(part="claims", check=True)["why"]
    assert "5 of 6 rows went up. Down: MGSM." in reasons["c2"]
    assert "differ in one thing" in reasons["c3"]
    assert "repeated runs" in reasons["c5"]
    assert "base models" in reasons["c7"]
    assert "31.7\u202f% and 25.9\u202f%, 18\u202f% fewer" in reasons["c4"]
    assert "13 and 8 billion; 16 billion" in reasons["c6"]


def test_an_empty_plan_misses_everything_and_a_whole_one_nothing():
    empty = view(part="plan", question="", plan="", measure="", rule="")
    assert numbers(empty)["Missing"] == len(empty.parts[0].raw["missing"]) == 10
    whole = view(part="plan", **WHOLE)
    assert whole.parts[0].raw["missing"] == []
    assert whole.parts[0].raw["experiment"] == WHOLE
    assert "Nothing is missing" in whole.summary


@pytest.mark.parametrize(
    ("field", "text", "missing"),
    [
        ("question", "V4.1-Flash-Base scores higher on MGSM than V4-Flash-Base.", "is a question"),
        ("question", "Is V4.1-Flash-Base good?", "names what is compared"),
        ("plan", "One run of each, same prompts and settings, 2,500 questions.", "runs more than once"),
        ("plan", "5 runs of each, 2,500 questions.", "says what stays the same"),
        ("plan", "5 runs of each, same prompts and settings.", "says how many questions"),
        ("measure", "How well it does, with its 95 interval.", "names a quantity"),
        ("measure", "Mean accuracy.", "tells the spread"),
        ("rule", "If the interval lies above zero: yes. Otherwise undecided.", "has a threshold"),
        ("rule", "Above 1 point: yes. Otherwise undecided.", "says what follows if it is met"),
        ("rule", "If it lies above 1 point: yes.", "says what follows if not"),
    ],
)
def test_each_thing_that_is_left_out_is_found_missing_alone(field, text, missing):
    assert raw(part="plan", **{**WHOLE, field: text})["missing"] == [missing]


def edited(old: str, new: str, **values) -> dict:
    source = live.mechanism_source(widgets.get("evidence"))
    assert source.count(old) == 1, old
    answer = json.loads(live.evaluate_json("evidence", json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer["data"]["parts"]


def test_wrong_mechanisms_move_numbers_that_are_checked_here():
    backwards = edited("round(after - before, 9)", "round(before - after, 9)", stage="reveal")
    assert backwards[1]["values"]["Up / same / down"] == "1/0/5"
    one_sided = edited("2 * tail / 2**coins", "tail / 2**coins", stage="chance")
    assert one_sided[1]["values"]["Sign test"] == 7 / 64
    one_score = edited("for share in (before / 100, after / 100)", "for share in (before / 100,)", stage="chance")
    assert one_score[1]["values"]["Widest band"] < 0.8 * numbers(view(stage="chance"))["Widest band"]
    trusting = edited("holds and not missing", "holds", part="claims", check=True)
    assert trusting[1]["values"]["The table supports"] == 7
