"""The checklist of the `evidence` widget: what a follow-up experiment has not said yet.

It looks for words and numbers. Whether the experiment is a good one, no list of words can tell.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

FIELDS = {"question": "Question", "plan": "Plan", "measure": "Measure", "rule": "Decision rule"}
_COUNT = r"(?:[2-9]|[1-9]\d+|two|three|four|five|six|eight|ten|twenty)"


@dataclass(frozen=True)
class Check:
    """One thing a field should say: what, how it is found, and a hint for when it is not there."""

    field: str
    name: str
    pattern: str
    hint: str


CHECKS = (
    Check("question", "is a question", r"\?\s*$", "end with a question mark"),
    Check(
        "question",
        "names what is compared",
        r"\b(than|versus|vs|between|compared|with and without|or)\b",
        "say what it is compared with",
    ),
    Check(
        "plan",
        "runs more than once",
        rf"\b{_COUNT}\s+(?:\w+\s+)?(runs|seeds|samples|repeats|repetitions|times|trainings)\b",
        "say how many runs or seeds, at least 2",
    ),
    Check(
        "plan",
        "says what stays the same",
        r"\b(same|identical|fixed|unchanged|equal|only)\b",
        "say what is kept the same: prompts, data, size",
    ),
    Check(
        "plan",
        "says how many questions",
        r"\b[\d,.\s]*\d\s+(?:\w+\s+)?(questions|problems|items|tasks|prompts|examples)\b",
        "give the number of questions",
    ),
    Check(
        "measure",
        "names a quantity",
        r"\b(accuracy|score|share|rate|loss|errors?|seconds|milliseconds|tokens|points|bytes|percent)\b|%",
        "name a number: accuracy, seconds, bytes",
    ),
    Check(
        "measure",
        "tells the spread",
        r"\b(spread|interval|deviation|variance|range|error bars?|confidence)\b",
        "say how the spread over runs is told",
    ),
    Check("rule", "has a threshold", r"\d", "give a number that decides"),
    Check("rule", "says what follows if it is met", r"\b(if|when|once)\b", "say what you conclude if it is met"),
    Check("rule", "says what follows if not", r"\b(otherwise|else|if not|unless)\b", "say what you conclude otherwise"),
)


def checked(fields: Mapping[str, str]) -> list[tuple[Check, str]]:
    """Each check with the words that meet it, "" where they are missing."""
    found = []
    for check in CHECKS:
        match = re.search(check.pattern, fields[check.field].strip(), re.IGNORECASE)
        found.append((check, re.sub(r"[ \t\n]+", " ", match[0]).strip() if match else ""))
    return found
