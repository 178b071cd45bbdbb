"""The numbers of the FP4 widget: worked values, ties, scales, blocks; and random settings against exact fractions."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu import widgets
from deepseek_edu.widgets import fp4
from tests.widgets.nearest import e4m3_scale, e8m0_scale, nearest


def numbers(view: widgets.View) -> dict:
    return view.parts[1] and {m.label: m.value for m in view.parts[1].items}


def one(**values) -> dict:
    return numbers(widgets.evaluate("fp4", values))


def block(**values) -> widgets.View:
    return widgets.evaluate("fp4", {"part": "block", **values})


def exact(value: float) -> Fraction:
    """A control value as the decimal fraction the reader sees."""
    return Fraction(str(value))


def test_the_start_state_is_three_point_two():
    view = widgets.evaluate("fp4")
    assert view.summary == "3.2 with scale 1 is stored as code 0101, read back as 3, error −0.2."
    got = numbers(view)
    assert (got["Code"], got["Stored level"], got["Read back"]) == (0b0101, 3, 3)
    assert got["Error"] == pytest.approx(-0.2, abs=1e-15)


@pytest.mark.behaviour(32)
@pytest.mark.parametrize(
    ("value", "even", "away", "down"),
    [
        (0.25, 0, 0.5, 0),
        (0.75, 1, 1, 0.5),
        (1.25, 1, 1.5, 1),
        (1.75, 2, 2, 1.5),
        (2.5, 2, 3, 2),
        (3.5, 4, 4, 3),
        (5, 4, 6, 4),
    ],
)
def test_every_tie_on_both_sides_of_zero_under_all_three_rules(value, even, away, down):
    for rule, level in (("even", even), ("away", away), ("down", down)):
        for sign in (1, -1):
            assert one(value=sign * value, ties=rule)["Stored level"] == sign * level


def test_ties_are_explained_and_the_wrong_rules_are_called_wrong():
    assert (
        "exactly halfway between 2, code 100, and 3, code 101" in widgets.evaluate("fp4", {"value": 2.5}).parts[2].text
    )
    wrong = widgets.evaluate("fp4", {"value": 2.5, "ties": "away"}).parts[2]
    assert wrong.role == "warn"
    assert "This rule takes 3; the hardware takes 2." in wrong.text
    labels = widgets.get("fp4").controls["ties"].options
    assert [("wrong" in label) for label in labels.values()] == [False, True, True]


def test_beyond_six_the_value_is_clipped_and_said_to_be():
    view = widgets.evaluate("fp4", {"value": 8})
    assert numbers(view)["Read back"] == 6
    assert view.summary.endswith("error −2, clipped.")
    assert view.parts[2].text.startswith("Clipped")


def test_amax_seven_gives_scale_nine_eighths_and_clips_seven_to_six_and_three_quarters():
    got = one(value=7, scale="e4m3", amax=7)
    assert (got["Scale"], got["Read back"], got["Error"]) == (1.125, 6.75, -0.25)
    table = widgets.evaluate("fp4", {"amax": 7}).parts[3]
    assert [row[1:] for row in table.rows] == [(1.125, 0x39, 6.75), (2.0, 0x80, 8.0)]
    assert "7 ÷ 6 = 1.1667" in table.caption
    assert table.selected == ()
    assert widgets.evaluate("fp4", {"scale": "e8m0"}).parts[3].selected == (1,)


def test_the_bound_of_a_normalised_latent():
    table = widgets.evaluate("fp4", {"amax": 22.625}).parts[3]
    assert table.rows[0][1:] == (3.75, 71, 22.5)


def test_a_value_larger_than_amax_belongs_to_the_group_and_raises_it():
    got = one(value=8, scale="e8m0", amax=1)
    assert got["Scale"] == 2
    assert "raised" in widgets.evaluate("fp4", {"value": 8, "amax": 1}).parts[3].caption


def test_the_sign_of_a_value_that_rounds_to_zero_is_kept():
    got = one(value=-0.1)
    assert got["Code"] == 0b1000
    assert math.copysign(1, got["Read back"]) == -1
    assert "code 1000, read back as −0" in widgets.evaluate("fp4", {"value": -0.1}).summary


def test_amax_zero_keeps_a_scale_above_zero():
    for kind, scale in (("e4m3", 2.0**-9), ("e8m0", 2.0**-126)):
        got = one(value=0, scale=kind, amax=0)
        assert (got["Scale"], got["Read back"], got["Error"]) == (scale, 0, 0)


@pytest.mark.behaviour(32)
def test_a_block_of_zeros_has_a_scale_above_zero_and_no_nan():
    for size, scale, byte in (("16", 2.0**-9, 1), ("32", 2.0**-126, 1)):
        view = block(preset="zero", block=size)
        assert numbers(view)["Scale"] == scale
        picture = view.parts[0].raw
        assert (picture["scale_byte"], set(picture["codes"]), set(picture["bytes"])) == (byte, {0}, {0})
        assert "NaN" not in json.dumps(view.data())


@pytest.mark.behaviour(32)
def test_the_worked_group_of_the_chapter_byte_by_byte():
    view = block(preset="own")
    assert view.parts[0].raw["bytes"] == [0x27, 0x1D, 0x48, 0x0B, 0x95, 0xC2, 0x82, 0xA1]
    assert view.parts[0].raw["scale_byte"] == 0x39
    assert "27 1D 48 0B 95 C2 82 A1; the scale byte is 39" in view.parts[2].text
    assert numbers(view)["Largest error"] == pytest.approx(-0.275, abs=1e-12)
    assert numbers(view)["Clipped"] == 1


def test_what_a_block_costs():
    assert (numbers(block())["Stored in"], numbers(block())["Bits per value"]) == (9, 4.5)
    wide = numbers(block(block="32"))
    assert (wide["Stored in"], wide["Bits per value"]) == (17, 4.25)


def test_one_outlier_pushes_its_small_neighbours_to_zero():
    calm, spoilt = (block(preset=name).parts[3].rows for name in ("latent", "outlier"))
    assert sum(row[4] == 0 for row in spoilt) > sum(row[4] == 0 for row in calm)


def test_the_tie_preset_differs_between_rules_in_exactly_the_ties():
    even, away, down = (block(preset="ties", ties=rule).parts[0].raw["codes"] for rule in ("even", "away", "down"))
    assert sum(a != b for a, b in zip(even, away, strict=True)) == 2 * 4
    assert sum(a != b for a, b in zip(even, down, strict=True)) == 2 * 3


def test_the_typical_latent_is_the_gaussian_it_says():
    gauss = np.random.default_rng(41).standard_normal(512)
    latent = gauss / np.sqrt(np.mean(gauss**2))
    assert np.abs(np.array(fp4.TYPICAL) - latent[:32]).max() <= 0.025 + 1e-9
    assert all(round(v * 20, 6) == round(v * 20) for v in fp4.TYPICAL)


def test_the_bands_of_the_number_line_end_at_the_midpoints():
    edges = widgets.evaluate("fp4").parts[0].raw["boundaries"]
    midpoints = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]
    assert edges == [*(-m for m in reversed(midpoints)), *midpoints]


SETTINGS = widgets.get("fp4").controls


@settings(max_examples=150, deadline=None)
@given(
    index=st.integers(0, 320),
    amax_index=st.integers(0, 192),
    scale=st.sampled_from(list(SETTINGS["scale"].options)),
    ties=st.sampled_from(list(SETTINGS["ties"].options)),
)
def test_one_value_agrees_with_exact_fractions(index, amax_index, scale, ties):
    value, amax = SETTINGS["value"].at(index), SETTINGS["amax"].at(amax_index)
    group = max(exact(amax), abs(exact(value)))
    chosen = {"unit": Fraction(1), "e4m3": e4m3_scale(group), "e8m0": e8m0_scale(group)}[scale]
    code, level = nearest(exact(value) / chosen, ties)
    got = one(value=value, amax=amax, scale=scale, ties=ties)
    assert Fraction(got["Scale"]) == chosen
    assert got["Code"] == code
    assert Fraction(got["Stored level"]) == level
    assert Fraction(got["Read back"]) == level * chosen
    assert got["Error"] == pytest.approx(float(level * chosen - exact(value)), abs=1e-14)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=st.sampled_from([16, 32]), ties=st.sampled_from(list(SETTINGS["ties"].options)))
def test_a_block_agrees_with_exact_fractions(data, size, ties):
    control = SETTINGS[f"values{size}"]
    top = data.draw(st.sampled_from([control.count, 490, 481]))  # all values, small ones, tiny ones around zero
    values = [
        control.at(i) for i in data.draw(st.lists(st.integers(control.count - top, top), min_size=size, max_size=size))
    ]
    amax = max(abs(exact(v)) for v in values)
    scale = e4m3_scale(amax) if size == 16 else e8m0_scale(amax)
    view = block(preset="own", block=str(size), ties=ties, **{f"values{size}": values})
    codes = [nearest(exact(v) / scale, ties)[0] for v in values]
    raw = view.parts[0].raw
    assert raw["codes"] == codes
    assert raw["bytes"] == [low + 16 * high for low, high in zip(codes[::2], codes[1::2], strict=True)]
    back = [row[5] for row in view.parts[3].rows]
    assert [Fraction(b) for b in back] == [nearest(exact(v) / scale, ties)[1] * scale for v in values]
    assert numbers(view)["Clipped"] == sum(abs(exact(v)) > 6 * scale for v in values)


def test_an_evaluation_is_a_pure_function_of_its_values():
    settings_ = {"part": "block", "preset": "outlier", "ties": "down"}
    first, second = widgets.evaluate("fp4", settings_), widgets.evaluate("fp4", settings_)
    assert first == second
    assert json.dumps(first.data()) == json.dumps(second.data())


def test_bench_reports_milliseconds_for_random_settings():
    record = widgets.bench("fp4", count=20)
    assert 0 < record["median_ms"] <= record["p95_ms"] <= record["max_ms"]
