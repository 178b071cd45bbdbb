"""Controls, their checks, views and the registry."""

import json
import math
import subprocess
import sys

import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets import Choice, ControlError, Metric, Metrics, Numbers, Prose, Slider, Table, Toggle, View
from deepseek_edu.widgets.contract import REGISTRY, widget

SLIDER = Slider(-8, 8, 0.05, "Value")
CHOICE = Choice({"a": "A", "b": "B"}, "Which")
NUMBERS = Numbers(-2, 2, 0.5, "Values", length=3)


def test_a_slider_value_is_the_decimal_number_the_reader_sees():
    assert all(SLIDER.at(i) == round(-8 + i / 20, 2) for i in range(SLIDER.count + 1))
    assert SLIDER.check("value", 3.2000000000000006) == 3.2
    assert math.copysign(1, SLIDER.check("value", -0.0)) == 1
    assert SLIDER.text(-3.2) == "−3.20"


@pytest.mark.parametrize("bad", [8.05, -8.05, 3.21, math.nan, math.inf, "3.2", None, True, [1]])
def test_a_slider_refuses_what_is_not_on_it_and_names_control_value_and_range(bad):
    with pytest.raises(ControlError) as caught:
        SLIDER.check("value", bad)
    error = caught.value
    assert error.control == "value"
    assert error.got is bad
    assert error.allowed == "a number from -8 to 8 in steps of 0.05"
    assert "'value'" in str(error) and repr(bad) in str(error) and error.allowed in str(error)


@pytest.mark.parametrize("bad", ["c", "", 1, None, "A"])
def test_a_choice_refuses_what_is_no_option(bad):
    with pytest.raises(ControlError, match="allowed: one of a, b"):
        CHOICE.check("which", bad)


@pytest.mark.parametrize("bad", [0, 1, "true", None])
def test_a_toggle_is_true_or_false_and_nothing_that_looks_like_it(bad):
    with pytest.raises(ControlError, match="true or false"):
        Toggle("On").check("on", bad)


def test_a_list_of_numbers_names_the_item_that_is_wrong():
    assert NUMBERS.check("values", [0, 0.5, -2]) == (0.0, 0.5, -2.0)
    with pytest.raises(ControlError, match=r"'values\[1\]': got 2.3, allowed: a number from -2 to 2"):
        NUMBERS.check("values", [0, 2.3, 0])
    with pytest.raises(ControlError, match="got '2 numbers', allowed: 3 numbers"):
        NUMBERS.check("values", [0, 0])
    with pytest.raises(ControlError, match="3 numbers"):
        NUMBERS.check("values", "0,0,0")


def test_a_typed_number_stays_the_number_that_was_typed():
    typed = [7.125, 1e-3, 0.1 + 0.2, 2**-1074, -23.999999999]
    row = Numbers(-24, 24, 0.05, "Values", length=5)
    assert row.check("values", typed) == tuple(typed)
    assert row.text((7.125, -0.001, 0.0, 0.0, 1.0)) == "7.125, −0.001, 0.0, 0.0, 1.0"


@pytest.mark.parametrize("bad", [2.0000000001, -3, math.nan, math.inf, "1", None, True])
def test_a_typed_number_outside_the_range_or_no_number_is_refused(bad):
    with pytest.raises(ControlError, match="a number from -2 to 2"):
        NUMBERS.check("values", [0, bad, 0])


def test_an_unknown_control_is_refused_with_the_names_there_are():
    with pytest.raises(ControlError, match="control 'colour': got 'red', allowed: controls part, value"):
        widgets.evaluate("fp4", {"colour": "red"})
    with pytest.raises(ControlError, match="an object of control values"):
        widgets.evaluate("fp4", [("value", 1)])


def test_an_unknown_widget_is_refused_with_the_ids_there_are():
    with pytest.raises(KeyError, match=r"no widget 'fp5'; there are: .*fp4, "):
        widgets.get("fp5")


def test_the_registry_holds_what_a_page_needs():
    fp4 = widgets.get("fp4")
    assert "fp4" in widgets.names()
    assert fp4.source == "report §2.4.4"
    assert fp4.chapter == "04b_fp4_cache"
    assert fp4.defaults["value"] == 3.2
    assert list(fp4.controls) == list(fp4.defaults)


def test_a_hidden_control_counts_as_its_default():
    fp4 = widgets.get("fp4")
    assert fp4.canonical({"part": "block", "value": 1.0})["value"] == 3.2
    assert fp4.canonical({"part": "one", "value": 1.0})["value"] == 1.0
    with pytest.raises(ControlError):
        fp4.canonical({"part": "block", "value": 99})


def bad_annotation(x: float = 1.0) -> View: ...


def no_default(x: SLIDER) -> View: ...


def bad_default(x: SLIDER = 9.0) -> View: ...


def unknown_when(x: Slider(0, 1, 1, "x", when={"part": "a"}) = 0) -> View: ...


def impossible_when(part: CHOICE = "a", x: Slider(0, 1, 1, "x", when={"part": "c"}) = 0) -> View: ...


@pytest.mark.parametrize("function", [bad_annotation, no_default, bad_default, unknown_when, impossible_when])
def test_a_function_that_is_no_widget_is_refused_when_it_is_declared(function):
    before = dict(REGISTRY)
    with pytest.raises((TypeError, ControlError)):
        widget("broken", title="Broken")(function)
    assert before == REGISTRY


def test_a_widget_that_does_not_return_a_view_is_told_so():
    def wrong(x: SLIDER = 0.0) -> View:
        return "text"

    widget("wrong", title="Wrong")(wrong)
    try:
        with pytest.raises(TypeError, match="returned str, expected View"):
            widgets.evaluate("wrong")
    finally:
        REGISTRY.pop("wrong")


def test_a_view_has_a_summary_and_only_known_parts():
    with pytest.raises(ValueError, match="summary is empty"):
        View((), " ")
    with pytest.raises(TypeError, match="type str"):
        View(("text",), "Summary.")
    with pytest.raises(ValueError, match="2 cells, expected 1"):
        Table("t", ("a",), ((1, 2),))


def test_the_data_of_a_view_is_unrounded_json():
    view = View((Metrics((Metric("third", 1 / 3), Metric("none", math.nan))), Prose("p")), "S.")
    assert json.loads(json.dumps(view.data(), allow_nan=False)) == {
        "summary": "S.",
        "parts": [
            {"kind": "metrics", "values": {"third": 1 / 3, "none": {"$float": "nan"}}},
            {"kind": "prose", "text": "p"},
        ],
    }


def test_importing_a_widget_loads_no_site_and_no_plotting_code():
    code = (
        "import sys; import deepseek_edu.widgets.live, deepseek_edu.widgets.fp4; "
        "heavy = {'mkdocs', 'bs4', 'yaml', 'plotly', 'typer', 'inspect_source', 'deepseek_edu.site', "
        "'deepseek_edu.grading', 'deepseek_edu.drawing.chart', 'hypothesis'}; print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
