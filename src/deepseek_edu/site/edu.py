"""Make the site's own files, `edu/`: bundle, browser Python, widget states. A part is kept while its sources stay."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepseek_edu.site.digest import digest
from deepseek_edu.site.errors import SiteError

Say = Callable[[str], None]
SITE = "src/deepseek_edu/site"
BUNDLE_SOURCES = ("assets/js", "assets/css", "package-lock.json", f"{SITE}/bundle.py")
RUNTIME_SOURCES = ("package-lock.json", "pyproject.toml", "README.md", "LICENSE", "src/deepseek_edu")
PACKAGE = "src/deepseek_edu"
STATE_SOURCES = (
    *(f"{PACKAGE}/{name}" for name in ("widgets", "drawing", "reference", "accounting")),
    *(f"{PACKAGE}/config{part}.py" for part in ("", "_checks", "_names", "_presets")),
)


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
    """Write the precomputed states of each widget, packed: the page's script unpacks them.

    Their own ending, `.states`, keeps servers from taking them for something that they compress or unpack on the way.
    """
    from deepseek_edu import widgets
    from deepseek_edu.widgets.states import packed

    folder.mkdir(parents=True)
    cache.mkdir(parents=True, exist_ok=True)
    stamp = digest(root, STATE_SOURCES)[:16]
    known = sorted(set(ids) & set(widgets.names()))  # an unknown id is told with its page and line by the extension
    kept = {id: cache / f"{id}-{stamp}.json" for id in known}
    _compute([id for id in known if not kept[id].exists()], kept, say)
    written = {}
    for id in known:
        data = kept[id].read_bytes()
        name = f"{id}-{hashlib.sha256(data).hexdigest()[:10]}.states"
        (folder / name).write_bytes(packed(data))
        written[id] = f"widgets/{name}"
    return written


def _compute(ids: Sequence[str], kept: dict[str, Path], say: Say) -> None:
    """Compute the states of some widgets, as many at a time as there are cores, each in a process of its own.

    Raises:
        SiteError: a widget fails; the message ends with the last lines of its traceback.
    """
    if not ids:
        return
    say(f"computing the first moves of {', '.join(ids)}")
    known = [f"{name}-*.json" for name in ids]
    for old in (path for pattern in known for path in kept[ids[0]].parent.glob(pattern)):
        old.unlink()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda id: _compute_one(id, kept[id]), ids))


def _compute_one(id: str, target: Path) -> None:
    draft = target.with_suffix(f".{os.getpid()}")
    command = [sys.executable, "-m", "deepseek_edu.widgets.states", id, str(draft)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SiteError(f"the widget {id} fails while its first moves are computed\n{done.stderr.strip()[-1500:]}")
    draft.replace(target)


def megabytes(size: int) -> str:
    """Return a size as readers know it.

    >>> megabytes(9_240_000)
    '9.2 MB'
    """
    return f"{size / 1e6:.1f} MB"
