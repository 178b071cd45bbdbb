"""A hash over files of the repository: names and contents, no times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

IGNORED = {"__pycache__", ".ipynb_checkpoints"}


def digest(root: Path, names: Iterable[str]) -> str:
    """Return a hash over the named files and folders; a missing one counts as empty."""
    found = hashlib.sha256()
    for name in names:
        path = root / name
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if IGNORED.isdisjoint(file.parts) and file.is_file():
                found.update(file.relative_to(root).as_posix().encode() + b"\0")
                found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()
