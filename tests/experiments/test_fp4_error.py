"""The record of the FP4 error can be measured again, says what it was measured on, and its figures are right."""

import copy
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

from deepseek_edu.claims import fp4 as claims
from deepseek_edu.drawing.chart import Axis, Chart, Series
from deepseek_edu.experiments import fp4_error

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "assets" / "runs" / "fp4_error.json"

# The record holds four significant digits, so an equal measurement may differ by one in the last: at most 1e-3
# relative. Samples come from NumPy's generator, whose logarithms and powers may differ in the last bit between
# machines; that moves a mean over half a million values by far less.
TOLERANCE = 1.1e-3


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def again(record):
    return fp4_error.run(record["seed"])


@pytest.mark.behaviour(19)
def test_the_record_is_what_its_seed_gives(record, again):
    assert record["columns"] == again["columns"]
    assert len(record["rows"]) == len(again["rows"]) == 10
    for old, new in zip(record["rows"], again["rows"], strict=True):
        for a, b in zip(old, new, strict=True):
            if isinstance(a, float):
                assert b == pytest.approx(a, rel=TOLERANCE)
            else:
                assert b == a
    for old, new in zip(record["charts"], again["charts"], strict=True):
        for a, b in zip(old["series"], new["series"], strict=True):
            assert (a["name"], a["x"], a["kind"]) == (b["name"], b["x"], b["kind"])
            assert b["y"] == pytest.approx(a["y"], rel=TOLERANCE)


def test_only_machine_versions_and_date_may_differ_between_two_runs(record, again):
    surroundings = ("machine", "versions", "date", "rows", "charts")
    assert set(record) == set(again)
    assert {k: v for k, v in record.items() if k not in surroundings} == {
        k: v for k, v in again.items() if k not in surroundings
    }


