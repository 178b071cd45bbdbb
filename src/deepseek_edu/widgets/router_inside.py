"""The `router` widget inside an expert: one inner neuron, its two clamps as curves, and the product behind them.

The curves are found by asking `reference.moe.swiglu` along the axis: an edited rule bends them.
"""

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import linear
from deepseek_edu.drawing.numbers import fixed, grouped, show
from deepseek_edu.reference import moe

from .parts import Metric, Metrics, Prose, View
from .router_numbers import released

REACH = 16
_SMALL = 0.25  # an input that no clamp of the slider cuts
_GATE = 10.0


def _neuron(gate, up, limit: float) -> np.ndarray:
    """One inner neuron for every pair of pre-activations: SiLU of the clamped gate times the clamped up."""
    pair = np.stack(np.broadcast_arrays(np.asarray(gate, float), np.asarray(up, float)), axis=-1).reshape(-1, 2)
    return moe.swiglu(pair, np.array([[1.0, 0.0]]), np.array([[1.0]]), np.array([[0.0, 1.0]]), limit)[:, 0]


def _gate_out(gate, limit: float) -> np.ndarray:
    return _neuron(gate, _SMALL, limit) / _SMALL


def _up_out(up, limit: float) -> np.ndarray:
    return _neuron(_GATE, up, limit) / _gate_out(_GATE, limit)


def inside(gate: float, up: float, limit: float) -> View:
    """The part of the widget that shows one neuron."""
    xs = np.linspace(-REACH, REACH, 65)
    curves = {
        "gate": (xs, _gate_out(xs, limit), _gate_out(xs, 0)),
        "up": (xs, _up_out(xs, limit), _up_out(xs, 0)),
    }
    now = {
        "gate": gate,
        "up": up,
        "gate_out": float(_gate_out(gate, limit)[0]),
        "up_out": float(_up_out(up, limit)[0]),
        "hidden": float(_neuron(gate, up, limit)[0]),
        "free": float(_neuron(gate, up, 0)[0]),
    }
    settings = released()
    dim, inner = settings.dim, settings.moe_inter_dim
    metrics = Metrics(
        (
            Metric("Leaves the neuron", now["hidden"], _short(now["hidden"]), role="result"),
            Metric("Without the clamps", now["free"], _short(now["free"])),
            Metric(
                "Neurons like this in one expert",
                inner,
                grouped(inner),
                note=f"{grouped(dim)} numbers in, {grouped(dim)} out",
            ),
            Metric("Numbers in one expert", 3 * dim * inner, grouped(3 * dim * inner), note="w1, w3 and w2"),
        ),
        "One neuron",
    )
    words = _words(gate, up, limit)
    results = f"{_short(now['hidden'])}; without the clamps {_short(now['free'])}"
    summary = f"Gate {show(gate)} and up {show(up)} give {results}. {words}"
    weight = (
        "The routing weight of the expert multiplies this number before w2 adds it to the output; the shared expert "
        "has the same clamps and no weight."
    )
    return View((inside_picture(curves, now, limit), metrics, Prose(f"{words} {weight}")), summary)


def _words(gate: float, up: float, limit: float) -> str:
    """Which clamp acts."""
    if not limit:
        return "Without a clamp the product of two large numbers has no bound."
    high, wide = gate > limit, abs(up) > limit
    if high and wide:
        return f"Both clamps act: gate is cut to {show(limit)}, up to {show(np.copysign(limit, up))}."
    if high:
        return f"Gate is cut to {show(limit)}; up lies within its limits."
    if wide:
        return f"Up is cut to {show(np.copysign(limit, up))}; gate is not above the clamp."
    if gate < -limit:
        return "No clamp acts: the gate has none below, because SiLU is close to 0 there anyway."
    return "No clamp acts."


