"""The `mhc` widget over several sub-blocks: the original and the single-pass schedule on the same weights.

A toy of four streams of width 8 and eight sub-blocks; each is RMSNorm, one matrix and tanh, a stand-in for attention or
experts. Weights are drawn at random and illustrative; coefficients, collapse and expansion are `reference.mhc`.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import fixed, percent
from deepseek_edu.reference import mhc, norms

from .memo import remembered
from .parts import Metric, Metrics, Prose, View

STREAMS, WIDTH, BLOCKS = 4, 8, 8


@cache
def settings() -> SimpleNamespace:
    """What the coefficients need to know, as released."""
    released = ModelConfig.v41_flash()
    return SimpleNamespace(
        norm_eps=released.norm_eps,
        hc_mult=STREAMS,
        hc_sinkhorn_iters=released.hc_sinkhorn_iters,
        hc_eps=released.hc_eps,
    )


@cache
def weights() -> list[SimpleNamespace]:
    """Weights of every sub-block; the first entry also holds the embedding."""
    random = np.random.default_rng(24)
    numbers = 2 * STREAMS + STREAMS**2
    return [
        SimpleNamespace(
            fn=np.round(random.normal(size=(numbers, STREAMS * WIDTH)) / 4, 2),
            base=np.round(random.normal(size=numbers) / 2, 2),
            matrix=np.round(random.normal(size=(WIDTH, WIDTH)) / 2, 2),
            embedding=np.round(random.normal(size=WIDTH), 1),
        )
        for _ in range(BLOCKS)
    ]


@remembered(4)
def run(shift: str) -> list[dict]:
    """Run the toy. `shift`: "none" (original), "a" (single pass) or "abc" (B and C late as well, which is wrong).

    Returns:
        For every sub-block its input x, the coefficients in use, and the streams after it.
    """
    streams = np.repeat(weights()[0].embedding[None, None], STREAMS, axis=1)  # 1 S C
    identity = np.eye(STREAMS)[None]
    before = mhc.Coefficients(mhc.one_hot(1, STREAMS), np.ones((1, STREAMS)), identity)
    found = []
    for w in weights():
        own = mhc.coefficients(streams, w.fn, w.base, np.ones(3), settings())
        collapse = own if shift == "none" else before
        write = before if shift == "abc" else own
        x = mhc.collapse(streams, collapse.pre)
        y = np.tanh(norms.rms_norm(x, None, settings().norm_eps) @ w.matrix.T)
        streams = mhc.expand(streams, y, write)
        found.append(
            {"x": x[0], "a": collapse.pre[0], "b": write.mix[0], "c": write.post[0], "y": y[0], "X": streams[0]}
        )
        before = own
    return found


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Distance of two arrays, relative to the first; the dust of rounding counts as none."""
    gap = float(np.linalg.norm(one - other) / np.linalg.norm(one))
    return gap if gap > 1e-12 else 0.0


def compare(shift: str, block: int) -> View:
    """The part of the widget that sets the two schedules side by side at one sub-block (1, 2, …)."""
    original, other = run("none"), run(shift)
    pairs = list(zip(original, other, strict=True))
    outputs = [difference(a["y"], b["y"]) for a, b in pairs]
    streams = [difference(a["X"], b["X"]) for a, b in pairs]
    first, second = pairs[block - 1]
    metrics = Metrics(
        (
            Metric("Output y differs by", outputs[block - 1], percent(outputs[block - 1], 1), note="of its length"),
            Metric("Streams after it differ by", streams[block - 1], percent(streams[block - 1], 1)),
            Metric("Streams at the end", streams[-1], percent(streams[-1], 1), role="error"),
        ),
        f"Sub-block {block}",
    )
    late = "A" if shift == "a" else "A, B and C"
    words = f"Sub-block {block}: the second run takes {late} from the sub-block before"
    if block == 1:
        words += ", or from the start values, because there is none"
    words += ". "
    if block == 1 and shift == "a":
        words += (
            "All streams are copies of the embedding here, so any A gives a multiple of it, and RMSNorm removes the "
            "factor: the output is the same. "
        )
    elif shift == "a":
        words += "B and C are made from the streams in front of them in both runs. "
    else:
        words += (
            "B and C would have been ready in time: they are used only after the sub-block. Nothing is saved by this. "
        )
    words += "The weights are the same, the results are not: a schedule is part of the model, not a setting."
    summary = (
        f"On the same weights, sub-block {block} of {BLOCKS}: outputs differ by {percent(outputs[block - 1], 1)}, "
        f"streams by {percent(streams[block - 1], 1)}; after the last one the streams differ "
        f"by {percent(streams[-1], 1)}."
    )
    picture = _picture(first, second, outputs, streams, block, shift)
    return View((picture, metrics, Prose(words, "warn" if shift == "abc" else "")), summary)


