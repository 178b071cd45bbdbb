"""The picture of the `toy-attention` widget: the code on one side, the arrays of the current line on the other."""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import fixed, percent

STAGE = 344  # width of the arrays' side, in both drawings
LEFT, CELL, ROW = 30, 8, 15
ACROSS = 32 * CELL


@dataclass(frozen=True)
class Line:
    """A line of the model: its name, its code, the arrays it makes, and the one whose rows are compared."""

    name: str
    code: str
    makes: tuple
    shows: str


LINES = (
    Line("Ids", "ids = [{}]", (), "ids"),
    Line("Vectors", "x = embed[ids] + positions[:3]", ("x",), "x"),
    Line("Projections", "q, k, v = x @ Wq, x @ Wk, x @ Wv", ("query", "key", "value"), "value"),
    Line("Scores", "scores = q @ k.T / sqrt(32)", ("score",), "score"),
    Line("Mask", "scores[later] = -inf", ("masked",), "masked"),
    Line("Weights", "weights = softmax(scores)", ("weight",), "weight"),
    Line("Mixture", "hidden = x + weights @ v @ Wo", ("hidden",), "hidden"),
    Line("Logits", "logits = hidden @ embed.T / sqrt(32)", ("logits",), "logits"),
)


@dataclass(frozen=True)
class Scene:
    """What is drawn: the line, the ids that ran, their arrays, and with a change how far each row has moved."""

    step: int
    ids: tuple
    causal: bool
    arrays: dict
    moved: dict | None = None
    place: int = -1  # of the changed token
    was: int = -1

    def shape(self, step: int) -> str:
        """The shape of what a line makes, as NumPy has it."""
        makes = LINES[step - 1].makes
        if not makes:
            return f"[{len(self.ids)}]"
        shape = "[" + ", ".join(map(str, self.arrays[makes[0]].shape)) + "]"
        return shape if len(makes) == 1 else f"{len(makes)} × {shape}"


