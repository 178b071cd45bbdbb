"""Pictures of the `state-homes` widget: every tensor of a run in its home; one key and one value by hand."""

import math
from dataclasses import dataclass

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import show

from .state_homes_runs import LAYERS, LENGTH, Change

CELL, ROW, LABEL = 22, 19, 74
TITLES = {
    "hidden": ("Hidden states", "this pass only"),
    "local": ("Window KV", "framed: what is still kept"),
    "global": ("Global KV", "kept with the sequence"),
    "engram": ("Engram rows read", "parameters, chosen by the prompt"),
}


@dataclass(frozen=True)
class Homes:
    """What the map shows."""

    changes: tuple[Change, ...]
    parameters: dict  # changed parameters: {name: numbers}
    ids: tuple
    position: int | None  # the changed token
    window: int  # after the change
    picking: bool  # whether a click on a token chooses it


def homes_picture(homes: Homes) -> Picture:
    """The parameters above; the four homes of what the prompt makes below, position by position."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            y = kit.legend(canvas, ["parameters", "hidden", "local", "global", "engram", ("k-changed", "changed")])
        y = _parameters(canvas, homes, y + 6)
        left, right = (0, 0) if canvas.narrow else (0, width - LABEL - LENGTH * CELL - 2)
        first = _block(canvas, homes, "hidden", left, y)
        second = _block(canvas, homes, "local", right, first if canvas.narrow else y)
        third = _block(canvas, homes, "global", right, second)
        canvas.height = max(_block(canvas, homes, "engram", left, third if canvas.narrow else first), third) - 8
        return canvas

    counts = ", ".join(f"{TITLES[home][0]}: {changed} of {every}" for home, changed, every in counted(homes.changes))
    description = f"Rows that differ after the change. {counts}. Parameters changed: {len(homes.parameters) or 'none'}."
    raw = {
        "parameters": dict(homes.parameters),
        "rows": [{"home": c.home, "name": c.name, "sizes": list(c.sizes)} for c in homes.changes],
    }
    return draw(paint, "What changes, and where it lives", description, raw)


def counted(changes) -> list[tuple[str, int, int]]:
    """(home, changed rows, all rows) for each home."""
    homes = dict.fromkeys(change.home for change in changes)
    return [
        (home, sum(c.count for c in changes if c.home == home), sum(len(c.sizes) for c in changes if c.home == home))
        for home in homes
    ]


_GROUPS = ("embed", *(f"layers.{layer}" for layer in range(LAYERS)), "engram", "head")


def _group(name: str) -> str:
    """The box of the parameter strip that a parameter belongs to."""
    if ".engram." in name:
        return "engram"
    return next(group for group in _GROUPS if name.startswith(f"{group}."))


def _parameters(canvas: Canvas, homes: Homes, y: float) -> float:
    """One box for each group of parameters; the changed one is marked."""
    touched = {_group(name) for name in homes.parameters}
    per_row, gap = (4, 6) if canvas.narrow else (8, 6)
    width = (canvas.width - (per_row - 1) * gap) / per_row
    with canvas.group():
        y = kit.heading(canvas, 0, y, "Parameters", "the same for every prompt, until training changes them")
    for index, group in enumerate(_GROUPS):
        words = {"embed": "embedding", "engram": "Engram", "head": "output"}.get(
            group, group.replace("layers.", "layer ")
        )
        x, top = index % per_row * (width + gap), y + index // per_row * 42
        with canvas.group():
            style = "changed" if group in touched else "parameters"
            note = "1 number" if group in touched else "unchanged"
            kit.box(canvas, x, top, width, 36, words, note, style, "selected" if group in touched else "")
    return y + 42 * -(-len(_GROUPS) // per_row) + 8


def _block(canvas: Canvas, homes: Homes, home: str, x: float, y: float) -> float:
    """All tensors of one home; columns are positions."""
    title, note = TITLES[home]
    rows = [change for change in homes.changes if change.home == home]
    kind = {"hidden": "hidden", "local": "local", "global": "global", "engram": "engram"}[home]
    with canvas.group():
        canvas.text(x, y + 14, title, "k-text--strong", "start")
        canvas.text(x + LABEL + LENGTH * CELL, y + 14, note, "k-muted", "end", SMALL)
        for position in range(LENGTH):
            canvas.text(x + LABEL + (position + 0.5) * CELL, y + 30, position, "k-muted", size=SMALL)
    y += 36
    if home == "hidden":
        y = _tokens(canvas, homes, x, y)
    top = y
    for change in rows:
        with canvas.group():
            canvas.text(x, y + 12.5, change.name, "k-label", "start", SMALL)
            for index, size in enumerate(change.sizes):
                left = x + LABEL + index * change.ratio * CELL + 1
                _cell(canvas, left, y, change.ratio * CELL - 2, kind, size)
        y += ROW
    if home == "local":
        kept = min(homes.window, LENGTH)
        with canvas.group():
            canvas.rect(x + LABEL + (LENGTH - kept) * CELL - 1, top - 3, kept * CELL + 2, y - top + 3, "k-mark", 4)
    return y + 14


def _tokens(canvas: Canvas, homes: Homes, x: float, y: float) -> float:
    with canvas.group():
        canvas.text(x, y + 12.5, "token id", "k-label", "start", SMALL)
        for position, id in enumerate(homes.ids):
            left = x + LABEL + position * CELL + 1
            style = "k-box k-changed k-box--selected" if position == homes.position else "k-box"
            canvas.rect(left, y, CELL - 2, ROW - 3, style, 3)
            canvas.text(left + CELL / 2 - 1, y + 12, id, size=SMALL)
        if homes.picking:
            for position in range(LENGTH):
                kit.hit(canvas, "position", position, x + LABEL + position * CELL, y - 2, CELL, ROW)
    return y + ROW


def _cell(canvas: Canvas, x: float, y: float, width: float, kind: str, size: float) -> None:
    """Unchanged: the colour of its home. Changed: outlined, and filled from below by how much."""
    if not size:
        canvas.rect(x, y, width, ROW - 3, f"k-{kind}", 3, 0.4)
        return
    canvas.rect(x, y, width, ROW - 3, "k-box k-changed", 3)
    filled = max(2, round((ROW - 5) * min(1.0, math.sqrt(size))))
    canvas.rect(x + 1, y + ROW - 4 - filled, width - 2, filled, "k-changed", 1)


# One key, one value


def product_picture(hidden: tuple, weights: dict[str, tuple], results: dict[str, float]) -> Picture:
    """h times two columns of weights: what is fixed, what belongs to the request."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            y = kit.legend(
                canvas, [("k-hidden", "hidden state, this pass"), "parameters", ("k-local", "kept in the cache")]
            )
        y += 10
        for name, result in results.items():
            y = _product(canvas, hidden, name, weights[name], result, y) + 22
        canvas.height = y - 8
        return canvas

    description = ", ".join(f"{name} = {show(result)}" for name, result in results.items())
    raw = {"hidden": list(hidden), "weights": {k: list(v) for k, v in weights.items()}, "results": results}
    return draw(paint, "One key and one value", f"From h = [{', '.join(map(show, hidden))}]: {description}.", raw)


