"""Pictures of the `mhc` widget: two streams around one sub-block, and a matrix on its way through Sinkhorn."""

import math

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import linear
from deepseek_edu.drawing.numbers import fixed, show, superscript


def mix_picture(now: dict, start: dict) -> Picture:
    """Two streams of width 2: collapse by A, a sub-block, its output written by C, the streams mixed by B.

    Args:
        now: "streams", "pre" (A), "post" (C), "mix" (B, [from, to]), "x", "y" and "after", of one token.
        start: the same for the start values; what differs from them is drawn as changed.

    The width of an arrow is its coefficient.
    """
    streams, pre, x, y, after = (now[name] for name in ("streams", "pre", "x", "y", "after"))

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            changed = ("k-changed", "changed, and what follows")
            top = kit.legend(canvas, ["hidden", "parameters", changed]) + 4
        cell, into, level, lanes = (40.0, 76.0, 92, (214, 288)) if canvas.narrow else (56.0, 128.0, 30, (156, 224))
        level, lanes = level + top, (lanes[0] + top, lanes[1] + top)
        end, out = width - 2 * cell, width - 2 * cell - into
        begin, stop, bottom = 2 * cell + 5, end - 6, level + 33
        for stream in range(2):
            _vector(canvas, 0, lanes[stream], cell, streams[stream], start["streams"][stream], f"stream {stream}")
            _vector(canvas, end, lanes[stream], cell, after[stream], start["after"][stream], f"new stream {stream}")
        _vector(canvas, into, level, cell, x, start["x"], "x" if canvas.narrow else "x, what is read")
        _vector(canvas, out, level, cell, y, start["y"], "y" if canvas.narrow else "y, returned")
        with canvas.group():
            if canvas.narrow:
                kit.box(canvas, width / 2 - 62, top + 4, 124, 38, "sub-block", "swaps and halves", "parameters")
                canvas.arrow(into + cell, level - 20, width / 2 - 40, top + 46)
                canvas.arrow(width / 2 + 40, top + 46, out + cell, level - 20)
            else:
                kit.box(canvas, width / 2 - 68, level - 8, 136, 44, "sub-block", "swaps and halves", "parameters")
                canvas.arrow(into + 2 * cell + 6, level + 14, width / 2 - 74, level + 14)
                canvas.arrow(width / 2 + 74, level + 14, out - 6, level + 14)
        flows = []
        for i, j in ((0, 1), (1, 0), (0, 0), (1, 1)):
            at, name = 0.5 if i == j else 0.24, f"B{_SUB[i]}{_SUB[j]} "
            flows.append(((begin, lanes[i] + 14), (stop, lanes[j] + 14), ("mix", i, j), "k-hidden", at, name))
        for i in range(2):
            foot, j = cell * (0.6 + 0.8 * i), 1 - i
            near = 0.35 + 0.4 * i if canvas.narrow else 0.6 - 0.15 * i
            far = 0.12 + 0.38 * i if canvas.narrow else 0.2 + 0.33 * i
            flows += [
                ((begin, lanes[i] + 6), (into + foot, bottom), ("pre", i), "k-level", near, f"A{_SUB[i]} "),
                ((out + foot, bottom), (stop, lanes[j] + 6), ("post", j), "k-level", far, f"C{_SUB[j]} "),
            ]
        for begins, goal, (name, *place), style, at, words in flows:
            weight, old = now[name][tuple(place)], start[name][tuple(place)]
            changed = abs(weight - old) > 1e-9
            _flow(canvas, begins, goal, weight, "k-changed" if changed else style, at, words, changed)
        canvas.height = lanes[1] + 34
        return canvas

    description = (
        f"Streams {_pair(streams[0])} and {_pair(streams[1])}, weighted {fixed(float(pre[0]), 2)} and "
        f"{fixed(float(pre[1]), 2)}, are collapsed to x = {_pair(x)}. The sub-block returns y = {_pair(y)}; the "
        f"streams after it are {_pair(after[0])} and {_pair(after[1])}."
    )
    return draw(paint, "One sub-block and two streams", description, now)


_SUB = ("₀", "₁")


def _pair(values) -> str:
    return f"[{', '.join(show(round(float(v), 6) + 0.0, 4) for v in values)}]"


def _vector(canvas: Canvas, x: float, y: float, cell: float, values, start, name: str) -> None:
    """Two numbers in cells with their name above; those that are not the start's are drawn as changed."""
    with canvas.group(x, y):
        anchor, at = ("end", 2 * cell) if name.startswith("new") else ("start", 1)
        canvas.text(at, -7, name, "k-label", anchor, SMALL)
        for index, (value, old) in enumerate(zip(values, start, strict=True)):
            kind = "changed" if abs(value - old) > 1e-9 else "hidden"
            word = show(round(float(value), 4) + 0.0, 3)
            kit.cells(canvas, index * cell, 0, [word], cell, 28, kind)


