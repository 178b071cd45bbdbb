"""Numbers as text: short coordinates for SVG, and digits for readers.

Both are deterministic and never print a negative zero by accident. Readers get a true minus sign (−) and at most
five significant digits; a page never compares printed digits, it compares the raw values of `View.data`.
"""

import math
from functools import lru_cache

MINUS = "−"
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
    return sign + _trim(f"{size:.{max(0, digits - 1 - power)}f}")


def grouped(value: float, places: int = 0) -> str:
    """A large number in groups of three, with spaces that do not break.

    >>> grouped(1048576).replace("\u00a0", " "), grouped(96)
    ('1 048 576', '96')
    """
    return f"{value:,.{places}f}".replace(",", "\u00a0")


def fixed(value: float, places: int) -> str:
    """A number with a fixed count of decimals and a true minus, for outputs that must not jump in width.

    >>> fixed(-3.2, 2)
    '−3.20'
    """
    text = f"{abs(value):.{places}f}"
    return (MINUS if value < 0 and float(text) else "") + text


def superscript(value: int) -> str:
    """An integer in superscript digits.

    >>> "2" + superscript(-9)
    '2⁻⁹'
    """
    return str(value).translate(_SUPERSCRIPTS)


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
