"""Look for solutions and hidden cases in everything that is published, archives and notebooks included.

A line of a solution counts when it is long enough to be no accident and stands in nothing that learners are given:
starters, statements, the package's source, notebooks, pages.
"""

from __future__ import annotations

import ast
import contextlib
import gzip
import html
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepseek_edu.site.source import source_text

LEAST_CHARACTERS = 24
SECRET_FILES = ("solution.py", "alternative/*.py", "wrong/*.py", "cases.py")
PUBLIC_CASES = ("visible",)
OPEN_FOLDERS = {"src": "*.py", "course": "*.md", "notebooks": "*.py"}
ARCHIVES = {".zip", ".whl"}
STATES = ".states"  # of widgets: JSON in gzip
SKIPPED = {".wasm", ".woff2", ".png", ".gz", ".ico", ".so"}
COMMON = re.compile(r"(import|from) |if __name__|[^\w]*$")
TAGS = re.compile(r"<[^>]*>")


def secrets(root: Path) -> dict[str, str]:
    """Return distinctive line → the file it comes from."""
    given = _public_lines(root)
    found: dict[str, str] = {}
    for lab in sorted((root / "labs").glob("*/lab.toml")):
        for pattern in SECRET_FILES:
            for path in sorted(lab.parent.glob(pattern)):
                text = source_text(root, path)
                for line in _secret_lines(text, path.name):
                    if len(line) >= LEAST_CHARACTERS and line not in given and not COMMON.match(line):
                        found.setdefault(line, path.relative_to(root).as_posix())
    return found


def _secret_lines(text: str, name: str) -> set[str]:
    """Return the stripped lines of a file; of cases, only those of functions that make hidden ones."""
    if name != "cases.py":
        return {line.strip() for line in text.splitlines()}
    lines = text.splitlines()
    kept: set[str] = set()
    try:
        body = ast.parse(text).body
    except SyntaxError:  # nothing is told apart then: every line counts
        return {line.strip() for line in lines}
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name not in PUBLIC_CASES:
            kept |= {line.strip() for line in lines[node.lineno - 1 : node.end_lineno]}
    return kept


def _public_lines(root: Path) -> set[str]:
    files = [path for name in ("starter.py", "statement.md") for path in root.glob(f"labs/*/{name}")]
    for folder, pattern in OPEN_FOLDERS.items():
        files += sorted((root / folder).rglob(pattern))
    return {line.strip() for path in files for line in source_text(root, path).splitlines()}


def find_leaks(site: Path, root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (file, source, line) for each secret line that a published file holds."""
    wanted = secrets(root)
    if not wanted:
        return
    for path in sorted(site.rglob("*")):
        if path.is_file() and path.suffix not in SKIPPED:
            name = path.relative_to(site).as_posix()
            for inner, lines in _published(name, path.read_bytes()):
                for line in wanted.keys() & lines:
                    yield inner, wanted[line], line


def _published(name: str, data: bytes) -> Iterator[tuple[str, set[str]]]:
    """Yield the stripped lines of a file, of the members of an archive, of the texts of a JSON file."""
    suffix = Path(name).suffix
    if suffix in ARCHIVES:
        with contextlib.suppress(zipfile.BadZipFile):  # no archive in spite of its name: its raw lines are looked at
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for member in archive.namelist():
                    if not member.endswith("/") and Path(member).suffix not in SKIPPED:
                        yield from _published(f"{name}!{member}", archive.read(member))
            return
    if suffix == STATES:
        with contextlib.suppress(gzip.BadGzipFile, EOFError, zlib.error):  # the same for states that are none
            data, suffix = gzip.decompress(data), ".json"
    text = data.decode("utf-8", errors="replace")
    lines = set(_lines(text))
    if suffix in (".json", ".ipynb"):
        with contextlib.suppress(ValueError):  # not JSON in spite of its name: its raw lines are looked at
            lines.update(line for item in _texts(json.loads(text)) for line in _lines(item))
    elif suffix == ".html":
        for island in re.findall(r"(?s)<script[^>]*json[^>]*>(.*?)</script>", text):
            with contextlib.suppress(ValueError):
                lines.update(line for item in _texts(json.loads(island)) for line in _lines(item))
        lines.update(_lines(html.unescape(TAGS.sub("", text))))
    elif suffix in (".js", ".mjs"):
        lines.update(_lines(text.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'")))
    yield name, lines


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield line.strip()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        yield "\n".join(item.rstrip("\n") for item in value if isinstance(item, str))
        for item in value:
            yield from _texts(item)
