"""Pictures of the small parts of the `engram` widget: the toy hash, one gate, two heads in one table."""

import math

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import linear, nice_ticks
from deepseek_edu.drawing.numbers import fixed, grouped, show


def hash_picture(groups, found, start, read, sign: str, size: int) -> Picture:
    """Every group on the track of each head, and what it reads.

    Args:
        groups: (name, first id, second id).
        found: for each head, (multiplier, numbers before the remainder, rows).
        start: for each head, the rows at the start; others are drawn as changed.
        read: for each group, the numbers each head reads.
        sign: how products are joined.
        size: rows of each table.
    """

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            moved = [[row != old for row, old in zip(f[2], s, strict=True)] for f, s in zip(found, start, strict=True)]
            items = [("k-engram", "row"), ("k-error", "row that two groups share")]
            y = kit.legend(canvas, [*items, *(["changed"] if any(map(any, moved)) else [])]) + 4
        for head, (multiplier, sums, rows) in enumerate(found):
            with canvas.group(0, y):
                rule = f"({multiplier} · first {sign} second) mod {size}"
                y += kit.heading(canvas, 0, 0, f"Head {head + 1}", rule)
            for group, (name, first, second) in enumerate(groups):
                shared = rows.count(rows[group]) > 1
                formula = f"{multiplier}·{first} {sign} {second} = {grouped(sums[group])}"
                style = "k-error" if shared else "k-changed" if moved[head][group] else "k-engram"
                y = _track(canvas, y, name, formula, rows[group], size, style)
            y += 8
        with canvas.group(0, y):
            y += kit.heading(canvas, 0, 0, "What is read", "three numbers from each head")
        for group, (name, _, _) in enumerate(groups):
            with canvas.group(0, y):
                canvas.text(0, 18, name, "k-label", "start")
            cell = 42.0 if canvas.narrow else 58.0
            for head, vector in enumerate(read[group]):
                shared = found[head][2].count(found[head][2][group]) > 1
                with canvas.group(78 + head * (3 * cell + 12), y):
                    words = [fixed(float(v), 1) for v in vector]
                    kit.cells(canvas, 0, 0, words, cell, 26, "error" if shared else "engram")
            y += 32
        canvas.height = y
        return canvas

    lines = [
        f"head {head + 1}: " + ", ".join(f"{g[0]} row {row}" for g, row in zip(groups, rows, strict=True))
        for head, (_, _, rows) in enumerate(found)
    ]
    raw = {"sums": [sums for _, sums, _ in found], "rows": [rows for _, _, rows in found], "read": np.array(read)}
    return draw(paint, "A hash by hand", f"Tables of {size} rows. {'; '.join(lines)}.", raw)


def _track(canvas: Canvas, y: float, name: str, formula: str, row: int, size: int, style: str) -> float:
    """One group on the line of all rows of a head."""
    start, line = (0.0, 24.0) if canvas.narrow else (290.0, 0.0)
    place = linear(0, size, start, canvas.width - 4)
    left = place(row)
    right = left < canvas.width - 60
    ink = "k-text--strong" if style == "k-engram" else f"{style} k-text--strong"
    with canvas.group(0, y):
        canvas.text(0, 17, name, "k-label", "start")
        canvas.text(78, 17, formula, "k-muted", "start")
        canvas.rect(start, line + 6, canvas.width - 4 - start, 14, "k-ground", 2)
        canvas.rect(left, line + 3, max(4.0, place(1) - place(0)), 20, style, 1)
        canvas.text(left + (9 if right else -5), line + 17, f"row {row}", ink, "start" if right else "end", SMALL)
    return y + line + 28


