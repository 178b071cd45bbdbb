"""The step-through of the chapter: its group worked by hand, and its six figures."""

import pytest

from deepseek_edu import figures
from deepseek_edu.figures import fp4_walk
from deepseek_edu.widgets import get

# Worked by hand: 7 / 6 = 1.1667 lies nearer to 1.125 than to 1.25; the byte of 1.125 is sign 0, exponent 7 (bias 7),
# fraction 1/8: 0 0111 001 = 0x39. Quotients 6.22 0.89 −3.11 0.36 −0.09 1.96 −1.51 0 2.93 −0.53 0.8 −2.13 1.24 −0.18
# 0.27 −0.89 have the nearest levels 6 (clipped) 1 −3 .5 −0 2 −1.5 0 3 −.5 1 −2 1 −0 .5 −1.
CODES = "72D184B0592C281A"
PACKED = ["27", "1D", "48", "0B", "95", "C2", "82", "A1"]
STEPS = ("values", "scale", "levels", "codes", "bytes", "back")


def test_the_bytes_are_those_worked_by_hand():
    shown = figures.get("fp4-walk-bytes").raw
    assert shown == {"bytes": PACKED, "scale": "39"}


def test_the_codes_are_those_worked_by_hand():
    assert "".join(figures.get("fp4-walk-codes").raw["digit"]) == CODES


def test_the_scale_is_the_nearest_one_and_its_byte_is_stated():
    raw = figures.get("fp4-walk-scale").raw
    assert raw["scale"] == 1.125
    assert raw["byte"] == 0x39
    assert raw["ideal"] == pytest.approx(7 / 6)


def test_the_largest_error_is_where_the_text_says():
    raw = figures.get("fp4-walk-back").raw
    sizes = {
        value: abs(float(error.replace("\N{MINUS SIGN}", "-")))
        for value, error in zip(raw["value"], raw["error"], strict=True)
    }
    assert max(sizes, key=sizes.get) == "1.4"
    assert sizes["1.4"] == 0.275


def test_the_widget_begins_with_the_same_group():
    assert get("fp4").defaults["values16"] == fp4_walk.GROUP


@pytest.mark.parametrize("step", STEPS)
def test_each_step_has_words_that_stand_in_for_it_and_a_drawing_for_phones(step):
    picture = figures.get(f"fp4-walk-{step}")
    assert picture.narrow is not None
    assert picture.narrow.width == 344
    assert len(picture.description) > 60
    assert "style=" not in picture.html(step)
