"""The times of one more token: what is timed is the model, what is counted is exact, the record can be made again."""

import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deepseek_edu.drawing.chart import Axis, Chart, Series
from deepseek_edu.experiments import kv_time

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "assets" / "runs" / "kv_time.json"


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text(encoding="utf-8"))


def test_what_is_timed_with_and_without_the_cache_gives_the_same_logits():
    kept, anew = kv_time.steps(40)
    first, whole = kept(), anew()
    assert first.shape == (1, 256) and whole.shape == (41, 256)
    # sums of 32 and of 41 numbers in float32, made in another order: some units in the last place of numbers near 1
    np.testing.assert_allclose(first[0], whole[-1], atol=2e-5)
    np.testing.assert_array_equal(kept(), first)  # the step before left the cache as it was


def test_the_clock_counts_the_work_of_this_process_by_the_call():
    calls = []

    def work():
        calls.append(sum(range(20_000)))

    batches = kv_time.seconds(work, batches=3, least=0.01)
    assert len(batches) == 3 and all(second > 0 for second in batches)
    # a warm-up, doubling batches until one takes long enough, then three of the same size
    doubled = len(calls) - 1
    assert any(doubled == 2 * n - 1 + 3 * n for n in (2**k for k in range(20)))


def test_a_short_run_has_every_column_and_says_what_was_not_run(monkeypatch):
    monkeypatch.setattr(kv_time, "LONGEST_WITHOUT", 32)
    short = kv_time.run(seed=3, contexts=(16, 32, 64), batches=2, least=0.001)
    assert all(len(row) == len(short["columns"]) for row in short["rows"])
    assert [row[4] == "not run" for row in short["rows"]] == [False, False, True]
    for before, row in itertools.pairwise(short["rows"]):
        assert row[3] == pytest.approx(row[2] / before[2], rel=0.02)  # both rounded to three digits
    assert short["command"].endswith("--seed 3")


def test_the_record_says_what_was_measured_and_how(record):
    assert record["id"] == RECORD.stem and record["label"] == "measured"
    assert set(record["versions"]) == {"python", "numpy", "deepseek-edu"}
    module, seed = re.fullmatch(r"python -m ([\w.]+) --seed (\d+)", record["command"]).groups()
    assert importlib.util.find_spec(module) and int(seed) == record["seed"]
    assert re.fullmatch(r"(1 CPU core|\d+ CPU cores), \w+, \w+, no GPU used", record["machine"])
    assert record["columns"] == list(kv_time.COLUMNS)


def test_the_contexts_double_and_so_do_the_bytes_exactly(record):
    assert [row[0] for row in record["rows"]] == [2**k for k in range(7, 17)]
    # a key and a value of 32 numbers of 4 bytes for each token
    assert all(row[1] == row[0] * 2 * 32 * 4 for row in record["rows"])


def test_the_recorded_factors_are_those_of_the_recorded_times(record):
    rows = record["rows"]
    for before, row in itertools.pairwise(rows):
        assert row[3] == pytest.approx(row[2] / before[2], rel=0.01)
        if row[4] != "not run":
            assert row[5] == pytest.approx(row[4] / before[4], rel=0.01)


def test_what_the_chapter_reads_off_the_record_is_in_it(record):
    rows = {row[0]: row for row in record["rows"]}
    assert rows[256][3] < 1.5, "at short contexts twice the tokens hardly cost time"
    assert all(1.5 < rows[context][3] < 4 for context in (8192, 16384, 32768, 65536)), "at long ones twice and more"
    assert all(3 < rows[context][5] < 4.5 for context in (1024, 2048)), "without the cache several times"


def test_its_chart_can_be_drawn(record):
    (chart,) = record["charts"]
    lines = tuple(Series(**series) for series in chart["series"])
    html = Chart(chart["title"], chart["description"], Axis(**chart["x"]), Axis(**chart["y"]), lines).html("kv-time")
    assert "with the cache" in html


def test_the_command_measures_in_one_thread(tmp_path):
    many = {name: value for name, value in os.environ.items() if name not in kv_time.ONE_THREAD}
    program = f"""
import os
from deepseek_edu.experiments import kv_time
kv_time.subprocess.run = lambda command, env, check: exit("threads: " + env["OPENBLAS_NUM_THREADS"])
kv_time.main(["--out", {str(tmp_path / "again.json")!r}])
"""
    done = subprocess.run([sys.executable, "-c", program], env=many, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "threads: 1"
