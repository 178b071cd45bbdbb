"""The SVG kit: escaping, deterministic numbers, geometry of the shapes, names for screen readers."""

import itertools
import re
import xml.etree.ElementTree as ET

import pytest

from deepseek_edu.drawing import Canvas, Drawing, Picture, draw, element
from deepseek_edu.drawing.axes import linear, log_ticks, logarithmic, nice_ticks
from deepseek_edu.drawing.numbers import coordinate, counted, fixed, grouped, percent, show, shown, superscript

NASTY = """<script>alert("x")</script> & 'quoted' ]]>"""


def shapes(canvas: Canvas) -> list[ET.Element]:
    return list(ET.fromstring(f"<svg>{canvas.markup()}</svg>").iter())[1:]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (-0.004, "0"),
        (1.005, "1"),
        (1.239, "1.24"),
        (-7.5, "-7.5"),
        (1e6, "1000000"),
        (100.0, "100"),
    ],
)
def test_coordinates_have_two_decimals_and_no_trailing_zeros(value, text):
    assert coordinate(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (-0.2, "−0.2"),
        (0.0, "0"),
        (-0.0, "−0"),
        (1.0 / 3, "0.33333"),
        (1234.5678, "1\u202f234.6"),
        (99999.7, "100\u202f000"),
        (2.0**-126, "1.1755·10⁻³⁸"),
        (float("nan"), "NaN"),
        (float("-inf"), "−∞"),
        (-0.19999999999999996, "−0.2"),
    ],
)
def test_numbers_for_readers_have_five_significant_digits_and_a_true_minus(value, text):
    assert show(value) == text


def test_fixed_numbers_keep_their_decimals_and_have_no_negative_zero():
    assert [fixed(v, 2) for v in (3.2, -3.2, -0.001, 0)] == ["3.20", "−3.20", "0.00", "0.00"]
    assert superscript(-126) == "⁻¹²⁶"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (grouped(1048576), "1_048_576"),
        (grouped(1024), "1_024"),
        (grouped(999), "999"),
        (grouped(-4096), "−4_096"),
        (grouped(-0.2), "0"),
        (grouped(195.25, 2), "195.25"),
        (grouped(3514.25, 2, trim=True), "3_514.25"),
        (grouped(3800, 2, trim=True), "3_800"),
        (percent(0.084), "8_%"),
        (percent(1), "100_%"),
        (percent(0.0156, 1), "1.6_%"),
        (percent(0.12345, digits=3), "12.3_%"),
        (percent(-0.5), "−50_%"),
        (counted(1, "test"), "1 test"),
        (counted(1024, "entry", "entries"), "1_024 entries"),
        (show(16384.0), "16_384"),
        (fixed(1256.8, 2), "1_256.80"),
        (shown(4096), "4_096"),
        (shown("1024"), "1024"),
    ],
)
def test_thousands_and_percent_signs_stand_off_by_a_narrow_space_that_does_not_break(text, words):
    assert text == words.replace("_", "\u202f")


def test_text_and_attributes_survive_a_parser_unchanged():
    made = ET.fromstring(element("text", "", class_=NASTY, data_note=NASTY))
    assert made.get("class") == made.get("data-note") == NASTY
    canvas = Canvas(10, 10)
    canvas.text(0, 0, NASTY)
    assert shapes(canvas)[0].text == NASTY
    assert "<script" not in canvas.markup()


def test_attributes_that_are_none_or_false_are_left_out():
    assert element("rect", width=None, hidden=False, open=True, rx=0) == '<rect open rx="0"/>'


def test_strokes_are_lines_and_filled_shapes_are_not():
    canvas = Canvas(100, 100)
    canvas.line(0, 0, 5, 5)
    canvas.polyline([(0, 0), (1, 2)], "k-axis")
    canvas.polygon([(0, 0), (1, 0), (0, 1)], "k-error")
    canvas.rect(0, 0, 4, 5)
    canvas.circle(1, 2, 3)
    canvas.bracket(0, 10, 5)
    canvas.arrow(0, 0, 10, 0)
    stroked = {shape.tag for shape in shapes(canvas) if shape.get("stroke-width")}
    assert stroked == {"line", "polyline"}
    assert not re.search(r'(fill|stroke)="(?!none)|style=|#[0-9a-f]{3}', canvas.markup())


