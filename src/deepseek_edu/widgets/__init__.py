"""Widgets: one file each, a pure function of its controls that returns a `View`.

    >>> evaluate("fp4", {"value": 3.2}).summary
    '3.2 with scale 1 is stored as code 0101, read back as 3, error −0.2.'

The same function makes the start state in the page at build time, the states that answer the first moves, and the
live result in the reader's browser. Importing this package loads no widget; `get` does.
"""

from collections.abc import Mapping
from importlib import import_module

from .contract import REGISTRY, Choice, ControlError, Numbers, Slider, Text, Toggle, View, Widget, widget
from .parts import Metric, Metrics, Prose, Steps, Table

__all__ = [
    "Choice",
    "ControlError",
    "Metric",
    "Metrics",
    "Numbers",
    "Prose",
    "Slider",
    "Steps",
    "Table",
    "Text",
    "Toggle",
    "View",
    "Widget",
    "bench",
    "evaluate",
    "get",
    "names",
    "widget",
]

_WIDGETS = (
    "explorer",
    "state-homes",
    "kv-cache",
    "accounting",
    "owners",
    "two-reads",
    "csa2",
    "indexer",
    "fp4",
    "precision-mix",
    "replay",
    "router",
    "mhc",
    "engram",
    "dspark",
    "tasks",
    "evidence",
    "one-token",
    "toy-attention",
    "train-curve",
)


def names() -> tuple[str, ...]:
    """Ids of all widgets."""
    return _WIDGETS


def get(id: str) -> Widget:
    """The widget of this id. Raises `KeyError` that lists the ids there are."""
    if id not in REGISTRY and id in _WIDGETS:
        import_module(f"{__name__}.{id.replace('-', '_')}")
    if id not in REGISTRY:
        raise KeyError(f"no widget {id!r}; there are: {', '.join(_WIDGETS)}")
    return REGISTRY[id]


def evaluate(id: str, values: Mapping[str, object] | None = None) -> View:
    """The view of a widget for control values; controls that are not named keep their start value.

    Raises `KeyError` for an unknown widget, `ControlError` for a value a control cannot take.
    """
    return get(id).view(values or {})


def bench(id: str, count: int = 200, seed: int = 0) -> dict[str, float]:
    """Milliseconds of one evaluation with rendering, over random control values: median, 95th percentile, maximum."""
    from time import perf_counter

    from .render import render_parts
    from .states import random_values

    chosen = get(id)
    times = []
    for values in random_values(chosen, count, seed):
        start = perf_counter()
        render_parts(chosen.view(values))
        times.append((perf_counter() - start) * 1000)
    times.sort()
    return {
        "median_ms": times[count // 2],
        "p95_ms": times[count * 95 // 100],
        "max_ms": times[-1],
        "count": float(count),
    }
