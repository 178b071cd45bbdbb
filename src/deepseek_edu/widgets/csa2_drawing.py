"""Pictures of the `csa2` widget: what four layers share and what each does with it; who may read which entry."""

import math

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import counted, fixed

from .csa2_group import LAYERS, TOKENS, Layer

RADIUS = 56.0
PANEL = 316.0  # height of a layer
WINDOW = 4  # of the second view
_MODES = {"full": "Full", "reindex": "Reindex", "reuse": "Reuse"}


def group_picture(
    layers: tuple[Layer, ...], choice: list[bool], output: list[bool], position: int, turned: str = ""
) -> Picture:
    """What is shared, as bars over the layers that use it; below, each layer's own query, weights and output.

    `turned` is the name of the layer whose query the reader has turned, or "".
    """

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        gap = 8.0
        with canvas.group():
            words = [("k-global", "entries"), ("k-result", "choice"), ("k-hidden", "query"), ("k-level", "output")]
            y = kit.legend(canvas, [*words, ("k-changed", "changed since the start")]) + 6
        across = 2 if canvas.narrow else 4
        panel = (width - (across - 1) * gap) / across
        for first in range(0, 4, across):
            y = _shared(canvas, layers, choice, range(first, first + across), panel, gap, y)
            for i in range(first, first + across):
                _panel(canvas, (i - first) * (panel + gap), y, panel, i, layers[i], output[i], LAYERS[i] == turned)
            y += PANEL + 14
        canvas.height = y - 10
        return canvas

    description = " ".join(
        f"Layer {LAYERS[i]}, {layer.mode}: entries of {LAYERS[layer.owner]}, choice of {LAYERS[layer.chooser]}, reads "
        f"{', '.join(map(str, layer.chosen))}; output {', '.join(fixed(float(v), 2) for v in layer.output)}."
        for i, layer in enumerate(layers)
    )
    raw = {
        "layers": [
            {
                "owner": LAYERS[layer.owner],
                "chooser": LAYERS[layer.chooser],
                "chosen": list(layer.chosen),
                "weights": list(layer.weights),
                "query": layer.query,
                "output": layer.output,
            }
            for layer in layers
        ],
        "changed": {"choice": choice, "output": output},
        "position": position,
    }
    return draw(paint, "What four layers share", description, raw)


def _spans(numbers: list[int]) -> list[tuple[int, int, int]]:
    """Runs of equal numbers: (number, first, one past the last)."""
    found: list[tuple[int, int, int]] = []
    for index, number in enumerate(numbers):
        if found and found[-1][0] == number:
            found[-1] = (number, found[-1][1], index + 1)
        else:
            found.append((number, index, index + 1))
    return found


def _shared(canvas: Canvas, layers, choice, shown: range, panel: float, gap: float, y: float) -> float:
    """Bars over the panels of a row: one for each set of entries, one for each choice, as wide as what shares it."""
    few = [layers[i] for i in shown]
    for owner, first, end in _spans([layer.owner for layer in few]):
        with canvas.group(first * (panel + gap), y):
            width = (end - first) * (panel + gap) - gap
            words = f"{counted(len(few[first].entries), 'entry', 'entries')} of {LAYERS[owner]}"
            kit.box(canvas, 0, 0, width, 28, words, "", "global")
    y += 34
    for chooser, first, end in _spans([layer.chooser for layer in few]):
        with canvas.group(first * (panel + gap), y):
            width = (end - first) * (panel + gap) - gap
            words = f"choice of {LAYERS[chooser]}: {', '.join(map(str, few[first].chosen))}"
            canvas.rect(0, 0, width, 28, "k-selected", 5)
            canvas.text(
                width / 2, 18.5, words, "k-text--strong", size=13 if kit.text_width(words) < width - 6 else SMALL
            )
            if any(choice[i] for i in shown[first:end]):
                kit.ring(canvas, -2, -2, width + 4, 32, "k-changed", 2.5)
    return y + 36


def _panel(
    canvas: Canvas, x: float, y: float, width: float, index: int, layer: Layer, output: bool, turned: bool
) -> None:
    """One layer: its name and mode, the plane with entries and query, the weights, the output."""
    with canvas.group(x, y):
        canvas.rect(0, 0, width, PANEL, "k-cell k-cell--soft", 6)
        canvas.text(width / 2, 18, f"Layer {LAYERS[index]}: {_MODES[layer.mode]}", "k-text--strong")
    with canvas.group(x + width / 2, y + 108):
        _plane(canvas, layer, "k-changed" if turned else "k-hidden")
    with canvas.group(x + 8, y + 190):
        names = ["window", *(f"entry {j}" for j in layer.chosen), "sink"]
        kinds = ["local", *["global"] * len(layer.chosen), "k-negative"]
        items = [
            (name, weight, fixed(weight, 2), kind)
            for name, weight, kind in zip(names, layer.weights, kinds, strict=True)
        ]
        kit.bars(canvas, 0, 0, width - 12, items, 66, 19, 1.0)
    with canvas.group(x, y + PANEL - 24):
        style = "k-changed k-text--strong" if output else "k-text--strong"
        words = f"output ({', '.join(fixed(float(v), 2) for v in layer.output)})"
        canvas.text(width / 2, 12, words, style, size=SMALL if kit.text_width(words) > width - 8 else 13)
    if output:
        with canvas.group(x, y):
            kit.ring(canvas, 0, 0, width, PANEL, "k-changed", 2.5)


