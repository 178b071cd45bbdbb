"""Build the site: stage, render, finish, check, and put the result in place in one step.

A failed build leaves the previous site as it was. A build whose sources are those of the last one does nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deepseek_edu.site.place import replace, settled

if TYPE_CHECKING:
    from deepseek_edu.site.check import Problem

SOURCES = (
    "course",
    "labs",
    "notebooks",
    "assets",
    "src/deepseek_edu",
    "mkdocs.yml",
    "pyproject.toml",
    "requirements/site.txt",
    "package-lock.json",
)


@dataclass(frozen=True)
class Built:
    """What a build did: the folder, whether anything had changed, and the seconds it took."""

    site: Path
    fresh: bool
    seconds: float


def build(
    root: Path,
    out: Path,
    shell: str = "material",
    *,
    work: Path | None = None,
    force: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Built:
    """Build the site of the repository `root` into `out`.

    Args:
        root: repository root.
        out: folder of the finished site; replaced as a whole, and only by a site that passed every step. It has to be
            absent, empty, or a site built before.
        shell: "material" or "zensical".
        work: folder for intermediate files, default `build` in the repository.
        force: build even if nothing changed.
        say: receives one line per step.

    Raises:
        PlaceError: `out` is something else; it was not touched.
        SiteError: with file, line, what was found and what is allowed.
    """
    started = time.perf_counter()
    root = root.resolve()
    work = (work or root / "build").resolve()
    out = settled(out, root, work)
    work.mkdir(parents=True, exist_ok=True)
    with _alone(root / ".cache", say):
        stamp_file = work / f"stamp-{hashlib.sha256(f'{out}{shell}'.encode()).hexdigest()[:12]}.json"
        inputs = _inputs(root, shell)
        if not force and _unchanged(stamp_file, inputs, out):
            return Built(out, False, time.perf_counter() - started)
        _build(root, out, shell, work, say)
        stamp_file.write_text(json.dumps({"inputs": inputs, "site": _listing(out)}), encoding="utf-8")
    return Built(out, True, time.perf_counter() - started)


def _build(root: Path, out: Path, shell: str, work: Path, say: Callable[[str], None]) -> None:
    from deepseek_edu.site.check import check, report
    from deepseek_edu.site.errors import SiteError, one_of
    from deepseek_edu.site.finish import finish
    from deepseek_edu.site.prepare import prepare
    from deepseek_edu.site.render import SHELLS, render

    if shell not in SHELLS:
        raise SiteError(f"shell {shell!r}; allowed: {one_of(SHELLS, shell)}")
    say("staging pages")
    staged = prepare(root, work, say)
    say(f"rendering pages with {shell}")
    rendered = render(root, work, staged, shell)
    say("finishing pages")
    finish(root, rendered, staged)
    say("checking")
    problems = check(rendered, root, budget=False)
    if problems:
        problems = [_in_source(problem, root, staged.docs) for problem in problems]
        raise SiteError(f"the site was not put in place\n{report(problems)}")
    replace(rendered, out)


def _in_source(problem: Problem, root: Path, docs: Path) -> Problem:
    """Name the author's file and line instead of the rendered page, where what is wrong stands in a file."""
    from deepseek_edu.site.locate import where

    place = where(root, docs, problem.file, problem.needle) if problem.needle else ""
    return dataclasses.replace(problem, file=f"{place} ({problem.file})") if place else problem


def _inputs(root: Path, shell: str) -> str:
    from deepseek_edu.site.digest import digest

    return f"{digest(root, SOURCES)} {shell} {sys.version_info[:3]}"


def _unchanged(stamp_file: Path, inputs: str, out: Path) -> bool:
    if not stamp_file.exists() or not out.exists():
        return False
    stamp = json.loads(stamp_file.read_text(encoding="utf-8"))
    return stamp["inputs"] == inputs and stamp["site"] == _listing(out)


def _listing(folder: Path) -> str:
    """Return a hash over names, sizes and times of the finished files: a site that was touched is built again."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            state = path.stat()
            found.update(f"{path.relative_to(folder)} {state.st_size} {state.st_mtime_ns}\n".encode())
    return found.hexdigest()


@contextlib.contextmanager
def _alone(cache: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let one build at a time use the cache."""
    cache.mkdir(exist_ok=True)
    with (cache / "build.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build of this repository to end")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
