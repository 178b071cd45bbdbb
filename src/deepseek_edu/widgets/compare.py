"""Whether two evaluations of a widget are the same View, in CPython and in the browser.

The rule: whole numbers and text are equal; raw floats agree to 1e-12 of their size; numbers printed in pictures and
tables agree within 0.02, because a last digit of difference may fall on either side of a rounding.
"""

import json
import math
import re
from collections.abc import Mapping

from .parts import View
from .render import render_parts

RELATIVE = 1e-12
PRINTED = 0.02
_NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?")


def views_agree(a: object, b: object) -> bool:
    """Whether two views agree; each is a `View`, what `evaluate_json` answered (text or decoded), or `View.data()`."""
    return not differences(a, b)


def differences(a: object, b: object) -> list[str]:
    """What differs, as sentences with the place; empty when the views agree."""
    found: list[str] = []
    if all(isinstance(v, Mapping) and "ok" not in v for v in (a, b)):
        _compare_data("data", a, b, found)
        return found
    first, second = _answer(a), _answer(b)
    if first.get("ok") is not True or second.get("ok") is not True:
        return [] if first == second else ["not both evaluations succeeded with a view"]
    if len(first["parts"]) != len(second["parts"]):
        return [f"parts: {len(first['parts'])} and {len(second['parts'])}"]
    _compare_text("summary", first["summary"], second["summary"], found)
    for index, (x, y) in enumerate(zip(first["parts"], second["parts"], strict=True)):
        _compare_text(f"part {index}", x, y, found)
    _compare_data("data", first["data"], second["data"], found)
    return found


def _answer(value: object) -> dict:
    if isinstance(value, View):
        return {
            "ok": True,
            "summary": value.summary,
            "parts": render_parts(value),
            "data": json.loads(json.dumps(value.data())),
        }
    if isinstance(value, str):
        return json.loads(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"got {type(value).__name__}, expected a View or an answer of evaluate_json")


def _compare_text(place: str, a: str, b: str, found: list[str]) -> None:
    """Text equal, numbers in it within the printed tolerance."""
    if a == b:
        return
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        found.append(f"{place}: the text differs")
        return
    for x, y in zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True):
        if abs(float(x.replace("−", "-")) - float(y.replace("−", "-"))) > PRINTED:
            found.append(f"{place}: {x} and {y}")


def _compare_data(place: str, a: object, b: object, found: list[str]) -> None:
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            if place == "data" and key == "summary":
                continue
            _compare_data(f"{place}.{key}", a[key], b[key], found)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            _compare_data(f"{place}[{index}]", x, y, found)
    elif isinstance(a, float) or isinstance(b, float):
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (a, b))
        same_zero = numbers and (a != 0 or b != 0 or math.copysign(1, a) == math.copysign(1, b))
        if not numbers or not same_zero or abs(a - b) > RELATIVE * max(abs(a), abs(b)):
            found.append(f"{place}: {a!r} and {b!r}")
    elif type(a) is not type(b) or a != b:
        found.append(f"{place}: {a!r} and {b!r}")
