"""Results that are expensive and do not change from move to move, such as a run of the tiny model over a prompt.

    @remembered(8)
    def exact_run(length: int) -> Run: ...

They depend on the arguments alone, and on the mechanism: what a reader's edited mechanism makes is kept apart, as long
as the same edit runs, and the mechanism as it is never sees it.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import TypeVar

_EDITED: list = []
"""Caches of what edited mechanisms made."""

_edit: dict[str, Hashable] = {"runs": None, "kept": None}
"""The edit that runs now, and the one whose results are kept; None for none."""

Function = TypeVar("Function", bound=Callable)


def remembered(size: int = 32) -> Callable[[Function], Function]:
    """Keep the last `size` results of a pure function of hashable arguments."""

    def wrap(function: Function) -> Function:
        plain, edited = lru_cache(size)(function), lru_cache(size)(function)
        _EDITED.append(edited)

        @wraps(function)
        def look(*arguments):
            return (plain if _edit["runs"] is None else edited)(*arguments)

        look.cache_clear = plain.cache_clear
        return look

    return wrap


@contextmanager
def editing(edit: Hashable) -> Iterator[None]:
    """Results made in this block belong to an edit; those of another edit are dropped."""
    if _edit["kept"] != edit:
        forget()
    _edit.update(runs=edit, kept=edit)
    try:
        yield
    finally:
        _edit["runs"] = None


def forget() -> None:
    """Drop what edited mechanisms made."""
    _edit["kept"] = None
    for kept in _EDITED:
        kept.cache_clear()
