"""The sites that tests look at: built by the real command's own function, once, whichever worker asks first."""

from __future__ import annotations

import fcntl
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = {"material": ROOT / "site", "zensical": ROOT / "build" / "zensical"}


@cache
def built_site(shell: str = "material") -> Path:
    """Return the folder of the finished site, building it first if a source changed since the last build.

    Args:
        shell: "material", the site that is published, or "zensical", the same pages in the other frame.
    """
    from deepseek_edu.site.build import build

    lock = ROOT / ".cache" / "tests-build.lock"
    lock.parent.mkdir(exist_ok=True)
    PLACES[shell].parent.mkdir(exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        build(ROOT, PLACES[shell], shell)
    return PLACES[shell]
