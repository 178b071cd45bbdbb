"""Bandwidth of the FP4 formats, the import in the browser's Python, the oracle model in NumPy, the meta device."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from deepseek_edu.model import quant
from deepseek_edu.site.bundle import find_node
from deepseek_edu.site.runtime import assemble
from tests.bench.rows import Row, in_turn, ratio, seconds
from tests.reference.tiny import ORACLES, recorded, tiny_model

ROOT = Path(__file__).parents[2]
ROWS, WIDTH, ROUNDS = 32768, 512, 7
STARTS = 3
SETTINGS = {"FP4: numbers": ROWS * WIDTH, "FP4: rounds": ROUNDS, "Pyodide: fresh starts": STARTS}

IN_PYODIDE = """
import time
import numpy
before = time.perf_counter()
import deepseek_edu.reference.model
str(time.perf_counter() - before)
"""

ON_META = """
import json, time
from pathlib import Path
before = time.perf_counter()
from deepseek_edu.config import ModelConfig
from deepseek_edu.model.model import Model
model = Model(ModelConfig.v41_flash(), device="meta")
took = time.perf_counter() - before
numbers = sum(parameter.numel() for parameter in model.parameters())
held = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps([took, int(held.split()[1]) * 1024, numbers]))
"""


def packing(kind: str, block: int) -> Row:
    """Pack and unpack against a copy of the same numbers; all three give new tensors."""
    x = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(0))
    packed, there = quant.quantize_fp4(x, block, kind), torch.empty_like(x)
    actions = {
        "copy": x.clone,
        "pack": lambda: quant.quantize_fp4(x, block, kind),
        "unpack": lambda: quant.dequantize_fp4(*packed, block, kind),
        "copy into place": lambda: there.copy_(x),
    }
    times = in_turn(actions, ROUNDS)
    both = [a + b for a, b in zip(times["pack"], times["unpack"], strict=True)]
    middle = {name: 1e3 * statistics.median(taken) for name, taken in times.items()}
    detail = (
        f"{x.numel() / 1e6:.1f} M numbers: copy {middle['copy']:.0f} ms, pack {middle['pack']:.0f}, unpack "
        f"{middle['unpack']:.0f}; a copy into memory that is there already takes {middle['copy into place']:.0f}"
    )
    name = f"FP4 pack + unpack, {block} to an {kind.upper()} scale"
    return Row(name, ratio(times["copy"], both), "× copy", 0.25, detail, least=True, data={"median ms": middle})


def pyodide_import() -> Row:
    """Import of the reference, the whole model with all its files, after numpy, in fresh starts of that Python."""
    with tempfile.TemporaryDirectory() as folder:
        wheels, script = Path(folder) / "wheels", Path(folder) / "script.py"
        wheels.mkdir()
        assemble(ROOT, wheels, ROOT / ".cache" / "runtime")
        script.write_text(IN_PYODIDE)
        program = ROOT / "tests" / "reference" / "pyodide.mjs"
        command = [find_node(), program, ROOT / "node_modules" / "pyodide", wheels, script, ORACLES]
        run = {"check": True, "capture_output": True, "text": True, "timeout": 300}
        printed = [subprocess.run([*map(str, command)], **run).stdout.splitlines()[-1] for _ in range(STARTS)]
    times = [1e3 * float(line) for line in printed]
    detail = f"with reference.model and all it imports, after numpy; {STARTS} fresh starts, worst {max(times):.0f} ms"
    return Row("import deepseek_edu.reference in Pyodide", statistics.median(times), "ms", 300, detail)


def oracle_model() -> Row:
    """The recorded tiny model in NumPy, all 40 tokens of a row."""
    model, ids = tiny_model(), recorded()["ids"][0]
    times = [seconds(lambda: model.prefill(ids, model.new_cache())) for _ in range(6)][1:]
    detail = f"{len(ids)} tokens, float64, {len(times)} runs"
    return Row("oracle model, 40 tokens, NumPy", statistics.median(times), "s", 1, detail)


def on_meta() -> list[Row]:
    """The released configuration without memory for its numbers, in a fresh process."""
    done = subprocess.run([sys.executable, "-c", ON_META], check=True, capture_output=True, text=True, cwd=ROOT)
    took, held, numbers = json.loads(done.stdout.splitlines()[-1])
    parameters = f"{numbers / 1e9:.2f} B parameters, all parts; a fresh process, PyTorch loaded in it"
    return [
        Row("v41_flash() on the meta device", took, "s", 20, parameters),
        Row("v41_flash() on the meta device, most held", held / 1e9, "GB", 2, parameters),
    ]


def rows() -> Iterator[Row]:
    """All of these."""
    for kind, block in (("e4m3", 16), ("e8m0", 32)):
        yield packing(kind, block)
    yield oracle_model()
    yield from on_meta()
    yield pyodide_import()
