"""The `dspark` widget's scheduler: drafts of several requests compete for places in one batch.

Confidences and curves are invented, or those of worked examples that the tests know the results of. Everything is
computed by `reference.scheduler`.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import fixed, show
from deepseek_edu.reference import scheduler

from .parts import Metric, Metrics, Prose, Table, View

REQUESTS, DRAFTS = 3, 4
CONFIDENCE = (0.9, 0.8, 0.6, 0.5, 0.7, 0.7, 0.4, 0.3, 0.95, 0.9, 0.85, 0.8)
SPEEDS = (100, 99, 97, 94, 90, 85, 78, 70, 62, 55, 49, 44, 40)  # of 3 … 15 tokens in a batch


@dataclass(frozen=True)
class Case:
    """Confidences [R k], steps per second for R … R + R·k tokens, and the confidences of the step before if used."""

    confidence: tuple[tuple[float, ...], ...]
    speeds: tuple[float, ...]
    earlier: tuple[tuple[float, ...], ...] = ()

    def moved(self, request: int, position: int) -> bool:
        """Whether this draft's confidence, or one before it, is not that of the three requests at the start."""
        own = self.confidence[request][: position + 1]
        return len(self.confidence) == REQUESTS and own != rows(CONFIDENCE)[request][: position + 1]

    def faster(self, drafts: int) -> bool:
        """Whether the speed with so many drafts is not that of the three requests at the start."""
        return len(self.confidence) == REQUESTS and self.speeds[drafts] != SPEEDS[drafts]

    @property
    def curve(self) -> dict[int, float]:
        """Steps per second by tokens in a batch."""
        return dict(enumerate(self.speeds, len(self.confidence)))


def rows(numbers) -> tuple[tuple[float, ...], ...]:
    """The confidences of three requests out of one list."""
    return tuple(tuple(numbers[i : i + DRAFTS]) for i in range(0, len(numbers), DRAFTS))


CASES = {
    "two": Case(((0.9, 0.5, 0.5), (0.8, 0.75, 0.25)), (1, 0.9, 0.8, 0.65, 0.55, 0.5, 0.45)),
    "high": Case(((0.8, 0.9),), (1, 0.5, 0.45)),
    "low": Case(((0.8, 0.0),), (1, 0.5, 0.45)),
    "lagged": Case(
        ((0.55, 0.4, 0.4), (0.9, 0.85, 0.2)),
        (1, 0.9, 0.6, 0.59, 0.45, 0.4, 0.35),
        ((0.95, 0.8, 0.8), (0.9, 0.5, 0.5)),
    ),
}


@dataclass(frozen=True)
class Plan:
    """What the scheduler did: places in order, lengths, and tokens per second for every number of drafts."""

    survivals: np.ndarray  # [R k]
    order: list  # (position, request) of every draft, the best first
    lengths: list
    drafts: int  # chosen in all
    offered: list  # survival of the drafts in the order in which the curve below takes them
    expected: list  # tokens for 0 … R·k drafts
    throughput: list
    best: int  # drafts of the best budget of all
    expected_now: float  # tokens, with the lengths chosen

    def taken(self, request: int, position: int) -> bool:
        """Whether this draft is verified."""
        return position < self.lengths[request]


def plan(case: Case) -> Plan:
    """Run the scheduler."""
    survivals = scheduler.survival(case.confidence)
    order = scheduler.by_survival(survivals)
    behind = scheduler.survival(case.earlier) if case.earlier else survivals
    offered = [float(behind[request, position]) for position, request in scheduler.by_survival(behind)]
    requests = len(survivals)
    expected = [float(requests + sum(offered[:n])) for n in range(len(offered) + 1)]
    throughput = [e * case.curve[requests + n] for n, e in enumerate(expected)]
    best, _ = scheduler.capacity(case.earlier or case.confidence, case.curve)
    if case.earlier:
        lengths, drafts, now = scheduler.lagged_lengths(case.confidence, case.earlier, case.curve)
    else:
        lengths, _ = scheduler.causal_lengths(case.confidence, case.curve)
        drafts = int(lengths.sum())
        now = expected[drafts]
    lengths = [int(length) for length in lengths]
    return Plan(survivals, order, lengths, int(drafts), offered, expected, throughput, int(best), float(now))


