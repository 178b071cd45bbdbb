"""The `dspark` widget's acceptance: P and Q as bars, and what thousands of sampled rounds emit."""

import math

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import linear, nice_ticks
from deepseek_edu.drawing.numbers import counted, fixed, grouped, percent, show
from deepseek_edu.reference import acceptance

from . import dspark_rounds as rounds
from .parts import Metric, Metrics, Prose, View

TOKENS = ("sunny", "cold", "wet", "grey", "purple")
PAIRS = {
    "different": ((40, 25, 20, 10, 5), (60, 10, 10, 15, 5)),
    "close": ((40, 25, 20, 10, 5), (36, 28, 18, 12, 6)),
    "far": ((40, 25, 20, 10, 5), (2, 8, 10, 30, 50)),
}
BLOCK = 5
_CERTAIN = 0.001  # a smaller chance than this is called a failure


def normalised(weights) -> np.ndarray:
    """Weights as probabilities; all zero counts as all equal."""
    weights = np.asarray(weights, float)
    total = weights.sum()
    return weights / total if total else np.full(len(weights), 1 / len(weights))


def acceptance_view(target: np.ndarray, draft: np.ndarray, rule: str, count: int, sample: int) -> View:
    """The part of the widget that samples rounds."""
    run = rounds.run(rule, target, draft, count, sample)
    kept, replaced = run.counts(len(target))
    verdict = rounds.chi_square(kept + replaced, target)
    expected = rounds.overlap(target, draft)
    share = float(run.stood.mean())
    bound = (
        f"; {percent(0.05)} of right programs exceed {fixed(rounds.critical(verdict.freedom), 2)}"
        if verdict.freedom
        else ""
    )
    freedom = f"{counted(verdict.freedom, 'degree')} of freedom"
    several = acceptance.expected_tokens([expected] * BLOCK)
    failed = verdict.chance < _CERTAIN
    metrics = Metrics(
        (
            Metric(
                "Drafts kept",
                share,
                percent(share, 1),
                note=f"of {grouped(count)} rounds; Σ min(P, Q) is {percent(expected, 1)}",
            ),
            Metric(
                "χ²",
                verdict.statistic,
                show(verdict.statistic, 4),
                note=f"{freedom}{bound}",
                role="error" if failed else "result",
            ),
            Metric(
                "p-value",
                verdict.chance,
                chance_text(verdict.chance),
                note="how often a right program is at least this far off",
                role="error" if failed else "result",
            ),
            Metric(
                "Tokens of a round",
                float(several),
                fixed(float(several), 2),
                note=f"expected from {BLOCK} drafts, if every position were like this one",
            ),
        ),
        "Sampled rounds",
    )
    picture = acceptance_picture(target, draft, kept, replaced, failed, rule, expected)
    words = _rule_words(rule, target, draft, expected)
    return View(
        (picture, metrics, Prose(words), _verdict_words(target, kept + replaced, verdict)),
        _summary(rule, count, share, verdict, failed),
    )


def chance_text(chance: float) -> str:
    """A p-value for readers."""
    return "below 10⁻⁶" if chance < 1e-6 else show(chance, 2)


def _summary(rule: str, count: int, share: float, verdict: rounds.Verdict, failed: bool) -> str:
    result = "the output does not follow the target" if failed else "no difference from the target shows"
    return (
        f"{grouped(count)} rounds, rule: {rounds.RULES[rule]}. {percent(share, 1)} of the drafts are kept; χ² is "
        f"{show(verdict.statistic, 4)} with {counted(verdict.freedom, 'degree')} of freedom, p-value "
        f"{chance_text(verdict.chance)}: {result}."
    )


def _rule_words(rule: str, target: np.ndarray, draft: np.ndarray, expected: float) -> str:
    """What the rule does, in words."""
    top = TOKENS[int(np.argmax(target))]
    if rule == "equality":
        same = float((target * draft).sum())
        return (
            f"A draft is kept only if it is the target’s most likely token, “{top}”; otherwise “{top}” replaces it. "
            "This is greedy decoding; it is right at temperature 0 and nowhere else. Comparing with a token sampled "
            f"from P would be right as well, but it keeps only Σ P·Q = {fixed(same, 3)} of the drafts."
        )
    if rule == "resample":
        return (
            "Drafts are tested with min(1, P/Q), but a fallen draft is replaced by a token from P. What kept drafts "
            "have already given is then given twice."
        )
    if rule == "other":
        if np.allclose(rounds.other_draft(draft), draft):
            return "The drafts are tested with Q at temperature 2. Here that is the same Q, so nothing is wrong."
        return (
            "The drafts come from Q, but the test uses Q at temperature 2, as if the drafter had reported another "
            "distribution than the one it sampled from. Only the exact Q makes the result exact."
        )
    if rule == "unseen":
        return "Nothing is tested: what the drafter says is the output, so the output follows Q."
    if rule == "confidence":
        return (
            f"Every draft is kept with probability {fixed(expected, 3)}, whichever token it is. That forecast is right "
            "on average, as good as a confidence can be, and still the output is wrong: acceptance has to look at "
            "P and Q of the token itself."
        )
    return (
        "Each bar fills up to its target: kept drafts reach min(P, Q), and the tokens that replace fallen drafts, "
        "drawn from the positive part of P − Q, add exactly what is missing. This holds whatever Q is; a bad drafter "
        "costs time and changes nothing else."
    )


