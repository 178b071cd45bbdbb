"""Notebooks: the .ipynb follows its source, runs within its limits, and prints the same numbers twice."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepseek_edu import notebooks_sync

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "notebooks").glob("*.py"))
MAIN = ROOT / "notebooks" / "04b_fp4_cache.py"

# Runs the cells in one IPython shell, as a kernel does, and prints all that a reader would see.
SHELL = """
import json, resource, sys
from pathlib import Path
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
seen = []
for source in json.load(open(sys.argv[1])):
    with capture_output() as captured:
        result = shell.run_cell(source, store_history=False)
    if not result.success:
        sys.exit(f"cell fails: {source[:80]!r}: {result.error_before_exec or result.error_in_exec!r}")
    seen.append([captured.stdout, captured.stderr, [shown.data for shown in captured.outputs]])
if sys.platform == "linux":  # its own most: ru_maxrss begins with what the starting process holds
    status = Path("/proc/self/status").read_text().splitlines()
    held = 1024 * int(next(line for line in status if line.startswith("VmHWM")).split()[1])
else:
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
json.dump({"seen": seen, "bytes": held}, sys.stdout)
"""


def code_cells(source):
    notebook = json.loads(notebooks_sync.notebook_text(ROOT, source))
    return [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """What two fresh processes show for the notebook, with the seconds and bytes of each."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "cells.json").write_text(json.dumps(code_cells(MAIN)), encoding="utf-8")
    runs = []
    for seed in ("0", "1"):  # hash seeds differ, so an order taken from a set would show
        environment = {**os.environ, "PYTHONHASHSEED": seed, "IPYTHONDIR": str(folder / "ipython")}
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", SHELL, str(folder / "cells.json")],
            capture_output=True,
            text=True,
            env=environment,
            cwd=folder,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        runs.append({**json.loads(done.stdout), "seconds": time.perf_counter() - start})
    return runs


def test_every_notebook_equals_its_source():
    assert SOURCES, "there is no notebook source"
    assert [path.name for path, _ in notebooks_sync.stale(ROOT)] == []
    assert sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb")) == [path.stem for path in SOURCES]


def test_the_check_finds_a_notebook_that_was_edited_alone(tmp_path, capsys):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    shutil.copy(MAIN, folder)
    assert notebooks_sync.main(["--check", "--root", str(tmp_path)]) == 1
    assert notebooks_sync.main(["--root", str(tmp_path)]) == 0
    assert notebooks_sync.main(["--check", "--root", str(tmp_path)]) == 0
    written = folder / f"{MAIN.stem}.ipynb"
    assert written.read_bytes() == MAIN.with_suffix(".ipynb").read_bytes()
    written.write_text(written.read_text(encoding="utf-8").replace("np.abs", "abs", 1), encoding="utf-8")
    assert notebooks_sync.main(["--check", "--root", str(tmp_path)]) == 1
    assert "out of date: 04b_fp4_cache.ipynb" in capsys.readouterr().out


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_ipynb_holds_no_outputs_and_fixed_ids(source):
    notebook = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))
    assert [cell["id"] for cell in notebook["cells"]] == [
        f"cell-{number:02d}" for number in range(1, len(notebook["cells"]) + 1)
    ]
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_ipynb_is_a_valid_notebook(source):
    import nbformat

    nbformat.validate(nbformat.read(source.with_suffix(".ipynb"), as_version=4))


@pytest.mark.behaviour(18)
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_header_states_time_memory_and_evidence(source):
    header = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"][0]["source"]
    assert header.startswith("# ")
    for words in ("60 s", "1 GB", "seed", "measured"):
        assert words in header
    assert "__version__" in code_cells(source)[0]


@pytest.mark.behaviour(18)
def test_the_notebook_runs_within_a_minute_and_a_gigabyte(two_runs):
    for run in two_runs:
        assert run["seconds"] <= 60
        assert run["bytes"] <= 1_000_000_000


@pytest.mark.behaviour(18)
def test_the_notebook_shows_the_same_twice(two_runs):
    first, second = two_runs
    assert first["seen"] == second["seen"]


