"""Pictures of the `one-token` widget: the chain of stops, given numbers beside recomputed ones, entries read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import fixed, show

_CELL, _TALL, _AREA, _LEFT, _SECOND = 64.0, 28.0, 330.0, 50.0, 200.0
_LINE = 50.0  # of the chain


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
        notes: a character under each number.
        marked: index of the number in a ring, or −1.
    """

    name: str
    label: str
    values: np.ndarray
    printed: np.ndarray
    tolerance: float
    given: bool = False
    editable: str = ""
    notes: tuple[str, ...] = ()
    marked: int = -1

    @cached_property
    def rows(self) -> list[list[tuple[float, float | None]]]:
        """Pairs of number and printed number, row by row; a number that was not printed has none."""
        values, old = np.atleast_2d(self.values), np.atleast_2d(self.printed)
        return [
            [(float(v), float(old[i, j]) if i < len(old) and j < old.shape[1] else None) for j, v in enumerate(row)]
            for i, row in enumerate(values)
        ]

    @cached_property
    def differs(self) -> bool:
        """Whether any number is not the printed one."""
        if self.values.shape != self.printed.shape:
            return True
        return bool(np.abs(self.values - self.printed).max(initial=0) > self.tolerance)


def digits(value: float, whole: bool = True) -> str:
    """A number as the walk prints it: with four decimals, but whole numbers whole where all beside it are."""
    if not whole:
        return fixed(value, 4)
    return show(value, 7) if value == int(value) else fixed(value, 4)


@dataclass(frozen=True)
class Place:
    """Where a stop stands in the walk.

    Attributes:
        number: from 0.
        names: of all stops.
        blocks: what they belong to, with how many stops each.
        changed: for each stop, whether any of its numbers is not the printed one.
        rule: of this stop, or "".
    """

    number: int
    names: Sequence[str]
    blocks: Mapping[str, int]
    changed: Sequence[bool]
    rule: str


def stop_picture(place: Place, given: list[Quantity], made: list[Quantity]) -> Picture:
    """The chain of stops, the given numbers of this one on the left and the recomputed ones on the right."""
    title = f"{place.number + 1}. {place.names[place.number]}"

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 10)
        with canvas.group():
            yours = "yours, and what follows" if width > 500 else "yours and what follows"
            items = [("k-parameters", "given by the walk"), ("k-hidden", "computed here"), ("k-changed", yours)]
            y = kit.legend(canvas, items) + 8
        y = _chain(canvas, y, place)
        with canvas.group():
            canvas.text(0, y + 18, title, "k-text--strong", "start", 15)
            y += 30
            for line in _lines(place.rule, width):
                canvas.text(0, y + 8, line, "k-label", "start")
                y += 18
        y += 4
        if width < 500:
            for items in (given, made):
                y = _column(canvas, 0, y, items) + 4 if items else y
            canvas.height = y
            return canvas
        low = _column(canvas, 0, y, given) if given else y
        left = width - _AREA if given else 0.0
        if given and made:
            canvas.arrow(_AREA + 14, y + 42, left - 14, y + 42, "k-hidden", 2, 8)
        canvas.height = max(low, _column(canvas, left, y, made) if made else y)
        return canvas

    parts = [f"{q.label}: {', '.join(digits(v) for row in q.rows for v, _ in row)}" for q in (*given, *made)]
    raw = {q.name: np.asarray(q.values) for q in (*given, *made)}
    words = f"{place.rule}. " if place.rule else ""
    return draw(paint, f"Stop {title}", words + "; ".join(parts or ["no numbers"]) + ".", raw)


