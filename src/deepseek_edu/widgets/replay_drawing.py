"""The grid of the `replay` widget: positions by layers, with what is kept, rebuilt and lost.

Exactness is nowhere assumed: a cell is drawn exact because the run behind it equals the exact run there.
"""

import math
from dataclasses import dataclass

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import counted, percent
from deepseek_edu.drawing.svg import FONT

from . import replay_curve as curve
from .replay_runs import EXACT, NEW, Replayed, Setting, mean

SAVE, LOSE, REPLAY, CONTINUE, COMPARE = range(1, 6)
ROW, GAP = 26, 4


@dataclass(frozen=True)
class Scene:
    """What the grid shows: a setting, the step, and the run with the chosen replay length."""

    setting: Setting
    step: int
    run: Replayed | None  # from step 3 on
    owners: tuple  # (layer, ratio) of every layer that makes global entries
    needed: int  # shortest replay after which all windows are exact, from step 3 on
    cut: np.ndarray | None  # divergences of the last prompt tokens and the new ones, with the prompt cut; likewise

    @property
    def cut_error(self) -> float:
        """Mean divergence of the new tokens with the prompt cut."""
        return mean(self.cut)

    @property
    def start(self) -> int:
        """First position that is fed again."""
        return self.setting.hit - self.run.tokens


