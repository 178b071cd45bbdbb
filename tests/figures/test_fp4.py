"""Figures of the FP4 chapter: the numbers in them, derived by hand, and that every figure can be shown."""

import xml.etree.ElementTree as ET
from fractions import Fraction

import pytest

from deepseek_edu import figures
from deepseek_edu.figures import fp4_walk
from deepseek_edu.widgets import fp4
from tests.widgets.nearest import e4m3_scale, e8m0_scale, nearest


def series(id: str) -> dict[str, dict[float, float]]:
    return {s.name: dict(zip(s.x, s.y, strict=True)) for s in figures.get(id).series}


def test_the_figures_of_the_chapter_are_registered():
    assert {"fp4-levels", "fp4-layout", "fp4-scales", "fp4-error", "fp4-entry-bytes"} <= set(figures.names())
    with pytest.raises(KeyError, match="no figure 'fp5'; there are: fp4-entry-bytes, fp4-error"):
        figures.get("fp5")


@pytest.mark.parametrize("id", figures.names())
def test_every_figure_is_well_formed_named_and_the_same_every_time(id):
    made = figures.get(id)
    html = made.html(f"fig-{id}")
    assert html == figures.get(id).html(f"fig-{id}")
    tree = ET.fromstring(html.replace(" hidden>", ">"))
    ids = [e.get("id") for e in tree.iter() if e.get("id")]
    assert len(ids) == len(set(ids)) and all(i.startswith(f"fig-{id}-") for i in ids)
    assert len(made.description) > 60
    assert "style=" not in html and 'fill="#' not in html


def test_levels_gaps_and_codes():
    raw = figures.get("fp4-levels").raw
    assert raw["magnitudes"] == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert raw["gaps"] == [0.5, 0.5, 0.5, 0.5, 1, 1, 2]
    assert raw["codes"] == ["0000", "0001", "0010", "0011", "0100", "0101", "0110", "0111"]


def test_the_step_through_and_the_widget_use_the_same_sixteen_values():
    assert fp4_walk.GROUP == fp4.EXAMPLE


def test_an_entry_is_thirty_two_groups_of_nine_bytes():
    made = figures.get("fp4-layout")
    assert made.raw == {"groups": 32, "bytes": 288}
    assert "256 + 32 = 288 bytes" in made.description
    assert made.html().count('class="k-cell k-cell--soft"') == 2 * 32 * 8


def test_the_scales_step_where_exact_arithmetic_steps():
    drawn = series("fp4-scales")
    for name, oracle in (("power of two (E8M0)", e8m0_scale), ("E4M3", e4m3_scale)):
        steps = drawn[name]
        for amax in (Fraction(n, 64) for n in range(1, 24 * 64 + 1)):
            held = max(x for x in steps if x <= amax)
            assert Fraction(steps[held]) == oracle(amax), (name, amax)


def test_the_errors_are_those_of_exact_arithmetic():
    drawn = series("fp4-error")
    for name, scale in (("power of two (E8M0), scale 2", Fraction(2)), ("E4M3, scale 1.125", Fraction(9, 8))):
        for x, error in drawn[name].items():
            _, level = nearest(Fraction(x) / scale, "even")
            assert error == pytest.approx(float(level * scale - Fraction(x)), abs=1e-12), (name, x)


def test_where_the_power_of_two_errs_less_is_where_the_caption_says():
    """Between 4.5 and 6.75, which are neighbours with scale 9/8; with scale 2 the neighbours of 5.25 … 6.375 hold 6."""

    def size(x: Fraction, scale: Fraction) -> Fraction:
        return abs(nearest(x / scale, "even")[1] * scale - x)

    for x in (Fraction(n, 64) for n in range(288, 448 + 1)):
        nearer = size(x, Fraction(2)) < size(x, Fraction(9, 8))
        assert nearer == (Fraction("5.25") < x < Fraction("6.375")), x
    drawn = series("fp4-error")
    assert drawn["E4M3, scale 1.125"][7] == -0.25
    assert drawn["power of two (E8M0), scale 2"][7] == 1


def test_bytes_of_an_entry_in_three_formats():
    data, scales = figures.get("fp4-entry-bytes").series
    assert data.y == (1024, 512, 256)
    assert scales.y == (0, 16, 32)
    assert scales.text == ("1024 B", "528 B", "288 B")