def _spot(vector, reach: float) -> tuple[float, float]:
    """Where a vector lies: the circle has the length √2 of a normalised one; up is positive."""
    scale = reach / math.sqrt(2)
    return float(vector[0]) * scale, -float(vector[1]) * scale


def _plane(canvas: Canvas, layer: Layer, style: str) -> None:
    """Entries on a circle, the query in a style, the chosen ones joined to the middle, the output."""
    canvas.rect(-RADIUS, -RADIUS, 2 * RADIUS, 2 * RADIUS, "k-frame", RADIUS)
    for j, entry in enumerate(layer.entries):
        taken = j in layer.chosen
        px, py = _spot(entry, RADIUS)
        if taken:
            canvas.line(0, 0, px, py, "k-selected", 1.5)
        canvas.circle(px, py, 7 if taken else 4, "k-result" if taken else "k-global")
        if taken:
            canvas.circle(px, py, 4, "k-global")
        lx, ly = _spot(entry, RADIUS + 14)
        canvas.text(lx, ly + 4, j, "k-selected k-text--strong" if taken else "k-muted", size=SMALL)
    length = float(np.hypot(*layer.query)) or 1.0
    qx, qy = _spot(layer.query / length * math.sqrt(2), RADIUS - 10)
    canvas.arrow(0, 0, qx, qy, style, 2.5, 8)
    canvas.circle(*_spot(layer.output, RADIUS), 4.5, "k-level")


def visible_picture(ratio: int, at: int, values, entries, counts: list[int], waiting: int) -> Picture:
    """Tokens, the entries made of them, and for every position which entries it may read."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        left = 58.0 if canvas.narrow else 96.0
        cell = min(48.0, (width - left) / TOKENS)
        with canvas.group():
            words = [("k-hidden", "token"), ("k-global", "entry it may read"), ("k-local", "window")]
            y = (
                kit.legend(
                    canvas, [*words, ("k-box k-hidden k-box--off", "waits"), ("k-box k-box--off", "not there yet")]
                )
                + 8
            )
            for row, name in ((y + 20, "position"), (y + 50, "token"), (y + 124, "entry")):
                canvas.text(0, row, name, "k-label", "start")
        for t in range(TOKENS):
            with canvas.group(left + t * cell, y):
                canvas.text(cell / 2, 20, t, "k-selected k-text--strong" if t == at else "k-muted", size=SMALL)
                here = t <= at
                waits = waiting and t == at
                kind = "hidden" if here else ""
                off = [0] if waits or not here else []
                kit.cells(canvas, 0, 31, [values[t] if here else ""], cell, 28, kind, off=off)
        first = max(0, at - WINDOW + 1)
        with canvas.group(left, y + 62):
            canvas.bracket(first * cell + 2, (at + 1) * cell - 2, 0, 6, "k-local")
            words = f"window of {WINDOW}"
            room = kit.text_width(words, SMALL) / 2
            middle = max((first + at + 1) / 2 * cell, room)
            canvas.text(middle, 20, words, "k-local", size=SMALL)
        for j, entry in enumerate(entries):
            with canvas.group(left + j * ratio * cell, y + 96):
                wide = ratio * cell
                there = j < counts[at]
                word = fixed(float(entry[0]), 1 if ratio > 1 else 0) if there else ""
                canvas.bracket(2, wide - 2, 3, -6, "k-global" if there else "k-tick")
                kit.cells(canvas, 0, 10, [word], wide, 32, "global" if there else "", off=[] if there else [0])
        y += 152
        return _staircase(canvas, ratio, at, len(entries), counts, left, cell, y)

    description = (
        f"Ratio {ratio}. Position by position, the number of readable entries is {', '.join(map(str, counts))}. "
        f"The query is at position {at}; {counted(waiting, 'token waits', 'tokens wait')}."
    )
    raw = {"visible": counts, "at": at, "waiting": waiting, "entries": [float(entry[0]) for entry in entries]}
    return draw(paint, "Who may read which entry", description, raw)


def _staircase(canvas: Canvas, ratio: int, at: int, entries: int, counts, left: float, cell: float, y: float) -> Canvas:
    height = 17.0
    with canvas.group():
        y = kit.heading(canvas, 0, y, "Every position", "filled: may be read")
        for t in range(TOKENS):
            canvas.text(left - 10, y + t * height + 12.5, t, "k-muted", "end", SMALL)
            for j in range(entries):
                style = "k-global" if j < counts[t] else "k-cell k-cell--soft"
                strength = 0.55 if j < counts[t] else 1
                wide = ratio * cell
                canvas.rect(left + j * wide + 1, y + t * height + 1, wide - 2, height - 2, style, 2, strength)
    with canvas.group(0, y + at * height):
        kit.ring(canvas, left - 32, -1, 32 + TOKENS * cell, height + 2, "k-selected", 2)
    canvas.height = y + TOKENS * height + 6
    return canvas