class _Grid:
    """Where columns and rows lie."""

    def __init__(self, canvas: Canvas, columns: int) -> None:
        self.left = 28 if canvas.narrow else 92
        self.right = 46 if canvas.narrow else 78
        self.cell = min(30, (canvas.width - self.left - self.right) // columns)
        self.end = self.left + columns * self.cell

    def x(self, column: float) -> float:
        return self.left + column * self.cell


def grid_picture(scene: Scene) -> Picture:
    """Positions from left to right, layers from top to bottom."""
    s = scene.setting
    rows = len(scene.owners) + (s.variant != "hit") + s.depth

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        grid = _Grid(canvas, s.hit + NEW)
        y = _legend(canvas)
        y = _head(canvas, grid, scene, y + 2)
        for layer, ratio in scene.owners:
            y = _global_row(canvas, grid, scene, layer, ratio, y)
        if s.variant != "hit":
            y = _encoder_row(canvas, grid, scene, y)
        y += 18
        top = y
        if scene.step >= REPLAY:
            with canvas.group():
                canvas.text(grid.end + grid.right, y - 8, "error in the frame", "k-muted", "end", SMALL)
        for number, layer in enumerate(s.layers):
            y = _layer_row(canvas, grid, scene, number, layer, y)
        y = _foot(canvas, grid, scene, top, y)
        if scene.step == CONTINUE:
            y = curve.band(canvas, scene, grid.x, grid.cell, y)
        with canvas.group():
            for position in range(s.hit):
                kit.hit(canvas, "tokens", s.hit - position, grid.x(position), top - 3, grid.cell, s.depth * (ROW + GAP))
        canvas.height = y
        return canvas

    return draw(paint, "What is kept and what is rebuilt", _words(scene, rows), _raw(scene))


def _raw(scene: Scene) -> dict:
    s = scene.setting
    if scene.run is None:
        return {"step": scene.step, "layers": list(s.layers)}
    return {
        "step": scene.step,
        "start": scene.start,
        "layers": list(s.layers),
        "new_entries": {str(layer): [float(e) for e in errors] for layer, errors in scene.run.entry_errors.items()},
        "errors": [{"first": first, "relative": [float(e) for e in errors]} for first, errors in scene.run.errors],
        "divergence": {"first": s.hit + NEW - len(scene.run.divergences), "each": scene.run.divergences},
        "cut": scene.cut,
    }


def _words(scene: Scene, rows: int) -> str:
    s = scene.setting
    kept = ", ".join(f"layer {layer}" for layer, _ in scene.owners) or "none in this model"
    words = (
        f"{counted(rows, 'row')} over {s.hit} prefix positions and {NEW} new ones. Global entries ({kept}) are kept. "
    )
    if scene.step == SAVE:
        return words + (
            f"Each layer’s window holds the last {s.window} positions."
            if s.variant == "hit"
            else "No decoder layer has a window yet."
        )
    if scene.step == LOSE:
        return words + "All windows drawn below them are missing."
    parts = []
    for layer, (_, errors) in zip(s.layers, scene.run.errors, strict=True):
        exact = sum(error < EXACT for error in errors)
        parts.append(f"layer {layer}: {exact} exact, {len(errors) - exact} approximate")
    return words + f"Rebuilt from position {scene.start}: {'; '.join(parts)}."


def _legend(canvas: Canvas) -> float:
    items = [
        ("k-global", "global KV, kept"),
        ("k-local", "window KV, exact"),
        ("k-error", "how far off"),
        ("k-box k-box--off", "missing"),
    ]
    with canvas.group():
        return kit.legend(canvas, items)


def _head(canvas: Canvas, grid: _Grid, scene: Scene, y: float) -> float:
    """Names of the two parts of the sequence, position numbers, and the tokens that are fed."""
    s, narrow = scene.setting, canvas.narrow
    with canvas.group():
        prefix = "stored prefix" if s.variant == "hit" else "prompt"
        canvas.text(grid.x(0), y + 13, f"{prefix}, {s.hit} tokens", "k-text--strong", "start")
        canvas.text(grid.end, y + 13, f"{NEW} new", "k-text--strong", "end")
        canvas.line(grid.x(0) + 1, y + 20, grid.x(s.hit) - 3, y + 20, "k-axis", 2)
        canvas.line(grid.x(s.hit) + 1, y + 20, grid.end - 1, y + 20, "k-axis", 2)
        for position in range(0, s.hit + NEW, 4 if grid.cell < 20 else 2):
            canvas.text(grid.x(position + 0.5), y + 34, position, "k-muted", size=SMALL)
    y += 40
    with canvas.group():
        if not narrow:
            canvas.text(0, y + 12, "token", "k-label", "start")
        for position in range(s.hit + NEW):
            fed = scene.step >= REPLAY and scene.start <= position < s.hit
            new = scene.step < CONTINUE and position >= s.hit
            style = "k-box k-selected k-box--selected" if fed else "k-box k-box--off" if new else "k-box"
            canvas.rect(grid.x(position) + 1, y, grid.cell - 2, 16, style, 3)
        if scene.step >= REPLAY and scene.run.tokens:
            words = f"{scene.run.tokens} fed" if narrow else "fed again" if s.variant == "hit" else "through these"
            canvas.text(grid.end + 8, y + 12, words, "k-selected", "start", SMALL)
    return y + 16 + GAP + 6


def _name(canvas: Canvas, y: float, wide: str, narrow: str) -> None:
    canvas.text(
        0,
        y + 17,
        narrow if canvas.narrow else wide,
        "k-label",
        "start",
        SMALL if canvas.narrow or len(wide) > 13 else FONT,
    )


def _global_row(canvas: Canvas, grid: _Grid, scene: Scene, layer: int, ratio: int, y: float) -> float:
    """Entries of one owner; one cell for the tokens it stands for."""
    s = scene.setting
    end = s.hit + (NEW if scene.step >= CONTINUE else 0)
    with canvas.group():
        _name(canvas, y, f"global, layer {layer}", f"g{layer}")
        for first in range(0, s.hit + NEW, ratio):
            there = first + ratio <= end
            x, width = grid.x(first) + 1, ratio * grid.cell - 2
            error = scene.run.entry_errors[layer][(first - s.hit) // ratio] if there and first >= s.hit else 0
            if not there:
                canvas.rect(x, y + 2, width, ROW - 4, "k-box k-box--off", 3)
            elif error < EXACT:
                canvas.rect(x, y + 2, width, ROW - 4, "k-global", 3, kit.READABLE)
            else:
                _off_cell(canvas, x, y + 2, width, ROW - 4, "k-global", error)
        words = "kept" if canvas.narrow else f"1 per {ratio} tokens" if ratio > 1 else "1 per token"
        canvas.text(grid.end + 8, y + 17, words, "k-muted", "start", SMALL)
    return y + ROW + GAP


def _off_cell(canvas: Canvas, x: float, y: float, width: float, height: float, style: str, error: float) -> None:
    """A cell that is not exact: its relative error fills it from below, all of it at 100 %."""
    canvas.rect(x, y, width, height, f"k-box {style}", 3)
    filled = max(2, round((height - 2) * min(1.0, error)))
    canvas.rect(x + 1, y + height - 1 - filled, width - 2, filled, "k-error", 1)


def _encoder_row(canvas: Canvas, grid: _Grid, scene: Scene, y: float) -> float:
    s = scene.setting
    with canvas.group():
        _name(canvas, y, f"layers 0 … {s.first - 1}", f"<{s.first}")
        end = s.hit + (NEW if scene.step >= CONTINUE else 0)
        canvas.rect(grid.x(0) + 1, y + 2, end * grid.cell - 2, ROW - 4, "k-box k-local", 3)
        words = "encoder: runs on every token" if grid.end - grid.left > 300 else "encoder: every token"
        canvas.text(grid.x(end / 2), y + 17, words, "", size=SMALL)
    return y + ROW + GAP


def _layer_row(canvas: Canvas, grid: _Grid, scene: Scene, number: int, layer: int, y: float) -> float:
    """The window entries of one layer, at all positions that matter in this step."""
    s = scene.setting
    first, errors = scene.run.errors[number] if scene.run else (s.hit, ())
    with canvas.group():
        _name(canvas, y, f"layer {layer}", str(layer))
    needed = range(max(0, s.hit - s.window + 1), s.hit)
    with canvas.group():
        canvas.line(grid.x(0) + 4, y + ROW / 2, grid.x(s.hit), y + ROW / 2, "k-grid", 1, "1 5")
    with canvas.group():
        for position in range(s.hit + NEW):
            x, width = grid.x(position) + 1, grid.cell - 2
            error = _state(scene, position, first, errors)
            if error is None:
                lost = position in needed and scene.step >= LOSE
                if lost or (position >= s.hit and scene.step < CONTINUE):
                    canvas.rect(x, y, width, ROW, "k-box k-box--off" + (" k-error" if lost else ""), 3)
                continue
            if error < EXACT:
                canvas.rect(x, y, width, ROW, "k-local", 3, kit.READABLE)
            else:
                _off_cell(canvas, x, y, width, ROW, "k-local", error)
        if scene.step >= REPLAY:
            words, style = _verdict(scene, number)
            canvas.text(grid.end + 8, y + 17, words, style, "start", SMALL if canvas.narrow else FONT)
    return y + ROW + GAP


def _state(scene: Scene, position: int, first: int, errors) -> float | None:
    """Relative error of a window entry in this step, or None if it is not there."""
    s = scene.setting
    if scene.step == SAVE:
        return 0.0 if s.variant == "hit" and s.hit - s.window <= position < s.hit else None
    if scene.step == LOSE or position < first:
        return None
    if scene.step == REPLAY and position >= s.hit:
        return None
    return float(errors[position - first])


def relative(error: float) -> str:
    """A relative error for readers; "exact" only for what equals the exact run."""
    if error < EXACT:
        return "exact"
    return percent(error) if error >= 0.01 else f"< {percent(0.01)}"


def layer_error(scene: Scene, number: int) -> float:
    """Root mean square of the relative errors of the rows that the next token reads."""
    read = scene.run.read_errors(scene.setting.hit, scene.setting.window)[number]
    return math.sqrt(sum(error * error for error in read) / len(read)) if read else 0.0


def _verdict(scene: Scene, number: int) -> tuple[str, str]:
    s, error = scene.setting, layer_error(scene, number)
    if s.hit - scene.run.errors[number][0] <= 0 and s.window > 1:
        return "missing", "k-muted"
    return relative(error), "k-local k-text--strong" if error < EXACT else "k-error k-text--strong"


def _foot(canvas: Canvas, grid: _Grid, scene: Scene, top: float, y: float) -> float:
    """The frame of what the next token reads, and where the replay begins."""
    s = scene.setting
    left = grid.x(max(0, s.hit - s.window + 1))
    with canvas.group():
        canvas.rect(left - 1, top - 4, grid.x(s.hit) - left + 2, y - top + 4, "k-mark", 4)
        canvas.text(grid.x(s.hit) + 1, y + 31, "read by the next token", "k-selected", "end", SMALL)
    if scene.step >= REPLAY and scene.run.tokens:
        with canvas.group():
            x, words = grid.x(scene.start), f"replay starts at {scene.start}"
            canvas.line(x, top - 6, x, y + 18, "k-selected", 2, "4 3")
            left = x - grid.left > kit.text_width(words, SMALL)
            canvas.text(x - 5 if left else x + 5, y + 16, words, "k-selected", "end" if left else "start", SMALL)
    return y + 38
