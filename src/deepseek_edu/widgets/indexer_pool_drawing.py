"""Pictures of the `indexer` widget with a candidate pool: strips of positions in blocks, recall, and work."""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import linear
from deepseek_edu.drawing.numbers import counted, grouped, percent, show

from .indexer_examples import BLOCK, LIKENESS, POSITIONS, QUERIES, TOP

NAMES = ("First layer", "Second layer", "Third layer")


@dataclass(frozen=True)
class Found:
    """One layer: its scores, what it chose, and what it would choose if it might search everywhere."""

    scores: np.ndarray
    chosen: list[int]
    true: list[int]

    @property
    def lost(self) -> list[int]:
        """What it would choose and cannot."""
        return [j for j in self.true if j not in self.chosen]

    def raw(self) -> dict:
        """The numbers behind a picture."""
        return {"chosen": self.chosen, "true": self.true, "lost": self.lost}


def hierarchy_picture(layers, step: int, pool, seen: int, newest, k: int) -> Picture:
    """The first layer's scores with their blocks, and the later layers' scores inside the pool."""
    count = len(pool)
    tops = {b: max(layers[0].scores[b * BLOCK : min(b * BLOCK + BLOCK, seen)]) for b in range(-(-seen // BLOCK))}

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        columns = count // 2 if canvas.narrow else count
        cell = min(44.0, width / columns)
        with canvas.group():
            words = [("k-hidden", "score"), ("k-global", "in the pool"), ("k-mark", "chosen"), ("k-error", "lost")]
            y = kit.legend(canvas, [*words, ("k-box k-box--off", "not scored")]) + 6
        for i, layer in enumerate(layers):
            reached = step >= (1, 5, 6)[i]
            with canvas.group():
                notes = (f"scores all {seen} it may read", "scores the pool only", "same pool, another query")
                y = kit.heading(canvas, 0, y, NAMES[i], notes[i] if not canvas.narrow or i else "scores all")
            for start in range(0, count, columns):
                for first in range(start, min(start + columns, count), BLOCK):
                    span = range(first, min(first + BLOCK, count))
                    with canvas.group((first - start) * cell, y):
                        _strip(canvas, span, cell, layer, i, step, reached, pool, seen)
                    if i == 0:
                        with canvas.group((first - start) * cell, y + 46):
                            _bracket(canvas, first // BLOCK, len(span) * cell, tops, step, pool, newest)
                y += 46 if i else 88
            y += 8
        canvas.height = y
        return canvas

    kept = sorted({j // BLOCK + 1 for j in range(count) if pool[j]})
    description = (
        f"{count} positions in blocks of {BLOCK}; {seen} are readable. Blocks {_listed(kept)} are kept. "
        + " ".join(
            f"{NAMES[i]}: {_listed(j + 1 for j in layer.chosen)}, lost {_listed(j + 1 for j in layer.lost)}."
            for i, layer in enumerate(layers)
        )
    )
    raw = {
        "pool": [j for j in range(seen) if pool[j]],
        "blocks": {str(b + 1): float(top) for b, top in tops.items()},
        "layers": [layer.raw() for layer in layers],
        "k": k,
    }
    return draw(paint, "From all positions to a few", description, raw)


def _strip(canvas, span, cell, layer, i, step, reached, pool, seen) -> None:
    """One block: numbers of its positions, and a cell with the score of each that is scored."""
    marks = set(layer.chosen) if step >= (4, 5, 6)[i] else set()
    low, high = float(layer.scores.min()), float(layer.scores.max())
    for place, j in enumerate(span):
        chosen, lost = j in marks, bool(reached and i and j in layer.lost)
        scored = reached and j < seen and (i == 0 or pool[j])
        x = place * cell + 2
        canvas.text(x + cell / 2 - 2, 10, j + 1, "k-selected k-text--strong" if chosen else "k-muted", size=SMALL)
        if not scored and not lost:
            canvas.rect(x, 15, cell - 4, 25, "k-box k-box--off", 3)
            continue
        kind = "error" if lost else "global" if step >= 3 and pool[j] else "hidden"
        canvas.rect(x, 15, cell - 4, 25, f"k-box k-{kind}", 3)
        if not lost:
            shade = kit.READABLE * (float(layer.scores[j]) - low) / (high - low)
            canvas.rect(x, 15, cell - 4, 25, "k-hidden", 3, round(shade, 2))
        if chosen:
            canvas.rect(x, 15, cell - 4, 25, "k-mark", 3)
        canvas.text(x + cell / 2 - 2, 31.5, _short(float(layer.scores[j])), size=SMALL)


def _bracket(canvas, block, width, tops, step, pool, newest) -> None:
    """Under a block: its best score, and whether it is kept."""
    kept = step >= 3 and bool(pool[block * BLOCK])
    canvas.bracket(3, width - 3, -2, 5, "k-global" if kept else "k-tick")
    if block not in tops:
        canvas.text(width / 2, 18, "ahead of the query", "k-muted", size=SMALL)
        return
    if step >= 2:
        style = "k-text--strong" if kept else "k-muted"
        canvas.text(width / 2, 18, f"best {_short(float(tops[block]))}", style, size=SMALL)
    if kept:
        words = "kept: newest" if block == newest else "kept"
        canvas.text(width / 2, 32, words, "k-global k-text--strong", size=SMALL)


def many_picture(layers, pool) -> Picture:
    """All positions of three layers in rows of 32: kept blocks framed, chosen and lost entries marked."""
    columns = 32

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        left = 30.0 if canvas.narrow else 36.0
        cell, height = (width - left - 1) / columns, 15.0
        with canvas.group():
            words = [
                ("k-hidden", "score"),
                ("k-ring k-global", "block in the pool"),
                ("k-selected", "chosen"),
                ("k-error", "lost"),
            ]
            y = kit.legend(canvas, words) + 4
        for i, layer in enumerate(layers):
            with canvas.group():
                note = (
                    "scores all, and makes the pool"
                    if not i
                    else f"scores the pool; lost {len(layer.lost)} of its best {len(layer.true)}"
                )
                y = kit.heading(canvas, 0, y, NAMES[i], note)
            low, high = float(layer.scores.min()), float(layer.scores.max())
            shades = np.round(5 * (layer.scores - low) / (high - low)) / 5
            with canvas.group(left, y):
                for row in range(POSITIONS // columns):
                    kit.heat(
                        canvas,
                        0,
                        row * (height + 5),
                        [shades[row * columns : (row + 1) * columns].tolist()],
                        cell,
                        "hidden",
                        1.8,
                        height,
                    )
                    canvas.text(-6, row * (height + 5) + 12, row * columns, "k-muted", "end", SMALL)
            for b in range(POSITIONS // BLOCK):
                if pool[b * BLOCK]:
                    row, column = divmod(b * BLOCK, columns)
                    with canvas.group(left + column * cell, y + row * (height + 5)):
                        kit.ring(canvas, 0.5, -1.5, BLOCK * cell - 1, height + 3, "k-global", 2)
            for style, marks in (("k-result", layer.chosen), ("k-error", layer.lost)):
                for j in marks:
                    row, column = divmod(j, columns)
                    with canvas.group(left + (column + 0.5) * cell, y + row * (height + 5) + height / 2):
                        _mark(canvas, style, min(4.5, cell * 0.36))
            y += POSITIONS // columns * (height + 5) + 6
        canvas.height = y
        return canvas

    description = " ".join(
        f"{NAMES[i]} chooses {_listed(f.chosen)}; lost: {_listed(f.lost)}." for i, f in enumerate(layers)
    )
    raw = {"pool": [int(j) for j in np.flatnonzero(pool)], "layers": [layer.raw() for layer in layers]}
    return draw(paint, "128 positions, three layers", description, raw)


def _mark(canvas: Canvas, style: str, reach: float) -> None:
    """A dot for what was chosen, a cross for what was lost."""
    if style == "k-error":
        canvas.line(-reach, -reach, reach, reach, style, 2.5)
        canvas.line(-reach, reach, reach, -reach, style, 2.5)
    else:
        canvas.circle(0, 0, reach, style)


def recall_picture(curves: dict, likeness: float, blocks: int) -> Picture:
    """Mean recall by pool size for each likeness; the present pool is marked."""
    most = len(curves[likeness])

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 220)
        left, right, top, bottom = 44, width - 18, 40, 172
        x, y = linear(0, most, left, right), linear(0, 1, bottom, top)
        with canvas.group():
            note = "" if canvas.narrow else f"share of the true Top-{TOP} in the pool, mean of {QUERIES} queries"
            kit.heading(canvas, 0, 0, "Recall by pool size", note)
            for share in (0, 0.25, 0.5, 0.75, 1):
                canvas.line(left, y(share), right, y(share), "k-grid")
                canvas.text(left - 8, y(share) + 4, percent(share), "k-muted", "end", SMALL)
            for tick in range(0, most + 1, 8):
                canvas.text(x(tick), bottom + 18, tick, "k-muted", size=SMALL)
            canvas.text(
                (left + right) / 2, bottom + 38, f"blocks of {BLOCK} in the pool, of {most}", "k-label", size=SMALL
            )
        for a in LIKENESS:
            with canvas.group():
                now = a == likeness
                points = [(x(n), y(v)) for n, v in enumerate(curves[a], 1)]
                canvas.polyline(points, "k-hidden" if now else "k-negative", 2.5 if now else 1.5, "" if now else "4 3")
                spot = points[{0.95: 10, 0.8: 13, 0.5: 17}[a]]
                canvas.text(
                    spot[0] + 6, spot[1] + 16, show(a), "k-hidden k-text--strong" if now else "k-muted", "start", SMALL
                )
        with canvas.group(x(blocks)):
            mean = curves[likeness][blocks - 1]
            canvas.line(0, bottom, 0, y(mean), "k-selected", 2)
            canvas.circle(0, y(mean), 6, "k-result")
        return canvas

    description = " ".join(
        f"Likeness {show(a)}: recall "
        + ", ".join(f"{percent(curves[a][n - 1])} with {counted(n, 'block')}" for n in (1, 4, 8, 16, most))
        + "."
        for a in LIKENESS
    )
    raw = {"recall": {str(a): list(curve) for a, curve in curves.items()}, "blocks": blocks}
    return draw(paint, f"Recall of the true Top-{TOP} by pool size", description, raw)


def work_picture(rows, most: int) -> Picture:
    """Keys scored by each layer that chooses, beside what it would score without a pool."""
    top = max(row[3] for row in rows)

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        left, right = (64, width - 76) if canvas.narrow else (190, width - 96)
        with canvas.group():
            y = kit.legend(canvas, [("k-hidden", "keys scored"), ("k-box k-box--off", "spared by the pool")]) + 8
        for index, mode, ratio, readable, scored, _ in rows:
            with canvas.group(0, y):
                canvas.text(0, 17, f"Layer {index}", "k-text--strong", "start")
                if not canvas.narrow:
                    canvas.text(66, 17, f"{mode}, ratio {ratio}", "k-muted", "start", SMALL)
            with canvas.group(left, y):
                span = right - left
                full, part = max(1.5, span * readable / top), max(1.5, span * scored / top)
                if readable > scored:
                    canvas.rect(0, 5, full, 16, "k-box k-box--off", 2)
                canvas.rect(0, 5, part, 16, "k-hidden", 2)
                canvas.text(width - left, 17, grouped(scored), "k-text--strong", "end")
            y += 29
        canvas.height = y + 2
        return canvas

    description = " ".join(
        f"Layer {r[0]} ({r[1]}, ratio {r[2]}) scores {grouped(r[4])} of {grouped(r[3])} keys." for r in rows
    )
    raw = {"layers": [list(row) for row in rows], "pool": most}
    return draw(paint, "Keys scored for one new token", description, raw)


def _listed(numbers) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _short(value: float) -> str:
    """A score in a small cell: no zero before the point."""
    text = show(value, 2)
    return text.replace("0.", ".", 1) if text.lstrip("−").startswith("0.") else text