def _verdict_words(target: np.ndarray, counts: np.ndarray, verdict: rounds.Verdict) -> Prose:
    total = int(counts.sum())
    if math.isinf(verdict.statistic):
        token = TOKENS[int(np.argmax((target == 0) & (counts > 0)))]
        return Prose(f"“{token}” was emitted, and the target never says it. No test is needed.", "warn")
    if verdict.chance < _CERTAIN:
        worst = int(np.argmax(np.abs(counts - total * target)))
        rare = (
            "fewer than one of a million samples"
            if verdict.chance < 1e-6
            else f"a share of {chance_text(verdict.chance)} of its samples"
        )
        return Prose(
            f"Not the target’s distribution. “{TOKENS[worst]}” came out {grouped(counts[worst])} times; "
            f"{show(total * target[worst], 4)} were expected of {grouped(total)}. A right program is this far off "
            f"in {rare}.",
            "warn",
        )
    if verdict.chance < 0.05:
        return Prose("Unusual, but one right program in twenty looks like this. Take other samples before you judge.")
    return Prose("No difference from the target can be seen in this sample. A small error may need more rounds.")


def acceptance_picture(target, draft, kept, replaced, failed: bool, rule: str, overlap: float) -> Picture:
    """For every token: what the drafter proposes, what came out, and a line where the target lies."""
    total = int(kept.sum() + replaced.sum())
    out = (kept + replaced) / total
    most = float(max(target.max(), draft.max(), out.max()))
    most = math.ceil(most * 10 - 1e-9) / 10
    deviation = np.abs(out - target) / np.sqrt(np.maximum(target * (1 - target), 1e-12) / total)

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        left, end, column = (54, 208, 45) if narrow else (78, 546, 58)
        axis = linear(0, most, left, end)
        with canvas.group():
            y = kit.legend(
                canvas,
                [
                    ("k-box k-negative", "draft Q"),
                    ("k-hidden", "kept drafts"),
                    ("k-result", "put in their place"),
                    ("k-level", "line: target P"),
                    *([("k-error", "off target")] if failed else []),
                ],
            )
        with canvas.group(0, y):
            for tick in nice_ticks(0, most, 3 if narrow else 5):
                canvas.line(axis(tick), 18, axis(tick), 22 + 46 * len(TOKENS), "k-grid")
                canvas.text(axis(tick), 12, show(tick), "k-muted", size=SMALL)
            for place, words in enumerate(("P", "Q", "out")):
                canvas.text(end + column * (place + 1), 12, words, "k-muted", "end", SMALL)
        y += 22
        for index, token in enumerate(TOKENS):
            p, q, o = float(target[index]), float(draft[index]), float(out[index])
            wrong = failed and deviation[index] > 3.3
            with canvas.group(0, y):
                canvas.text(0, 27, token, "k-text--strong", "start")
                canvas.rect(left, 5, axis(q) - left, 8, "k-box k-negative", 1)
                canvas.text(end + column, 27, fixed(p, 2), "", "end")
                canvas.text(end + 2 * column, 27, fixed(q, 2), "k-muted", "end")
            with canvas.group(0, y):
                middle = axis(kept[index] / total)
                canvas.rect(left, 16, middle - left, 16, "k-hidden", 1)
                canvas.rect(middle, 16, axis(o) - middle, 16, "k-result", 1)
                if wrong:
                    low, high = sorted((axis(p), axis(o)))
                    canvas.rect(low, 34, high - low, 4, "k-error")
                style = "k-error k-text--strong" if wrong else "k-text--strong"
                canvas.text(end + 3 * column, 27, fixed(o, 3), style, "end")
            with canvas.group(axis(p), y):
                canvas.line(0, 2, 0, 40, "k-level", 2.5)
            y += 46
        canvas.height = y + 4
        return canvas

    lines = "; ".join(
        f"{token}: target {fixed(float(p), 3)}, draft {fixed(float(q), 3)}, output {fixed(float(o), 3)}"
        for token, p, q, o in zip(TOKENS, target, draft, out, strict=True)
    )
    raw = {"target": target, "draft": draft, "kept": kept, "replaced": replaced, "rule": rule, "overlap": overlap}
    return draw(paint, "What comes out, token by token", f"{lines}.", raw)
