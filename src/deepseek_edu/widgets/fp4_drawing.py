"""Pictures of the `fp4` widget: the number line with its 15 levels, and a block in cells.

The bands of the number line (which values share a code, and to which side a tie goes) are found by asking the
mechanism along the line, not drawn from a table: an edited rule moves them.
"""

import itertools

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
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
        more = _LABELS if width < 500 else 0  # one row of labels more
        canvas = Canvas(width, 226 + more)
        middle, unit = width / 2, 20 if canvas.narrow else 42
        place = linear(0, 1, middle, middle + unit)
        x, level_x = place(max(-EDGE, min(EDGE, stored.scaled))), place(stored.level)
        with canvas.group():
            _paint_bands(canvas, place, bands)
            _paint_clip(canvas, place)
            _triangle(canvas, 8, 215 + more, 1)
            canvas.text(18, 219 + more, "shows which way a tie at the boundary goes", "k-muted", "start", SMALL)
            _paint_levels(canvas, place)
        with canvas.group():
            _paint_selected(canvas, place, bands, stored.scaled)
        with canvas.group(level_x):
            canvas.circle(0, 112, 7, "k-result")
            canvas.line(0, 154 + more, 0, 165 + more, "k-result", 2)
            _beside(canvas, level_x, 178 + more, outcome, "k-result k-text--strong")
        with canvas.group(x):
            canvas.line(0, 30, 0, 112, "k-value", 2)
            canvas.circle(0, 30, 5, "k-value")
            words = show(stored.value)
            if stored.scale != 1:
                words += f" ÷ {show(stored.scale)} = {show(stored.scaled)}"
            _beside(canvas, x, 17, words, "k-value k-text--strong")
        with canvas.group(level_x):
            if not dust:
                canvas.line(x - level_x, 101, 0, 101, "k-error", 4)
            _beside(canvas, level_x, 196 + more, error, "k-muted" if dust else "k-error k-text--strong")
        return canvas

    description = f"The 15 levels from −6 to 6; {show(stored.scaled)} is stored as level {show(stored.level)}."
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


_TOP, _HEIGHT, _LABELS = 56, 26, 15


def _paint_bands(canvas: Canvas, place: Place, bands: list[tuple[float, int]]) -> None:
    edges = [-EDGE, *(edge for edge, _ in bands), EDGE]
    for index, (low, high) in enumerate(itertools.pairwise(edges)):
        style = "k-band k-band--odd" if index % 2 else "k-band"
        canvas.rect(place(low), _TOP, place(high) - place(low), _HEIGHT, style)
    for edge, side in bands:
        canvas.line(place(edge), _TOP - 2, place(edge), _TOP + _HEIGHT + 2, "k-tick")
        _triangle(canvas, place(edge), _TOP + _HEIGHT + 8, side)


def _paint_selected(canvas: Canvas, place: Place, bands: list[tuple[float, int]], scaled: float) -> None:
    edges = [-EDGE, *(edge for edge, _ in bands), EDGE]
    chosen = sum(edge < scaled or (edge == scaled and side > 0) for edge, side in bands)
    low, high = place(max(edges[chosen], -quant.FP4_MAX)), place(min(edges[chosen + 1], quant.FP4_MAX))
    canvas.rect(low, _TOP, high - low, _HEIGHT, "k-selected")


def _paint_clip(canvas: Canvas, place: Place) -> None:
    for sign in (-1, 1):
        start, end = sorted((place(sign * quant.FP4_MAX), place(sign * EDGE)))
        canvas.rect(start, _TOP, end - start, _HEIGHT, "k-clip")
        canvas.text((start + end) / 2, _TOP - 8, "clipped", "k-clip", size=SMALL)


def _triangle(canvas: Canvas, x: float, y: float, side: int) -> None:
    canvas.polygon([(x - 1.5 * side, y - 3.5), (x - 1.5 * side, y + 3.5), (x + 4 * side, y)], "k-tick")


def _paint_levels(canvas: Canvas, place: Place) -> None:
    canvas.line(place(-EDGE), 112, place(EDGE), 112, "k-axis", 1.5)
    for magnitude in (float(m) for m in quant.E2M1_LEVELS):
        for level in sorted({magnitude, -magnitude + 0.0}):
            row = 0 if magnitude == int(magnitude) else 2 if canvas.narrow and level in (-0.5, 1.5) else 1
            canvas.line(place(level), 112, place(level), 121 + _LABELS * row, "k-tick", 1)
            canvas.circle(place(level), 112, 3.5, "k-level")
            canvas.text(place(level), 133 + _LABELS * row, show(level), "k-label", size=SMALL)


def _beside(canvas: Canvas, x: float, y: float, words: str, style: str) -> None:
    """Text at the origin of a group that stands at `x`: centred as far as the edges of the canvas allow."""
    half = kit.text_width(words, style=style) / 2
    if x < half:
        canvas.text(-x, y, words, style, "start")
    elif x > canvas.width - half:
        canvas.text(canvas.width - x, y, words, style, "end")
    else:
        canvas.text(0, y, words, style)


