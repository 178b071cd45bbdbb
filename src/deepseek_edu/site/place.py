"""Where a finished site may stand, and how it gets there. Nothing that a build did not make is ever replaced.

A folder counts as a site of ours if its `edu/offline.json`, the list that every build writes, names its files. A file
beside them that the list does not name would be lost with the folder, so such a folder is refused as well.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from deepseek_edu.site.errors import PlaceError
from deepseek_edu.site.offline import LISTING

# nothing is built over, into or around these folders of the repository
KEPT = (
    *("assets", "course", "labs", "notebooks", "requirements", "src", "tests"),
    *(".cache", ".git", ".github", ".venv", "node_modules"),
)
ALLOWED = "a folder that does not exist yet, an empty one, or a site that deepseek-edu built, such as --out site"
LEFT_BY_DESKTOPS = {".DS_Store", "Thumbs.db", "desktop.ini"}


def settled(out: Path, root: Path, work: Path) -> Path:
    """Return the absolute folder of the finished site, after proof that a build may write or replace it.

    Raises:
        PlaceError: the folder is no place for a site; nothing was touched.
    """
    given = Path(os.path.abspath(out))
    if given.is_symlink():
        raise PlaceError(f"--out {out}: found a link; allowed: {ALLOWED}")
    place = given.resolve()
    for kept in _kept(root, work):
        if place == kept or kept.is_relative_to(place):
            raise PlaceError(f"--out {out}: found a folder that holds {kept}; allowed: {ALLOWED}")
        if kept != root and place.is_relative_to(kept):
            raise PlaceError(f"--out {out}: found a place inside {kept}; allowed: {ALLOWED}")
    if not given.parent.is_dir():
        raise PlaceError(f"--out {out}: found no folder {given.parent}; make it first, or name a folder that exists")
    if place.exists() and (fault := not_ours(place)):
        raise PlaceError(f"--out {out}: found {fault}; allowed: {ALLOWED}")
    try:
        Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent)).rmdir()
    except OSError as error:
        raise PlaceError(
            f"--out {out}: found that {place.parent} cannot be written ({error.strerror}); name another folder"
        ) from None
    return place


def _kept(root: Path, work: Path) -> Iterator[Path]:
    """Yield the repository and what a site must not touch in it, links followed."""
    yield root
    for name in KEPT:
        yield root / name
        yield (root / name).resolve()
    for name in ("docs", "edu", "shell-material", "shell-zensical"):
        yield work / name
    yield Path(__file__).resolve().parents[1]


def not_ours(place: Path) -> str:
    """Say what keeps a path that exists from being replaced, or return an empty text."""
    if not place.is_dir():
        return "a file"
    if not any(place.iterdir()):
        return ""
    try:
        listed = json.loads((place / LISTING).read_text(encoding="utf-8"))["files"].keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "a folder with other contents"
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if name in listed or name == LISTING or path.name in LEFT_BY_DESKTOPS:
            continue
        if path.is_symlink() or not path.is_dir():
            return f"{name}, which no build wrote and which would be lost"
    return ""


def replace(new: Path, out: Path) -> None:
    """Move a finished folder to its place; the previous one stays until the new one is complete beside it.

    Raises:
        PlaceError: the place has changed since it was looked at, or the disk refuses; what stood there stands there.
    """
    if out.is_symlink() or (out.exists() and (fault := not_ours(out))):
        fault = "a link" if out.is_symlink() else fault
        raise PlaceError(f"{out}: found {fault}; allowed: {ALLOWED}")
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise PlaceError(f"{out}: found that its folder cannot be written ({error.strerror})") from None
    try:
        shutil.move(new, beside / "new")
        if out.exists():
            out.rename(beside / "old")
        try:
            (beside / "new").rename(out)
        except OSError:
            if (beside / "old").exists():
                (beside / "old").rename(out)
            raise
    except OSError as error:
        raise PlaceError(f"{out}: the finished site could not be put there ({error})") from None
    finally:
        if out.exists() or not (beside / "old").exists():
            shutil.rmtree(beside, ignore_errors=True)
