"""Pictures of the `fp4` widget: the number line with its 15 levels, and a block in cells.

The bands of the number line (which values share a code, and to which side a tie goes) are found by asking the
mechanism along the line, not drawn from a table: an edited rule moves them.
"""

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw
from deepseek_edu.drawing.axes import Place, linear
from deepseek_edu.drawing.numbers import show
from deepseek_edu.reference import quant

EDGE = 8.2  # the line reaches a little beyond the largest value of the slider
_GRID = 64  # band edges are found to 1/64; all midpoints of E2M1 lie on that grid


def line_picture(stored, ties: str) -> Picture:
    """One value: bands, levels, the value, the level it gets, the error."""
    bands = _bands(ties)
    outcome = f"code {stored.bits} = {show(stored.level)}"
    if stored.scale != 1:
        outcome += f", × {show(stored.scale)} = {show(stored.back)}"
    dust = abs(stored.error) < 1e-12
    error = "no error" if dust else f"error {show(stored.error)}"

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 226)
        place = linear(-EDGE, EDGE, 4, width - 4)
        x, level_x = place(max(-EDGE, min(EDGE, stored.scaled))), place(stored.level)
        _paint_bands(canvas, place, bands, stored.scaled)
        _paint_levels(canvas, place)
        canvas.line(x, 30, x, 112, "k-value", 2)
        canvas.circle(x, 30, 5, "k-value")
        words = show(stored.value) if stored.scale == 1 else f"{show(stored.value)} ÷ {show(stored.scale)} = {show(stored.scaled)}"
        _beside(canvas, x, 17, words, "k-value k-text--strong")
        canvas.circle(level_x, 112, 7, "k-result")
        if not dust:
            canvas.arrow(x, 112, level_x, 112, "k-error", 3, 7)
        canvas.line(level_x, 119, level_x, 162, "k-result", 1.5)
        _beside(canvas, level_x, 178, outcome, "k-result k-text--strong")
        _beside(canvas, level_x, 196, error, "k-muted" if dust else "k-error k-text--strong")
        _triangle(canvas, 8, 215, 1)
        canvas.text(18, 219, "shows which way a tie at the boundary goes", "k-muted", "start", SMALL)
        return canvas

    description = (
        f"A number line from −8 to 8 with the 15 levels of E2M1. The value {show(stored.value)} divided by scale "
        f"{show(stored.scale)} is {show(stored.scaled)}; it gets {outcome}; {error}."
    )
    raw = {"scaled": stored.scaled, "level": stored.level, "boundaries": [edge for edge, _ in bands]}
    return draw(paint, "Number line", description, raw)


def _bands(ties: str) -> list[tuple[float, int]]:
    """Boundaries between values that share a code, and the side a value exactly on one goes to: −1 or 1."""
    count = int(EDGE * _GRID)
    middles = (np.arange(-count, count) + 0.5) / _GRID
    levels = quant.round_to_e2m1(middles, ties)
    changes = np.flatnonzero(levels[1:] != levels[:-1])
    edges = (middles[changes] + middles[changes + 1]) / 2
    own = quant.round_to_e2m1(edges, ties)
    left = np.abs(own - levels[changes]) <= np.abs(own - levels[changes + 1])
    return [(float(edge), -1 if goes_left else 1) for edge, goes_left in zip(edges, left, strict=True)]


def _paint_bands(canvas: Canvas, place: Place, bands: list[tuple[float, int]], scaled: float) -> None:
    top, height = 56, 26
    edges = [-EDGE, *(edge for edge, _ in bands), EDGE]
    chosen = sum(edge < scaled or (edge == scaled and side > 0) for edge, side in bands)
    for index, (low, high) in enumerate(zip(edges, edges[1:], strict=False)):
        style = "k-selected" if index == chosen else "k-band k-band--odd" if index % 2 else "k-band"
        canvas.rect(place(low), top, place(high) - place(low), height, style)
    for sign in (-1, 1):
        start, end = sorted((place(sign * quant.FP4_MAX), place(sign * EDGE)))
        canvas.rect(start, top, end - start, height, "k-clip")
        canvas.text((start + end) / 2, top - 8, "clipped", "k-clip", size=SMALL)
    for edge, side in bands:
        canvas.line(place(edge), top - 2, place(edge), top + height + 2, "k-tick")
        _triangle(canvas, place(edge), top + height + 8, side)


def _triangle(canvas: Canvas, x: float, y: float, side: int) -> None:
    canvas.polygon([(x - 1.5 * side, y - 3.5), (x - 1.5 * side, y + 3.5), (x + 4 * side, y)], "k-tick")


