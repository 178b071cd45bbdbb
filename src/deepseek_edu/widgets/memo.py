"""Results that are expensive and do not change from move to move, such as a run of the tiny model over a prompt.

    @remembered(8)
    def exact_run(length: int) -> Run: ...

They depend on the arguments alone, and on the mechanism: while a reader's edited mechanism runs, everything is computed
anew, and nothing that it made is kept.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

_CACHES: list = []
Function = TypeVar("Function", bound=Callable)


def remembered(size: int = 32) -> Callable[[Function], Function]:
    """Keep the last `size` results of a pure function of hashable arguments."""

    def wrap(function: Function) -> Function:
        kept = lru_cache(size)(function)
        _CACHES.append(kept)
        return kept

    return wrap


def forget() -> None:
    """Drop all results."""
    for kept in _CACHES:
        kept.cache_clear()
