"""Picture of the sentence part of the `engram` widget: words, groups, rows, vectors, keys and values, gates.

From top to bottom it is the way of one token: what is addressed, what is read, how much of it goes in.
"""

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import fixed

from .engram_words import Read

_SHADES = 10


def sentence_picture(run: Read, at: int) -> Picture:
    """The memory at one position of the sentence."""
    tops = {
        "rows": float(np.abs(run.vectors).max()),
        "keys": float(np.abs(run.keys).max()),
        "state": float(np.abs(run.before).max()),
        "value": float(np.abs(run.value).max()),
    }

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            items = ["engram", "hidden", ("k-selected", "gate"), ("k-negative", "below zero")]
            y = kit.legend(canvas, items) + 4
        y = _window(canvas, y, run, at)
        y = _groups(canvas, y, run, at, tops["rows"])
        canvas.height = _streams(canvas, y, run, at, tops)
        return canvas

    gates = ", ".join(fixed(float(g), 2) for g in run.gates[at])
    description = (
        f"Words: {' '.join(run.words)}. At word {at + 1}, the last four ids are those of {', '.join(run.text(at))}. "
        f"Rows {', '.join(map(str, run.rows[at].tolist()))} are read and made into four keys and one value; the "
        f"gates of the streams are {gates}."
    )
    raw = {
        "ids": run.ids,
        "compressed": run.compressed,
        "history": run.history[at],
        "rows": run.rows[at],
        "vectors": run.vectors[at],
        "keys": run.keys[at],
        "value": run.value[at],
        "state": run.before[at],
        "dots": run.dots[at],
        "gates": run.gates[at],
        "added": run.added[at],
    }
    return draw(paint, "A sentence and its memory", description, raw)


def strip(canvas: Canvas, x: float, y: float, values, cell: float, kind: str, top: float) -> None:
    """A vector as a row of shaded cells, 18 units high."""
    shades = [[round(float(v) / top * _SHADES) / _SHADES for v in values]]
    with canvas.group(x, y):
        kit.heat(canvas, 0, 0, shades, cell, kind, 1.0, 18)


def _window(canvas: Canvas, y: float, run: Read, at: int) -> float:
    """The words with padding before them, and a line under each group that ends at the chosen word."""
    longest, narrow = run.history.shape[1], canvas.narrow
    left, pad = (12.0, 10.0) if narrow else (16.0, 46.0)
    start = left + (longest - 1) * pad
    word = min(46.0 if narrow else 84.0, (canvas.width - start) / len(run.words))
    places = [left + i * pad for i in range(longest - 1)] + [start + i * word for i in range(len(run.words))]
    ends = [x + (pad if i < longest - 1 else word) for i, x in enumerate(places)]
    here = at + longest - 1
    for index in range(longest - 1):
        with canvas.group(places[index], y):
            used = here - index < longest and run.image != at and (run.image is None or run.image > at)
            name, note = ("·", "") if narrow else ("pad", f"id {run.pad}")
            kit.box(canvas, 1, 0, pad - 2, 42, name, note, "engram" if used else "", "off")
    for index, text in enumerate(run.words):
        back = at - index
        inside = 0 <= back < longest and not run.blocked[at, back]
        with canvas.pick("token", index + 1, places[index + longest - 1], y):
            seen = ("img" if narrow else "image") if index == run.image else text
            note = "–" if index == run.image else f"id {run.compressed[index]}"
            state = "selected" if back == 0 else "off" if index == run.image else ""
            kit.box(canvas, 1, 0, word - 2, 42, seen, note, "engram" if inside else "", state)
    y += 52
    for order in range(2, longest + 1):
        first = places[here - order + 1]
        canvas.line(first + 2, y, ends[here] - 2, y, "k-engram", 3)
        canvas.text(first - 3, y + 4, order, "k-muted", "end", SMALL)
        y += 12
    return y + 4