def schedule_view(case: Case) -> View:
    """The part of the widget that chooses how many drafts of each request are verified."""
    found = plan(case)
    requests, names = len(found.lengths), "ABC"
    words = ", ".join(f"{names[r]} {length}" for r, length in enumerate(found.lengths))
    value = found.expected_now * case.curve[requests + found.drafts]
    metrics = Metrics(
        (
            Metric("Drafts verified", found.drafts, note=words, role="result"),
            Metric("Tokens expected in the step", found.expected_now, fixed(found.expected_now, 3)),
            Metric("Tokens per second expected", value, fixed(value, 2)),
            Metric("Without drafts", found.throughput[0], fixed(found.throughput[0], 2), note="tokens per second"),
        ),
        "Scheduler",
    )
    table = Table(
        "Every draft in the order in which it is offered" + (", by the step before" if case.earlier else ""),
        ("Drafts", "Tokens in the batch", "Survival added", "Tokens expected", "Steps per second", "Tokens per second"),
        tuple(
            (n, requests + n, found.offered[n - 1] if n else 1.0, e, case.curve[requests + n], t)
            for n, (e, t) in enumerate(zip(found.expected, found.throughput, strict=True))
        ),
        selected=(found.drafts,),
        folded=True,
    )
    return View(
        (schedule_picture(case, found), metrics, *_remarks(case, found), table),
        f"Verified drafts: {words}. {fixed(found.expected_now, 3)} tokens are expected in a step, {fixed(value, 2)} "
        f"per second; without drafts {fixed(found.throughput[0], 2)}.",
    )


def _remarks(case: Case, found: Plan) -> tuple[Prose, ...]:
    """Why it stopped, and what a confidence is worth."""
    forecast = Prose(
        "A confidence is a forecast, never a certificate: it decides which drafts the target looks at, not which of "
        "them stand. If it is wrong, time is lost; the text keeps its distribution."
    )
    if case.earlier:
        return (
            Prose(
                f"The total, {found.drafts}, was chosen with the confidences of the step before, over all budgets; the "
                "present confidences only say whose drafts these are. The size of the batch is known before they are."
            ),
            forecast,
        )
    if found.drafts == len(found.order):
        first = Prose("Every draft raised the throughput, so all of them are verified.")
    else:
        position, request = found.order[found.drafts]
        here, after = found.throughput[found.drafts], found.throughput[found.drafts + 1]
        first = Prose(
            f"It stops at draft {position + 1} of request {'ABC'[request]}, survival "
            f"{fixed(float(found.survivals[request, position]), 2)}: tokens per second would go from {fixed(here, 2)} "
            f"to {fixed(after, 2)}."
        )
    if found.best == found.drafts:
        return (first, forecast)
    peak = found.throughput[found.best]
    return (
        first,
        Prose(
            f"With {found.best} drafts it would be {fixed(peak, 2)}, more than at the stop. The scheduler must "
            "not look that far: whether an early draft is verified would then depend on a later draft’s confidence, "
            "and so on what was drafted there. The text would no longer have the target’s distribution.",
            "warn",
        ),
        forecast,
    )