def test_an_arrow_ends_exactly_at_its_target_and_a_zero_arrow_draws_nothing():
    canvas = Canvas(100, 100)
    canvas.arrow(0, 0, 30, 40)
    line, head = shapes(canvas)
    tip, left, right = (tuple(map(float, point.split(","))) for point in head.get("points").split())
    assert tip == (30, 40)
    assert (float(line.get("x2")), float(line.get("y2"))) == pytest.approx(
        ((left[0] + right[0]) / 2, (left[1] + right[1]) / 2), abs=0.01
    )
    still = Canvas(100, 100)
    still.arrow(5, 5, 5, 5)
    assert still.markup() == ""


def test_an_arrow_shorter_than_its_head_does_not_point_backwards():
    canvas = Canvas(100, 100)
    canvas.arrow(10, 0, 13, 0, head=6)
    line, head = shapes(canvas)
    assert float(line.get("x2")) == 10
    assert head.get("points").startswith("13,0")


def test_a_group_moves_what_is_drawn_inside():
    canvas = Canvas(100, 100)
    with canvas.group(12.5, 3):
        canvas.circle(0, 0, 1)
    group, circle = shapes(canvas)
    assert group.get("transform") == "translate(12.5 3)"
    assert circle in list(group)


def picture() -> Picture:
    def paint(width):
        canvas = Canvas(width, 50)
        canvas.text(width / 2, 20, "middle")
        return canvas

    return draw(paint, "A <title>", 'Says "so" & so')


def test_a_picture_is_drawn_for_a_column_and_for_a_phone():
    made = ET.fromstring(picture().html())
    boxes = [svg.get("viewBox") for svg in made.iter("{http://www.w3.org/2000/svg}svg")]
    assert boxes == ["0 0 720 50", "0 0 344 50"]


def test_without_a_prefix_a_picture_has_one_name_and_no_id():
    made = ET.fromstring(picture().html())
    assert (made.get("role"), made.get("aria-label")) == ("img", 'A <title>. Says "so" & so')
    svgs = list(made.iter("{http://www.w3.org/2000/svg}svg"))
    assert all(svg.get("aria-hidden") == "true" for svg in svgs)
    assert " id=" not in picture().html()


def test_with_a_prefix_each_drawing_is_labelled_by_its_own_title_and_description():
    made = ET.fromstring(picture().html("fig-a"))
    ids = {e.get("id"): e.text for e in made.iter() if e.get("id")}
    assert len(ids) == 4
    for svg in made.iter("{http://www.w3.org/2000/svg}svg"):
        title, description = svg.get("aria-labelledby").split()
        assert (ids[title], ids[description]) == ("A <title>", 'Says "so" & so')


def test_a_picture_without_a_narrow_drawing_is_one_svg():
    html = Picture(Drawing(10, 10, ""), "t", "d").html("p")
    assert html.count("<svg") == 1
    assert "edu-picture__narrow" not in html


@pytest.mark.parametrize(
    ("low", "high", "count"), [(0, 7, 5), (-1, 1, 5), (0.013, 0.29, 4), (-300, 1200, 6), (0, 1e-7, 5)]
)
def test_ticks_are_round_evenly_spaced_and_inside(low, high, count):
    ticks = nice_ticks(low, high, count)
    steps = {round((b - a) / (high - low), 9) for a, b in itertools.pairwise(ticks)}
    assert len(steps) == 1
    assert low - 1e-12 <= ticks[0] and ticks[-1] <= high + 1e-12
    assert 2 <= len(ticks) <= 2 * count
    digits = f"{ticks[1] - ticks[0]:.6e}".split("e")[0].rstrip("0").rstrip(".")
    assert digits in ("1", "2", "2.5", "5")


def test_log_ticks_are_powers_of_ten_or_one_two_five():
    assert log_ticks(0.001, 1000, 7) == [0.001, 0.01, 0.1, 1, 10, 100, 1000]
    assert log_ticks(0.001, 1000, 4) == [0.001, 0.1, 10, 1000]
    assert log_ticks(1, 30) == [1, 2, 5, 10, 20]


def test_scales_map_their_ends_and_their_middle():
    assert [linear(-1, 1, 0, 100)(v) for v in (-1, 0, 1)] == [0, 50, 100]
    assert [logarithmic(1, 100, 0, 100)(v) for v in (1, 10, 100)] == pytest.approx([0, 50, 100])
