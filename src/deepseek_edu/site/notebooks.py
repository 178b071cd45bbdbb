"""Notebooks: run them, turn them into pages, offer them with and without outputs.

The source of a notebook is its `.py` file (jupytext, percent format). An executed notebook is kept in the cache under
a key made of its source, the package modules it imports, and the lock file; only a changed one runs again.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepseek_edu.site.errors import SourceError
from deepseek_edu.site.notebook_page import page_text, without_outputs
from deepseek_edu.site.source import source_text

SECONDS_PER_CELL = 60
PACKAGE = "deepseek_edu"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Notebook:
    """A notebook before it runs: its source file and where each cell begins in it."""

    source: str
    path: Path
    node: Any
    first_lines: tuple[int, ...]


def stage(root: Path, docs: Path, cache: Path, say: Callable[[str], None]) -> list[str]:
    """Write a page and two downloads per notebook into `docs/notebooks`; return the pages' names relative to docs.

    Raises:
        SourceError: a cell fails or does not end, naming notebook, cell and line of the source.
    """
    pages = []
    for path in sources(root):
        book = read(root, path)
        executed = run_cached(root, book, cache, say)
        folder = docs / "notebooks"
        folder.mkdir(exist_ok=True)
        (folder / f"{path.stem}.ipynb").write_text(_dump(without_outputs(book.node)), encoding="utf-8")
        (folder / f"{path.stem}.executed.ipynb").write_text(_dump(executed), encoding="utf-8")
        (folder / f"{path.stem}.md").write_text(page_text(executed, book.source, path.stem), encoding="utf-8")
        pages.append(f"notebooks/{path.stem}.md")
    return pages


def sources(root: Path) -> list[Path]:
    """Return the notebooks: the Python files with cells; other scripts may lie beside them."""
    files = sorted((root / "notebooks").glob("*.py"))
    return [path for path in files if re.search(r"(?m)^# %%", source_text(root, path))]


def read(root: Path, path: Path) -> Notebook:
    """Read a notebook's source. Cell ids and metadata are fixed, so that the same source gives the same file."""
    import jupytext

    text = source_text(root, path)
    node = jupytext.reads(text, fmt="py:percent")
    for number, cell in enumerate(node.cells, 1):
        cell["id"] = f"cell-{number:02d}"
    node.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    node.nbformat, node.nbformat_minor = 4, 5
    return Notebook(path.relative_to(root).as_posix(), path, node, _first_lines(text, node))


def _first_lines(text: str, node: Any) -> tuple[int, ...]:
    """Return the line on which the source of each cell begins."""
    lines = text.split("\n")
    marks = [number for number, line in enumerate(lines, 1) if line.startswith("# %%")]
    if len(marks) < len(node.cells):  # text before the first mark is a cell of its own
        marks = [0, *marks]
    starts = []
    for mark, cell in zip(marks, node.cells, strict=False):
        first = cell.source.split("\n")[0]
        candidates = range(mark, min(mark + 12, len(lines)))
        starts.append(next((line + 1 for line in candidates if lines[line].removeprefix("# ") == first), mark + 1))
    return tuple(starts) + (1,) * (len(node.cells) - len(starts))


def run_cached(root: Path, book: Notebook, cache: Path, say: Callable[[str], None]) -> Any:
    """Return the executed notebook, from the cache if nothing it depends on has changed."""
    import nbformat

    kept = cache / f"{book.path.stem}-{key(root, book)}.json"
    if not kept.exists():
        say(f"running {book.source} (at most {SECONDS_PER_CELL} s per cell)")
        executed = execute(book)
        cache.mkdir(parents=True, exist_ok=True)
        for old in cache.glob(f"{book.path.stem}-*.json"):
            old.unlink()
        draft = kept.with_suffix(".new")
        draft.write_text(_dump(executed), encoding="utf-8")
        draft.replace(kept)
    # read back even when just written, so that a first build has the same bytes as every later one
    return nbformat.from_dict(json.loads(kept.read_text(encoding="utf-8")))


def key(root: Path, book: Notebook) -> str:
    """Return what an execution depends on, as a hash."""
    parts = hashlib.sha256(book.path.read_bytes())
    for module in imported_files(root / "src", book.path):
        parts.update(module.relative_to(root).as_posix().encode())
        parts.update(module.read_bytes())
    lock = root / "requirements" / "site.txt"
    parts.update(lock.read_bytes() if lock.exists() else b"")
    parts.update(f"{sys.version_info[:2]}{Path(__file__).read_bytes()!r}".encode())
    return parts.hexdigest()[:16]


