"""The rule by which results of two interpreters count as equal."""

import json

import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets.compare import differences, views_agree
from deepseek_edu.widgets.live import evaluate_json
from deepseek_edu.widgets.parts import Metric, Metrics, Prose, View


def view(value: object, text: str = "1.25", prose: str = "words") -> View:
    return View((Metrics((Metric("x", value, text),)), Prose(prose)), "S.")


def test_a_view_agrees_with_its_own_json_answer_and_data():
    for values in ({}, {"part": "block", "preset": "ties"}):
        answer = evaluate_json("fp4", json.dumps(values))
        assert differences(widgets.evaluate("fp4", values), answer) == []
        assert views_agree(json.loads(answer)["data"], widgets.evaluate("fp4", values).data())


@pytest.mark.behaviour(19)
def test_floats_agree_to_a_relative_part_in_ten_to_the_twelve():
    assert views_agree(view(1.0), view(1.0 + 5e-13))
    assert views_agree(view(1e-30), view(1e-30 * (1 + 5e-13)))
    assert not views_agree(view(1.0), view(1.0 + 5e-12))
    assert not views_agree(view(0.0), view(1e-300))
    assert not views_agree(view(0.0), view(-0.0))


def test_whole_numbers_and_text_agree_only_when_equal():
    assert not views_agree(view(10**15), view(10**15 + 1))
    assert not views_agree(view(True), view(1))
    assert not views_agree(view("a"), view("b"))
    assert not views_agree(view(1), view(1, prose="other words"))


@pytest.mark.behaviour(19)
def test_printed_digits_may_differ_by_a_last_digit_but_not_by_more():
    assert views_agree(view(1.0, "1.25"), view(1.0, "1.26"))
    assert not views_agree(view(1.0, "1.25"), view(1.0, "1.28"))
    assert not views_agree(view(1.0, "7 bytes"), view(1.0, "8 bytes"))
    assert not views_agree(view(1.0, "−0.2"), view(1.0, "0.2"))


def test_a_difference_says_where():
    (found,) = differences(widgets.evaluate("fp4").data(), {**widgets.evaluate("fp4").data(), "parts": []})
    assert found.startswith("data.parts")
    assert any(
        "Value" in line for line in differences(widgets.evaluate("fp4"), widgets.evaluate("fp4", {"value": 3.25}))
    )


def test_a_failed_evaluation_agrees_with_no_view():
    assert not views_agree(widgets.evaluate("fp4"), evaluate_json("fp4", '{"value": 99}'))
    with pytest.raises(TypeError, match="got int"):
        differences(3, widgets.evaluate("fp4"))
