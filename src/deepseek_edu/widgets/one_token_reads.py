"""Pictures of the `one-token` widget: which compressed entries a position may read, and how many a query reads."""

import math
from collections.abc import Mapping, Sequence

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import grouped

from .one_token_drawing import digits, letter


def visible_picture(
    ids: Sequence[int], position: int, groups: Mapping[str, Sequence], seen: Mapping, scores
) -> Picture:
    """Which compressed entries a position may read: entries as bars over the tokens that they mix.

    Args:
        ids: of all tokens.
        position: the query's.
        groups: tokens of each entry, by kind of layer.
        seen: entries that are visible, by kind of layer.
        scores: printed index scores of the first kind's entries.
    """
    first = next(iter(groups))

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        left, right = (64.0, 66.0) if canvas.narrow else (120.0, 150.0)
        cell = (width - left - right) / len(ids)
        with canvas.group():
            for index, number in enumerate(ids):
                x = left + index * cell
                kit.cells(canvas, x, 0, [letter(number)], cell, 28, "hidden", off=(0,) if index > position else ())
                canvas.text(x + cell / 2, 42, index, "k-muted", size=SMALL)
            kit.ring(canvas, left + position * cell, -1, cell, 30, "k-result")
            canvas.text(left - 8, 18, "tokens", "k-label", "end")
        y = 56.0
        for kind, entries in groups.items():
            with canvas.group():
                canvas.text(left - 8, y + 14, kind, "k-text--strong", "end")
                if kind == first:
                    canvas.text(width, y - 4, "index score", "k-muted", "end", SMALL)
                for number, tokens in enumerate(entries):
                    there = number in seen[kind]
                    x, wide = left + tokens[0] * cell, len(tokens) * cell
                    canvas.rect(x + 2, y, wide - 4, 22, "k-box k-global" + ("" if there else " k-box--off"), 4)
                    canvas.text(
                        x + wide / 2, y + 15, f"entry {number}", "k-text--strong" if there else "k-muted", size=SMALL
                    )
                    words = digits(scores[number]) if kind == first else ""
                    canvas.text(width, y + 15, words, "k-text--strong" if there else "k-muted", "end")
                    if there and not canvas.narrow:
                        canvas.text(left + len(ids) * cell + 8, y + 15, "may be read", "k-selected", "start", SMALL)
                    y += 26
            y += 12
        with canvas.group():
            edge = left + (position + 1) * cell
            canvas.line(edge, -2, edge, y - 12, "k-result", 2, "5 4")
        canvas.height = y - 6
        return canvas

    lines = [f"{kind}: entries {', '.join(map(str, seen[kind])) or 'none'} of {len(groups[kind])}" for kind in groups]
    words = f"At position {position} may be read: {'; '.join(lines)}."
    return draw(paint, "Entries and the tokens they mix", words, {"visible": dict(seen), "scores": list(scores)})


def entries_picture(counts: dict[str, int], visible: int) -> Picture:
    """Entries that one query reads, on a logarithmic scale."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 140)
        y = kit.heading(canvas, 0, 0, "Entries one query reads", "logarithmic bars")
        items = [
            (
                name,
                math.log2(count),
                grouped(count),
                "k-global" if name != "Window only" else "k-local",
            )
            for name, count in counts.items()
        ]
        canvas.height = kit.bars(canvas, 0, y, width, items, 110, top=math.log2(visible)) + 2
        return canvas

    words = ", ".join(f"{name} {grouped(count)}" for name, count in counts.items())
    return draw(paint, "Entries read", f"At {grouped(visible)} tokens: {words}.", dict(counts))