def picture(scene: Scene) -> Picture:
    """Code and arrays: side by side where there is room."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        room = width if canvas.narrow else width - STAGE - 24
        below = _program(canvas, scene, room)
        x, y = (0, below + 14) if canvas.narrow else (width - STAGE, 0)
        with canvas.group(x, y):
            _STAGES[scene.step - 1](canvas, scene)
        canvas.height = y + 274
        return canvas

    line = LINES[scene.step - 1]
    description = (
        f"Line {scene.step} of 8: {_code(scene, scene.step)}. Its result has the shape {scene.shape(scene.step)}."
    )
    if scene.moved and line.makes:
        rows = [i for i, gap in enumerate(scene.moved[line.shows]) if gap]
        description += f" Rows that moved: {', '.join(map(str, rows)) or 'none'}."
    return draw(paint, f"The model at line {scene.step}, {line.name.lower()}", description, _raw(scene))


def _raw(scene: Scene) -> dict:
    line = LINES[scene.step - 1]
    made = {name: np.round(scene.arrays[name], 7).tolist() for name in line.makes} or {"ids": list(scene.ids)}
    return {
        "shapes": [scene.shape(step) for step in range(1, len(LINES) + 1)],
        "made": made,
        "moved": {name: [round(gap, 7) for gap in gaps] for name, gaps in (scene.moved or {}).items()},
    }


def _code(scene: Scene, step: int) -> str:
    code = LINES[step - 1].code.format(", ".join(map(str, scene.ids)))
    return f"# {code}" if step == 5 and not scene.causal else code


def _program(canvas: Canvas, scene: Scene, room: float) -> float:
    """The eight lines with their shapes; the current one stands out. Returns the y below."""
    height = 24 if canvas.narrow else 31
    with canvas.group():
        canvas.text(0, 14, "The whole model", "k-text--strong", "start")
        canvas.text(room, 14, "shape", "k-muted", "end", SMALL)
    y = 24
    for step in range(1, len(LINES) + 1):
        current = step == scene.step
        with canvas.pick("step", step, 0, y):
            canvas.rect(
                0, 0, room, height - 3, "k-selected" if current else "k-ground", 3, 1 if step <= scene.step else 0
            )
            off = step == 5 and not scene.causal
            ink = "k-muted" if step > scene.step or off else "k-text--strong" if current else ""
            base = (height - 3) / 2 + 4
            canvas.text(8, base, _code(scene, step), f"{ink} k-text--mono".strip(), "start", SMALL)
            canvas.text(room - 8, base, scene.shape(step), f"{ink} k-text--mono".strip(), "end", SMALL)
        y += height
    return y


# The stage: what the current line reads and makes


def _title(canvas: Canvas, words: str, note: str) -> float:
    with canvas.group():
        canvas.text(0, 14, words, "k-text--strong", "start")
        canvas.text(STAGE, 14, note, "k-muted", "end", SMALL)
    return 26


def _note(canvas: Canvas, scene: Scene, name: str, row: int, y: float, plain: str = "") -> None:
    """What stands behind a row: whether it moved, or a few words of its own."""
    x = LEFT + ACROSS + 8
    if scene.moved is None or name not in scene.moved:
        if plain:
            canvas.text(x, y, plain, "k-muted", "start", SMALL)
        return
    gap = scene.moved[name][row]
    canvas.text(x, y, "moved" if gap else "same", "k-changed k-text--strong" if gap else "k-muted", "start", SMALL)


def _label(canvas: Canvas, scene: Scene, row: int, y: float) -> None:
    style = "k-changed k-text--strong" if row == scene.place else "k-label"
    canvas.text(LEFT - 7, y, scene.ids[row], style, "end", SMALL)


def _rows(
    canvas: Canvas, scene: Scene, name: str, words: str, kind: str, y: float, top: float, row: float = ROW
) -> float:
    """An array [T C] in shades under its name. Returns the y below."""
    values = scene.arrays[name]
    cell = ACROSS / values.shape[1]
    with canvas.group(0, y):
        canvas.text(LEFT, 12, words, "k-label k-text--mono", "start", SMALL)
        kit.heat(canvas, LEFT, 18, values.tolist(), cell, kind, top, row)
        for i in range(len(values)):
            base = 18 + i * row + row / 2 + 4
            _label(canvas, scene, i, base)
            _note(canvas, scene, name, i, base)
            if scene.moved is not None and scene.moved[name][i]:
                canvas.rect(LEFT + ACROSS + 2, 18 + i * row + 1, 3, row - 2, "k-changed", 1)
    return y + 18 + len(values) * row + 12


def _largest(scene: Scene, *names: str) -> float:
    """The size that is drawn at full strength: arrays that are added or compared share it."""
    return max(float(np.abs(scene.arrays[name]).max()) for name in names)


def _matrix(canvas: Canvas, scene: Scene, name: str, words: str, y: float, share: bool = False) -> float:
    """An array [T T] with its numbers: a row for each query, a column for each key. Returns the y below."""
    values = scene.arrays[name]
    width, height = ACROSS / len(values), 26
    finite = values[np.isfinite(values)]
    top = 1.0 if share else float(np.abs(finite).max()) if finite.size else 1.0
    before = scene.moved is not None
    with canvas.group(0, y):
        canvas.text(LEFT, 12, words, "k-label k-text--mono", "start", SMALL)
        for column, id in enumerate(scene.ids):
            style = "k-changed" if column == scene.place else "k-muted"
            canvas.text(LEFT + (column + 0.5) * width, 30, f"key of {id}", style, size=SMALL)
        for i, row in enumerate(values.tolist()):
            for j, value in enumerate(row):
                _number(canvas, LEFT + j * width, 36 + i * height, width, height, value, top, share)
            _label(canvas, scene, i, 36 + i * height + 17)
            total = percent(sum(row)) if share else ""
            _note(canvas, scene, name, i, 36 + i * height + 17, total)
            if before and scene.moved[name][i]:
                canvas.rect(LEFT + ACROSS + 2, 36 + i * height + 2, 3, height - 5, "k-changed", 1)
    return y + 36 + len(values) * height + 10


def _number(canvas, x: float, y: float, width: float, height: float, value: float, top: float, share: bool) -> None:
    """One cell of a matrix."""
    hidden = value == -np.inf or (share and value == 0)
    canvas.rect(x + 1, y, width - 2, height - 3, "k-box k-box--off" if hidden else "k-box", 3)
    if not hidden:
        style = "k-hidden" if value > 0 else "k-negative"
        canvas.rect(x + 1, y, width - 2, height - 3, style, 3, kit.READABLE * round(min(1.0, abs(value) / top), 2))
    words = "−∞" if value == -np.inf else percent(value) if share else fixed(value, 2)
    canvas.text(x + width / 2, y + height / 2 + 3, words, "k-muted" if hidden else "")


def _ids_stage(canvas: Canvas, scene: Scene) -> None:
    _title(canvas, "Three addresses", "256 ids")
    slot = ACROSS / len(scene.ids)
    with canvas.group():
        for i, id in enumerate(scene.ids):
            x = LEFT + (i + 0.5) * slot
            kind = "changed" if i == scene.place else "hidden"
            canvas.text(x, 44, f"position {i}", "k-muted", size=SMALL)
            kit.box(canvas, x - 30, 52, 60, 34, str(id), "", kind)
            canvas.arrow(x, 90, LEFT + id + 0.5, 164, f"k-{kind}")
    with canvas.group():
        canvas.rect(LEFT, 166, 256, 44, "k-box k-parameters", 3)
        for id in (0, 64, 128, 192, 255):
            canvas.text(LEFT + id + 0.5, 226, id, "k-muted", size=SMALL)
        canvas.text(LEFT, 246, "embed [256, 32]: 32 numbers for each id", "k-label k-text--mono", "start", SMALL)
    with canvas.group():
        for i, id in enumerate(scene.ids):
            canvas.rect(LEFT + id - 0.5, 166, 2, 44, "k-changed" if i == scene.place else "k-parameters")


def _vectors_stage(canvas: Canvas, scene: Scene) -> None:
    top = _largest(scene, "embedding", "position", "x")
    y = _title(canvas, "Ids become vectors", "32 numbers per token")
    y = _rows(canvas, scene, "embedding", "embed[ids]", "parameters", y, top)
    y = _rows(canvas, scene, "position", "+ positions[:3]", "parameters", y, top)
    _rows(canvas, scene, "x", "= x", "hidden", y, top)


def _projections_stage(canvas: Canvas, scene: Scene) -> None:
    top = _largest(scene, "query", "key", "value")
    y = _title(canvas, "Three vectors of each", "colour +, grey −")
    for name, words, kind in (
        ("query", "q = x @ Wq", "hidden"),
        ("key", "k = x @ Wk", "local"),
        ("value", "v = x @ Wv", "local"),
    ):
        y = _rows(canvas, scene, name, words, kind, y, top)


def _scores_stage(canvas: Canvas, scene: Scene) -> None:
    top = _largest(scene, "query", "key")
    y = _title(canvas, "Every query meets every key", "a sum of 32 products")
    y = _rows(canvas, scene, "query", "q", "hidden", y, top, 12)
    y = _rows(canvas, scene, "key", "k", "local", y, top, 12)
    _matrix(canvas, scene, "score", "q @ k.T / sqrt(32)", y)


def _mask_stage(canvas: Canvas, scene: Scene) -> None:
    y = _title(canvas, "Nobody looks ahead" if scene.causal else "Everybody looks ahead", "a row per query")
    y = _matrix(canvas, scene, "score", "scores before", y)
    _matrix(canvas, scene, "masked", "scores after" if scene.causal else "scores after: the mask is off", y)


def _weights_stage(canvas: Canvas, scene: Scene) -> None:
    y = _title(canvas, "Scores become shares", "of each row")
    y = _matrix(canvas, scene, "masked", "scores", y)
    _matrix(canvas, scene, "weight", "softmax(scores)", y, share=True)


def _mixture_stage(canvas: Canvas, scene: Scene) -> None:
    top = _largest(scene, "mixed", "x", "hidden")
    y = _title(canvas, "Values are mixed and added", "32 numbers per token")
    y = _rows(canvas, scene, "x", "x", "hidden", y, top)
    y = _rows(canvas, scene, "mixed", "+ weights @ v @ Wo", "local", y, top)
    _rows(canvas, scene, "hidden", "= hidden", "hidden", y, top)


def _logits_stage(canvas: Canvas, scene: Scene) -> None:
    logits = scene.arrays["logits"]
    y = _title(canvas, "A score for each of 256 ids", "after each token")
    y = _rows(canvas, scene, "hidden", "hidden", "hidden", y, _largest(scene, "hidden"))
    below = _rows(canvas, scene, "logits", "hidden @ embed.T / sqrt(32)", "hidden", y, _largest(scene, "logits"), 18)
    with canvas.group(0, below):
        canvas.text(LEFT, 10, "highest", "k-label", "start", SMALL)
        for i, row in enumerate(logits):
            likely = int(row.argmax())
            kit.box(canvas, LEFT + 56 + i * 68, -4, 60, 40, str(likely), f"after {scene.ids[i]}", "selected")


_STAGES = (
    _ids_stage,
    _vectors_stage,
    _projections_stage,
    _scores_stage,
    _mask_stage,
    _weights_stage,
    _mixture_stage,
    _logits_stage,
)
