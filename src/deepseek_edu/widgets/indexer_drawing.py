"""Pictures of the `indexer` widget: scores that become addresses, and how two heads make a score."""

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import fixed, show

from .indexer_examples import HEADS

BAR = 84


def addresses_picture(scores, values, chosen: list[int], k: int) -> Picture:
    """Bars of scores, the chosen positions under them, and the entries that are read at these addresses."""
    count = len(scores)
    span = max(1.0, *(abs(s) for s in scores))
    below = BAR * 0.5 if min(scores) < 0 else 0

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        left = 66 if canvas.narrow else 130
        cell = min(124.0, (width - left) / count)
        with canvas.group():
            y = kit.legend(canvas, [("k-hidden", "score"), ("k-global", "stored entry"), ("k-mark", "chosen")]) + 16
            zero = y + BAR
            for row, words in (
                (zero - BAR / 2, "score"),
                (zero + below + 27, "position"),
                (zero + below + 91, "entry"),
            ):
                canvas.text(0, row + 4, words, "k-label", "start")
            canvas.line(left, zero, left + count * cell, zero, "k-axis")
        for j, score in enumerate(scores):
            taken = j in chosen
            height = (BAR - 16) * abs(score) / span * (1 if score >= 0 else 0.5)
            with canvas.group(left + j * cell, 0):
                canvas.rect(
                    cell * 0.22, zero - height if score >= 0 else zero, cell * 0.56, max(height, 1), "k-hidden", 2
                )
                spot = zero - height - 5 if score >= 0 else zero + height + 12
                canvas.text(cell / 2, spot, show(score, 3), "k-text--strong" if taken else "k-muted")
            with canvas.group(left + j * cell, zero + below + 12):
                kit.cells(canvas, 4, 0, [j], cell - 8, 28, marked=[0] if taken else [])
                if taken:
                    canvas.arrow(cell / 2, 31, cell / 2, 58, "k-selected", 2)
                kit.cells(canvas, 4, 62, [values[j]], cell - 8, 32, "global", marked=[0] if taken else [])
                if taken:
                    canvas.arrow(cell / 2, 97, cell / 2, 120, "k-selected", 2)
                    canvas.text(cell / 2, 138, values[j], "k-selected k-text--strong")
        with canvas.group():
            canvas.text(0, zero + below + 150, "read", "k-text--strong", "start")
            canvas.text(left + 4, zero + below + 174, "All four entries stay stored.", "k-muted", "start", SMALL)
        canvas.height = zero + below + 182
        return canvas

    description = (
        f"Scores of positions 0 to {count - 1}: {', '.join(show(s, 3) for s in scores)}. The {k} best are at positions "
        f"{', '.join(map(str, chosen))}; the entries read there are {', '.join(str(values[j]) for j in chosen)}."
    )
    raw = {"scores": list(scores), "chosen": chosen, "values": [values[j] for j in chosen]}
    return draw(paint, "From scores to addresses", description, raw)


def heads_picture(queries, weights, keys, products, counted, scores, chosen: list[int]) -> Picture:
    """Each entry in a row: its key, what each head says, and the weighted sum."""
    top = max(1.0, float(np.abs(scores).max()), float(np.abs(products).max()))

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        row = 34
        entry, heads = (0, (44, 132)) if narrow else (0, (180, 362))
        room = 82 if narrow else 150
        middle, half = (280, 58) if narrow else (626, 78)
        with canvas.group():
            words = [
                ("k-global", "index key"),
                ("k-hidden", "counts"),
                ("k-box k-box--off", "cut to 0"),
                ("k-negative", "score below 0"),
                ("k-mark", "chosen"),
            ]
            y = kit.legend(canvas, words) + 6
            canvas.text(entry, y + 14, "Entry" if narrow else "Entry and its key", "k-text--strong", "start")
            canvas.text(middle, y + 14, "Score", "k-text--strong")
            canvas.text(middle, y + 30, "weighted sum", "k-muted", size=SMALL)
        for h, x in enumerate(heads):
            with canvas.group(x, y):
                q = f"({fixed(float(queries[h][0]), 2)}, {fixed(float(queries[h][1]), 2)})"
                canvas.text(0, 14, f"Head {HEADS[h]}", "k-text--strong", "start")
                if not narrow:
                    canvas.text(52, 14, f"q = {q}", "k-changed", "start")
                against = ", speaks against" if weights[h] < 0 and not narrow else ""
                canvas.text(0, 30, f"weight {fixed(weights[h], 1)}{against}", "k-changed", "start", SMALL)
        y += 38
        for j, key in enumerate(keys):
            taken = j in chosen
            with canvas.group(0, y):
                if taken:
                    canvas.rect(0, 1, width, row - 3, "k-selected", 5)
                canvas.text(10, row / 2 + 4, j, "k-text--strong", "start")
                if not narrow:
                    kit.cells(canvas, 34, 4, [fixed(float(v), 1) for v in key], 58, row - 9, "global", size=SMALL)
            for h, x in enumerate(heads):
                with canvas.group(x, y):
                    _product(canvas, float(products[h, j]), float(counted[h, j]), room, top, row)
            with canvas.group(middle, y):
                score = float(scores[j])
                length = (half - 34) * abs(score) / top
                canvas.line(0, 3, 0, row - 4, "k-axis")
                style = "k-hidden" if score >= 0 else "k-negative"
                canvas.rect(0 if score >= 0 else -length, 10, max(length, 0.5), 13, style, 2)
                side, anchor = (length + 5, "start") if score >= 0 else (-length - 5, "end")
                strong = "k-selected k-text--strong" if taken else ""
                canvas.text(side, row / 2 + 4, fixed(score, 2), strong, anchor, SMALL)
            y += row
        canvas.height = y + 4
        return canvas

    description = " ".join(
        f"Entry {j}: head A {fixed(float(counted[0, j]), 2)}, head B {fixed(float(counted[1, j]), 2)}, score "
        f"{fixed(float(scores[j]), 2)}." for j in range(len(keys))
    ) + f" Chosen: {', '.join(map(str, chosen))}."  # fmt: skip
    raw = {"products": products, "counted": counted, "scores": scores, "chosen": chosen}
    return draw(paint, "Two heads score eight entries", description, raw)


def _product(canvas: Canvas, product: float, counted: float, room: float, top: float, row: float) -> None:
    """One product of a head: a bar where it counts, a grey stub with its cut value where it does not."""
    full = room - 46
    length = full * abs(product) / top
    if abs(counted - product) < 1e-9:
        canvas.rect(0, 10, max(length, 0.5), 13, "k-hidden", 2)
        canvas.text(length + 5, row / 2 + 4, fixed(product, 2), "", "start", SMALL)
        return
    if room >= 100:
        canvas.rect(0, 10, length, 13, "k-box k-box--off", 2)
    words = f"{fixed(product, 2)} → {fixed(counted, 2) if counted else 0}"
    canvas.text(0 if room < 100 else length + 5, row / 2 + 4, words, "k-muted", "start", SMALL)
