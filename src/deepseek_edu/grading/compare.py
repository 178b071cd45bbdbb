"""Compare an answer with the expected value; both are plain data in the grader's process.

The rules (the page's ``assets/js/compare.js`` follows the same ones, on the same vectors):

* Numbers are compared as numbers: an integer and a float with the same value are equal. A boolean is not a number.
* ``|got - expected| <= tolerance``, absolute. Tolerance 0 means exact, and then the sign of zero matters.
* NaN equals only NaN, an infinity only the same infinity. Integers beyond 2**53 are compared exactly, tolerance or not.
* Lists have the same length, dictionaries the same keys; text, booleans, bytes and None are equal or not.
"""

import json
import math
from dataclasses import dataclass

from deepseek_edu.grading.harness import SAFE_INT, encode


@dataclass(frozen=True)
class Comparison:
    """The outcome, naming the first place that differs.

    Attributes:
        ok: whether the answer is accepted.
        path: where the first difference is, such as ``[3]`` or ``["scale"][0]``; empty at the top.
        got, expected: the values at that place.
        gap: ``|got - expected|`` when both are finite numbers, else None.
        reason: one sentence for the reader, empty when ok.
    """

    ok: bool
    path: str = ""
    got: object = None
    expected: object = None
    gap: float | None = None
    reason: str = ""

    def to_json(self):
        """The outcome with tagged values."""
        return {
            "ok": self.ok,
            "path": self.path,
            "got": encode(self.got),
            "expected": encode(self.expected),
            "gap": self.gap,
            "reason": self.reason,
        }


def compare(expected, got, tolerance=0.0):
    """Compare two values of plain data.

    >>> compare([0, 1.0], [0, 1.5], 0.25).path
    '[1]'
    """
    return _compare(expected, got, tolerance, "") or Comparison(True, "", got, expected)


def _compare(expected, got, tolerance, path):
    """The first difference, or None."""

    def differs(reason, gap=None):
        return Comparison(False, path, got, expected, gap, reason)

    if _kind(expected) != _kind(got):
        return differs(f"got {_kind(got)} where {_kind(expected)} is expected")
    if _kind(expected) == "a number":
        return _compare_numbers(expected, got, tolerance, differs)
    if isinstance(expected, list | tuple):
        if len(expected) != len(got):
            return differs(f"got {len(got)} items where {len(expected)} are expected")
        pairs = ((f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(expected, got, strict=True)))
    elif isinstance(expected, dict):
        if not _same_keys(expected, got):
            return differs("the keys differ")
        pairs = ((f"{path}[{json.dumps(key, default=repr)}]", value, got[key]) for key, value in expected.items())
    else:
        return None if expected == got else differs("the values differ")
    return next(filter(None, (_compare(a, b, tolerance, where) for where, a, b in pairs)), None)


def _kind(value):
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, dict):
        return "a dictionary"
    if isinstance(value, list | tuple):
        return "a list"
    raise TypeError(f"compare takes plain data, got {type(value).__name__}")


def _same_keys(expected, got):
    return {(type(key), key) for key in expected} == {(type(key), key) for key in got}


def _compare_numbers(expected, got, tolerance, differs):
    if _is_large(expected) or _is_large(got):
        if isinstance(expected, int) and isinstance(got, int):
            return None if expected == got else differs("the integers differ", float(min(abs(got - expected), 10**300)))
        return differs("an integer beyond 2**53 equals only itself")
    if not (math.isfinite(expected) and math.isfinite(got)):
        same = expected == got or (math.isnan(expected) and math.isnan(got))
        return None if same else differs("one of the two is not a finite number")
    gap = abs(got - expected)
    if gap > tolerance:
        return differs("the values differ" if tolerance == 0 else "the gap is larger than the tolerance", gap)
    if tolerance == 0 and expected == 0 and math.copysign(1.0, got) != math.copysign(1.0, expected):
        return differs("the sign of zero differs", 0.0)
    return None


def _is_large(number):
    return isinstance(number, int) and not -SAFE_INT <= number <= SAFE_INT
