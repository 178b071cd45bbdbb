"""Charts: the picture shows the data, Plotly gets the same data without colours, bad data is refused."""

import itertools
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from deepseek_edu.drawing.chart import Axis, Chart, Series

SVG = "{http://www.w3.org/2000/svg}"


def chart(**changes) -> Chart:
    parts = {
        "title": "Title <b>",
        "description": "What & why",
        "x": Axis("value", low=0, high=10, ticks=(0, 5, 10)),
        "y": Axis("error", low=0, high=1, ticks=(0, 1)),
        "series": (Series("first", (0, 5, 10), (0, 1, 0.5)), Series("second", (0, 10), (1, 1), "points")),
    }
    return Chart(**{**parts, **changes})


def shapes(made: Chart, tag: str, style: str) -> list[ET.Element]:
    return [e for e in ET.fromstring(made.svg("c")).iter(SVG + tag) if style in e.get("class", "").split()]


def points(element: ET.Element) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in element.get("points").split()]


def test_a_line_goes_through_its_data_in_proportion():
    line = max((points(p) for p in shapes(chart(), "polyline", "k-series-1")), key=len)
    (x0, y0), (x5, y5), (x10, y10) = line
    assert x5 == pytest.approx((x0 + x10) / 2, abs=0.02)
    assert y10 == pytest.approx((y0 + y5) / 2, abs=0.02)
    assert y5 < y0


def test_a_step_holds_its_value_until_the_next_point():
    made = chart(series=(Series("s", (0, 4, 10), (0, 1, 0.5), "step"),))
    corners = points(shapes(made, "polyline", "k-series-1")[0])
    assert len(corners) == 5
    for (xa, ya), (xb, yb) in itertools.pairwise(corners):
        assert xa == xb or ya == yb
    assert corners[0][1] == corners[1][1] and corners[1][0] == corners[2][0]


def test_bars_have_heights_in_proportion_and_stand_on_zero():
    made = chart(
        x=Axis("", "category"), y=Axis("bytes", low=0, high=1200), series=(Series("b", ("a", "c"), (300, 900), "bar"),)
    )
    first, second = ((float(r.get("y")), float(r.get("height"))) for r in shapes(made, "rect", "k-series-1"))
    assert second[1] == pytest.approx(3 * first[1], abs=0.05)
    assert sum(first) == pytest.approx(sum(second), abs=0.02)


def test_stacked_bars_stand_on_each_other():
    data, scales = Series("d", ("a",), (300,), "bar"), Series("s", ("a",), (100,), "bar", text=("400",))
    made = chart(x=Axis("", "category"), y=Axis("bytes", low=0), series=(data, scales), stacked=True)
    lower = max(shapes(made, "rect", "k-series-1"), key=lambda r: float(r.get("height")))
    upper = max(shapes(made, "rect", "k-series-2"), key=lambda r: float(r.get("height")))
    assert float(upper.get("y")) + float(upper.get("height")) == pytest.approx(float(lower.get("y")), abs=0.02)
    assert upper.get("x") == lower.get("x")
    assert made.plotly()["layout"]["barmode"] == "stack"


def test_a_log_axis_gives_equal_steps_to_equal_ratios():
    made = chart(x=Axis("x", "log"), series=(Series("s", (1, 10, 100), (0, 0.5, 1)),))
    (a, _), (b, _), (c, _) = points(shapes(made, "polyline", "k-series-1")[0])
    assert b - a == pytest.approx(c - b, abs=0.02)


def test_every_word_stays_inside_the_drawing_at_both_widths():
    made = chart(
        x=Axis("", "category"),
        series=tuple(Series(f"a long series name {i}", ("one name", "other"), (1, 0.4), "bar") for i in range(4)),
    )
    for svg in ET.fromstring(made.picture().html()).iter(SVG + "svg"):
        _, _, width, height = map(float, svg.get("viewBox").split())
        for text in svg.iter(SVG + "text"):
            half = len(text.text) * 6 * {"middle": 0.5}.get(text.get("text-anchor", ""), 1)
            x, y = float(text.get("x")), float(text.get("y"))
            assert 0 <= y <= height
            start, end = {"end": (x - half, x), "middle": (x - half, x + half)}.get(
                text.get("text-anchor"), (x, x + half)
            )
            assert start >= -2 and end <= width + 2, text.text


def test_plotly_has_the_same_data_and_no_colour():
    made = chart().plotly()
    assert [(t["name"], t["x"], t["y"]) for t in made["data"]] == [
        ("first", [0, 5, 10], [0, 1, 0.5]),
        ("second", [0, 10], [1, 1]),
    ]
    assert [t["meta"]["token"] for t in made["data"]] == ["k-series-1", "k-series-2"]
    assert [t.get("mode") for t in made["data"]] == ["lines", "markers"]
    assert "color" not in json.dumps(made)
    assert made["layout"]["xaxis"]["range"] == [0, 10]


def test_numpy_values_become_plain_json():
    made = chart(series=(Series("n", np.float32([0, 5]), np.array([0.25, 1])),))
    assert json.loads(json.dumps(made.plotly()))["data"][0]["x"] == [0.0, 5.0]


def test_the_page_markup_holds_the_figure_as_json_that_cannot_leave_its_script():
    evil = chart(title="</script><script>alert(1)</script>", description="a & b <!--")
    html = evil.html("f")
    assert html.count("<script") == html.count("</script>") == 1
    text = re.search(r'<script type="application/json">(.*)</script>', html).group(1)
    assert json.loads(text) == json.loads(json.dumps(evil.plotly()))
    assert '<button class="edu-chart__open" type="button" hidden>' in html


def test_a_notebook_gets_the_interactive_figure_a_picture_with_its_own_style_and_text():
    bundle = chart()._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.plotly.v1+json", "image/svg+xml", "text/plain"}
    assert "<style" in bundle["image/svg+xml"] and "prefers-color-scheme" in bundle["image/svg+xml"]
    ET.fromstring(bundle["image/svg+xml"])
    assert "What & why" in bundle["text/plain"]


def test_a_page_drawing_brings_no_style_of_its_own():
    assert "<style" not in chart().svg("a") + chart().html("b")


def test_a_chart_comes_back_from_its_plotly_figure():
    made = chart(
        x=Axis("x", "log"),
        y=Axis("y", low=0),
        series=(
            Series("a", (1, 2), (3, 4), "step", dash=True),
            Series("b", (1, 2), (3, 4), "points", token="k-global", text=("p", "q")),
        ),
    )
    again = Chart.from_plotly(json.loads(json.dumps(made.plotly())))
    assert again.html("x") == made.html("x")
    stacked = chart(x=Axis("", "category"), series=(Series("d", ("a",), (3,), "bar"),), stacked=True)
    assert Chart.from_plotly(stacked.plotly()).html("x") == stacked.html("x")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Axis("x", "cubic"), "'linear', 'log' or 'category'"),
        (lambda: Series("s", (1, 2), (1,)), "x has 2 values, y 1"),
        (lambda: Series("s", (1,), (1,), "pie"), "expected one of line, step, points, bar"),
        (lambda: chart(series=()), "no points"),
        (lambda: chart(y=Axis("y", "log")), "'first' has y = 0 on a log axis"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_reason(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_the_same_chart_gives_the_same_text():
    assert chart().html("a") == chart().html("a")