def _flow(canvas: Canvas, begin, goal, weight, style: str, at: float, name: str, changed: bool) -> None:
    """An arrow as wide as its coefficient, which stands on it; nothing flows at zero."""
    weight = float(weight)
    with canvas.group():
        if abs(weight) > 1e-9:
            canvas.arrow(*begin, *goal, style, 0.8 + 3.2 * min(2.0, abs(weight)), 9)
        else:
            canvas.line(*begin, *goal, "k-changed" if changed else "k-grid", 1, "3 3")
        x, y = (b + at * (g - b) for b, g in zip(begin, goal, strict=True))
        words = f"{name}{show(round(weight, 4), 3)}"
        wide = kit.text_width(words, SMALL) + 8
        canvas.rect(x - wide / 2, y - 9, wide, 18, "k-cell", 3)
        if changed:
            kit.ring(canvas, x - wide / 2, y - 9, wide, 18, "k-changed")
        canvas.text(x, y + 4, words, "k-changed k-text--strong" if changed else "", size=SMALL)


def misses_of(mix: np.ndarray) -> tuple[float, float]:
    """How far row sums and column sums lie from 1 at most, without the dust of rounding."""
    rows, columns = (round(float(np.abs(mix.sum(axis) - 1).max()), 12) for axis in (1, 0))
    return rows, columns


def sinkhorn_picture(matrices: list[np.ndarray], iterations: int) -> Picture:
    """The matrix after so many iterations with its sums, and the largest miss of rows and columns after each."""
    mix = matrices[iterations - 1]
    misses = [misses_of(m) for m in matrices]
    size = len(mix)

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            items = [("k-hidden", "B"), ("k-error", "row sums"), ("k-result", "column sums")]
            top = kit.legend(canvas, items) + 22
        cell = 46.0 if canvas.narrow else 50.0
        with canvas.group():
            for index in range(size):
                canvas.text(28 + (index + 0.5) * cell, top - 6, f"to {index}", "k-muted", size=SMALL)
                canvas.text(22, top + index * 36 + 21, index, "k-muted", "end", SMALL)
            canvas.text(36 + size * cell, top - 6, "row sum", "k-error", "start", SMALL)
            canvas.text(22, top + size * 36 + 21, "Σ", "k-selected", "end", SMALL)
        for row in range(size):
            with canvas.group(28, top + row * 36):
                kit.cells(
                    canvas,
                    0,
                    0,
                    [fixed(float(v), 3) for v in mix[row]],
                    cell,
                    32,
                    "hidden",
                    mix[row].tolist(),
                    size=SMALL,
                )
                canvas.text(size * cell + 8, 21, fixed(float(mix[row].sum()), 4), "k-error k-text--strong", "start")
        with canvas.group(28, top + size * 36):
            for column in range(size):
                total = float(mix[:, column].sum())
                canvas.text((column + 0.5) * cell, 21, fixed(total, 4), "k-selected k-text--strong", size=SMALL)
        bottom = top + size * 36 + 40
        place = (0.0, bottom, width) if canvas.narrow else (330.0, top - 18, width - 330)
        end = _misses(canvas, *place, misses, iterations)
        canvas.height = max(bottom, end)
        return canvas

    rows, columns = misses[iterations - 1]
    description = (
        f"A {size} by {size} matrix after {iterations} of {len(matrices)} iterations. Row sums miss 1 by at most "
        f"{show(rows, 2)}, column sums by at most {show(columns, 2)}."
    )
    raw = {"mix": mix, "rows": [m[0] for m in misses], "columns": [m[1] for m in misses]}
    return draw(paint, "Sinkhorn", description, raw)


_LOW, _HIGH = -8, 0


def _misses(canvas: Canvas, x: float, y: float, width: float, misses: list, iterations: int) -> float:
    """Largest miss of row and column sums by iteration, on a logarithmic axis. Returns the y below."""
    height = 176.0
    across = linear(1, len(misses), x + 46, x + width - 10)
    down = linear(_HIGH, _LOW, y + 30, y + 30 + height)

    def at(value: float) -> float:
        return down(max(_LOW, math.log10(value))) if value > 0 else down(_LOW)

    with canvas.group():
        canvas.text(x + 46, y + 12, "largest distance of a sum from 1", "k-text--strong", "start")
        for power in range(_LOW, _HIGH + 1, 2):
            canvas.line(x + 46, down(power), x + width - 4, down(power), "k-grid")
            words = "1" if power == 0 else f"10{superscript(power)}"
            canvas.text(x + 40, down(power) + 4, words, "k-muted", "end", SMALL)
        for tick in (1, 5, 10, 15, 20):
            canvas.text(across(tick), y + 30 + height + 16, tick, "k-muted", size=SMALL)
        canvas.text(x + 46, y + 30 + height + 32, "iterations", "k-muted", "start", SMALL)
    with canvas.group():
        for index, style in ((1, "k-result"), (0, "k-error")):
            points = [(across(i + 1), at(pair[index])) for i, pair in enumerate(misses)]
            canvas.polyline(points, style, 2)
            for px, py in points:
                canvas.circle(px, py, 2.5, style)
    with canvas.group(across(iterations), 0):
        canvas.line(0, y + 26, 0, y + 30 + height, "k-level", 1.5)
        for index, style in ((1, "k-result"), (0, "k-error")):
            canvas.circle(0, at(misses[iterations - 1][index]), 5, style)
    return y + 30 + height + 40
