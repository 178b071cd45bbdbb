"""Where the things of the explorer's map are, for any configuration and for both widths."""

from collections.abc import Iterable
from dataclasses import dataclass

from deepseek_edu import accounting
from deepseek_edu.drawing.numbers import show

from .memo import remembered

CELL, CHOICE, MEMORY, CHIP = 34.0, 16.0, 32.0, 26.0
GAP, PLUG = 5.0, 6.0
_THICKEST = 356.0  # bytes per token of the thickest memory band of V4.1-Flash; both generations share the scale
_ENDS = ("embedding", "vision", "head")


@dataclass(frozen=True)
class Row:
    """Some layers side by side; `y` is the top of their boxes."""

    plans: tuple
    y: float
    left: float
    step: float
    thickest: float = MEMORY

    @property
    def choice(self) -> float:
        return self.y + CELL + GAP

    @property
    def memory(self) -> float:
        return self.choice + CHOICE + GAP

    @property
    def bottom(self) -> float:
        return self.memory + self.thickest

    def x(self, index: int) -> float:
        """Left edge of a layer's box."""
        return self.left + (index - self.plans[0].index) * self.step + 3

    @property
    def width(self) -> float:
        """Of a layer's box."""
        return self.step - 6

    def span(self, first: int, last: int) -> tuple[float, float, bool] | None:
        """What lies in this row of layers first … last: (x, width, whether it begins here); None for nothing."""
        start, end = max(first, self.plans[0].index), min(last, self.plans[-1].index)
        if start > end:
            return None
        return self.x(start), self.x(end) + self.width - self.x(start), start == first


@dataclass(frozen=True)
class Span:
    """Layers first … last that read a memory or use a choice; `first` made it."""

    first: int
    last: int
    words: tuple[str, ...]
    thickness: float = CHOICE


@remembered(4)
def plans_of(config) -> tuple:
    """The schedule of a configuration."""
    return config.schedule()


@remembered(4)
def memories(config) -> tuple[Span, ...]:
    """The bands of compressed entries, with their names from long to short."""
    bytes_of = accounting.caches.global_bytes_by_layer(config)
    top = max((_THICKEST, *bytes_of.values())) if config.n_layers > 20 else max(bytes_of.values(), default=1.0)
    found = []
    for owner, size in bytes_of.items():
        readers = [plan.index for plan in plans_of(config) if plan.owner == owner]
        if not readers:
            continue
        amount = show(round(size, 1), 4)
        words = (f"layer {owner} keeps {amount} B per token", f"{owner}: {amount} B per token", f"{amount} B", amount)
        found.append(Span(owner, max(readers), words, max(2.5, MEMORY * size / top)))
    return tuple(found)


@remembered(4)
def choices(config) -> tuple[Span, ...]:
    """The bands of Top-k choices."""
    k, found = config.index_topk, []
    for chooser in config.index_source_layers:
        users = [plan.index for plan in plans_of(config) if plan.chooser == chooser]
        if users:
            words = (f"layer {chooser} chooses {k} entries", f"{chooser} chooses {k}", f"{chooser} chooses", f"Top-{k}")
            found.append(Span(chooser, max(users), words))
    return tuple(found)


class Layout:
    """Where everything is, for one width."""

    def __init__(self, config, width: float) -> None:
        self.config, self.width, self.narrow = config, width, width < 500
        plans = plans_of(config)[: config.n_layers]
        limit = 11 if self.narrow else 22
        sides = [[p for p in plans if p.side == side] for side in dict.fromkeys(p.side for p in plans)]
        groups = [list(plans)] if len(plans) <= limit else [part for side in sides for part in _parts(side, limit)]
        most = max(len(group) for group in groups)
        self.step = float((width - (20 if self.narrow else 28)) // most)
        self.margin = (width - self.step * most) // 2
        self.top = 26.0 if not self.narrow else 64.0 if config.engram_layer_ids else 44.0  # below the legend
        y = self.top + 40 + 26
        rows, spans = [], memories(config)
        for group in groups:
            y += 20 + (CHIP if any(p.engram is not None for p in group) else 0)
            kept = [s.thickness for s in spans if s.first <= group[-1].index and s.last >= group[0].index]
            rows.append(Row(tuple(group), y, self.margin, self.step, max(kept, default=0)))
            y = rows[-1].bottom + 24
        self.rows = rows
        self.bottom = y + 4
        self.height = self.bottom + (62 if config.n_mtp_layers else 44)

    def row_of(self, layer: int) -> Row | None:
        """The row a backbone layer is in."""
        return next((row for row in self.rows if row.plans[0].index <= layer <= row.plans[-1].index), None)

    def end(self, name: str) -> tuple[float, float, float, float]:
        """Place of a box that is no layer: "embedding", "vision", "head" or "draft-0" …"""
        small = self.narrow
        if name in ("embedding", "vision"):
            width = 132.0 if small else 170.0
            return (self.margin if name == "embedding" else self.width - self.margin - width, self.top, width, 38.0)
        head = 108.0 if small else 170.0
        if name == "head":
            return self.margin, self.bottom, head, 40.0
        stages = self.config.n_mtp_layers
        first = self.margin + head + (26.0 if small else 110.0)
        step = (self.width - self.margin - first) // stages
        return first + int(name.partition("-")[2]) * step, self.bottom, step - 6, 40.0

    def boxes(self) -> Iterable[tuple[str, float, float, float, float]]:
        """Everything that can be picked: (name, place)."""
        for name in (*_ENDS, *(f"draft-{stage}" for stage in range(self.config.n_mtp_layers))):
            if name != "vision" or self.config.vision_n_layers:
                yield name, *self.end(name)
        for row in self.rows:
            for plan in row.plans:
                yield f"layer-{plan.index}", row.x(plan.index), row.y, row.width, CELL


def _parts(plans: list, limit: int) -> list[list]:
    count = -(-len(plans) // limit)
    size = -(-len(plans) // count)
    return [plans[i : i + size] for i in range(0, len(plans), size)]
