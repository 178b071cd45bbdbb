"""What a benchmark gives: rows with a limit, and how times are taken so that they can be compared."""

from __future__ import annotations

import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


@dataclass
class Row:
    """One measured figure and what it should be.

    Attributes:
        name, unit, detail: in words; detail says what the figure was made from.
        value: the figure.
        limit: the most it should be, or the least (`least`), or None for a figure without a promise.
        data: further numbers for the record.
    """

    name: str
    value: float
    unit: str
    limit: float | None
    detail: str
    least: bool = False
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        """Whether the promise holds; a figure without one always does."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.least else self.value <= self.limit

    @property
    def promise(self) -> str:
        """The limit in words."""
        return "–" if self.limit is None else f"{'≥' if self.least else '≤'} {self.limit:g}"

    def line(self) -> str:
        """The row of the printed table."""
        sign = "" if self.limit is None else "met" if self.met else "NOT MET"
        return f"{self.name:46} {self.value:10.4g} {self.unit:12} {self.promise:>8}  {sign:8} {self.detail}"


CLOCK = time.process_time
"""Time of this process on its core. One thread computes, so it is the wall time of a machine that does nothing else."""


def seconds(action: Callable[[], Any]) -> float:
    """What one call takes by CLOCK."""
    began = CLOCK()
    action()
    return CLOCK() - began


def in_turn(actions: dict[str, Callable[[], Any]], rounds: int, warm: int = 1) -> dict[str, list[float]]:
    """Seconds of each action, all of them once in every round; the first rounds only warm up."""
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(warm + rounds):
        for name, action in actions.items():
            took = seconds(action)
            if number >= warm:
                taken[name].append(took)
    return taken


def ratio(above: list[float], below: list[float]) -> float:
    """Median of the ratios pair by pair."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def machine() -> dict[str, Any]:
    """Cores, processor and system, in words that name no host."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.partition(":")[2] for line in lines if line.startswith("model name")), platform.processor())
    return {
        "cores": os.cpu_count(),
        "processor": re.sub(r"\s+", " ", model).strip() or platform.machine(),
        "system": f"{platform.system()} {platform.machine()}",
        "load when it began": round(os.getloadavg()[0], 1),
    }


def versions() -> dict[str, str]:
    """Versions of what was measured with."""
    found = {"python": platform.python_version()}
    for name in ("numpy", "torch", "transformers", "deepseek-edu"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