def test_the_record_says_what_was_measured_and_how(record):
    assert record["id"] == RECORD.stem
    assert record["label"] == "measured"
    assert "synthetic latents, not a trained model" in record["model"]
    assert set(record["versions"]) == {"python", "numpy", "deepseek-edu"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
    module, seed = re.fullmatch(r"python -m ([\w.]+) --seed (\d+)", record["command"]).groups()
    assert importlib.util.find_spec(module) and int(seed) == record["seed"]
    assert re.fullmatch(r"(1 CPU core|\d+ CPU cores), \w+, \w+, no GPU used", record["machine"])


def test_bytes_of_the_formats_are_counted_from_their_parts(record):
    column = record["columns"].index("bytes per entry")
    counted = {row[1]: row[column] for row in record["rows"]}
    assert counted == {
        "FP4, E4M3 per 16": 256 + 32,
        "FP4, power of two per 32": 256 + 16,
        "FP8, power of two per 32": 512 + 16,
        "FP4, power of two per 16": 256 + 32,
        "FP4, E4M3 per 32": 256 + 16,
    }


def test_latents_are_normalised_and_the_heavy_ones_have_heavier_tails():
    gaussian, heavy = fp4_error.latents("gaussian"), fp4_error.latents("heavy")
    for x in (gaussian, heavy):
        assert x.shape == (1024, 512) and x.dtype == np.float32
        np.testing.assert_allclose(np.mean(x.astype(np.float64) ** 2, axis=1), 1, rtol=1e-6)
        assert np.all(x != 0)
    fourth = [float(np.mean(x.astype(np.float64) ** 4)) for x in (gaussian, heavy)]
    assert 2.9 < fourth[0] < 3.1 and fourth[1] > 8
    assert not np.array_equal(fp4_error.latents("gaussian", seed=8), gaussian)
    np.testing.assert_array_equal(fp4_error.latents("heavy", seed=7), heavy)


def test_an_unknown_kind_of_latents_is_refused():
    with pytest.raises(ValueError, match="kind must be one of gaussian, heavy; got 'uniform'"):
        fp4_error.latents("uniform")


def test_figures_of_a_small_example_computed_by_hand():
    """Two entries of two values, RMS 1. Errors 0, 0 and 0.6, −0.8: mean square 0.25 over mean square 1."""
    x = np.float32([[1, 1], [1, -1]])
    f = fp4_error.measure(x, np.float32([[1, 1], [1.6, -1.8]]))
    assert f["relative"] == pytest.approx(0.5, rel=1e-6)
    assert f["snr"] == pytest.approx(6.0206, abs=1e-3)
    assert f["largest"] == pytest.approx(0.8, rel=1e-6)
    assert f["zeros"] == 0
    assert f["per_entry"] == pytest.approx([0, np.sqrt(0.5)], rel=1e-6)
    assert fp4_error.measure(x, np.float32([[0, 1], [1, -0.0]]))["zeros"] == 0.5


def test_the_fp8_error_lies_where_uniform_rounding_puts_it(record):
    """Three mantissa bits: the step is m · 2⁻³ / m of a value with mantissa 1 ≤ m < 2, an even error has RMS step/√12.

    So the relative error lies between 2⁻³/√12/2 = 0.018 (all mantissas near 2) and 0.036 (all near 1).
    """
    for row in record["rows"]:
        if row[1].startswith("FP8"):
            assert 0.018 < row[record["columns"].index("relative RMS error")] < 0.036


def test_the_signal_to_noise_ratio_repeats_the_relative_error(record):
    relative, snr = record["columns"].index("relative RMS error"), record["columns"].index("signal to noise (dB)")
    for row in record["rows"]:
        assert row[snr] == pytest.approx(-20 * np.log10(row[relative]), abs=0.01)


def test_quantiles_of_entries_are_in_order(record):
    low, middle, high = (record["columns"].index(name) for name in record["columns"][-3:])
    for row in record["rows"]:
        assert row[low] < row[middle] < row[high]


def test_charts_repeat_the_table_and_can_be_drawn(record):
    relative, zeros = record["columns"].index("relative RMS error"), record["columns"].index("stored as zero")
    for chart, column in zip(record["charts"], (relative, zeros), strict=True):
        for series in chart["series"]:
            rows = {row[1]: row[column] for row in record["rows"] if row[0] == series["name"]}
            assert series["y"] == pytest.approx([100 * rows[name] for name in series["x"]], rel=TOLERANCE)
        drawn = Chart(
            chart["title"],
            chart["description"],
            Axis(**chart["x"]),
            Axis(**chart["y"]),
            [Series(**series) for series in chart["series"]],
        )
        assert drawn.svg("p").startswith("<svg")


@pytest.mark.parametrize(
    ("check", "latents", "name", "column", "factor"),
    [
        ("formats_in_order_of_error", "Gaussian", "FP4, E4M3 per 16", "relative RMS error", 1.3),
        ("four_bits_err_three_to_four_times_as_much", "heavy-tailed", "FP4, E4M3 per 16", "relative RMS error", 1.3),
        ("finer_scale_beats_smaller_group", "Gaussian", "FP4, E4M3 per 32", "relative RMS error", 1.15),
        ("heavy_tails_show_in_zeros_only", "heavy-tailed", "FP4, E4M3 per 16", "relative RMS error", 1.3),
        ("heavy_tails_show_in_zeros_only", "heavy-tailed", "FP4, E4M3 per 16", "stored as zero", 0.7),
    ],
)
def test_a_claim_about_the_record_fails_on_a_record_that_says_otherwise(record, check, latents, name, column, factor):
    holds = getattr(claims, check)
    assert holds(record) is True
    other = copy.deepcopy(record)
    row = next(row for row in other["rows"] if row[:2] == [latents, name])
    row[record["columns"].index(column)] *= factor
    assert holds(other) is False


def test_the_columns_that_the_text_discusses_come_first(record):
    assert record["columns"][:5] == ["latents", "format", "used for", "relative RMS error", "stored as zero"]


def test_the_command_prints_a_table_and_writes_the_record(tmp_path, capsys):
    out = tmp_path / "runs" / "fp4_error.json"
    out.parent.mkdir()
    fp4_error.main(["--seed", "3", "--out", str(out)])
    written = json.loads(out.read_text(encoding="utf-8"))
    assert written["seed"] == 3
    assert capsys.readouterr().out.count("SNR") == 10
    assert list(out.parent.iterdir()) == [out]
