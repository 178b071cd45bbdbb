"""Pictures of the `train-curve` widget: the curve between its references, and one sentence word by word."""

import math

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import linear, logarithmic, nice_ticks
from deepseek_edu.drawing.numbers import fixed, percent, show

HIGHEST = 3.4
LOWEST_ABOVE, HIGHEST_ABOVE = 0.005, 4.0
RUN = {"train": "6 3", "held_out": ""}
"""The two losses of the run, and how their lines are dashed."""


def curve_picture(run: list, other: list, at: int, references: tuple, floor: float | None) -> Picture:
    """Both losses by step, the held-out loss of the other seed, and references as lines.

    Args:
        run, other: figures of each recorded step.
        at: index of the step that is looked at.
        references: the worst first.
        floor: None for losses, or the best possible loss, above which all is drawn on a logarithmic axis.
    """
    steps = [figures["step"] for figures in run]

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            held, train, other_seed = ("held out", "trained on, dashed", "held out, other seed")
            items = [("k-result", held), ("k-box k-selected", train), ("k-negative", other_seed)]
            top = kit.legend(canvas, [*items, ("k-changed", "your step")]) + 12
        left, right, bottom = 40, width - 10, top + (250 if canvas.narrow else 270)
        place = _height(floor, bottom, top)
        x = linear(0, steps[-1], left, right)

        def points(figures: list, key: str) -> list:
            return [(x(f["step"]), place(f[key])) for f in figures]

        with canvas.group():
            _axes(canvas, steps, floor, x, place, left, right, bottom)
        with canvas.group(x(steps[at]), 0):
            canvas.line(0, top, 0, bottom, "k-changed", 1.5)
        with canvas.group():
            _references(canvas, references, floor, place, left, right, bottom)
        with canvas.group():
            canvas.polyline(points(other, "held_out"), "k-negative", 1.5, "2 4")
        with canvas.group():
            for key, dash in RUN.items():
                canvas.polyline(points(run, key), "k-result", 1.5 if dash else 2.5, dash)
        with canvas.group(x(steps[at]), 0):
            for key in RUN:
                canvas.circle(0, place(run[at][key]), 5, "k-changed")
        with canvas.group():
            half = (x(steps[1]) - x(steps[0])) / 2
            for step in steps:
                kit.hit(canvas, "step", step, x(step) - half, top, 2 * half, bottom - top)
        canvas.height = bottom + 42
        return canvas

    now = run[at]
    lines = "; ".join(f"{r.name} {fixed(r.loss, 3)}" for r in references)
    description = (
        f"Held-out loss from {fixed(run[0]['held_out'], 2)} at step 0 to {fixed(run[-1]['held_out'], 3)} at step "
        f"{steps[-1]}. At step {now['step']}: {fixed(now['held_out'], 3)}, and {fixed(now['train'], 3)} on sentences "
        f"trained on. Lines: {lines}."
    )
    raw = {
        "step": now["step"],
        "steps": steps,
        **{key: [f[key] for f in run] for key in RUN},
        "other": [f["held_out"] for f in other],
        "references": {r.name: r.loss for r in references},
        "floor": floor,
    }
    return draw(paint, "Loss by training step", description, raw)


def _height(floor: float | None, bottom: float, top: float):
    """A map of losses to the paper; what lies outside is drawn at the edge."""
    if floor is None:
        place, value = linear(0, HIGHEST, bottom, top), lambda loss: loss
    else:
        place = logarithmic(LOWEST_ABOVE, HIGHEST_ABOVE, bottom, top)
        value = lambda loss: max(LOWEST_ABOVE, loss - floor)  # noqa: E731

    def at(loss: float) -> float:
        return top if not math.isfinite(loss) else min(bottom, max(top, place(value(loss))))

    return at


