"""The visual language: what chapters draw again and again, with one colour for one meaning.

==============  =============  ===================================================================
kind            class          means, in every picture
==============  =============  ===================================================================
"parameters"    k-parameters   trained numbers, the same for every prompt
"hidden"        k-hidden       a token's state on its way through the layers
"local"         k-local        keys and values of the sliding window
"global"        k-global       compressed entries and index keys, which grow with the context
"engram"        k-engram       rows of n-gram tables, addressed by the input
"selected"      k-selected     what was chosen, what is in use
"changed"       k-changed      what the reader changed, and what changed because of it
"error"         k-error        a difference from what is exact
==============  =============  ===================================================================

Colour never stands alone: a thing also has its name, a mark or a place. Functions draw on a `Canvas` and return where
the next thing can begin, so that a picture is written from top to bottom.
"""

import itertools
from collections.abc import Sequence

from .numbers import coordinate, show, shown
from .svg import FONT, SMALL, Canvas, element, escape
from .text import fit, text_width

KINDS = {
    "parameters": "parameters",
    "hidden": "hidden state",
    "local": "window KV",
    "global": "global KV",
    "engram": "Engram rows",
    "selected": "selected",
    "changed": "changed",
    "error": "error",
}
READABLE = 0.55  # the strongest shade that text in ink can stand on


def legend(canvas: Canvas, items: Sequence[str | tuple[str, str]], x: float = 0, y: float = 0) -> float:
    """Squares with words, wrapped at the right edge. `items` are kinds, or (style, words). Returns the y below."""
    left, row = x, 20
    for item in items:
        style, words = (f"k-{item}", KINDS[item]) if isinstance(item, str) else item
        width = 22 + text_width(words, SMALL)
        if x > left and x + width > canvas.width:
            x, y = left, y + row
        canvas.rect(x, y + 3, 11, 11, style, 2)
        canvas.text(x + 16, y + 12.5, words, "k-label", "start", SMALL)
        x += width + 8
    return y + row


def box(
    canvas: Canvas,
    x: float,
    y: float,
    width: float,
    height: float,
    title: str,
    note: str = "",
    kind: str = "",
    state: str = "",
) -> None:
    """A named thing: a soft box of its kind, the title in it, a smaller note under the title.

    Args:
        canvas: where to draw.
        x, y, width, height: its place.
        title: a word or two, cut if it does not fit.
        note: a few words more, or "".
        kind: one of KINDS, or "" for a neutral box.
        state: "selected" (a strong border), "off" (does not run or is not there: dashed, faint) or "".
    """
    style = f"k-box k-{kind}" if kind else "k-box"
    canvas.rect(x, y, width, height, f"{style} k-box--{state}" if state else style, 5)
    ink = "k-muted" if state == "off" else "k-text--strong"
    middle = x + width / 2
    size = FONT if text_width(title, FONT, ink) <= width - 6 else SMALL
    title = fit(title, width - 3, size, ink)
    if not note:
        canvas.text(middle, y + height / 2 + size * 0.35, title, ink, size=size)
        return
    canvas.text(middle, y + height / 2 - 2, title, ink, size=size)
    canvas.text(middle, y + height / 2 + 12, fit(note, width - 3, SMALL), "k-muted", size=SMALL)


def hit(
    canvas: Canvas, control: str, value: object, x: float, y: float, width: float, height: float, name: str = ""
) -> None:
    """A clear rectangle over something drawn, which sets a widget's control when it is clicked (see `Canvas.pick`).

    Of many small things in one group: unlike a group for each, it leaves the group one piece of the computed states.
    A pointer that rests on it is shown its `name`.
    """
    inner = element("title", escape(name)) if name else ""
    place = {"x": x, "y": y, "width": width, "height": height}
    canvas.add(element("rect", inner, **place, class_="k-hit", rx=5, data_set=f"{control}={value}"))


def ring(canvas: Canvas, x: float, y: float, width: float, height: float, style: str, line: float = 2) -> None:
    """A rounded frame in the colour of a style around something drawn."""
    canvas.add(element("rect", x=x, y=y, width=width, height=height, class_=f"k-ring {style}", rx=6, stroke_width=line))


def cells(
    canvas: Canvas,
    x: float,
    y: float,
    words: Sequence[object],
    width: float = 26,
    height: float = 26,
    kind: str = "",
    strengths: Sequence[float] = (),
    marked: Sequence[int] = (),
    off: Sequence[int] = (),
    size: float = 0,
) -> float:
    """A row of cells with a word in each: positions, entries, bytes. Returns the x behind the last.

    Args:
        canvas: where to draw.
        x, y: the left upper corner of the row.
        words: content of each cell; "" for none.
        width, height: of a cell.
        kind: one of KINDS, or "" for neutral cells.
        strengths: 0 to 1 for each cell, how strong its colour is; all alike by default.
        marked: indices of cells with a strong border, "selected".
        off: indices of cells that are not there (dashed).
        size: of the words; by default small where a word needs it.
    """
    for index, word in enumerate(words):
        left = x + index * width
        style = f"k-box k-{kind}" if kind else "k-box"
        if index in off:
            style += " k-box--off"
        canvas.rect(left + 1, y, width - 2, height, style, 3)
        if strengths and index not in off:
            canvas.rect(left + 1, y, width - 2, height, f"k-{kind}", 3, READABLE * _unit(strengths[index]))
        if index in marked:
            canvas.rect(left + 1, y, width - 2, height, "k-mark", 3)
        if word != "":
            font = size or (SMALL if text_width(shown(word)) > width - 4 else FONT)
            ink = "k-muted" if index in off else ""
            canvas.text(left + width / 2, y + height / 2 + font * 0.35, word, ink, size=font)
    return x + len(words) * width