def _paint_levels(canvas: Canvas, place: Place) -> None:
    canvas.line(place(-EDGE), 112, place(EDGE), 112, "k-axis", 1.5)
    for magnitude in (float(m) for m in quant.E2M1_LEVELS):
        row = 0 if magnitude == int(magnitude) else 1
        for level in {magnitude, -magnitude}:
            canvas.line(place(level), 112, place(level), 121 + 15 * row, "k-tick", 1)
            canvas.circle(place(level), 112, 3.5, "k-level")
            text = show(level + 0.0)
            canvas.text(place(level), 133 + 15 * row, text.replace("0.", ".") if canvas.narrow else text, "k-label", size=SMALL)


def _beside(canvas: Canvas, x: float, y: float, words: str, style: str) -> None:
    """Text centred on x as far as the edges allow."""
    half = len(words) * 3.7
    if x < half:
        canvas.text(0, y, words, style, "start")
    elif x > canvas.width - half:
        canvas.text(canvas.width, y, words, style, "end")
    else:
        canvas.text(x, y, words, style)


def block_picture(stored: list, packed: list[int], scale_byte: int, amax: float) -> Picture:
    """A block: values and what is read back as paired dots, codes in cells, bytes under brackets."""
    top = max(amax, *(abs(s.back) for s in stored), 1e-30)

    def paint(width: float) -> Canvas:
        per_row = 8 if width < 500 else 16
        rows = [stored[i : i + per_row] for i in range(0, len(stored), per_row)]
        canvas = Canvas(width, 26 + 206 * len(rows))
        _key(canvas)
        for index, row in enumerate(rows):
            _paint_row(canvas, row, packed[index * per_row // 2 :], index * per_row, per_row, 26 + 206 * index, top)
        return canvas

    clipped = [i for i, s in enumerate(stored) if s.clipped]
    worst = max(range(len(stored)), key=lambda i: abs(stored[i].error))
    description = (
        f"{len(stored)} values as pairs of dots, exact and read back, above their four-bit codes and {len(packed)} packed bytes; "
        f"scale byte 0x{scale_byte:02X}. The largest error is at channel {worst}. "
        + (f"Clipped: channel {', '.join(map(str, clipped))}." if clipped else "No value is clipped.")
    )
    raw = {"codes": [s.code for s in stored], "bytes": packed, "scale_byte": scale_byte, "errors": [s.error for s in stored]}
    return draw(paint, "A block of values", description, raw)


def _key(canvas: Canvas) -> None:
    x = 4.0
    for style, words in (("k-value", "value"), ("k-result", "read back"), ("k-error", "error"), ("k-clip", "clipped")):
        if style == "k-error":
            canvas.line(x + 4, 4, x + 4, 16, style, 2.5)
        elif style == "k-clip":
            canvas.rect(x, 5, 9, 9, style, 2)
        else:
            canvas.circle(x + 4, 10, 4, style)
        canvas.text(x + 13, 14, words, "k-label", "start", SMALL)
        x += 26 + len(words) * 6.2


def _paint_row(canvas: Canvas, row: list, packed: list[int], first: int, per_row: int, y: float, top: float) -> None:
    slot = canvas.width / per_row
    place = linear(-top, top, y + 84, y + 12)
    canvas.line(0, place(0), canvas.width, place(0), "k-axis")
    for index, s in enumerate(row):
        left, x = index * slot, (index + 0.5) * slot
        if s.clipped:
            canvas.rect(left + 1, y + 4, slot - 2, 88, "k-clip", 3)
        canvas.line(x, place(s.value), x, place(s.back), "k-error", 2.5)
        canvas.circle(x, place(s.value), 4, "k-value")
        canvas.circle(x, place(s.back), 4, "k-result")
        canvas.text(x, y + 108, _short(s.value), "k-value", size=SMALL)
        canvas.cell(left + 2, y + 114, slot - 4, 22, s.bits, "k-cell", "k-text--mono", 12)
        canvas.text(x, y + 151, _short(s.back), "k-result", size=SMALL)
        if index % 2 == 0:
            canvas.bracket(left + 4, left + 2 * slot - 4, y + 157)
            canvas.text(left + slot, y + 178, f"0x{packed[index // 2]:02X}", "k-text--mono k-text--strong", size=12)
    canvas.text(0, y + 194, f"channels {first} to {first + len(row) - 1}", "k-muted", "start", SMALL)


def _short(value: float) -> str:
    """A number for a narrow column."""
    return show(value, 2 if abs(value) < 0.1 else 3)
