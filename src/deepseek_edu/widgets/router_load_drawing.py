"""Picture of the `router` widget: a batch at its experts, their biases, and the load at every step of training."""

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import linear
from deepseek_edu.drawing.numbers import fixed, show


def load_picture(names, step: int, assigned: list[list[int]], loads: list[list[int]], biases) -> Picture:
    """A batch at one step: tokens in the row of their expert, biases, and the loads of all steps.

    Args:
        names: of the experts.
        step: the step shown.
        assigned: for every step, the expert of each token.
        loads: for every step, the tokens of each expert.
        biases: [steps E], as used at each step.
    """
    count, mean = len(assigned[0]), len(assigned[0]) / len(names)
    now, before = assigned[step], assigned[max(0, step - 1)]
    reach = max(0.05, float(np.abs(biases).max()))

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        with canvas.group():
            items = [
                ("k-mark", "even load"),
                ("k-box k-hidden", "token"),
                ("k-box k-changed", "moved in this step"),
                ("k-parameters", "bias"),
            ]
            y = kit.legend(canvas, items) + 4
        left, cell = (66, 22.0) if narrow else (78, 29.0)
        row = 54 if narrow else 38
        canvas.text(left + mean * cell, y + 12, f"even: {show(mean)} each", "k-selected", "start", SMALL)
        y += 18
        axis = linear(-reach, reach, left + 8, left + 150) if narrow else linear(-reach, reach, 470, 590)
        for expert, name in enumerate(names):
            tokens = [t for t in range(count) if now[t] == expert]
            canvas.text(0, y + 19, f"Expert {name}", "k-text--strong", "start")
            for place, token in enumerate(tokens):
                kind = "changed" if now[token] != before[token] else "hidden"
                kit.cells(canvas, left + place * cell, y + 2, [token + 1], cell, 26, kind)
            bar = y + (39 if narrow else 15)
            bias = float(biases[step][expert])
            canvas.line(axis(0), bar - 6, axis(0), bar + 6, "k-axis")
            canvas.rect(min(axis(0), axis(bias)), bar - 4, abs(axis(bias) - axis(0)), 8, "k-parameters", 1)
            over = loads[step][expert] - mean
            turn = "next: down" if over > 0 else "next: up" if over < 0 else "stays"
            canvas.text(axis(reach) + 10, bar + 4, f"{fixed(bias, 2)}, {turn}", "k-label", "start", SMALL)
            y += row
        edge = left + mean * cell
        canvas.line(edge, y - row * len(names) - 2, edge, y - (24 if narrow else 6), "k-selected", 1.5, "4 3")
        y = kit.heading(canvas, 0, y + 8, "Load at every step")
        return _history(canvas, y, names, step, loads, mean)

    description = (
        f"Step {step}: experts {', '.join(names)} get {', '.join(map(str, loads[step]))} of {count} tokens with biases "
        f"{', '.join(fixed(float(b), 2) for b in biases[step])}."
    )
    raw = {"loads": loads, "biases": biases, "assigned": now}
    return draw(paint, "Load of a batch", description, raw)


def _history(canvas: Canvas, y: float, names, step: int, loads: list[list[int]], mean: float) -> Canvas:
    """Loads as numbers in a table of steps; what is even is marked, the step shown has a frame."""
    left = 24 if canvas.narrow else 78
    cell = (canvas.width - left - 2) / len(loads)
    height = 24
    with canvas.group(0, y):
        for expert, name in enumerate(names):
            canvas.text(0, expert * height + 16, name if canvas.narrow else f"Expert {name}", "k-label", "start")
    for index, load in enumerate(loads):
        with canvas.pick("step", index, left + index * cell, y):
            even = all(count == mean for count in load)
            for expert, count in enumerate(load):
                ground = "k-box k-selected" if even else "k-ground"
                canvas.rect(0.5, expert * height, cell - 1, height - 2, ground, 2)
                if count and not even:
                    strength = round(kit.READABLE * count / sum(load), 2)
                    canvas.rect(0.5, expert * height, cell - 1, height - 2, "k-hidden", 2, strength)
                canvas.text(cell / 2, expert * height + 15, count, size=SMALL)
            if index % 4 == 0:
                canvas.text(cell / 2, len(names) * height + 13, index, "k-muted", size=SMALL)
    with canvas.group(left + step * cell, y):
        canvas.rect(-0.5, -2, cell + 1, len(names) * height + 2, "k-mark", 3)
    canvas.text(0, y + len(names) * height + 13, "" if canvas.narrow else "step", "k-muted", "start", SMALL)
    canvas.height = y + len(names) * height + 20
    return canvas