def test_the_notebook_prints_nothing_to_standard_error(two_runs):
    assert [stderr for _, stderr, _ in two_runs[0]["seen"] if stderr] == []


def test_the_notebook_prints_its_versions_first(two_runs):
    assert re.match(r"Python 3\.\d+\.\d+, NumPy 2\.\d+\.\d+, deepseek-edu \d", two_runs[0]["seen"][0][0])


def test_the_notebook_measures_what_its_text_says(two_runs):
    """The words between the cells name results; each is looked up in the figures of this run."""
    printed = "".join(stdout for stdout, _, _ in two_runs[0]["seen"])
    row = r"{}\s+{}\s+\d+\s+([\d.]+) %\s+[\d.]+\s+[\d.]+\s+([\d.]+) %"
    error, zeros = {}, {}
    for kind in ("gaussian", "heavy"):
        for name in ("FP4, E4M3 per 16", "FP4, power of two per 32", "FP8, power of two per 32"):
            found = re.search(row.format(kind, name), printed)
            error[kind, name], zeros[kind, name] = map(float, found.groups())
    main, index, window = "FP4, E4M3 per 16", "FP4, power of two per 32", "FP8, power of two per 32"
    assert error["heavy", main] < error["gaussian", main]  # "its relative error did not grow"
    assert zeros["heavy", main] > 1.5 * zeros["gaussian", main]  # "what does grow is the share stored as zero"
    assert error["heavy", index] > 1.2 * error["gaussian", index]  # "gets clearly worse"
    assert abs(error["heavy", window] - error["gaussian", window]) < 0.1
    parts = re.findall(r"one scale per (16|32):\s+E4M3\s+([\d.]+) %\s+power of two\s+([\d.]+) %", printed)
    assert len(parts) == 4
    for small, large in (parts[:2], parts[2:]):  # "the kind of scale matters more than the block size"
        start = float(large[2])
        assert start - float(large[1]) > start - float(small[2]) > 0
    assert "packed 27 1d 48 0b 95 c2 82 a1" in printed
    assert re.search(r"^even .* -0\.143$", printed, re.M) and re.search(r"^away .* \+0\.429$", printed, re.M)


def test_every_figure_is_interactive_and_has_a_picture_and_words(two_runs):
    figures = [data for _, _, shown in two_runs[0]["seen"] for data in shown if "image/svg+xml" in data]
    assert len(figures) == 4
    for data in figures:
        plotly = data["application/vnd.plotly.v1+json"]
        assert plotly["data"] and all(trace["meta"]["token"].startswith("k-") for trace in plotly["data"])
        assert len(plotly["layout"]["meta"]["description"]) > 40
        assert data["text/plain"]


def test_the_lab_cell_holds_the_starter_and_its_report_fails_without_stopping_the_run(two_runs):
    starter = ast.parse((ROOT / "labs" / "fp4-codes" / "starter.py").read_text(encoding="utf-8"))
    wanted = {node.name: ast.dump(node) for node in starter.body if isinstance(node, ast.FunctionDef)}
    cell = ast.parse(code_cells(MAIN)[-1])
    assert {node.name: ast.dump(node) for node in cell.body if isinstance(node, ast.FunctionDef)} == wanted
    stdout, _, shown = two_runs[0]["seen"][-1]
    report = stdout + json.dumps(shown)
    assert "0 of 10 points" in report or "0 / 10" in report
    assert "NotImplementedError" in report


def test_the_notebook_contains_no_part_of_the_solution():
    solution = (ROOT / "labs" / "fp4-codes" / "solution.py").read_text(encoding="utf-8")
    text = MAIN.read_text(encoding="utf-8")
    telling = [line.strip() for line in solution.split("\n") if len(line.strip()) > 30 and '"""' not in line]
    starter = (ROOT / "labs" / "fp4-codes" / "starter.py").read_text(encoding="utf-8")
    assert [line for line in telling if line in text and line not in starter] == []
