"""The same files give the same numbers in the browser's Python."""

import json
import subprocess
from pathlib import Path

import pytest

from deepseek_edu.site.bundle import find_node
from deepseek_edu.site.runtime import assemble

from .tiny import ORACLES, recorded, tiny_model

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.mark.slow
@pytest.mark.behaviour(19)
def test_the_reference_reproduces_every_recorded_output_in_pyodide(tmp_path):
    """All 33 outputs within the same tolerances, the same greedy text; 40 tokens well under a second."""
    assemble(ROOT, tmp_path, ROOT / ".cache" / "runtime")
    paths = (HERE / "pyodide.mjs", ROOT / "node_modules" / "pyodide", tmp_path, HERE / "in_pyodide.py", ORACLES)
    done = subprocess.run([find_node(), *map(str, paths)], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["machine"].startswith("emscripten 3.14")
    assert result["passed"]
    assert result["outputs"] == 33
    assert result["import_seconds"] < 1  # 0.06 s on a free core; a loaded machine is slower
    assert result["prefill_seconds"] < 1
    assert result["ids"] == tiny_model().generate(recorded()["ids"][0][:24], 12, stop=()).ids
