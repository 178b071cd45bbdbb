"""The picture of the `two-reads` widget: the memory in the middle, a query with its shares and output on each side."""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.drawing import Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import fixed, show

ROW = 40


@dataclass(frozen=True)
class Read:
    """What one query does with the memory."""

    name: str
    query: np.ndarray  # [2]
    scores: np.ndarray  # [N]
    shares: np.ndarray  # [N]
    output: np.ndarray  # [2]


def reads_picture(keys: np.ndarray, values: np.ndarray, reads: tuple[Read, Read]) -> Picture:
    """Bars reach from the memory towards the query that takes them."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        cell = 31.0 if canvas.narrow else 56.0
        gap = 6.0 if canvas.narrow else 16.0
        middle = width / 2
        inner = 2 * cell + gap / 2  # half of the memory's width
        room = middle - inner - 12
        with canvas.group():
            y = kit.legend(canvas, [("k-hidden", "query, output"), ("k-global", "memory"), ("k-result", "share")]) + 8
            canvas.text(middle - inner + cell, y + 14, "key", "k-text--strong")
            canvas.text(middle + inner - cell, y + 14, "value", "k-text--strong")
            top = y + 62
            for j, (key, value) in enumerate(zip(keys, values, strict=True)):
                for x, row in ((middle - inner, key), (middle + gap / 2, value)):
                    kit.cells(canvas, x, top + j * ROW, [show(float(v)) for v in row], cell, 30, "global")
        for side, read in ((-1, reads[0]), (1, reads[1])):
            _side(canvas, side, read, middle, inner, room, y, top)
        canvas.height = top + len(keys) * ROW + 62
        return canvas

    description = " ".join(
        f"Query {r.name} ({_words(r.query)}) takes {', '.join(fixed(float(s), 3) for s in r.shares)} of the "
        f"{len(keys)} entries and gets ({_words(r.output)})."
        for r in reads
    )
    raw = {
        r.name: {"query": r.query, "scores": r.scores, "shares": r.shares, "output": r.output} for r in reads
    }  # fmt: skip
    return draw(paint, "Same memory, two reads", description, raw)


def _side(canvas: Canvas, side: int, read: Read, middle, inner, room, y, top) -> None:
    """One query: its numbers above, its shares as bars, its output below."""
    outer, anchor = (0, "start") if side < 0 else (canvas.width, "end")
    width = 100.0 if canvas.narrow else 150.0
    with canvas.group(outer if side < 0 else outer - width, y):
        canvas.text(0 if side < 0 else width, 14, f"Query {read.name}", "k-text--strong", anchor)
        kit.cells(canvas, 0, 22, [fixed(float(v), 2) for v in read.query], width / 2, 30, "hidden")
    edge = middle + side * (inner + 8)
    for j, share in enumerate(read.shares):
        with canvas.group(0, top + j * ROW):
            length = (room - 42) * float(share)
            end = edge + side * room
            canvas.rect(min(edge, end), 7, room, 16, "k-ground", 2)
            canvas.rect(edge if side > 0 else edge - length, 7, length, 16, "k-result", 2)
            spot = edge + side * (length + 5)
            canvas.text(spot, 19.5, fixed(float(share), 2), "k-text--strong", "start" if side > 0 else "end")
    foot = top + len(read.shares) * ROW + 2
    with canvas.group(outer if side < 0 else outer - width, foot):
        canvas.text(0 if side < 0 else width, 12, "Output", "k-text--strong", anchor)
        kit.cells(canvas, 0, 20, [fixed(float(v), 2) for v in read.output], width / 2, 30, "hidden", marked=[0, 1])


def _words(vector) -> str:
    return ", ".join(fixed(float(v), 2) for v in vector)
