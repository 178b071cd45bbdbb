"""Texts, steps, searches and tables of numbers; what is remembered; a mechanism of several modules."""

import json

import pytest

from deepseek_edu.reference import moe, quant
from deepseek_edu.widgets import Choice, ControlError, Numbers, Prose, Slider, Text, Toggle, View, live, states
from deepseek_edu.widgets.contract import REGISTRY, widget
from deepseek_edu.widgets.memo import forget, remembered
from deepseek_edu.widgets.render import render_widget

LINE = Text(8, "Words", pattern="[a-z ]*", expected="small letters and spaces", samples=("a b",))
CODE = Text(40, "Code", lines=5, code=True)


@pytest.fixture
def sample():
    @widget(
        "sample",
        "A sample",
        mechanism={"reference.quant": ("nearest_code",), "reference.moe": ("route",)},
        source="report §2",
        grid=("which",),
    )
    def function(
        step: Slider(0, 2, 1, "Step", look="steps", names=("one", "two", "three")) = 0,
        which: Choice({"a": "Layer 1", "b": "Layer 12"}, "Layer", look="search") = "a",
        words: Text(8, "Words") = "p;q",
        on: Toggle("On") = False,
        table: Numbers(-1, 1, 0.5, "Table", length=4, columns=2, names=("x", "y"), rows=("r", "s")) = (0, 0.5, 1, -1),
    ) -> View:
        scores = (quant.encode_e2m1(table[1]), moe.route.__module__)
        return View((Prose(f"{step} {which} {words} {on} {scores}"),), f"{words}.")

    yield REGISTRY["sample"]
    del REGISTRY["sample"]


def test_a_text_is_kept_word_for_word_within_its_rules():
    assert LINE.check("words", "new york") == "new york"
    assert CODE.check("code", "a\r\nb\rc\n") == "a\nb\nc\n"
    assert LINE.check("words", "a\nb") == "a b"


@pytest.mark.parametrize(
    ("bad", "got"), [("new york city", "13 characters"), ("New", "New"), (3, 3), (None, None), ("x2", "x2")]
)
def test_a_text_that_breaks_a_rule_is_refused_with_the_rule(bad, got):
    with pytest.raises(ControlError, match="at most 8 characters, small letters and spaces") as caught:
        LINE.check("words", bad)
    assert caught.value.got == got


def test_a_text_cannot_break_out_of_its_key(sample):
    plain = states.state_key(sample, {"words": "p"})
    assert plain == "step=0;which=a;words=p;on=0;table=2,3,4,0"
    assert states.state_key(sample, {"words": "p;on=1"}) == plain.replace("words=p", "words=p%3Bon=1")
    assert CODE.key("100%\n;") == "100%25%0A%3B"


def test_a_pattern_comes_with_its_words():
    with pytest.raises(ValueError, match="expected both or none"):
        Text(8, "Words", pattern="[a-z]*")


def test_names_must_fit_their_control():
    with pytest.raises(ValueError, match="2 names, expected 3"):
        Slider(0, 2, 1, "Step", names=("a", "b"))
    with pytest.raises(ValueError, match="look is 'step'"):
        Slider(0, 2, 1, "Step", look="step")
    with pytest.raises(ValueError, match="same label"):
        Choice({"a": "A", "b": "A"}, "Which", look="search")
    with pytest.raises(ValueError, match="a name for each column and each row"):
        Numbers(0, 1, 1, "Table", length=4, columns=2, names=("x", "y"), rows=("r",))
    with pytest.raises(ValueError, match="3 names, expected 2"):
        Numbers(0, 1, 1, "Row", length=2, names=("x", "y", "z"))


IDS = Numbers(0, 95, 1, "Ids", length=2, names=("first", "second"), whole=True)


@pytest.mark.parametrize("bad", [1.5, -1, 96, 1e-9, float("nan"), True, "1"])
def test_an_id_is_a_whole_number_and_never_rounded(bad):
    assert IDS.check("ids", [0, 95.0]) == (0.0, 95.0)
    with pytest.raises(ControlError, match="a whole number from 0 to 95") as caught:
        IDS.check("ids", [0, bad])
    assert caught.value.control == "ids[1]"