def _picture(first: dict, second: dict, outputs: list[float], streams: list[float], block: int, shift: str) -> Picture:
    late = "a" if shift == "a" else "abc"

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            items = [
                ("k-box k-hidden", "made from the streams here"),
                ("k-box k-changed", "made one sub-block earlier"),
                ("k-error", "difference"),
            ]
            y = kit.legend(canvas, items) + 6
        half = width if canvas.narrow else (width - 40) / 2
        places = ((0, y), (0, y + 176)) if canvas.narrow else ((0, y), (half + 40, y))
        _coefficients(canvas, *places[0], half, "Original", first, "")
        title = "Single pass" if shift == "a" else "Everything late (wrong)"
        _coefficients(canvas, *places[1], half, title, second, late)
        y = places[1][1] + 176
        with canvas.group():
            y = kit.heading(canvas, 0, y, "Difference after each sub-block", "of the streams, relative")
        step = width / BLOCKS
        top = max(*streams, *outputs, 0.05)
        for index, value in enumerate(streams):
            with canvas.pick("block", index + 1, index * step, y):
                canvas.rect(4, 0, step - 8, 74, "k-ground", 3)
                tall = 74 * value / top
                canvas.rect(4, 74 - tall, step - 8, tall, "k-error", 3, 1 if index == block - 1 else 0.45)
                canvas.text(step / 2, 90, percent(value), "k-text--strong" if index == block - 1 else "", size=SMALL)
                canvas.text(step / 2, 106, index + 1, "k-muted", size=SMALL)
        with canvas.group((block - 1) * step, y):
            canvas.rect(1, -3, step - 2, 114, "k-mark", 4)
        canvas.height = y + 118
        return canvas

    description = (
        f"Sub-block {block}. A of the original: {', '.join(fixed(float(v), 2) for v in first['a'])}; of the other run: "
        f"{', '.join(fixed(float(v), 2) for v in second['a'])}. Differences of the streams after each sub-block: "
        f"{', '.join(percent(v, 1) for v in streams)}."
    )
    names = ("a", "b", "c", "y")
    raw = {
        "original": {name: first[name] for name in names},
        "other": {name: second[name] for name in names},
        "outputs": outputs,
        "streams": streams,
    }
    return draw(paint, "The same weights, two schedules", description, raw)


def _coefficients(canvas: Canvas, x: float, y: float, width: float, title: str, used: dict, late: str) -> None:
    """A, C and B of one run; those in `late` were made from the streams of the sub-block before."""
    cell = min(44.0, (width - 96) / 5)
    with canvas.group(x, y):
        kit.heading(canvas, 0, 0, title)
    for row, (name, label) in enumerate((("a", "A collapses"), ("c", "C writes y"))):
        kind = "changed" if name in late else "hidden"
        with canvas.group(x, y + 26 + row * 30):
            canvas.text(0, 17, label, "k-label", "start")
            words = [fixed(float(v), 2) for v in used[name]]
            kit.cells(canvas, 96, 0, words, cell, 26, kind, size=SMALL)
    kind = "changed" if "b" in late else "hidden"
    with canvas.group(x, y + 88):
        canvas.text(0, 17, "B mixes", "k-label", "start")
        for row, values in enumerate(used["b"]):
            kit.cells(canvas, 96, row * 19, [fixed(float(v), 2) for v in values], cell, 18, kind, size=SMALL)