def gate_picture(value, state, gate: float, dot: float, after, curves) -> Picture:
    """The plane of a stream with what the gate lets in, and the curve of the gate.

    `curves` are (agreements, gates, gates without the root).
    """
    end = state + value
    reach = max(1.0, *(abs(float(v)) for v in (*state, *end, *after, *value))) * 1.12

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            items = [
                "hidden",
                ("k-engram", "gate × value"),
                ("k-result", "with the gate"),
                ("k-negative", "without the root"),
            ]
            y = kit.legend(canvas, items) + 4
        side = 280.0
        if canvas.narrow:
            _plane(canvas, 40, y, side, value, state, after, gate, reach)
            _curve(canvas, 0, y + side + 34, canvas.width, 220, curves, gate, dot)
            canvas.height = y + side + 270
        else:
            _plane(canvas, 34, y, side, value, state, after, gate, reach)
            _curve(canvas, 356, y, 364, side, curves, gate, dot)
            canvas.height = y + side + 22
        return canvas

    description = (
        f"The state moves from ({show(float(state[0]), 3)}, {show(float(state[1]), 3)}) towards state + value and "
        f"stops at {fixed(gate, 2)} of the way, ({show(float(after[0]), 3)}, {show(float(after[1]), 3)}). The curve of "
        f"the gate gives {fixed(gate, 2)} at an agreement of {fixed(dot, 2)}."
    )
    raw = {"value": value, "state": state, "gate": gate, "dot": dot, "after": after, "curve": curves[1]}
    return draw(paint, "What a gate does", description, raw)


def _plane(canvas: Canvas, x, y, side, value, state, after, gate, reach) -> None:
    words = f"({', '.join(show(round(float(v), 6) + 0.0, 3) for v in after)})"
    canvas.text(x, y + 12, f"The state goes to {words}", "k-text--strong", "start")
    y, side = y + 22, side - 22
    across, up = linear(-reach, reach, x, x + side), linear(-reach, reach, y + side, y)
    with canvas.group():
        canvas.rect(x, y, side, side, "k-frame")
        for tick in nice_ticks(-reach, reach, 5):
            canvas.line(across(tick), y, across(tick), y + side, "k-grid")
            canvas.line(x, up(tick), x + side, up(tick), "k-grid")
            canvas.text(across(tick), y + side + 15, show(tick, 3) if tick else "0", "k-muted", size=SMALL)
            canvas.text(x - 5, up(tick) + 4, show(tick, 3) if tick else "0", "k-muted", "end", SMALL)
        canvas.line(across(0), y, across(0), y + side, "k-axis")
        canvas.line(x, up(0), x + side, up(0), "k-axis")
    points = {name: (across(float(p[0])), up(float(p[1]))) for name, p in
              (("zero", (0, 0)), ("state", state), ("after", after), ("end", state + value))}  # fmt: skip
    canvas.line(*points["state"], *points["end"], "k-engram", 1.5, "4 4")
    canvas.circle(*points["end"], 3, "k-engram")
    canvas.arrow(*points["zero"], *points["state"], "k-hidden", 2.5, 8)
    canvas.arrow(*points["state"], *points["after"], "k-engram", 3, 9)
    canvas.circle(*points["after"], 5, "k-result")


def _curve(canvas: Canvas, x, y, width, height, curves, gate, dot) -> None:
    dots, gates, plain = curves
    across = linear(float(dots[0]), float(dots[-1]), x + 34, x + width - 6)
    up = linear(0, 1, y + height - 4, y + 22)
    with canvas.group():
        canvas.text(x + 34, y + 12, "Gate by agreement of state and key", "k-text--strong", "start")
        for tick in (0, 0.5, 1):
            canvas.line(across(float(dots[0])), up(tick), across(float(dots[-1])), up(tick), "k-grid")
            canvas.text(x + 28, up(tick) + 4, show(float(tick)), "k-muted", "end", SMALL)
        for tick in (-8, -4, 0, 4, 8):
            canvas.line(across(tick), up(0), across(tick), up(1), "k-grid")
            canvas.text(across(tick), up(0) + 17, show(float(tick)), "k-muted", size=SMALL)
    for values, style, line, dash in ((plain, "k-negative", 1.5, "4 4"), (gates, "k-result", 2.5, "")):
        with canvas.group():
            points = [(across(float(a)), up(float(b))) for a, b in zip(dots, values, strict=True)]
            canvas.polyline(points, style, line, dash)
    if abs(dot) <= float(dots[-1]) and math.isfinite(gate):
        with canvas.group(across(dot), up(min(1.0, max(0.0, gate)))):
            canvas.circle(0, 0, 5, "k-changed")
            anchor, shift = ("end", -10) if across(dot) > x + 90 else ("start", 10)
            canvas.text(shift, -8, fixed(gate, 2), "k-changed k-text--strong", anchor)