def imported_files(source: Path, start: Path) -> list[Path]:
    """Return the files of our package that a file imports, directly or through others."""
    found: set[Path] = set()
    waiting = [start]
    while waiting:
        file = waiting.pop()
        for name in _imported_names(file, source):
            parts = name.split(".")
            for end in range(len(parts), 0, -1):
                base = source.joinpath(*parts[:end])
                for candidate in (base.with_suffix(".py"), base / "__init__.py"):
                    if candidate.exists() and candidate not in found:
                        found.add(candidate)
                        waiting.append(candidate)
    return sorted(found)


def _imported_names(file: Path, source: Path) -> set[str]:
    try:
        tree = ast.parse(re.sub(r"(?m)^[%!].*$", "", file.read_text(encoding="utf-8")))
    except SyntaxError:  # running the notebook tells it with its cell
        return set()
    package: tuple[str, ...] = (
        file.relative_to(source).with_suffix("").parts[:-1] if file.is_relative_to(source) else ()
    )
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module or "")))
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return {name for name in names if name.split(".")[0] == PACKAGE}


def execute(book: Notebook, seconds: int = SECONDS_PER_CELL) -> Any:
    """Run every cell in a fresh kernel of this Python.

    Raises:
        SourceError: the failing or hanging cell, with the line of the notebook's source.
    """
    import copy

    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from traitlets import default
    from traitlets.config import Config

    class ThisPython(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=argv, display_name="Python 3", language="python")

    class ThisKernel(AsyncKernelManager):
        @default("kernel_spec_manager")
        def _this_python(self) -> KernelSpecManager:
            return ThisPython()

    node = copy.deepcopy(book.node)
    current = [0]

    def starts(cell: Any, cell_index: int) -> None:
        current[0] = cell_index

    with tempfile.TemporaryDirectory() as home:
        client = NotebookClient(
            node,
            kernel_name="python3",
            kernel_manager_class=ThisKernel,
            timeout=seconds,
            record_timing=False,
            on_cell_start=starts,
            resources={"metadata": {"path": str(book.path.parent)}},
        )
        # sockets are files in a folder of this run: no port is opened
        kernel = {
            "transport": "ipc",
            "ip": str(Path(home) / "kernel"),
            "connection_file": str(Path(home) / "kernel.json"),
        }
        client.config.update(Config({"ThisKernel": kernel}))
        environment = {**os.environ, "PYTHONHASHSEED": "0", "IPYTHONDIR": home, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        try:
            # what the kernel's process says beside its messages, such as pages about a closed socket, helps nobody
            client.execute(env=environment, stderr=subprocess.DEVNULL)
        except CellExecutionError as error:
            found = f"{error.ename}: {error.evalue}"
            raise _failed(book, current[0], found, _line_in_cell(node.cells[current[0]])) from error
        except CellTimeoutError as error:
            found = f"no end after {seconds} s"
            raise _failed(book, current[0], found, 0, f"cells that end within {seconds} s") from error
        except DeadKernelError as error:
            raise _failed(book, current[0], "the end of its Python process (out of memory?)", 0) from error
    return _settled(node)


def _failed(book: Notebook, index: int, found: str, line: int, allowed: str = "cells that run") -> SourceError:
    return SourceError(book.source, book.first_lines[index] + line, f"{found} in cell {index + 1}", allowed)


def _line_in_cell(cell: Any) -> int:
    """Return the zero-based line of a cell on which it failed, from its traceback."""
    lines = [0]
    for output in cell.get("outputs", []):
        if output.get("output_type") == "error":
            trace = ANSI.sub("", "\n".join(output.get("traceback", [])))
            lines += [int(number) - 1 for number in re.findall(r"Cell In\[\d+\], line (\d+)", trace)]
    return lines[-1]


def _settled(node: Any) -> Any:
    """Join the parts of a stream and drop what differs between two runs of the same code."""
    for cell in node.cells:
        if cell.cell_type != "code":
            continue
        cell.metadata.pop("execution", None)
        joined: list[Any] = []
        for output in cell.outputs:
            last = joined[-1] if joined else None
            if output.output_type == "stream" and last is not None and last.get("name") == output.name:
                last["text"] += output.text
            else:
                joined.append(output)
        cell["outputs"] = joined
    node.metadata["language_info"] = {"name": "python"}
    return node


def _dump(node: Any) -> str:
    return json.dumps(node, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
