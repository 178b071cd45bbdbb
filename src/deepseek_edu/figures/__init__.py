"""Figures of the chapters, computed by the package and found by id.

figures.get("fp4-levels")  # a drawing.Picture or a drawing.Chart; both have .html(prefix)
"""

from collections.abc import Callable
from importlib import import_module

_MODULES = ("fp4", "fp4_walk", "language")
FIGURES: dict[str, Callable[[], object]] = {}
"""Drawing functions by id; filled when a module of figures is imported, as `get` and `names` do."""


def figure(id: str) -> Callable:
    """Register a function without arguments that returns a `Picture` or a `Chart`."""

    def register(function: Callable[[], object]) -> Callable[[], object]:
        if id in FIGURES:
            raise ValueError(f"figure {id!r} is registered twice, expected one function per id")
        FIGURES[id] = function
        return function

    return register


def names() -> tuple[str, ...]:
    """Ids of all figures, sorted."""
    for module in _MODULES:
        import_module(f"{__name__}.{module}")
    return tuple(sorted(FIGURES))


def get(id: str) -> object:
    """Draw the figure of this id. Raises `KeyError` that lists the ids there are."""
    known = names()
    if id not in known:
        raise KeyError(f"no figure {id!r}; there are: {', '.join(known)}")
    return FIGURES[id]()
