"""What holds for the text of every widget: it has room in its picture, and its numbers are written in one way."""

import random
import re

import pytest

from deepseek_edu import widgets
from deepseek_edu.drawing import Canvas, Drawing
from deepseek_edu.widgets import states
from deepseek_edu.widgets.parts import Prose, View, kind_of

from .text_boxes import faults
from .words import words

every_widget = pytest.mark.parametrize("id", widgets.names())
NOUNS = (
    "blocks|bytes|candidates|degrees|drafts|entries|experts|groups|heads|keys|layers|meetings|mutants|numbers|owners|"
    "pairs|places|points|positions|queries|questions|rounds|rows|runs|samples|steps|tables|tests|times|tokens|words"
)
WRITTEN = {
    "a percent sign without a narrow space before it": r"\d[ \u00a0]?%",
    "thousands apart by a comma": r"\d,\d{3}(?!\d)",
    "thousands apart by a wide space": r"(?<![\w.])\d{1,3}[ \u00a0]\d{3}(?!\d)",
    "four digits and more in a row": r"(?<![\w.])(?![01]{4}\b)\d{4,}(?!\w)",  # four bits are a code, not a number
    "a straight apostrophe": r"[^\W\d]'[^\W\d]",
    "one of many": rf"(?<![\w.,\u202f])(?<!/ )1 ({NOUNS})\b",
}


def settings(id: str, count: int = 40):
    """The start, a sample of the states that are computed in advance, and random ones with extreme numbers."""
    chosen, chance = widgets.get(id), random.Random(5)
    planned = list(states.planned(chosen))
    yield from planned[:: max(1, len(planned) // count)]
    for values in states.random_values(chosen, count, seed=31):
        for name, control in chosen.controls.items():
            if control.kind == "numbers" and chance.random() < 0.3:
                values[name] = tuple(chance.choice((control.min, control.max)) for _ in range(control.length))
        yield values


def drawings(view: View):
    """Every drawing of a view, with its picture's title."""
    for part in view.parts:
        picture = part.picture() if kind_of(part) == "chart" else part
        if kind_of(part) in ("picture", "chart"):
            for drawing in filter(None, (picture.wide, picture.narrow)):
                yield picture.title, drawing


@every_widget
def test_texts_stay_in_their_picture_and_their_box_and_do_not_touch(id):
    for values in settings(id):
        for title, drawing in drawings(widgets.evaluate(id, values)):
            found = list(faults(drawing))
            assert not found, f"{title}, {drawing.width:g} units wide, at {values}: {found}"


@pytest.mark.parametrize("text", ["W" * 60, "中文字 " * 6, "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦 " * 3, "MMMMMMMM " * 8, "Wm"])
@pytest.mark.parametrize("token", [1, 4, 8])
def test_typed_words_of_any_width_stay_in_their_boxes(text, token):
    values = {"part": "sentence", "sentence": "own", "text": text.strip(), "token": token}
    for title, drawing in drawings(widgets.evaluate("engram", values)):
        assert not list(faults(drawing)), f"{title}, {drawing.width:g} units wide"


@every_widget
def test_numbers_and_words_are_written_in_one_way(id):
    for values in settings(id):
        for text in words(widgets.evaluate(id, values)):
            for fault, pattern in WRITTEN.items():
                assert not re.search(pattern, text), f"{fault} in {text!r} at {values}"


@pytest.mark.parametrize("id", [id for id in widgets.names() if id != "fp4"])
def test_a_zero_has_no_sign_where_no_code_keeps_it(id):
    for values in settings(id):
        for text in words(widgets.evaluate(id, values)):
            assert not re.search(r"−0(?![.\d])", text), f"{text!r} at {values}"


@every_widget
def test_the_controls_are_written_in_the_same_way(id):
    for name, control in widgets.get(id).controls.items():
        said = [control.label, control.help, getattr(control, "unit", "")]
        said += [
            *getattr(control, "options", {}).values(),
            *getattr(control, "names", ()),
            *getattr(control, "rows", ()),
        ]
        for text in filter(None, said):
            for fault, pattern in WRITTEN.items():
                assert not re.search(pattern, text), f"{fault} in {text!r}, a word of {name}"


def drawn(*texts) -> Drawing:
    canvas = Canvas(100, 40)
    for text in texts:
        canvas.text(*text)
    return Drawing(canvas.width, canvas.height, canvas.markup())


@pytest.mark.parametrize(
    ("drawing", "kind"),
    [
        (drawn((96, 20, "far out")), "outside"),
        (drawn((10, 8, "above", "", "start")), "outside"),
        (drawn((0, 20, "5 242 880", "", "start"), (60, 22, "tokens →")), "touch"),
        (drawn((30, 20, "−0.5", "", "end"), (31, 20, "0.5", "", "start")), "touch"),
    ],
)
def test_text_that_runs_out_or_into_other_text_is_found(drawing, kind):
    assert [fault[0] for fault in faults(drawing)] == [kind]


def test_text_wider_than_the_cell_it_is_centred_in_is_found():
    canvas = Canvas(200, 40)
    with canvas.group(20, 5):
        canvas.cell(0, 0, 40, 22, "WWWWWW")
        canvas.cell(60, 0, 70, 22, "fits")
    assert [fault[:2] for fault in faults(Drawing(200, 40, canvas.markup()))] == [("box", "WWWWWW")]


@pytest.mark.parametrize(
    "text",
    ["8%", "8 %", "of 4,096 rows", "16 384 rows", "16384 rows", "the router's", "1 tests", "for 1 tokens"],
)
def test_each_other_way_of_writing_is_found(text):
    said = list(words(View((Prose(text),), "Nothing else.")))
    assert any(re.search(pattern, line) for line in said for pattern in WRITTEN.values())


@pytest.mark.parametrize(
    "text", ["8\u202f%", "16\u202f384 rows", "code 0101", "0.12345", "1.5 tokens", "V1 389\u202f120"]
)
def test_the_one_way_of_writing_is_not(text):
    assert not any(re.search(pattern, text) for pattern in WRITTEN.values())