def packed_picture(names, table, own, added, used, read, wanted, number: int) -> Picture:
    """Seven rows in one array, and the two heads that ask for one each."""
    sizes = [sum(name.startswith(head) for name in names) for head in "AB"]

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow, row = canvas.narrow, 32.0
        with canvas.group():
            top = kit.legend(canvas, ["engram", ("k-selected", "read"), ("k-error", "wrong row read")]) + 8
        left, cell = (124.0, 50.0) if narrow else (300.0, 70.0)
        with canvas.group():
            canvas.text(left + 12, top + 12, "index", "k-muted", size=SMALL)
            canvas.text(left + 28 + cell / 2, top + 12, "row", "k-muted", size=SMALL)
            canvas.text(left + 28 + 2 * cell, top + 12, "holds", "k-muted", size=SMALL)
        start = top + 20
        places = [start + i * row + (12 if i >= sizes[0] else 0) for i in range(len(names))]
        wrong = [head for head in (0, 1) if read[head] != wanted[head]]
        for index, name in enumerate(names):
            readers = [head for head in (0, 1) if used[head] == index]
            bad = any(head in wrong for head in readers)
            with canvas.group(left, places[index]):
                canvas.text(12, 18, index, "k-muted")
                words = [name, *(show(float(v), 2) for v in table[index])]
                kit.cells(canvas, 28, 0, words, cell, 26, "error" if bad else "engram")
                if readers:
                    kit.ring(canvas, 28, -1, 3 * cell, 28, "k-error" if bad else "k-selected", 2.5)
        bottom = places[-1] + row
        for head, letter in enumerate("AB"):
            y = start + 14 if not head else start + sizes[0] * row + 44
            style = "k-error" if head in wrong else "k-selected"
            wide = 92.0 if narrow else 208.0
            with canvas.group(0, y):
                note = f"{number} mod {sizes[head]} = {own[head]}"
                kit.box(canvas, 1, 0, wide, 46, f"Head {letter}", note, "")
                sum_words = f"index {own[head]} + {added[head]} = {used[head]}"
                canvas.text(wide / 2, 62, sum_words, f"{style} k-text--strong", size=SMALL if narrow else 13)
            if used[head] < len(places):
                canvas.arrow(wide + 4, y + 23, left + 2, places[used[head]] + 13, style, 2)
            else:
                canvas.arrow(wide + 4, y + 23, left + 2, bottom + 10, style, 2)
                canvas.text(left + 8, bottom + 14, "no such row", "k-error k-text--strong", "start")
        x, y = (0.0, bottom + 30) if narrow else (left + 28 + 3 * cell + 32, start)
        _result(canvas, x, y, read, wanted, wrong)
        canvas.height = y + 150 if narrow else bottom + 24
        return canvas

    description = (
        f"Array of {len(names)} rows: {', '.join(names)}. Mixed number {number}: head A asks for row {own[0]} and "
        f"reads index {used[0]}; head B asks for row {own[1]} and reads index {used[1]}."
    )
    raw = {"own": own, "offsets": added, "indices": used, "read": read, "wanted": wanted}
    return draw(paint, "Two heads in one table", description, raw)


def _result(canvas: Canvas, x: float, y: float, read, wanted, wrong: list[int]) -> None:
    """What the lookup returned, beside what it should have."""
    cell = 60.0 if canvas.narrow else 36.0
    for line, (title, values, marks) in enumerate((("Read", read, wrong), ("Should be", wanted, []))):
        with canvas.group(x, y + line * 70):
            canvas.text(0, 14, title, "k-text--strong", "start")
            for head, pair in enumerate(values):
                words = ["?", "?"] if pair is None else [show(float(v), 2) for v in pair]
                kit.cells(canvas, head * (2 * cell + 6), 22, words, cell, 28, "error" if head in marks else "engram")