def _product(canvas: Canvas, hidden: tuple, name: str, weights: tuple, result: float, y: float) -> float:
    cell = 46 if canvas.narrow else 64
    gap = 28 if canvas.narrow else 48
    x = 0.0 if canvas.narrow else 60.0
    with canvas.group(0, y):
        kit.cells(canvas, x, 22, [show(v) for v in hidden], cell, 38, "hidden")
        canvas.text(x + cell, 14, "h", "k-hidden k-text--strong")
    x += 2 * cell
    with canvas.group(0, y):
        canvas.text(x + gap / 2, 46, "·", "k-text--strong", size=20)
        kit.cells(canvas, x + gap, 22, [show(v) for v in weights], cell, 38, "parameters")
        canvas.text(x + gap + cell, 14, f"{name.lower()} weights", "k-parameters k-text--strong")
    x += 2 * cell + gap
    with canvas.group(0, y):
        canvas.text(x + gap / 2, 46, "=", "k-text--strong", size=20)
        kit.cells(canvas, x + gap, 22, [show(result)], cell + 12, 38, "local", marked=[0])
        canvas.text(x + gap + cell / 2 + 6, 14, name, "k-local k-text--strong")
        sums = " + ".join(f"{show(h)} · {_signed(w)}" for h, w in zip(hidden, weights, strict=True))
        canvas.text(0 if canvas.narrow else 60, 80, f"{sums} = {show(result)}", "k-muted", "start")
    return y + 84


def _signed(value: float) -> str:
    return f"({show(value)})" if value < 0 else show(value)