def _axes(canvas: Canvas, steps: list, floor: float | None, x, place, left: float, right: float, bottom: float) -> None:
    ticks = nice_ticks(0, HIGHEST, 4) if floor is None else [1.0, 0.1, 0.01]
    for tick in ticks:
        y = place(tick if floor is None else tick + floor)
        canvas.line(left, y, right, y, "k-grid")
        canvas.text(left - 7, y + 4, show(tick), "k-muted", "end", SMALL)
    canvas.line(left, bottom, right, bottom, "k-axis")
    for step in range(0, steps[-1] + 1, 200 if canvas.narrow else 100):
        canvas.line(x(step), bottom, x(step), bottom + 4, "k-axis")
        anchor = "end" if step == steps[-1] else "middle"
        canvas.text(x(step) + (4 if anchor == "end" else 0), bottom + 18, step, "k-muted", anchor, SMALL)
    unit = "nats per word" if floor is None else "nats per word above the best"
    canvas.text((left + right) / 2, bottom + 36, f"training step; height: {unit}", "k-label", size=SMALL)


def _references(canvas: Canvas, references: tuple, floor: float | None, place, left, right, bottom) -> None:
    """Dashed lines with their names: at the right end, or at the left where the curve runs high above the line."""
    heights = [place(r.loss) for r in references]
    for index, (r, y) in enumerate(zip(references, heights, strict=True)):
        name = r.name.replace("the language without its", "without") if canvas.narrow else r.name
        words = f"{name}, {fixed(r.loss, 3)}"
        if floor is not None and r.loss <= floor:
            canvas.text(left + 8, bottom - 8, f"↓ {words}: infinitely far down", "k-label", "start", SMALL)
            continue
        canvas.line(left, y, right, y, "k-tick", 1.25, "5 4")
        early = floor is not None and y > (bottom + heights[0]) / 2
        above, under = (heights[i] if 0 <= i < len(heights) else math.inf for i in (index - 1, index + 1))
        touched = abs(y - above) < 6  # two lines almost in one: both names stand below them, in their order
        below = early or r is references[-1] or abs(y - above) < 26 or abs(under - y) < 6
        x, anchor = (left + 8, "start") if early else (right - 10, "end")
        canvas.text(x, y + (28 if touched else 14) if below else y - 5, words, "k-label", anchor, SMALL)


def sentence_picture(text: str, now: dict, which: int, references: tuple) -> Picture:
    """Each word of a held-out sentence: how likely the model, pairs of words, and the language make it."""
    words = [*text.split(), "(end)"]
    pairs, best = references[2].probed[which], references[-1].probed[which]
    model = now["probed"][which]

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            y = kit.heading(canvas, 0, 0, "How likely it makes each word", "of a sentence it never saw")
            items = [("k-result", "the model"), ("k-negative", "pair counts"), ("k-level", "the language")]
            y = kit.legend(canvas, items, 0, y) + 6
        left = 60
        room = width - left - 62
        x = linear(0, 1, left, left + room)
        row = 24
        with canvas.group():
            for i, word in enumerate(words):
                canvas.text(left - 10, y + i * row + 16, word, "k-label", "end")
                canvas.rect(left, y + i * row + 4, room, 16, "k-ground", 2)
        with canvas.group():
            for i, share in enumerate(model):
                canvas.rect(left, y + i * row + 4, max(1.0, room * share), 16, "k-result", 2, 0.6)
                canvas.text(left + room + 8, y + i * row + 16, percent(share), "k-text--strong", "start")
        with canvas.group():
            for i, (pair, exact) in enumerate(zip(pairs, best, strict=True)):
                canvas.line(x(pair), y + i * row + 4, x(pair), y + i * row + 20, "k-negative", 2)
                canvas.line(x(exact), y + i * row + 1, x(exact), y + i * row + 23, "k-level", 2)
        canvas.height = y + len(words) * row + 2
        return canvas

    description = "; ".join(
        f"{word}: model {percent(m)}, language {percent(b)}" for word, m, b in zip(words, model, best, strict=True)
    )
    raw = {"words": words, "model": model, "pairs": list(pairs), "language": list(best)}
    return draw(paint, "One held-out sentence, word by word", description + ".", raw)