def _lines(words: str, width: float) -> list[str]:
    """Words in lines that fit the width."""
    lines: list[str] = []
    for word in words.split():
        if lines and kit.text_width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _chain(canvas: Canvas, y: float, place: Place) -> float:
    """All stops under the names of their blocks; changed ones in their colour, this one in a ring."""
    count = len(place.names)
    across = count if canvas.width > 500 else -(-count // 2)
    step = (canvas.width - 4) // across
    canvas.add(_plain_chain(canvas.width, y, across, tuple(place.blocks.items())))
    for index in (i for i, changed in enumerate(place.changed) if changed):
        x, top = _at(index, y, across, step)
        with canvas.group(x, top + 19):
            canvas.rect(0, 0, step - 8, 24, "k-box k-changed k-box--selected", 5)
            canvas.text((step - 8) / 2, 17, index + 1, "k-text--strong")
            kit.hit(canvas, "stop", index + 1, 0, 0, step - 8, 24)
    x, top = _at(place.number, y, across, step)
    with canvas.group(x, top + 19):
        kit.ring(canvas, -2, -2, step - 4, 28, "k-result", 3)
    return y + _LINE * ((count - 1) // across + 1) + 2


def _at(index: int, y: float, across: int, step: float) -> tuple[float, float]:
    """Where a stop of the chain stands."""
    return 2 + index % across * step, y + index // across * _LINE


@lru_cache(8)
def _plain_chain(width: float, y: float, across: int, blocks: tuple[tuple[str, int], ...]) -> str:
    """The chain as printed: names of the blocks, and all stops, which a click goes to."""
    canvas, step = Canvas(width, 0), (width - 4) // across
    with canvas.group():
        begin = 0
        for name, stops in blocks:
            for first, last in _rows(begin, begin + stops, across):
                (x1, top), (x2, _) = _at(first, y, across, step), _at(last - 1, y, across, step)
                canvas.text((x1 + x2 + step - 8) / 2, top + 9, name, "k-muted", size=SMALL)
                canvas.line(x1 + 1, top + 15, x2 + step - 9, top + 15, "k-tick", 1)
            begin += stops
        for index in range(begin):
            x, top = _at(index, y, across, step)
            canvas.rect(x, top + 19, step - 8, 24, "k-box k-hidden", 5)
            canvas.text(x + (step - 8) / 2, top + 36, index + 1, "k-text--strong")
            kit.hit(canvas, "stop", index + 1, x, top + 19, step - 8, 24)
    return canvas.markup()


def _rows(begin: int, end: int, across: int) -> list[tuple[int, int]]:
    """A stretch of stops, cut where a row of the chain ends."""
    middle = -(-(begin + 1) // across) * across
    return [(begin, end)] if end <= middle else [(begin, middle), (middle, end)]


def _column(canvas: Canvas, x: float, y: float, items: list[Quantity]) -> float:
    for group in _paired(items):
        for place, item in enumerate(group):
            with canvas.group(x + place * _SECOND, y):
                _quantity(canvas, item)
                if item.editable:
                    wide = _AREA if len(group) == 1 else (_SECOND, _AREA - _SECOND)[place]
                    kit.hit(canvas, "edit", item.editable, -4, -2, wide - 6, 18 + len(item.rows) * _high(item))
        y += 20 + max(len(item.rows) * _high(item) for item in group)
    return y


def _paired(items: list[Quantity]) -> list[list[Quantity]]:
    """Quantities in order; a single number stands beside the one or two before it."""
    groups: list[list[Quantity]] = []
    for item in items:
        wide = [len(q.rows[0]) for q in (*groups[-1], item)] if groups else []
        fits = groups and kit.text_width(groups[-1][0].label) < _SECOND and len(groups[-1][0].rows) == 1
        if fits and len(wide) == 2 and wide[0] <= 2 and wide[1] == 1:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _high(item: Quantity) -> float:
    """Height of a row of numbers, with the printed ones below it where they are needed."""
    return (50 if _has_print(item) else 36) + (14 if item.notes else 0)


def _has_print(item: Quantity) -> bool:
    return not item.given or item.differs


def _quantity(canvas: Canvas, item: Quantity) -> None:
    """Its name, and for each row: whose numbers these are, the numbers, and the printed ones they are compared with."""
    canvas.text(0, 12, item.label, "k-text--strong", "start")
    y = 18.0
    whole = all(value == int(value) for row in item.rows for value, _ in row)
    for row in item.rows:
        cell = min(_CELL, (_AREA - _LEFT - 16) / max(len(row), 1))
        own = "here" if not item.given else "yours" if item.differs else "printed"
        canvas.text(0, y + 18, own, "k-changed" if item.differs else "k-muted", "start", SMALL)
        if not row:
            canvas.text(_LEFT, y + 18, "none", "k-muted", "start")
        apart = [old is None or abs(value - old) > item.tolerance for value, old in row]
        for index, (value, _) in enumerate(row):
            own_kind = "hidden" if not item.given else "parameters" if item.editable else ""
            kind = "changed" if apart[index] else own_kind
            kit.cells(canvas, _LEFT + index * cell, y, [digits(value, whole)], cell, _TALL, kind)
        if _has_print(item):
            low = y + _TALL + 14
            canvas.text(0, low, "printed", "k-muted", "start", SMALL)
            for index, (_, old) in enumerate(row):
                if old is not None:
                    canvas.text(_LEFT + (index + 0.5) * cell, low, digits(old, whole), "k-muted", size=SMALL)
            mark, style = ("≠", "k-changed k-text--strong") if any(apart) else ("✓", "k-selected k-text--strong")
            canvas.text(_LEFT + len(row) * cell + 4, low, mark, style, "start")
        for index, note in enumerate(item.notes):
            strong = "k-text--strong" if index == item.marked else "k-muted"
            canvas.text(_LEFT + (index + 0.5) * cell, y + _high(item) - 6, note, strong)
        if item.marked >= 0:
            kit.ring(canvas, _LEFT + item.marked * cell, y - 1, cell, _TALL + 2, "k-result")
        y += _high(item)


def letter(number: float) -> str:
    """The character of a token id, a dot where it has none."""
    return chr(int(number)) if 32 < number < 127 else "·"
