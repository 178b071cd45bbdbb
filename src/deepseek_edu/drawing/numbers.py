"""Numbers as text: short coordinates for SVG, and digits for readers.

Both are deterministic and never print a negative zero by accident. Readers get a true minus sign (−), thousands in
groups, and at most five significant digits; a page never compares printed digits, it compares the raw values of
`View.data`.
"""

import math
from collections.abc import Iterable
from functools import lru_cache

MINUS = "−"
THIN = "\u202f"  # between thousands and before a percent sign: narrow, and no line breaks there
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@lru_cache(8192)
def coordinate(value: float) -> str:
    """A coordinate with at most two decimals and no trailing zeros.

    >>> coordinate(12.0), coordinate(-0.001), coordinate(3.14159)
    ('12', '0', '3.14')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def show(value: float, digits: int = 5) -> str:
    """A number for readers: `digits` significant digits, true minus, powers of ten written out.

    The sign of zero is kept, because four-bit codes keep it.

    >>> show(-0.2), show(3.0), show(0.001953125), show(-0.0), show(2.0**-126, 3)
    ('−0.2', '3', '0.0019531', '−0', '1.18·10⁻³⁸')
    """
    if math.isnan(value):
        return "NaN"
    sign = MINUS if math.copysign(1.0, value) < 0 else ""
    size = abs(value)
    if math.isinf(size):
        return sign + "∞"
    mantissa, _, exponent = f"{size:.{digits - 1}e}".partition("e")
    power = int(exponent)
    if size and not -4 <= power < 9:
        return f"{sign}{_trim(mantissa)}·10{superscript(power)}"
    return sign + grouped(size, max(0, digits - 1 - power), trim=True)


def grouped(value: float, places: int = 0, trim: bool = False) -> str:
    """A large number in groups of three digits; with `trim`, `places` decimals are the most, without final zeros.

    >>> grouped(1048576).replace(THIN, " "), grouped(96), grouped(3514.25, 2, trim=True).replace(THIN, " ")
    ('1 048 576', '96', '3 514.25')
    """
    text = f"{abs(value):,.{places}f}".replace(",", THIN)
    text = _trim(text) if trim else text
    return (MINUS if value < 0 and text.strip("0.") else "") + text


def shown(value: object) -> str:
    """Any value for readers: numbers as above, other things as they are.

    >>> shown(4096).replace(THIN, " "), shown(0.1 + 0.2), shown("none"), shown(True)
    ('4 096', '0.3', 'none', 'True')
    """
    if isinstance(value, float):
        return show(value)
    return grouped(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)


def percent(share: float, places: int = 0, digits: int = 0) -> str:
    """A share in percent: with fixed decimals, or with so many significant digits.

    >>> percent(0.0835).replace(THIN, " "), percent(0.5, 1).replace(THIN, " "), percent(2 / 3, digits=3)[:4]
    ('8 %', '50.0 %', '66.7')
    """
    return (show(100 * share, digits) if digits else fixed(100 * share, places)) + THIN + "%"


def counted(number: int, one: str, many: str = "") -> str:
    """So many of a thing, in the singular if it is one.

    >>> counted(1, "token"), counted(0, "token"), counted(2, "entry", "entries")
    ('1 token', '0 tokens', '2 entries')
    """
    return f"{grouped(number)} {one if number == 1 else many or one + 's'}"


def listed(things: Iterable[object]) -> str:
    """Things in a sentence, "none" if there are none.

    >>> listed("ABC"), listed([7, 9]), listed(())
    ('A, B and C', '7 and 9', 'none')
    """
    *first, last = (*map(str, things),) or ("none",)
    return f"{', '.join(first)} and {last}" if first else last


def fixed(value: float, places: int) -> str:
    """A number with a fixed count of decimals and a true minus, for outputs that must not jump in width.

    >>> fixed(-3.2, 2)
    '−3.20'
    """
    return grouped(value, places)


def superscript(value: int) -> str:
    """An integer in superscript digits.

    >>> "2" + superscript(-9)
    '2⁻⁹'
    """
    return str(value).translate(_SUPERSCRIPTS)


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
