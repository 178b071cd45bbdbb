"""Pictures of the collision experiments: every pair of words is a cell, coloured by whether it can be told apart."""

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import coordinate, counted, fixed, grouped, show
from deepseek_edu.drawing.svg import element

SIDE = 16


def pair_grid(canvas: Canvas, x: float, y: float, cell: float, alike, some=None) -> float:
    """Sixteen by sixteen cells: red where another pair reads the same rows, pale where it shares some.

    Returns the y below.
    """
    full = (alike > 0).reshape(SIDE, SIDE)
    with canvas.group(x, y):
        if some is not None:
            _fill(canvas, some.reshape(SIDE, SIDE) & ~full, cell, "k-engram", 0.35)
        _fill(canvas, full, cell, "k-error", None)
        canvas.rect(0, 0, SIDE * cell, SIDE * cell, "k-frame")
    return y + SIDE * cell


def _fill(canvas: Canvas, on, cell: float, style: str, strength: float | None) -> None:
    """The cells that are on, as one path of strokes as thick as a cell."""
    strokes = []
    for row, values in enumerate(on):
        edges = np.flatnonzero(np.diff([0, *values.astype(int), 0]))
        middle = coordinate((row + 0.5) * cell)
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            strokes.append(f"M{coordinate(start * cell)} {middle}h{coordinate((end - start) * cell)}")
    if strokes:
        canvas.add(element("path", d="".join(strokes), class_=style, stroke_width=cell, stroke_opacity=strength))


def grid_picture(alike, some, met: int, by_chance: float, primes) -> Picture:
    """All pairs of one draw, and the count beside the expectation."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            items = [("k-error", "same rows as another pair"), ("k-engram", "shares some rows"), ("k-box", "alone")]
            y = kit.legend(canvas, items) + 10
        cell = 17.0
        left = (canvas.width - SIDE * cell) / 2 if canvas.narrow else 24.0
        with canvas.group():
            canvas.text(left + SIDE * cell / 2, y + 10, "second word →", "k-muted", size=SMALL)
        bottom = pair_grid(canvas, left, y + 18, cell, alike, some)
        if canvas.narrow:
            x, y, room = 0.0, bottom + 12, canvas.width
        else:
            x, y, room = left + SIDE * cell + 44, y + 18, canvas.width - left - SIDE * cell - 44
        with canvas.group(x, y):
            kit.heading(canvas, 0, 0, "Pairs of groups that read the same rows")
        top = max(float(met), by_chance, 1.0)
        items = [
            ("counted", float(met), grouped(met), "k-error"),
            ("expected", by_chance, _short(by_chance), "k-negative"),
        ]
        y = kit.bars(canvas, x, y + 26, room, items, 78, 30, top) + 10
        with canvas.group(x, y):
            tables = f"{counted(len(primes), 'table')} of {grouped(min(primes))}"
            tables += f" to {grouped(max(primes))} rows" if len(primes) > 1 else " rows"
            canvas.text(0, 14, tables, "k-label", "start")
            canvas.text(0, 34, "Rows of the grid: first words.", "k-muted", "start", SMALL)
            canvas.text(0, 50, "Ids, factors: seeded draws.", "k-muted", "start", SMALL)
        canvas.height = max(bottom, y + 56) + 4
        return canvas

    description = (
        f"256 pairs of words in {counted(len(primes), 'table')}: "
        f"{counted(met, 'pair of groups reads', 'pairs of groups read')} "
        f"the same rows, {_short(by_chance)} are expected. "
        f"{counted(int((alike == 0).sum()), 'group is', 'groups are')} alone."
    )
    raw = {
        "meetings": met,
        "expected": by_chance,
        "alone": int((alike == 0).sum()),
        "some": int(some.sum()),
        "rows": primes,
    }
    return draw(paint, "Which pairs can be told apart", description, raw)


def equal_picture(found) -> Picture:
    """Three layouts of the same memory. `found` are (name, alike, met, mean, expected, places)."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            y = kit.legend(canvas, [("k-error", "same rows as another pair"), ("k-negative", "expected")]) + 10
        cell = 13.0
        step = canvas.width / 3
        top = max(max(mean, chance) for _, _, _, mean, chance, _ in found)
        for index, (name, alike, met, mean, chance, places) in enumerate(found):
            x = 0.0 if canvas.narrow else index * step
            with canvas.group(x, y):
                first, _, rest = name.partition(", ")
                canvas.text(0, 13, first, "k-text--strong", "start")
                canvas.text(0, 30, rest, "k-label", "start")
                canvas.text(0, 46, f"{grouped(places)} combinations", "k-muted", "start", SMALL)
            if canvas.narrow:
                bottom = pair_grid(canvas, 0, y + 54, 8.0, alike)
                bx, by, room = 144.0, y + 70, canvas.width - 144
            else:
                bottom = pair_grid(canvas, x, y + 54, cell, alike)
                bx, by, room = x, bottom + 24, step - 24
            with canvas.group(bx, by):
                canvas.text(0, 0, f"meetings: {grouped(met)} in this draw", "k-label", "start", SMALL)
            items = [("mean", mean, show(mean, 3), "k-error"), ("expected", chance, show(chance, 3), "k-negative")]
            after = kit.bars(canvas, bx, by + 6, room, items, 70, 26, top)
            if canvas.narrow:
                y = bottom + 18
            else:
                canvas.height = max(canvas.height, after + 4)
        if canvas.narrow:
            canvas.height = y
        return canvas

    description = " ".join(
        f"{name}: {counted(met, 'meeting')} in this draw, {fixed(mean, 1)} on average, {fixed(chance, 1)} expected."
        for name, _, met, mean, chance, _ in found
    )
    raw = [
        {"layout": name, "meetings": met, "mean": mean, "expected": chance, "combinations": places}
        for name, _, met, mean, chance, places in found
    ]
    return draw(paint, "The same memory in three layouts", description, raw)


def _short(value: float) -> str:
    return fixed(value, 1) if value >= 0.95 else show(value, 2)