def _groups(canvas: Canvas, y: float, run: Read, at: int, top: float) -> float:
    """One row for each order: the group, the rows it reads, and what they hold."""
    narrow, heads = canvas.narrow, len(run.primes[0])
    total = sum(map(sum, run.primes))
    with canvas.group(0, y):
        if narrow:
            kit.heading(canvas, 0, 0, "Groups, rows, vectors", f"one table of {total} rows")
        else:
            canvas.text(0, 14, "Group", "k-text--strong", "start")
            canvas.text(322, 14, "Rows", "k-text--strong", "start")
            canvas.text(362, 14, f"of {total}", "k-muted", "start", SMALL)
            canvas.text(440, 14, "What they hold", "k-text--strong", "start")
    y += 26
    words = run.text(at)
    for index in range(len(run.primes)):
        order = index + 2
        rows = run.rows[at, index * heads : (index + 1) * heads].tolist()
        vectors = run.vectors[at, index * heads : (index + 1) * heads]
        chip, line = (70.0, 32.0) if narrow else (62.0, 0.0)
        with canvas.group(0, y):
            canvas.text(0, 18, f"{order}-gram", "k-label", "start")
            for place in range(len(words) - order, len(words)):
                off = (0,) if words[place] == "pad" else ()
                shown = kit.fit(words[place], chip - 8, SMALL)
                kit.cells(canvas, 56 + place * chip, 0, [shown], chip, 26, "engram", off=off)
            kit.cells(canvas, 56 if narrow else 322, line, rows, 40 if narrow else 46, 26, "engram", size=SMALL)
            for head, vector in enumerate(vectors):
                left = 146 + head * 101 if narrow else 440 + head * 144
                strip(canvas, left, line + 4, vector, 12 if narrow else 17, "engram", top)
        y += 70 if narrow else 34
    return y + 4


def _streams(canvas: Canvas, y: float, run: Read, at: int, tops: dict) -> float:
    """For every stream: its state, its key, how well they agree, the gate, and what goes in."""
    narrow = canvas.narrow
    cell = 11.0 if narrow else 17.0
    columns = {"state": 60.0, "key": 160.0, "dot": 296.0, "gate": 60.0, "in": 250.0} if narrow else {
        "state": 66.0, "key": 216.0, "dot": 394.0, "gate": 424.0, "in": 584.0
    }  # fmt: skip
    room = 92.0 if narrow else 86.0
    numbers = run.vectors[at].size
    with canvas.group(0, y):
        y += kit.heading(canvas, 0, 0, "Keys and value", f"{numbers} numbers × one matrix → 4 keys and 1 value")
    with canvas.group(0, y):
        if narrow:
            canvas.text(0, 17, "Value", "k-label", "start")
        else:
            canvas.text(columns["in"] - 8, 17, "value", "k-label", "end")
    strip(canvas, columns["state"] if narrow else columns["in"], y + 3, run.value[at], cell, "engram", tops["value"])
    y += 28
    with canvas.group(0, y):
        for name, words in (("state", "state"), ("key", "key")):
            canvas.text(columns[name], 12, words, "k-muted", "start", SMALL)
        canvas.text(columns["dot"], 12, "agreement", "k-muted", "middle" if narrow else "end", SMALL)
        if not narrow:
            canvas.text(columns["gate"], 12, "gate", "k-muted", "start", SMALL)
            canvas.text(columns["in"], 12, "gate × value", "k-muted", "start", SMALL)
    y += 18
    for stream in range(run.gates.shape[1]):
        gate, line = float(run.gates[at, stream]), 24.0 if narrow else 0.0
        with canvas.group(0, y):
            canvas.text(0, 14, f"Stream {stream}", "k-label", "start")
            strip(canvas, columns["state"], 0, run.before[at, stream], cell, "hidden", tops["state"])
            strip(canvas, columns["key"], 0, run.keys[at, stream], cell, "engram", tops["keys"])
            words = fixed(float(run.dots[at, stream]), 2)
            canvas.text(columns["dot"], 14, words, "", "middle" if narrow else "end")
            left = columns["gate"]
            canvas.rect(left, line + 2, room, 14, "k-ground", 2)
            canvas.rect(left, line + 2, room * min(1.0, max(0.0, gate)), 14, "k-selected", 2)
            canvas.line(left + room / 2, line, left + room / 2, line + 18, "k-grid")
            canvas.text(left + room + 8, line + 14, fixed(gate, 2), "k-text--strong", "start")
            if narrow:
                canvas.text(0, line + 14, "gate", "k-muted", "start", SMALL)
                canvas.text(columns["in"] - 6, line + 14, "× value", "k-muted", "end", SMALL)
            strip(canvas, columns["in"], line, run.added[at, stream], cell, "engram", tops["value"])
        y += 58 if narrow else 26
    return y + 2