def block_picture(stored: list, packed: list[int], scale_byte: int, amax: float) -> Picture:
    """A block: values and what is read back as paired dots, codes in cells, bytes under brackets."""
    top = max(amax, *(abs(s.back) for s in stored), 1e-30)
    reach = max(stored[0].scale, *(abs(s.error) for s in stored))  # one scale is half of the widest gap

    def paint(width: float) -> Canvas:
        per_row = 8 if width < 500 else 16
        rows = [stored[i : i + per_row] for i in range(0, len(stored), per_row)]
        head = 44 if width < 500 else 26
        canvas = Canvas(width, head + _ROW * len(rows))
        with canvas.group():
            _key(canvas)
        left = (width - per_row * _SLOT) / 2
        for index, row in enumerate(rows):
            first = index * per_row
            _paint_row(canvas, row, packed[first // 2 :], first, left, head + _ROW * index, top, reach)
        return canvas

    clipped = [i for i, s in enumerate(stored) if s.clipped]
    worst = max(range(len(stored)), key=lambda i: abs(stored[i].error))
    description = (
        f"{len(stored)} values as pairs of dots, exact and read back, above their four-bit codes and {len(packed)} "
        f"packed bytes; scale byte 0x{scale_byte:02X}. The largest error is at channel {worst}. "
        + (f"Clipped: channel {', '.join(map(str, clipped))}." if clipped else "No value is clipped.")
    )
    raw = {
        "codes": [s.code for s in stored],
        "bytes": packed,
        "scale_byte": scale_byte,
        "errors": [s.error for s in stored],
    }
    return draw(paint, "A block of values", description, raw)


def _key(canvas: Canvas) -> None:
    x = 4.0
    for style, words in (("k-value", "value"), ("k-result", "read back"), ("k-error", "error"), ("k-clip", "clipped")):
        if style in ("k-value", "k-result"):
            canvas.circle(x + 5, 10, 5.5 if style == "k-value" else 3, style)
        else:
            canvas.rect(x, 5, 10, 10, style, 2)
        canvas.text(x + 15, 14, words, "k-label", "start", SMALL)
        x += 30 + len(words) * 6
    order = "Rows: value, code, byte, read back, error"
    canvas.text(*((4, 34) if canvas.narrow else (x + 8, 14)), order, "k-muted", "start", SMALL)


_ROW, _SLOT = 240, 43


def _paint_row(
    canvas: Canvas, row: list, packed: list[int], first: int, left: float, y: float, top: float, reach: float
) -> None:
    place, tall = linear(-top, top, 68, 8), linear(0, reach, 0, 20)
    with canvas.group(left, y):
        canvas.line(0, 38, len(row) * _SLOT, 38, "k-axis")
        canvas.line(0, 182, len(row) * _SLOT, 182, "k-axis")
        canvas.text(0, 229, f"channels {first} to {first + len(row) - 1}", "k-muted", "start", SMALL)
    for index, s in enumerate(row):
        with canvas.group(left + index * _SLOT, y):
            _paint_value(canvas, s, place, tall)
    for index in range(0, len(row), 2):
        with canvas.group(left + index * _SLOT, y):
            canvas.bracket(4, 2 * _SLOT - 4, 117)
            canvas.text(_SLOT, 138, f"0x{packed[index // 2]:02X}", "k-text--mono k-text--strong", size=12)


def _paint_value(canvas: Canvas, s, place: Place, tall: Place) -> None:
    """One channel in its column: dots, value, code, what is read back, and the error as a bar."""
    x = _SLOT / 2
    if s.clipped:
        canvas.rect(1, 2, _SLOT - 2, 72, "k-clip", 3)
    canvas.circle(x, place(s.value), 5.5, "k-value")
    canvas.circle(x, place(s.back), 3, "k-result")
    canvas.text(x, 86, _short(s.value), "k-value", size=SMALL)
    canvas.cell(2, 92, _SLOT - 4, 22, s.bits, "k-cell", "k-text--mono", 12)
    canvas.text(x, 155, _short(s.back), "k-result", size=SMALL)
    height = tall(abs(s.error))
    if height > 0.01:
        canvas.rect(x - 7, 182 - height if s.error > 0 else 182, 14, height, "k-error")
        canvas.text(x, 215, _short(s.error), "k-error", size=SMALL)
    else:
        canvas.text(x, 215, "0", "k-muted", size=SMALL)


def _short(value: float) -> str:
    """A number for a narrow column: at most three decimals; what would round to zero is written out."""
    rounded = round(value, 2 if abs(value) >= 10 else 3)
    return show(rounded if rounded or not value else value, 2 if not rounded else 5)
