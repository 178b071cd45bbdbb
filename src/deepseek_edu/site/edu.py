"""Make the site's own files, `edu/`: bundle, browser Python, widget states. A part is kept while its sources stay."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepseek_edu.site.digest import digest

Say = Callable[[str], None]
SITE = "src/deepseek_edu/site"
BUNDLE_SOURCES = ("assets/js", "assets/css", "package-lock.json", f"{SITE}/bundle.py")
RUNTIME_SOURCES = ("package-lock.json", "pyproject.toml", "README.md", "LICENSE", "src/deepseek_edu")
STATE_SOURCES = ("src/deepseek_edu/widgets", "src/deepseek_edu/drawing", "src/deepseek_edu/reference")


@dataclass(frozen=True)
class Edu:
    """What pages and the finish step need to know of `edu/`.

    Attributes:
        names: logical → hashed file name.
        live: kind of block → size text of what its live mode loads.
        states: widget id → path of its states under `edu/`.
    """

    names: dict[str, str]
    live: dict[str, str]
    states: dict[str, str]


def make_edu(root: Path, edu: Path, widget_ids: Iterable[str], cache: Path, say: Say) -> Edu:
    """Fill the folder `edu`, replaced as a whole."""
    from deepseek_edu.site import bundle, runtime

    if edu.exists():
        shutil.rmtree(edu)

    def bundled(folder: Path) -> Any:
        say("bundling scripts and styles")
        return bundle.bundle(root, folder)

    def assembled(folder: Path) -> Any:
        say("assembling the browser's Python")
        info = runtime.assemble(root, folder / "runtime", cache, say)
        return {"widget": megabytes(info.live_bytes), "lab": megabytes(info.core_bytes)}

    names = _kept(cache / "bundle", digest(root, BUNDLE_SOURCES), bundled, edu)
    live = _kept(cache / "runtime-files", digest(root, RUNTIME_SOURCES), assembled, edu)
    return Edu(names, live, _states(root, edu / "widgets", widget_ids, cache / "states", say))


def _kept(folder: Path, stamp: str, make: Callable[[Path], Any], edu: Path) -> Any:
    """Copy the files of one part into `edu`, made anew if the stamp is another; return what making it returned."""
    record = folder / "made.json"
    known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    if known.get("stamp") != stamp:
        if folder.exists():
            shutil.rmtree(folder)
        (folder / "files").mkdir(parents=True)
        known = {"stamp": stamp, "answer": make(folder / "files")}
        record.write_text(json.dumps(known), encoding="utf-8")
    shutil.copytree(folder / "files", edu, dirs_exist_ok=True)
    return known["answer"]


def _states(root: Path, folder: Path, ids: Iterable[str], cache: Path, say: Say) -> dict[str, str]:
    """Write the precomputed states of each widget."""
    from deepseek_edu import widgets
    from deepseek_edu.widgets import states

    folder.mkdir(parents=True)
    cache.mkdir(parents=True, exist_ok=True)
    stamp = digest(root, STATE_SOURCES)[:16]
    written = {}
    for id in sorted(set(ids) & set(widgets.names())):  # an unknown id is told with its page and line by the extension
        kept = cache / f"{id}-{stamp}.json"
        if not kept.exists():
            say(f"widget {id}: computing its first moves")
            for old in cache.glob(f"{id}-*.json"):
                old.unlink()
            kept.write_bytes(states.states_bytes(widgets.get(id)))
        data = kept.read_bytes()
        name = f"{id}-{hashlib.sha256(data).hexdigest()[:10]}.json"
        (folder / name).write_bytes(data)
        written[id] = f"widgets/{name}"
    return written


def megabytes(size: int) -> str:
    """Return a size as readers know it.

    >>> megabytes(9_240_000)
    '9.2 MB'
    """
    return f"{size / 1e6:.1f} MB"
