"""Widget `kv-cache`: prefill and decode of a small attention model, with and without its cache, right and off by one.

Mechanism: `reference.toy_attention`. Every step is run twice, once on the cache and once on the whole prefix from
nothing, and all logits are compared. The ids after the prompt are chosen, not predicted: the weights are random.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from deepseek_edu.drawing.numbers import grouped
from deepseek_edu.reference import toy_attention

from .contract import Choice, Slider, Text, View, widget
from .kv_cache_drawing import doubling_picture, steps_picture
from .memo import remembered
from .parts import Metric, Metrics, Prose, Table

PROMPT = 3  # tokens of the prefill
SEED = 1
TOLERANCE = 1e-5
"""What float32 may differ by when sums are made in another order; a real difference is far larger."""

_ID = "(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
STEPS, BYTES = {"part": "steps"}, {"part": "bytes"}
EXPONENTS = range(2, 17)


@dataclass(frozen=True)
class Step:
    """One call of the model: the tokens it feeds, and how its logits compare with those of the whole prefix."""

    first: int  # how many tokens are in the cache, which is the position of the first new one
    given: int  # the position it was given
    ids: tuple
    nbytes: int  # of the cache afterwards
    gap: float  # largest difference of all logits of the new tokens; 0 within the tolerance
    likely: int  # most likely token of the last row, on the cache
    likely_full: int  # and on the whole prefix
    taken: tuple  # attention of the last token on the cache, a share for each key
    taken_full: tuple

    @property
    def end(self) -> int:
        return self.first + len(self.ids)

    @property
    def equal(self) -> bool:
        return self.gap == 0


@widget(
    "kv-cache",
    title="Prefill, decode, and a cache that must not be noticed",
    mechanism={
        "reference.toy_attention": (
            "first_position",
            "first_position_off_by_one",
            "project",
            "attention_weights",
            "forward",
            "step_work",
        )
    },
    source="a teaching model, not part of the released one",
    chapter="03_kv_cache",
)
def kv_cache(
    part: Choice({"steps": "Step by step", "bytes": "Twice the context"}, "View", look="segments") = "steps",
    step: Slider(1, 3, 1, "Step", look="steps", names=("1 Prefill", "2 Decode", "3 Decode"), when=STEPS) = 3,
    positions: Choice(
        {"right": "one after the last token in the cache", "off": "the last token’s again (off by one)"},
        "A new token gets the position",
        when=STEPS,
    ) = "right",
    ids: Text(
        24,
        "Three prompt ids, two to decode",
        pattern=rf"\s*{_ID}(\s+{_ID}){{4}}\s*",
        expected="five whole numbers from 0 to 255 with spaces between them",
        samples=("0 255 128 7 7", "5 5 5 5 5", "200 13 44 91 1"),
        when=STEPS,
    ) = "12 37 9 21 6",
    context: Slider(
        EXPONENTS[0],
        EXPONENTS[-1],
        1,
        "Tokens before the new one",
        names=tuple(grouped(2**k) for k in EXPONENTS),
        when=BYTES,
    ) = 7,
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "bytes":
        return _bytes(2 ** int(context))
    steps = run(tuple(int(word) for word in ids.split()), positions == "off")
    return _steps(steps, int(step), positions == "off")


@remembered(64)
def run(ids: tuple[int, ...], off: bool) -> tuple[Step, ...]:
    """All steps: the prompt at once, then token by token."""
    w = toy_attention.random_weights(SEED, dtype=np.float64)
    position = toy_attention.first_position_off_by_one if off else toy_attention.first_position
    cache, steps, cuts = toy_attention.Cache(), [], (0, PROMPT, *range(PROMPT + 1, len(ids) + 1))
    for first, end in itertools.pairwise(cuts):
        logits, taken = toy_attention.forward(ids[first:end], w, cache, position)
        full, full_taken = toy_attention.forward(ids[:end], w, toy_attention.Cache())
        gap = float(np.abs(logits - full[first:]).max())
        steps.append(
            Step(
                first,
                int(position(first)),
                ids[first:end],
                cache.nbytes,
                0.0 if gap < TOLERANCE else round(gap, 7),
                int(logits[-1].argmax()),
                int(full[-1].argmax()),
                tuple(round(float(share), 7) for share in taken[-1]),
                tuple(round(float(share), 7) for share in full_taken[-1]),
            )
        )
    return tuple(steps)


def tests(steps: tuple[Step, ...]) -> tuple[tuple[str, str, bool], ...]:
    """Three ways to test a cache: (name, what it compares, whether these steps pass)."""
    return (
        ("First output", "all logits of the prefill", steps[0].equal),
        ("Tokens", "the most likely token after every step", all(s.likely == s.likely_full for s in steps)),
        ("Every step", "all logits of every step", all(s.equal for s in steps)),
    )


def _steps(steps: tuple[Step, ...], number: int, off: bool) -> View:
    done, now = steps[:number], steps[number - 1]
    results = tests(done)
    metrics = Metrics(
        (
            Metric("New keys and values", len(now.ids), note=f"{now.first} reused from the cache"),
            Metric(
                "Cache afterwards", now.nbytes, unit="bytes", note=f"{now.end} tokens, {now.nbytes // now.end} each"
            ),
            Metric(
                "Largest difference", now.gap, "none" if now.equal else "", note=_NOTE, role="error" if now.gap else ""
            ),
            Metric("Most likely next", now.likely, note=f"from the whole prefix: {now.likely_full}"),
        ),
        "This step",
    )
    table = Table(
        f"Three tests of the cache, run on {'this step' if number == 1 else f'these {number} steps'}",
        ("Test", "Compares", "Result"),
        tuple((name, what, passed) for name, what, passed in results),
        tuple(("", "", "passes" if passed else "fails") for _, _, passed in results),
    )
    named = "Prefill of " + ", ".join(map(str, now.ids)) if number == 1 else f"Decode of {now.ids[0]}"
    state = "cached logits equal those of the whole prefix" if now.equal else f"logits differ by up to {now.gap:.3f}"
    summary = (
        f"{named}: {len(now.ids)} new, {now.first} reused, {grouped(now.nbytes)} bytes in the cache; {state}. "
        f"{sum(passed for _, _, passed in results)} of 3 tests pass."
    )
    return View((steps_picture(steps, number), metrics, _said(steps, number, off), table), summary)


_NOTE = "of 256 logits, cached against whole prefix"


def _said(steps: tuple[Step, ...], number: int, off: bool) -> Prose:
    now = steps[number - 1]
    if not off:
        if number == 1:
            return Prose(
                "The whole prompt is new. Its keys and values go into the cache, where the next token will find them."
            )
        return Prose(
            f"Only the new token is computed. The {now.first} older keys and values are read as they were: no earlier "
            "position has gained a token that it may see. Computing all of it again gives the same logits."
        )
    first = next((index for index, step in enumerate(steps, 1) if not step.equal), None)
    if number == 1 and now.equal:
        return Prose(
            "The mistake is already in the code, and nothing shows: an empty cache has no last token whose position "
            "could be taken again. A test that stops here passes.",
            "warn",
        )
    if now.equal:
        return Prose("The positions are wrong, and the logits of this step still agree.", "warn")
    hidden = " The most likely token is still the right one, so comparing tokens hides it."
    words = f"The mistake shows {'first here' if first == number else f'since step {first}'}: the new token was given "
    words += (
        f"position {now.first - 1} instead of {now.first}. The keys of the prompt are right; the query and every key "
        "made since are not."
    )
    return Prose(words + (hidden if now.likely == now.likely_full else ""), "warn")


# Twice the context


def _bytes(context: int) -> View:
    cache = toy_attention.Cache()
    per_token = (cache.keys.shape[1] + cache.values.shape[1]) * cache.keys.itemsize
    sizes = (context, 2 * context)
    bytes_ = tuple(per_token * tokens for tokens in sizes)
    work = {kept: tuple(toy_attention.step_work(tokens, kept) for tokens in sizes) for kept in (True, False)}
    totals = {kept: tuple(sum(parts.values()) for parts in pair) for kept, pair in work.items()}
    metrics = Metrics(
        (
            Metric("Bytes per token", per_token, note="32 + 32 numbers of 4 bytes"),
            Metric("Bytes", bytes_[1] / bytes_[0], f"× {bytes_[1] / bytes_[0]:.2f}", note="when the context doubles"),
            *(
                Metric(name, b / a, f"× {b / a:.2f}", note="multiplications for one more token")
                for name, (a, b) in (("With the cache", totals[True]), ("Without it", totals[False]))
            ),
        ),
        "Twice the context",
    )
    parts = tuple(work[True][0])
    table = Table(
        "Multiplications for one more token, by part",
        ("Tokens before it", "Cache", *parts),
        tuple(
            (tokens, "kept" if kept else "none", *(work[kept][i][part] for part in parts))
            for kept in (True, False)
            for i, tokens in enumerate(sizes)
        ),
        folded=True,
    )
    prose = Prose(
        "Bytes double exactly. The work of a step with the cache does not: projections and output are the same for one "
        "token, only the reading grows. Without the cache everything is computed again, and attention grows with the "
        "square. These are counts; time also depends on how fast the cache can be read."
    )
    summary = (
        f"From {grouped(sizes[0])} to {grouped(sizes[1])} tokens the cache grows from {grouped(bytes_[0])} to "
        f"{grouped(bytes_[1])} bytes; one more token "
        f"costs {totals[True][1] / totals[True][0]:.2f} times the multiplications with the cache, "
        f"{totals[False][1] / totals[False][0]:.2f} times without."
    )
    return View((doubling_picture(sizes, bytes_, totals), metrics, prose, table), summary)
