"""What `deepseek-edu widgets` prints: each widget with its controls, mechanism, chapter, times and bytes.

Native times are taken in this process; live ones in Pyodide, run by node from the files the site itself serves, with
one and the same random settings. A browser adds the way to the worker and the drawing, which `make bench` measures.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

SETTINGS = 40
RUN_LIMIT_S = 300

IN_PYODIDE = """
import json
from deepseek_edu import widgets
json.dumps({id: widgets.bench(id, COUNT)["median_ms"] for id in IDS})
"""

IN_NODE = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [pyodide, program, ...wheels] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${pyodide}/` });
for (const wheel of wheels) await python.loadPackage(wheel, { messageCallback() {}, checkIntegrity: false });
console.log(python.runPython(readFileSync(program, "utf8")));
"""


@dataclass(frozen=True)
class Listed:
    """One widget; times are medians over random settings in milliseconds, `live_ms` is None where it was not taken."""

    id: str
    title: str
    chapter: str
    controls: tuple[str, ...]
    mechanism: tuple[str, ...]
    native_ms: float
    live_ms: float | None
    states: int
    states_bytes: int


def listed(root: Path, live: bool = True, say: Callable[[str], None] = lambda line: None) -> list[Listed]:
    """Measure every widget.

    Args:
        root: repository root.
        live: also run them in Pyodide.
        say: receives one line before what takes time.

    Raises:
        BundleError: node is missing, or Pyodide did not run; the message says what to install.
    """
    from deepseek_edu import widgets
    from deepseek_edu.widgets import states

    say(f"timing {len(widgets.names())} widgets natively")
    native = {id: widgets.bench(id, SETTINGS)["median_ms"] for id in widgets.names()}
    if live:
        say("timing them in Pyodide")
    slow = live_times(root, widgets.names(), say) if live else {}
    rows = []
    for id in widgets.names():
        widget = widgets.get(id)
        data = states.states_bytes(widget)
        mechanism = tuple(
            f"{module.split('.', 1)[1]}: {', '.join(names)}" for module, names in widget.mechanism.items()
        )
        about = (id, widget.title, widget.chapter, tuple(widget.controls), mechanism)
        count = len(json.loads(data)["states"])
        rows.append(Listed(*about, native[id], slow.get(id), count, states.compressed_size(data)))
    return rows


def live_times(root: Path, ids: Iterable[str], say: Callable[[str], None] = lambda line: None) -> dict[str, float]:
    """Median milliseconds of each widget in Pyodide."""
    from deepseek_edu.site.bundle import BundleError, find_node
    from deepseek_edu.site.numpy_wheel import find_numpy_wheel
    from deepseek_edu.site.runtime import build_own_wheel

    pyodide, cache = root / "node_modules" / "pyodide", root / ".cache"
    if not (pyodide / "pyodide-lock.json").exists():
        raise BundleError(f"{pyodide} is missing: run `npm ci` in {root} first")
    numpy = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]["numpy"]
    wheels = (
        find_numpy_wheel(numpy["file_name"], numpy["sha256"], cache, pyodide / "pyodide.mjs", say),
        build_own_wheel(root, cache, say),
    )
    with tempfile.TemporaryDirectory() as folder:
        script, program = Path(folder) / "run.mjs", Path(folder) / "program.py"
        script.write_text(IN_NODE, encoding="utf-8")
        program.write_text(IN_PYODIDE.replace("COUNT", str(SETTINGS)).replace("IDS", repr(list(ids))), encoding="utf-8")
        command = [find_node(), str(script), str(pyodide), str(program), *map(str, wheels)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False)
    if done.returncode:
        raise BundleError(f"Pyodide did not run the widgets: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def as_text(rows: list[Listed]) -> str:
    """A block of lines for each widget."""
    blocks = []
    for row in rows:
        live = "not measured" if row.live_ms is None else f"{row.live_ms:.1f} ms"
        blocks.append(
            f"{row.id}: {row.title}\n"
            f"  chapter    {row.chapter}\n"
            f"  controls   {', '.join(row.controls)}\n"
            + "".join(f"  mechanism  {line}\n" for line in row.mechanism)
            + f"  time       {row.native_ms:.1f} ms natively, {live} in Pyodide (medians of {SETTINGS} settings)\n"
            f"  states     {row.states} in advance, {row.states_bytes / 1000:.1f} KB compressed"
        )
    return "\n".join(blocks)


def as_json(rows: list[Listed]) -> str:
    """The same as JSON."""
    return json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False)
