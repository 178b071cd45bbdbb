"""Pictures of the `router` widget, one token: the toy of four experts with its output, and the grid of 384 boxes.

A score is drawn the same way in both: a bar for what the token says, under it the step of the correction bias, and a
mark where the sum lies. The dashed line is the last sum that was chosen.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import Place, linear
from deepseek_edu.drawing.numbers import fixed, show

ROW = 50
_SHARED = "runs for every token: no router row, no score, no weight"
_DASHED = "dashed: the smallest sum that is chosen"


@dataclass(frozen=True)
class Routed:
    """One token at a router: everything per expert, and the chosen ones with their weights, best first."""

    names: tuple[str, ...]
    logits: np.ndarray
    scores: np.ndarray
    bias: np.ndarray
    chosen: tuple[int, ...]
    weights: tuple[float, ...]
    leaked: tuple[float, ...]  # the weights if the biased scores made them

    @property
    def sums(self) -> np.ndarray:
        """Score plus bias: what the choice is made by."""
        return self.scores + self.bias

    @property
    def line(self) -> float:
        """The smallest sum that was chosen."""
        return float(min(self.sums[expert] for expert in self.chosen))

    def raw(self) -> dict:
        """The numbers behind a picture."""
        return {
            "scores": self.scores,
            "sums": self.sums,
            "chosen": self.chosen,
            "weights": self.weights,
            "leaked": self.leaked,
        }


def paint_score(canvas: Canvas, routed: Routed, expert: int, place: Place, y: float, kind: str) -> None:
    """The bar of one expert in a row of its own, its sum written above it, and the line of the choice.

    `kind` is that of the bias: "changed" where the reader sets it.
    """
    score, bias, total = (float(v[expert]) for v in (routed.scores, routed.bias, routed.sums))
    words = fixed(score, 2)
    zero, end, mark, line = place(0), place(score), place(total), place(routed.line)
    with canvas.group(0, y):
        canvas.text(zero, 16, words, "", "start", SMALL)
        if bias:
            sign = f"{'+' if bias > 0 else '−'} {fixed(abs(bias), 2)}"
            canvas.text(zero + 30, 16, sign, f"k-{kind} k-text--strong", "start", SMALL)
            canvas.text(zero + 74, 16, f"= {fixed(total, 2)}", "", "start", SMALL)
        canvas.line(zero, 20, zero, 42, "k-axis")
        canvas.rect(zero, 22, max(0.5, end - zero), 11, "k-hidden", 2)
        if bias:
            canvas.rect(min(end, mark), 34, abs(mark - end), 6, f"k-{kind}", 1)
        canvas.line(mark, 20, mark, 42, "k-level", 2)
    with canvas.group(line, y):
        canvas.line(0, 19, 0, 44, "k-selected", 1.5, "3 3")


def paint_weight(canvas: Canvas, x: float, y: float, right: float, wrong: float | None, anchor: str = "start") -> None:
    """The weight of a chosen expert, and the wrong one under it when the bias leaks."""
    with canvas.group(x, y):
        canvas.text(0, 30 if wrong is None else 21, fixed(right, 3), "k-selected k-text--strong", anchor)
    if wrong is not None:
        with canvas.group(x, y):
            canvas.text(0, 38, f"leak {fixed(wrong, 3)}", "k-error", anchor, SMALL)


def _places(value: float) -> int:
    """Decimals of a number that has to fit a narrow cell."""
    return 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0


def signed_cells(canvas: Canvas, x: float, y: float, values, width: float, kind: str, top: float) -> None:
    """Numbers in cells, stronger where they are larger; a minus has no colour but its sign."""
    words = [fixed(float(v), 1 if kind == "parameters" else _places(float(v))) for v in values]
    shades = [round(max(0.0, float(v)) / top, 1) for v in values]
    with canvas.group(x, y):
        kit.cells(canvas, 0, 0, words, width, 26, kind, shades, size=SMALL)


def _from_zero(span: tuple[float, float], start: float, end: float) -> Place:
    """An axis whose zero stays where it is, whatever the token: −1 at `start` at least, the top of `span` at `end`."""
    zero = start + (end - start) / 3.5
    return linear(0, span[1], zero, end)


def toy_picture(u, router, routed: Routed, span, parts: dict, shared, output, wrong_output, leak: bool) -> Picture:
    """The toy: a hidden state, four router rows, the choice, and what each chosen expert adds to the output.

    `span` is the range of the axis of scores, `parts` maps a chosen expert to its weighted output, `wrong_output` is
    the output under leaked weights.
    """
    rank = {expert: place for place, expert in enumerate(routed.chosen)}
    results = [("Output", "the sum", output, "hidden")]
    if leak:
        results += [("With the leak", "wrong", wrong_output, "error"), ("Error", "", wrong_output - output, "error")]
    top = max(0.5, *(float(np.abs(v).max()) for v in (*parts.values(), shared, output)))
    strongest = max(0.5, float(np.abs(u).max()))

    def weight_of(expert: int) -> tuple[float, float | None]:
        place = rank[expert]
        return routed.weights[place], routed.leaked[place] if leak else None

    def wide(canvas: Canvas) -> float:
        cell, cell_out, out = 37.0, 40.0, 556.0
        y = _key(canvas, leak)
        signed_cells(canvas, 104, y + 2, u, cell, "hidden", strongest)
        with canvas.group():
            canvas.text(10, y + 20, "Hidden state", "k-text--strong", "start")
            y += 34
            canvas.text(104, y + 14, "router rows", "k-muted", "start", SMALL)
            canvas.text(300, y + 14, "logit", "k-muted", "end", SMALL)
            canvas.text(_from_zero(span, 316, 474)(0), y + 14, "√softplus, + bias", "k-muted", "start", SMALL)
            canvas.text(492, y + 14, "weight", "k-muted", "start", SMALL)
            canvas.text(out, y + 14, "weight × expert(u)", "k-muted", "start", SMALL)
        y += 20
        place = _from_zero(span, 316, 474)
        for expert, name in enumerate(routed.names):
            with canvas.group(0, y):
                if expert in rank:
                    canvas.rect(0, 2, 720, ROW - 4, "k-selected", 5)
                    canvas.text(10, 39, f"choice {rank[expert] + 1}", "k-selected", "start", SMALL)
                canvas.text(10, 24 if expert in rank else 30, f"Expert {name}", "k-text--strong", "start")
            signed_cells(canvas, 104, y + 12, router[expert], cell, "parameters", 1)
            with canvas.group(0, y):
                canvas.text(300, 30, fixed(float(routed.logits[expert]), 2), "", "end")
            paint_score(canvas, routed, expert, place, y, "changed")
            if expert in rank:
                paint_weight(canvas, 492, y, *weight_of(expert))
                signed_cells(canvas, out, y + 12, parts[expert], cell_out, "hidden", top)
            else:
                with canvas.group(0, y):
                    canvas.text(492, 30, "not run", "k-muted", "start", SMALL)
            y += ROW
        with canvas.group():
            canvas.text(_from_zero(span, 316, 474)(0), y + 11, _DASHED, "k-muted", "start", SMALL)
            y += 24
            canvas.text(10, y + 18, "Shared expert", "k-text--strong", "start")
            canvas.text(112, y + 18, _SHARED, "k-muted", "start", SMALL)
            canvas.line(out, y + 33, out + 4 * cell_out, y + 33, "k-axis", 1.5)
        signed_cells(canvas, out, y, shared, cell_out, "hidden", top)
        y += 36
        for title, note, values, kind in results:
            style = "k-error k-text--strong" if kind == "error" else "k-text--strong"
            with canvas.group():
                canvas.text(out - 12, y + 20, title if not note else f"{title}, {note}", style, "end")
            signed_cells(canvas, out, y + 3, values, cell_out, kind if kind == "error" else "hidden", top)
            y += 31
        return y + 2

    def narrow(canvas: Canvas) -> float:
        y = _key(canvas, leak)
        with canvas.group():
            canvas.text(10, y + 19, "Hidden state", "k-text--strong", "start")
        signed_cells(canvas, 104, y + 1, u, 40, "hidden", strongest)
        y += 34
        place = _from_zero(span, 10, 222)
        for expert, name in enumerate(routed.names):
            with canvas.group(0, y):
                if expert in rank:
                    canvas.rect(0, 1, 344, 80, "k-selected", 5)
                canvas.text(10, 24, f"Expert {name}", "k-text--strong", "start")
            signed_cells(canvas, 104, y + 7, router[expert], 40, "parameters", 1)
            with canvas.group(0, y):
                canvas.text(336, 24, f"logit {fixed(float(routed.logits[expert]), 2)}", "", "end", SMALL)
            paint_score(canvas, routed, expert, place, y + 32, "changed")
            if expert in rank:
                paint_weight(canvas, 336, y + 32, *weight_of(expert), anchor="end")
            with canvas.group(0, y):
                if expert not in rank:
                    canvas.text(336, 62, "not run", "k-muted", "end", SMALL)
                elif not leak:
                    canvas.text(336, 48, f"choice {rank[expert] + 1}, weight", "k-muted", "end", SMALL)
            y += 84
        with canvas.group():
            canvas.text(10, y + 12, _DASHED, "k-muted", "start", SMALL)
            y = kit.heading(canvas, 0, y + 24, "Adds to the output", "the shared expert always runs")
        lines = [(f"{fixed(weight_of(e)[0], 3)} × expert {routed.names[e]}", parts[e], "hidden") for e in routed.chosen]
        lines += [("shared expert", shared, "hidden")]
        for title, values, kind in [*lines, *((t, v, k) for t, _, v, k in results)]:
            style = "k-error" if kind == "error" else "" if title[0] != "O" else "k-text--strong"
            with canvas.group():
                canvas.text(0, y + 19, title, style, "start")
            signed_cells(canvas, 144, y + 1, values, 50, kind, top)
            y += 31
        return y + 2

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        canvas.height = narrow(canvas) if canvas.narrow else wide(canvas)
        return canvas

    names = " and ".join(routed.names[e] for e in routed.chosen)
    description = (
        f"The scores of experts {', '.join(routed.names)} are {', '.join(fixed(float(s), 2) for s in routed.scores)}; "
        f"with the bias added, {names} are chosen with weights {', '.join(fixed(w, 3) for w in routed.weights)}. "
        f"The output is {', '.join(fixed(float(v), 2) for v in output)}."
    )
    raw = {**routed.raw(), "logits": routed.logits, "output": output, "wrong_output": wrong_output}
    return draw(paint, "One token at four experts", description, raw)


def _key(canvas: Canvas, leak: bool) -> float:
    items = [("k-hidden", "computed from this token"), ("k-parameters", "numbers of the model")]
    items += [("k-changed", "bias you set"), "selected"]
    with canvas.group():
        return kit.legend(canvas, [*items, *(["error"] if leak else [])]) + 6


def grid_picture(
    routed: Routed, other: tuple[int, ...], now: str, then: str, first_out: int, top: float, leak: bool
) -> Picture:
    """All boxes, shaded by score; the chosen ones, those of the other kind of token, and the rows of the chosen.

    `other` are the experts that the other bias set chooses; `now` and `then` name the kinds of token; `first_out` is
    the best one that is not chosen, `top` the end of the axis of scores; `leak` adds the weights of leaked biases.
    """
    least, most = float(routed.scores.min()), float(routed.scores.max())
    shades = np.round(5 * (routed.scores - least) / (most - least or 1.0)) / 5
    dropped = [e for e in other if e not in routed.chosen]

    def paint(width: float) -> Canvas:
        narrow = width < 500
        columns, cell = (24, 13.0) if narrow else (32, 21.5)
        left = width - columns * cell - 1
        canvas = Canvas(width, 0)
        with canvas.group():
            words = [("k-hidden", "score"), ("k-parameters", "bias"), ("k-mark", f"chosen as {now}")]
            y = kit.legend(canvas, [*words, ("k-cell", f"only as {then}")]) + 6
        with canvas.group(left, y):
            kit.heat(canvas, 0, 0, shades.reshape(-1, columns).tolist(), cell, "hidden", 1.6)
        with canvas.group(0, y):
            for row in range(len(shades) // columns):
                if not narrow or row % 2 == 0:
                    canvas.text(left - 5, row * cell + cell / 2 + 4, row * columns, "k-muted", "end", SMALL)
        for expert in (*dropped, *routed.chosen):
            row, column = divmod(expert, columns)
            with canvas.group(left + column * cell, y + row * cell):
                out = expert in dropped
                canvas.rect(0, 0, cell, cell, "k-cell", 2)
                canvas.rect(0, 0, cell, cell, "k-box k-box--off" if out else "k-mark", 2)
                if not narrow:
                    canvas.text(cell / 2, cell / 2 + 4, expert, "k-muted" if out else "k-selected", size=SMALL)
        y += len(shades) // columns * cell + 8
        return _chosen_rows(canvas, y, routed, other, then, first_out, top, leak)

    description = (
        f"{len(shades)} boxes, one for each routed expert, shaded by score. For {now}, experts "
        f"{', '.join(map(str, routed.chosen))} are chosen; for {then}, at the same scores, "
        f"{', '.join(map(str, other))}."
    )
    raw = {**routed.raw(), "other": other}
    return draw(paint, "384 experts, six of them chosen", description, raw)


def _chosen_rows(
    canvas: Canvas, y: float, routed: Routed, other, then: str, first_out: int, top: float, leak: bool
) -> Canvas:
    narrow = canvas.narrow
    start, end = (96, 250) if narrow else (150, 520)
    place = linear(0, top, start, end)
    with canvas.group():
        canvas.text(start, y + 14, "score, then bias", "k-muted", "start", SMALL)
        canvas.text(canvas.width - 8, y + 14, "weight", "k-muted", "end", SMALL)
    y += 16
    step = 46
    rows = [*routed.chosen, first_out]
    for index, expert in enumerate(rows):
        chosen = index < len(routed.chosen)
        with canvas.group(0, y):
            canvas.text(0, 30, f"Expert {expert}", "k-text--strong" if chosen else "k-muted", "start")
            if chosen and not narrow:
                kept = expert in other
                canvas.text(0, 43, f"also as {then}" if kept else f"not as {then}", "k-muted", "start", SMALL)
        paint_score(canvas, routed, expert, place, y, "parameters")
        if chosen:
            wrong = routed.leaked[index] if leak else None
            paint_weight(canvas, canvas.width - 8, y, routed.weights[index], wrong, "end")
        else:
            canvas.text(canvas.width - 8, y + 30, "first not chosen", "k-muted", "end", SMALL)
        y += step
    total = show(sum(routed.weights), 4)
    canvas.line(canvas.width - 60, y - step + 1, canvas.width, y - step + 1, "k-grid")
    canvas.text(canvas.width - 8, y + 12, f"weights sum to {total}", "k-selected", "end", SMALL)
    canvas.height = y + 20
    return canvas