def schedule_picture(case: Case, found: Plan) -> Picture:
    """The drafts of all requests with the order they are taken in, and the throughput after each."""
    requests, drafts = found.survivals.shape
    rank = {place: n for n, place in enumerate(found.order, 1)}
    stop = None if case.earlier or found.drafts == len(found.order) else found.drafts + 1

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        left, right = (20.0, 64.0) if narrow else (104.0, 60.0)
        step = (width - left - right) / max(drafts, 3)
        with canvas.group():
            items = [("k-box k-selected", "verified"), ("k-box k-hidden", "not verified")]
            items += [("k-box k-error", "first that does not pay")] if stop else []
            yours = any(case.moved(r, drafts - 1) for r in range(requests)) or any(
                case.faster(n) for n in range(len(case.speeds))
            )
            y = kit.legend(canvas, [*items, *(["changed"] if yours else [])]) + 4
        with canvas.group(0, y):
            for j in range(drafts):
                canvas.text(left + step * (j + 0.5), 12, f"draft {j + 1}", "k-muted", size=SMALL)
            canvas.text(width, 12, "length", "k-muted", "end", SMALL)
        y += 18
        for request in range(requests):
            with canvas.group(0, y):
                canvas.text(0, 29, "ABC"[request] if narrow else f"Request {'ABC'[request]}", "k-text--strong", "start")
                canvas.text(width, 30, found.lengths[request], "k-selected k-text--strong", "end")
            for j in range(drafts):
                order = rank[(j, request)]
                kind = "selected" if found.taken(request, j) else "error" if order == stop else "hidden"
                with canvas.group(left + step * j, y):
                    canvas.rect(3, 2, step - 6, 46, f"k-box k-{kind}", 5)
                    strong = "k-text--strong" if kind != "hidden" else ""
                    if case.moved(request, j):
                        strong = "k-changed k-text--strong"
                        kit.ring(canvas, 3, 2, step - 6, 46, "k-changed")
                    canvas.text(step / 2, 20, fixed(float(found.survivals[request, j]), 3), strong)
                    note = f"× {fixed(case.confidence[request][j], 2)}"
                    canvas.text(
                        step / 2, 35, f"no. {order}" if narrow else f"{note}, no. {order}", "k-muted", size=SMALL
                    )
            y += 54
        with canvas.group():
            when = "the step before" if case.earlier else "in this order"
            y = kit.heading(canvas, 0, y + 8, "Tokens per second", f"after each draft taken, {when}")
        return _curve(canvas, y, case, found, stop)

    words = "; ".join(
        f"{'ABC'[r]}: survivals {', '.join(fixed(float(s), 3) for s in found.survivals[r])}, length {found.lengths[r]}"
        for r in range(requests)
    )
    values = ", ".join(fixed(t, 2) for t in found.throughput)
    raw = {
        "survivals": found.survivals,
        "order": [list(place) for place in found.order],
        "lengths": found.lengths,
        "drafts": found.drafts,
        "throughput": found.throughput,
        "best": found.best,
        "expected": found.expected_now,
    }
    return draw(paint, "Drafts in the batch", f"{words}. Tokens per second for 0, 1, 2 … drafts: {values}.", raw)


def _curve(canvas: Canvas, y: float, case: Case, found: Plan, stop: int | None) -> Canvas:
    """Bars of throughput for every number of drafts."""
    requests, narrow = len(found.lengths), canvas.narrow
    left, tall = (0.0, 96.0) if narrow else (104.0, 110.0)
    step = min(76.0, (canvas.width - left) / len(found.throughput))
    top = max(*found.throughput, 1e-9)
    y += 18
    with canvas.group():
        if not narrow:
            canvas.text(0, y + tall + 16, "drafts taken", "k-muted", "start", SMALL)
            canvas.text(0, y + tall + 33, "tokens in batch", "k-muted", "start", SMALL)
            canvas.text(0, y + tall + 50, "steps per second", "k-muted", "start", SMALL)
        canvas.line(left, y + tall, left + step * len(found.throughput), y + tall, "k-axis")
    roomy = step >= 40
    for n, value in enumerate(found.throughput):
        seen = case.earlier or stop is None or n <= stop
        with canvas.group(left + step * n, y):
            height = tall * value / top
            kind = (
                "k-result"
                if n == found.drafts
                else "k-box k-error"
                if n == stop
                else "k-box k-hidden"
                if seen
                else "k-box k-box--off"
            )
            canvas.rect(3, tall - height, step - 6, height, kind, 2)
            if roomy or n == found.drafts:
                style = "k-selected k-text--strong" if n == found.drafts else "" if seen else "k-muted"
                canvas.text(step / 2, tall - height - 5, _short(value), style, size=SMALL)
            canvas.text(step / 2, tall + 16, n, "" if seen else "k-muted", size=SMALL)
            if not narrow:
                canvas.text(step / 2, tall + 33, requests + n, "k-muted", size=SMALL)
                ink = "k-changed k-text--strong" if case.faster(n) else "k-muted"
                canvas.text(step / 2, tall + 50, show(case.curve[requests + n], 3), ink, size=SMALL)
    y += tall + (24 if narrow else 58)
    if narrow:
        canvas.text(0, y + 8, "number of drafts taken", "k-muted", "start", SMALL)
        y += 16
    canvas.height = y
    return canvas


def _short(value: float) -> str:
    return fixed(value, 2 if value < 100 else 0)