def inside_picture(curves: dict, now: dict, limit: float) -> Picture:
    """The two clamps of an expert as curves, and the product that leaves the neuron.

    Args:
        curves: "gate" and "up", each (inputs, clamped outputs, outputs without a clamp).
        now: "gate", "up" (pre-activations), "gate_out", "up_out", "hidden", and "free" (the product without clamps).
        limit: where the clamps begin; 0 for none.
    """

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            items = [("k-result", "with the clamp"), ("k-negative", "without"), ("k-changed", "your values")]
            top = kit.legend(canvas, [*items, ("k-clip", "clamped zone")]) + 6
        panel = (width, 190.0) if canvas.narrow else ((width - 40) / 2, 216.0)
        places = ((0, top), (0, top + panel[1] + 14)) if canvas.narrow else ((0, top), (panel[0] + 40, top))
        _curve(canvas, *places[0], *panel, "gate → SiLU", curves["gate"], now["gate"], now["gate_out"], limit, False)
        _curve(canvas, *places[1], *panel, "up", curves["up"], now["up"], now["up_out"], limit, True)
        y = places[1][1] + panel[1] + 16
        third = (width - 60) / 3
        for index, (title, note, kind) in enumerate(
            (
                (_short(now["gate_out"]), "SiLU(gate)", "hidden"),
                (_short(now["up_out"]), "up", "hidden"),
                (_short(now["hidden"]), "goes on to w2", "selected"),
            )
        ):
            with canvas.group(index * (third + 30), y):
                kit.box(canvas, 0, 0, third, 44, title, note, kind)
                if index:
                    canvas.text(-15, 27, "×" if index == 1 else "=", "k-text--strong")
        same = abs(now["free"] - now["hidden"]) < 1e-9
        words = "No clamp acts here." if same else f"Without the clamps: {_short(now['free'])}"
        with canvas.group(width, y):
            canvas.text(0, 62, words, "k-muted" if same else "k-error k-text--strong", "end")
        canvas.height = y + 70
        return canvas

    description = (
        f"Gate {show(now['gate'])} gives {_short(now['gate_out'])}, up {show(now['up'])} gives "
        f"{_short(now['up_out'])}; their product is {_short(now['hidden'])}, without clamps {_short(now['free'])}."
    )
    return draw(paint, "Inside one expert", description, {**now, "limit": limit})


def _curve(canvas: Canvas, x, y, width, height, title: str, curve, at: float, out: float, limit: float, both) -> None:
    inputs, clamped, free = curve
    low, high = float(inputs[0]), float(inputs[-1])
    across = linear(low, high, x + 30, x + width - 4)
    down = linear(min(-2.0, float(free.min())), float(free.max()), y + height - 18, y + 22)
    lines = [[(across(float(a)), down(float(b))) for a, b in zip(inputs, out, strict=True)] for out in (free, clamped)]
    with canvas.group():
        for side in (1, -1) if both else (1,):
            if limit and limit < high:
                start, end = sorted((across(side * limit), across(side * high)))
                canvas.rect(start, y + 20, end - start, height - 38, "k-clip")
    with canvas.group():
        canvas.text(x + 30, y + 12, title, "k-text--strong", "start")
        for tick in (-10, 0, 10):
            canvas.line(across(tick), y + 20, across(tick), y + height - 18, "k-grid")
            canvas.text(across(tick), y + height - 4, show(float(tick)), "k-muted", size=SMALL)
            if down(tick) <= y + height - 18:
                canvas.line(x + 30, down(tick), x + width - 4, down(tick), "k-grid")
                canvas.text(x + 25, down(tick) + 4, show(float(tick)), "k-muted", "end", SMALL)
        canvas.polyline(lines[0], "k-negative", 1.5, "4 4")
    with canvas.group():
        canvas.polyline(lines[1], "k-result", 2.5)
    with canvas.group(across(at), 0):
        canvas.line(0, down(0), 0, down(out), "k-changed", 2)
        canvas.circle(0, down(out), 5, "k-changed")
        canvas.text(
            x + width - 4 - across(at), y + 12, f"{show(at)} becomes {_short(out)}", "k-changed k-text--strong", "end"
        )


def _short(value: float) -> str:
    return fixed(value, 2)
