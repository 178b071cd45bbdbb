"""Pictures of the `one-token` widget: the chain of stops, given numbers beside recomputed ones, entries read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import fixed, grouped, show

_CELL, _TALL, _AREA = 80.0, 28.0, 324.0


@dataclass(frozen=True)
class Quantity:
    """Numbers of one name.

    Attributes:
        name: its name in the trace.
        label: what a reader sees.
        values: the numbers, a row or rows.
        printed: what the public walk prints, of the same shape.
        tolerance: how far they may lie apart.
        given: whether they are inputs.
        editable: control value that a click chooses, or "".
    """

    name: str
    label: str
    values: np.ndarray
    printed: np.ndarray
    tolerance: float
    given: bool = False
    editable: str = ""

    @property
    def rows(self) -> list[list[tuple[float, float | None]]]:
        """Pairs of number and printed number, row by row; a number that was not printed has none."""
        values, old = np.atleast_2d(self.values), np.atleast_2d(self.printed)
        return [
            [(float(v), float(old[i, j]) if i < len(old) and j < old.shape[1] else None) for j, v in enumerate(row)]
            for i, row in enumerate(values)
        ]

    @property
    def differs(self) -> bool:
        """Whether any number is not the printed one."""
        if self.values.shape != self.printed.shape:
            return True
        return bool(np.abs(self.values - self.printed).max(initial=0) > self.tolerance)


def digits(value: float) -> str:
    """A number as the walk prints it: whole numbers whole, others with four decimals."""
    return (grouped(value) if value >= 10000 else show(value, 7)) if value == int(value) else fixed(value, 4)


def stop_picture(
    number: int, names: Sequence[str], changed: Sequence[bool], title: str, given: list[Quantity], made: list[Quantity]
) -> Picture:
    """The chain of stops, the given numbers of this one on the left and the recomputed ones on the right."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 10)
        y = _chain(canvas, number, changed)
        canvas.text(0, y + 18, f"{number + 1}. {title}", "k-text--strong", "start", 15)
        y += 34
        if width < 500:
            for words, items in (("Given", given), ("Recomputed", made)):
                if items:
                    y = _column(canvas, 4, y, words, items) + 6
            canvas.height = y
            return canvas
        low = _column(canvas, 0, y, "Given", given) if given else y
        left = width - _AREA if given else 0.0
        if given and made:
            canvas.arrow(_AREA + 16, y + 40, left - 16, y + 40, "k-hidden", 2, 8)
        canvas.height = max(low, _column(canvas, left, y, "Recomputed", made) if made else y)
        return canvas

    parts = [f"{q.label}: {', '.join(digits(v) for row in q.rows for v, _ in row)}" for q in (*given, *made)]
    raw = {q.name: np.asarray(q.values) for q in (*given, *made)}
    return draw(paint, f"Stop {number + 1}, {names[number]}", "; ".join(parts) + ".", raw)


def _chain(canvas: Canvas, number: int, changed: Sequence[bool]) -> float:
    across = len(changed) if canvas.width > 500 else -(-len(changed) // 2)
    step = (canvas.width - 4) // across
    with canvas.group():
        for index, other in enumerate(changed):
            x, y = 2 + index % across * step, 2 + index // across * 32
            style = "k-box k-changed k-box--selected" if other else "k-box k-hidden"
            canvas.rect(x, y, step - 10, 24, style, 5)
            canvas.text(x + (step - 10) / 2, y + 17, index + 1, "k-text--strong")
            if index % across < across - 1 and index < len(changed) - 1:
                canvas.line(x + step - 10, y + 12, x + step, y + 12, "k-hidden", 2)
            kit.hit(canvas, "stop", index + 1, x, y, step - 10, 24)
    x, y = 2 + number % across * step, 2 + number // across * 32
    with canvas.group(x, y):
        kit.ring(canvas, -1, -1, step - 8, 26, "k-result", 3)
    return 38.0 + 32 * ((len(changed) - 1) // across)


def _column(canvas: Canvas, x: float, y: float, words: str, items: list[Quantity]) -> float:
    with canvas.group():
        note = "can be changed" if words == "Given" else "printed below each"
        kit.heading(canvas, x, y, words, note)
    y += 28
    for item in items:
        high = 22 + sum(46 if _has_print(item) else 34 for _ in item.rows)
        with canvas.group(x, y):
            _quantity(canvas, item)
            if item.editable:
                kit.hit(canvas, "edit", item.editable, -2, 0, _AREA, high - 4)
        y += high
    return y


def _has_print(item: Quantity) -> bool:
    return not item.given or item.differs


def _quantity(canvas: Canvas, item: Quantity) -> None:
    canvas.text(0, 13, item.label, "k-label", "start")
    y = 20.0
    for row in item.rows:
        cell = min(_CELL, _AREA / max(len(row), 1))
        if not row:
            canvas.text(2, y + 18, "none", "k-muted", "start")
        for index, (value, old) in enumerate(row):
            differs = old is None or abs(value - old) > item.tolerance
            kind = "changed" if differs else "parameters" if item.given else "hidden"
            kit.cells(canvas, index * cell, y, [digits(value)], cell, _TALL, kind)
            if _has_print(item) and old is not None:
                style = "k-changed" if differs else "k-muted"
                canvas.text(index * cell + cell / 2, y + _TALL + 13, digits(old), style, size=SMALL)
        y += 46 if _has_print(item) else 34


def entries_picture(counts: dict[str, int], visible: int) -> Picture:
    """Entries that one query reads, on a logarithmic scale."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 140)
        y = kit.heading(canvas, 0, 0, "Entries one query reads", "logarithmic bars")
        items = [
            (
                name,
                math.log2(count),
                f"{count:,}".replace(",", "\u00a0"),
                "k-global" if name != "Window only" else "k-local",
            )
            for name, count in counts.items()
        ]
        canvas.height = kit.bars(canvas, 0, y, width, items, 110, top=math.log2(visible)) + 2
        return canvas

    words = ", ".join(f"{name} {count}" for name, count in counts.items())
    return draw(paint, "Entries read", f"At {visible} tokens: {words}.", dict(counts))