def heat(
    canvas: Canvas,
    x: float,
    y: float,
    rows: Sequence[Sequence[float]],
    cell: float = 12,
    kind: str = "hidden",
    top: float = 0,
    height: float = 0,
) -> float:
    """A matrix in shades: positive numbers in the colour of their kind, negative ones in grey.

    Args:
        canvas: where to draw.
        x, y: the left upper corner.
        rows: numbers, row by row.
        cell: width of a cell; `height` its height, the same by default.
        kind: one of KINDS.
        top: the size drawn at full strength; the largest of all numbers by default.

    Returns:
        The y below the last row.
    """
    height = height or cell
    top = top or max((abs(value) for row in rows for value in row), default=1.0) or 1.0
    width = len(rows[0]) * cell if rows else 0
    canvas.rect(x, y, width, len(rows) * height, "k-ground")
    canvas.add(
        f'<g transform="translate({coordinate(x)} {coordinate(y)}) scale({coordinate(cell)} {coordinate(height)})">'
    )
    for (style, strength), strokes in _shades(rows, kind, top).items():
        faint = strength if strength < 1 else None
        canvas.add(element("path", d="".join(strokes), class_=style, stroke_width=1, stroke_opacity=faint))
    canvas.add("</g>")
    canvas.rect(x, y, width, len(rows) * height, "k-frame")
    return y + len(rows) * height


def _shades(rows: Sequence[Sequence[float]], kind: str, top: float) -> dict[tuple[str, float], list[str]]:
    """For each colour and strength, strokes of height 1 over the cells that have it, in units of cells."""
    found: dict[tuple[str, float], list[str]] = {}
    for i, row in enumerate(rows):
        shades = [(f"k-{kind}" if v > 0 else "k-negative", round(_unit(abs(v) / top), 2)) for v in row]
        start = 0
        for shade, run in itertools.groupby(shades):
            length = len(list(run))
            if shade[1]:
                found.setdefault(shade, []).append(f"M{start} {i}.5h{length}")
            start += length
    return found


def bars(
    canvas: Canvas,
    x: float,
    y: float,
    width: float,
    items: Sequence[tuple[str, float, str, str]],
    label_width: float = 120,
    row: float = 26,
    top: float = 0,
    behind: float = 0,
) -> float:
    """Horizontal bars with their names on the left and their numbers behind them. Returns the y below.

    Args:
        canvas: where to draw.
        x, y, width: the place of the whole, names and numbers included.
        items: (name, value, what to write behind the bar or "", kind or a class beginning with "k-").
        label_width: room for the names.
        row: height of a row.
        top: the value of a full bar; the largest by default.
        behind: room for what is written behind a full bar; that of the longest text by default.
    """
    top = top or max((abs(value) for _, value, _, _ in items), default=1.0) or 1.0
    texts = [text or show(value, 4) for _, value, text, _ in items]
    behind = behind or max((text_width(text) for text in texts), default=0)
    room = max(8.0, width - label_width - behind - 12)
    for (name, value, _, kind), text in zip(items, texts, strict=True):
        canvas.text(x, y + row / 2 + 4, fit(name, label_width - 6), "k-label", "start")
        length = max(1.5 if value else 0, room * _unit(abs(value) / top))
        style = kind if kind.startswith("k-") else f"k-{kind}"
        canvas.rect(x + label_width, y + row / 2 - 7, room, 14, "k-ground", 2)
        canvas.rect(x + label_width, y + row / 2 - 7, length, 14, style, 2)
        canvas.text(x + label_width + room + 8, y + row / 2 + 4, text, "k-text--strong", "start")
        y += row
    return y


def heading(canvas: Canvas, x: float, y: float, words: str, note: str = "") -> float:
    """A line of bold text with a lighter note behind it. Returns the y below."""
    canvas.text(x, y + 14, words, "k-text--strong", "start")
    if note:
        after = x + text_width(words, style="k-text--strong") + 8
        if after + text_width(note, SMALL) > canvas.width:
            canvas.text(x, y + 29, note, "k-muted", "start", SMALL)
            return y + 38
        canvas.text(after, y + 14, note, "k-muted", "start", SMALL)
    return y + 23


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))
