"""Widget `mhc`: several residual streams around a sub-block, the matrix that mixes them, and the single-pass schedule.

Mechanism: `reference.mhc` (report, section 2.4.1), called through the module. The report's names are used: A collapses
the streams ("pre"), C writes the output back ("post"), B mixes the streams. Toy values are illustrative.
"""

import numpy as np

from deepseek_edu.drawing.numbers import fixed, show
from deepseek_edu.reference import mhc as mechanism

from .contract import Choice, Numbers, Slider, View, widget
from .memo import remembered
from .mhc_compare import BLOCKS, compare, settings
from .mhc_drawing import misses_of, mix_picture, sinkhorn_picture
from .mhc_schedule import STEPS, schedule
from .parts import Metric, Metrics, Prose, Steps

MIX = {"part": "mix"}
SINKHORN = {"part": "sinkhorn"}
SCHEDULE = {"part": "schedule"}
COMPARE = {"part": "compare"}
ITERATIONS = settings().hc_sinkhorn_iters


@widget(
    "mhc",
    title="Mix residual streams, and read them once",
    mechanism={
        "reference.mhc": ("collapse", "expand", "sinkhorn", "split_mixes", "coefficients", "one_hot", "traffic"),
    },
    source="report §2.4.1",
    chapter="06b_mhc",
    grid=("part", "spread", "shift"),
)
def mhc(
    part: Choice(
        {"mix": "Mix streams", "sinkhorn": "Sinkhorn", "schedule": "Two schedules", "compare": "Same weights"},
        "Show",
        look="segments",
    ) = "mix",
    streams: Numbers(
        -8,
        8,
        0.5,
        "Streams",
        length=4,
        columns=2,
        names=("first number", "second number"),
        rows=("stream\u00a00", "stream\u00a01"),
        when=MIX,
        more=True,
    ) = (2.0, 0.0, 0.0, 4.0),
    weight: Slider(0, 1, 0.05, "A₀, weight of stream 0", when=MIX) = 0.25,
    exchange: Slider(0, 0.5, 0.05, "B₀₁ = B₁₀, exchanged", when=MIX) = 0.2,
    written: Slider(0, 2, 0.1, "C₀, share of y for stream 0", when=MIX) = 0.5,
    spread: Choice(
        {"0.5": "Nearly even", "2": "Uneven", "6": "Extreme"}, "Raw numbers", look="segments", when=SINKHORN
    ) = "2",
    iterations: Slider(1, ITERATIONS, 1, "Iterations", look="steps", when=SINKHORN) = 1,
    count: Slider(1, 8, 1, "Streams n", when=SCHEDULE) = 4,
    step: Slider(1, STEPS, 1, "Step", look="steps", when=SCHEDULE) = 7,
    shift: Choice(
        {"a": "Only A", "abc": "A, B and C (wrong)"},
        "One sub-block late",
        look="segments",
        when=COMPARE,
    ) = "a",
    block: Slider(1, BLOCKS, 1, "Sub-block", look="steps", when=COMPARE) = 2,
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "mix":
        return _mix(np.array(streams).reshape(1, 2, 2), weight, exchange, written)
    if part == "sinkhorn":
        return _sinkhorn(float(spread), int(iterations))
    if part == "schedule":
        return schedule(int(count), int(step))
    return compare(shift, int(block))


def _mix(streams: np.ndarray, weight: float, exchange: float, written: float) -> View:
    now, start = _sub_block(streams, weight, exchange, written), _sub_block(*_START)
    x, y, after = now["x"], now["y"], now["after"]
    old, sums = streams[0].sum(axis=0), (now["mix"].T @ streams[0]).sum(axis=0)
    read = " + ".join(f"{show(float(a))} · {_list(s)}" for a, s in zip(now["pre"], streams[0], strict=True))
    steps = [f"Collapse: x = {read} = {_list(x)}", f"The stand-in swaps and halves: y = {_list(y)}"]
    for j in range(2):
        mixed = " + ".join(f"{show(float(b))} · {_list(s)}" for b, s in zip(now["mix"][:, j], streams[0], strict=True))
        steps.append(f"Write and mix: new stream {j} = {show(float(now['post'][j]))} · y + {mixed} = {_list(after[j])}")
    prose = Prose(
        f"Rows and columns of B sum to 1, so mixing alone leaves the sum of the streams at {_list(sums)}"
        f"{', as before' if np.allclose(old, sums) else f' instead of {_list(old)}'}. What is new comes from y. All "
        "values here are illustrative."
    )
    summary = (
        f"Streams {_list(streams[0, 0])} and {_list(streams[0, 1])} with weights {show(weight)} and {show(1 - weight)} "
        f"give x = {_list(x)}; after the sub-block the streams are {_list(after[0])} and {_list(after[1])}."
    )
    return View((mix_picture(now, start), Steps(tuple(steps), "The arithmetic"), prose), summary)


_START = np.array([[[2.0, 0.0], [0.0, 4.0]]]), 0.25, 0.2, 0.5


def _sub_block(streams: np.ndarray, weight: float, exchange: float, written: float) -> dict[str, np.ndarray]:
    """Coefficients and results of one sub-block around the stand-in, by name."""
    pre = np.array([[weight, 1 - weight]])
    post = np.array([[written, 1.0]])
    mix = np.array([[[1 - exchange, exchange], [exchange, 1 - exchange]]])
    x = mechanism.collapse(streams, pre)
    y = x[:, ::-1] / 2
    after = mechanism.expand(streams, y, mechanism.Coefficients(pre, post, mix))
    names = ("streams", "pre", "post", "mix", "x", "y", "after")
    return {name: value[0] for name, value in zip(names, (streams, pre, post, mix, x, y, after), strict=True)}


def _list(values: np.ndarray) -> str:
    return f"[{', '.join(show(round(float(v), 6) + 0.0, 4) for v in values)}]"


RAW = np.array([[0.9, -0.3, 0.2, -0.8], [0.1, 1.1, -0.6, 0.4], [-0.5, 0.6, 0.3, 0.2], [0.4, -0.9, 1.2, -0.1]])
"""Sixteen invented raw numbers of a mixing matrix."""


@remembered(8)
def _matrices(spread: float) -> list[np.ndarray]:
    """The mixing matrix of one token after 1, 2, … iterations, out of its raw numbers."""
    streams = len(RAW)
    raw = np.concatenate((np.zeros(2 * streams), RAW.ravel()))[None]
    scale, base = np.array([1.0, 1.0, spread]), np.zeros(raw.shape[1])
    eps = settings().hc_eps
    return [mechanism.split_mixes(raw, scale, base, streams, count, eps).mix[0] for count in range(1, ITERATIONS + 1)]


def _sinkhorn(spread: float, iterations: int) -> View:
    matrices = _matrices(spread)
    mix = matrices[iterations - 1]
    rows, columns = misses_of(mix)
    metrics = Metrics(
        (
            Metric("Rows miss 1 by at most", rows, show(rows, 2), role="error"),
            Metric("Columns miss 1 by at most", columns, show(columns, 2), role="result"),
            Metric("Largest entry", float(mix.max()), fixed(float(mix.max()), 3)),
            Metric("Iterations in the model", ITERATIONS, note=f"eps {show(settings().hc_eps)} in every sum"),
        ),
        "Sums",
    )
    first = "softmax over each row, then each column divided by its sum" if iterations == 1 else "rows, then columns"
    prose = Prose(
        f"Iteration {iterations}: {first}. The columns come last, so they sum to 1 up to eps after every iteration; "
        "the rows only approach it. A column that sums to 1 makes each new stream an average of the old ones: nothing "
        "grows by mixing. A row that sums to 1 passes every old stream on as a whole: nothing is lost."
    )
    summary = (
        f"After {iterations} of {ITERATIONS} iterations row sums miss 1 by at most {show(rows, 2)} and column sums "
        f"by at most {show(columns, 2)}."
    )
    return View((sinkhorn_picture(matrices, iterations), metrics, prose), summary)