@pytest.mark.parametrize("grid", [(0, 9, 0.5), (0.5, 9.5, 1), (0, 9.5, 1)])
def test_whole_numbers_need_a_whole_range(grid):
    with pytest.raises(ValueError, match="expected whole numbers"):
        Numbers(*grid, "Ids", whole=True)


def test_the_page_knows_what_fields_are_called_and_which_are_whole(sample):
    assert IDS.spec()["fields"] == ["first", "second"] and IDS.spec()["whole"] is True
    assert sample.controls["table"].spec()["fields"] == ["r, x", "r, y", "s, x", "s, y"]
    assert {"fields", "whole"}.isdisjoint(Numbers(-1, 1, 0.5, "Row").spec())


def test_fields_are_native_and_every_number_of_a_table_has_a_name(sample):
    html = render_widget(sample)
    assert 'aria-valuetext="one"' in html and ">one</output>" in html
    assert html.count("data-step=") == 3
    assert 'list="widget-sample-which-options"' in html and "<option>Layer 12</option>" in html
    assert 'value="p;q"' in html
    assert [f"Table: {name}" in html for name in ("r, x", "r, y", "s, x", "s, y")] == [True] * 4
    assert '<th scope="col">y</th>' in html and '<th scope="row">s</th>' in html


def test_the_first_line_of_a_long_text_is_not_lost():
    assert render_field("\nx")[0] == "\n"


def render_field(value: str) -> str:
    from deepseek_edu.widgets.inputs import _text

    text = _text(CODE, value, "id", "")
    inner = text.partition(">")[2].removesuffix("</textarea>")
    return inner[1:]  # a browser drops the first line end of a textarea


def test_only_choices_of_the_grid_are_combined_in_advance(sample):
    planned = [(v["which"], v["on"], v["step"]) for v in states.planned(sample)]
    assert ("b", True, 0) in planned and ("a", False, 2) in planned and ("b", False, 2) in planned
    assert ("b", True, 2) not in planned, "a switch outside the grid moves alone"
    with pytest.raises(TypeError, match="grid names 'words'"):
        widget("bad", "Bad", grid=("words",))(sample.function)


def test_random_settings_try_the_samples_of_a_text():
    @widget("texts", "Texts")
    def function(words: Text(8, "Words", samples=("a", "b")) = "c") -> View:
        return View((), f"{words}.")

    try:
        drawn = {values["words"] for values in states.random_values(REGISTRY["texts"], 40, seed=0)}
    finally:
        del REGISTRY["texts"]
    assert drawn == {"a", "b", "c"}


def test_an_edit_reaches_the_module_its_heading_names(sample):
    source = live.mechanism_source(sample)
    heads = [line for line in source.splitlines() if line.startswith("# deepseek_edu/")]
    assert heads == ["# deepseek_edu/reference/quant.py", "# deepseek_edu/reference/moe.py"]
    ours = quant.nearest_code
    edited = source.replace("def route(", "boom = 1 / 0\ndef route(")
    answer = json.loads(live.evaluate_json("sample", "{}", edited))
    line = edited[: edited.index("boom")].count("\n") + 1
    assert (answer["error"]["type"], answer["error"]["line"]) == ("ZeroDivisionError", line)
    assert quant.nearest_code is ours
    with live.edited_mechanism(sample, "# deepseek_edu/reference/moe.py\ndef route(): return 'mine'") as missing:
        assert missing == ["nearest_code"]
        assert moe.route() == "mine" and quant.nearest_code is ours
    assert moe.route.__module__ == "deepseek_edu.reference.moe"


def test_an_edit_sees_nothing_that_was_remembered_before_it_and_leaves_nothing(sample):
    calls = []

    @remembered(4)
    def run(length):
        calls.append(length)
        return length

    run(1), run(1)
    assert calls == [1]
    with live.edited_mechanism(sample, "# deepseek_edu/reference/moe.py\n"):
        run(1)
        assert calls == [1, 1]
    run(1)
    assert calls == [1, 1]
    with live.edited_mechanism(sample, "# deepseek_edu/reference/moe.py\n# another\n"):
        run(1)
    assert calls == [1, 1, 1]
    forget()
