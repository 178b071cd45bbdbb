"""The walk of the `state-homes` widget: three words from their ids to the decoder's memory, in six steps."""

from dataclasses import dataclass

from deepseek_edu.drawing import Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import show

from . import state_homes_runs as runs
from .memo import remembered
from .parts import Prose, Table, View
from .tiny_models import toy_model

WORDS, WORD_IDS = ("The", "tide", "rose"), (10, 42, 67)
"""The ids are invented: the tiny model has no tokenizer."""


@dataclass(frozen=True)
class Stop:
    """One of the six stops of the walk: what is fixed, what the prompt decides, and the numbers it has made."""

    name: str
    short: str  # for narrow boxes
    kind: str
    fixed: str
    changes: str
    rows: tuple  # for each word numbers, or texts
    shape: str


def walk_picture(words: tuple, stops: tuple[Stop, ...], step: int) -> Picture:
    """The stops as boxes, the current one open: its numbers for each word."""
    stop = stops[step - 1]

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        per_row, gap = (3, 8) if canvas.narrow else (6, 14)
        box = (width - (per_row - 1) * gap) / per_row
        for index, other in enumerate(stops):
            x, y = index % per_row * (box + gap), index // per_row * 52
            state = "selected" if index + 1 == step else "off" if index + 1 > step else ""
            with canvas.pick("step", index + 1):
                kit.box(canvas, x, y, box, 42, other.short, f"step {index + 1}", other.kind, state)
            if index % per_row:
                with canvas.group():
                    canvas.arrow(x - gap + 1, y + 21, x - 1, y + 21, head=5)
        y = 52.0 * -(-len(stops) // per_row) + 6
        with canvas.group():
            y = kit.heading(canvas, 0, y, stop.name, stop.shape)
        label = 48 if canvas.narrow else 72
        for word, row in zip(words, stop.rows, strict=True):
            with canvas.group():
                canvas.text(0, y + 17, word, "k-text--strong", "start")
                _numbers(canvas, label, y, row, stop.kind)
            y += 30
        with canvas.group():
            y = _pair(canvas, y + 6, "Fixed", stop.fixed, "k-parameters")
            y = _pair(canvas, y, "Follows the prompt", stop.changes, "k-hidden")
        canvas.height = y
        return canvas

    description = f"Step {step} of {len(stops)}, {stop.name}. Fixed: {stop.fixed} Follows the prompt: {stop.changes}"
    raw = {"step": step, "rows": {word: list(row) for word, row in zip(words, stop.rows, strict=True)}}
    return draw(paint, "From ids to decoder memory", description, raw)


def _numbers(canvas: Canvas, x: float, y: float, row: tuple, kind: str) -> None:
    if isinstance(row[0], float):
        cell = (canvas.width - x - 2) // len(row)
        kit.heat(canvas, x, y, [row], cell, kind or "hidden", height=24)
        return
    width = min(44, (canvas.width - x - 2) // max(6, len(row)))
    kit.cells(canvas, x, y, row, width, 24, kind)


def _pair(canvas: Canvas, y: float, name: str, words: str, style: str) -> float:
    """A name in bold and a sentence, wrapped to the width."""
    canvas.text(0, y + 14, name, f"{style} k-text--strong", "start")
    x = 0 if canvas.narrow else 140
    y += 18 if canvas.narrow else 0
    line, room = "", int((canvas.width - x) / 6.9)
    for word in [*words.split(), ""]:
        if not word or len(line) + len(word) + 1 > room:
            canvas.text(x, y + 14, line, "k-label", "start")
            line, y = word, y + 18
        else:
            line = f"{line} {word}".strip()
    return y + 6


@remembered(2)
def _words_run():
    return runs.run(runs.watched(toy_model(runs.LAYERS, runs.WINDOW)), WORD_IDS)


def stops() -> tuple[Stop, ...]:
    """The six stops with the numbers of the tiny model."""
    done, model = _words_run(), toy_model(runs.LAYERS, runs.WINDOW)
    rows = {(t.home, t.name): tuple(tuple(float(v) for v in row) for row in t.rows) for t in done.tensors}
    addresses = tuple(tuple(int(row) for row in token[0]) for token in done.addresses)
    vocabulary, width = model.embed.shape
    table = len(model.weights["layers.1.engram.embed.weight"])
    of_width = f"3 × {width} numbers"
    return (
        Stop(
            "Ids",
            "ids",
            "",
            "The vocabulary: which id stands for which piece of text.",
            "The three ids.",
            tuple((id,) for id in WORD_IDS),
            "3 whole numbers",
        ),
        Stop(
            "Embedding",
            "embedding",
            "hidden",
            f"The table, {vocabulary} × {width}.",
            "Which three of its rows are copied into the streams.",
            rows["hidden", "into layer 0"],
            of_width,
        ),
        Stop(
            "Window KV of layer 0",
            "window KV",
            "local",
            "The matrix that makes it.",
            "One row for each token. It is overwritten when the window has passed.",
            rows["local", "layer 0"],
            of_width,
        ),
        Stop(
            "Engram rows read by layer 1",
            "Engram",
            "engram",
            f"The table, {table} × {width}, and the hash.",
            "Which rows are read: two for each pair, triple and quadruple of tokens.",
            addresses,
            "3 × 6 row numbers",
        ),
        Stop(
            "Encoder output",
            "encoder out",
            "hidden",
            "All parameters of layers 0 to 2.",
            "The state of each token after them. It is gone when the pass ends.",
            rows["hidden", "into layer 3"],
            of_width,
        ),
        Stop(
            "Decoder memory",
            "global KV",
            "global",
            "The matrix of layer 3 that makes the entries.",
            "One entry for each token. All decoder layers read these, for as long as the sequence lives.",
            rows["global", "layer 3"],
            of_width,
        ),
    )


def walk_view(step: int) -> View:
    made = stops()
    stop = made[step - 1]
    later = "" if step == len(made) else f"Next: {made[step].name}. "
    prose = Prose(f"{later}The words’ ids are invented, and the weights are random: illustrative.")
    table = Table(
        "The first numbers of each word",
        ("Word", "Numbers"),
        tuple((word, ", ".join(show(v, 3) for v in row[:6])) for word, row in zip(WORDS, stop.rows, strict=True)),
        folded=True,
    )
    summary = (
        f"Step {step} of {len(made)}: {stop.name}, {stop.shape}. Fixed: {stop.fixed} Follows the prompt: {stop.changes}"
    )
    return View((walk_picture(WORDS, made, step), prose, table), summary)
