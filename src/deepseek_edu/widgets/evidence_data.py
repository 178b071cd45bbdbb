"""Rows, claims and kinds of evidence of the `evidence` widget.

The scores are those of table 1 of the report (section 4.3.2, page 24): a selection of its rows and two of its models.
The claims are ours. Whether the table supports one is computed: from its numbers by a function here, and from the kinds
of evidence it would need.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from deepseek_edu.drawing.numbers import fixed, percent
from deepseek_edu.reference import comparison

BEFORE, AFTER = "V4-Flash-Base", "V4.1-Flash-Base"
ACTIVATED = {"before": 13, "prefill": 8, "decode": 16}  # billions of parameters for a token
ROWS = {
    "mmlu-pro": ("MMLU-Pro", 68.3, 74.1),
    "bigcodebench": ("BigCodeBench", 56.8, 60.6),
    "humaneval": ("HumanEval", 69.5, 79.4),
    "math": ("MATH", 57.4, 61.1),
    "mgsm": ("MGSM", 85.7, 80.2),
    "longbench": ("LongBench-V2", 44.7, 45.2),
}
ABOUT = {
    "mmlu-pro": "knowledge, reasoning",
    "bigcodebench": "code with libraries",
    "humaneval": "short functions",
    "math": "competition maths",
    "mgsm": "maths in many languages",
    "longbench": "long texts",
}
TOLD = ("scores", "sizes")
NEEDS = {
    "scores": "The scores are in the table.",
    "sizes": "The head of the table gives the activated parameters.",
    "repeated runs": "It would take repeated runs: each score is one number, without a spread.",
    "one change at a time": "It would take models that differ in one thing: here size, data and training changed too.",
    "trained for chat": "It would take scores after post-training: these are base models.",
}


def scores(key: str) -> tuple[float, float]:
    """The two scores of a row."""
    return ROWS[key][1:]


def signed(points: float) -> str:
    """A difference with its sign."""
    return ("+" if points > 0 else "") + fixed(points, 1)


@dataclass(frozen=True)
class Claim:
    """A sentence that a reader sorts.

    Attributes:
        short: a few words for the switch.
        text: the sentence.
        needs: the kinds of evidence it rests on.
        check: (whether the numbers agree, what they say).
    """

    short: str
    text: str
    needs: tuple[str, ...]
    check: Callable[[], tuple[bool, str]]


def _row(key: str) -> tuple[bool, str]:
    name, before, after = ROWS[key]
    gap = comparison.difference(before, after)
    return comparison.direction(before, after) == "up", f"{name}: {before} and {after}, {signed(gap)}."


def _one_went_down() -> tuple[bool, str]:
    down = [name for name, *pair in ROWS.values() if comparison.direction(*pair) == "down"]
    return bool(down), f"Down: {', '.join(down) or 'none'}."


def _all_went_up() -> tuple[bool, str]:
    found = comparison.direction_counts([scores(key) for key in ROWS])
    _, words = _one_went_down()
    return found["up"] == len(ROWS), f"{found['up']} of {len(ROWS)} rows went up. {words}"


def _fewer_errors() -> tuple[bool, str]:
    share = comparison.error_reduction(*scores("mmlu-pro"))
    before, after = (percent(1 - score / 100, 1) for score in scores("mmlu-pro"))
    return round(share, 2) == 0.18, f"Wrong answers: {before} and {after}, {percent(share)} fewer."


def _fewer_parameters() -> tuple[bool, str]:
    before, now = ACTIVATED["before"], ACTIVATED["prefill"]
    return now < before, f"{before} and {now} billion; {ACTIVATED['decode']} billion when it writes."


CLAIMS: Mapping[str, Claim] = {
    "c1": Claim(
        "higher on HumanEval",
        "In this evaluation V4.1-Flash-Base scores higher on HumanEval.",
        ("scores",),
        lambda: _row("humaneval"),
    ),
    "c2": Claim(
        "better on every benchmark",
        "V4.1-Flash-Base is better on every benchmark shown.",
        ("scores",),
        _all_went_up,
    ),
    "c3": Claim(
        "new attention caused the gain",
        "The new attention is what raised BigCodeBench.",
        ("scores", "one change at a time"),
        lambda: _row("bigcodebench"),
    ),
    "c4": Claim(
        f"{percent(0.18)} fewer wrong answers on MMLU-Pro",
        f"On MMLU-Pro it gives about {percent(0.18)} fewer wrong answers.",
        ("scores",),
        _fewer_errors,
    ),
    "c5": Claim(
        "LongBench-V2 gain would come again",
        "The gain on LongBench-V2 would come again in a second training run.",
        ("scores", "repeated runs"),
        lambda: _row("longbench"),
    ),
    "c6": Claim(
        "fewer parameters for a token of a prompt",
        "For a token of a prompt it activates fewer parameters.",
        ("sizes",),
        _fewer_parameters,
    ),
    "c7": Claim(
        "chat model better at mathematics",
        "The chat model made from it is better at mathematics.",
        ("scores", "trained for chat"),
        lambda: _row("math"),
    ),
    "c8": Claim(
        "a row went down",
        "At least one row went down by more than the table calls equal.",
        ("scores",),
        _one_went_down,
    ),
}


def judged(claim: Claim) -> tuple[bool, str]:
    """Whether the table supports a claim, and why."""
    holds, words = claim.check()
    supported, missing = comparison.judge(holds, claim.needs, TOLD)
    return supported, " ".join((words, *(NEEDS[kind] for kind in missing)))
