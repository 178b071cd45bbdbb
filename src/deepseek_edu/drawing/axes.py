"""Scales and ticks: where a value lies on the paper, and which values are worth a label."""

import math
from collections.abc import Callable

Place = Callable[[float], float]


def linear(low: float, high: float, start: float, end: float) -> Place:
    """A map of [low, high] to [start, end]; values outside lie outside."""
    slope = (end - start) / (high - low)
    return lambda value: start + (value - low) * slope


def logarithmic(low: float, high: float, start: float, end: float) -> Place:
    """The same on a logarithmic axis; `low` has to be positive."""
    inner = linear(math.log10(low), math.log10(high), start, end)
    return lambda value: inner(math.log10(value))


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round values (1, 2, 2.5 or 5 times a power of ten) that cover [low, high] from inside.

    >>> nice_ticks(0, 7)
    [0.0, 2.0, 4.0, 6.0]
    """
    if not high > low:
        return [low]
    rough = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, last + 1)]


def log_ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Powers of ten within [low, high]; with fewer than two of them, 1-2-5 steps; thinned to about `count`."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    decades = [10.0**k for k in range(first, last + 1)]
    if len(decades) < 3:
        steps = (m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5))
        return [value for value in steps if low * 0.999 <= value <= high * 1.001]
    return decades[:: max(1, math.ceil(len(decades) / count))]
