"""Figures of the step-through "sixteen values become nine bytes": one group, drawn once for each step.

The group is invented; every scale, code and byte is computed by `reference.quant` (report, section 2.4.4).
"""

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw
from deepseek_edu.drawing.axes import linear
from deepseek_edu.drawing.numbers import show
from deepseek_edu.reference import quant

from . import figure

GROUP = (7.0, 1.0, -3.5, 0.4, -0.1, 2.2, -1.7, 0.0, 3.3, -0.6, 0.9, -2.4, 1.4, -0.2, 0.3, -1.0)
"""Sixteen invented values."""

_AMAX = max(abs(value) for value in GROUP)
_LABELS = 66
"""Width of the column that names the rows of the wide drawing."""


def _stored() -> quant.Quantized:
    return quant.quantize_fp4(np.array(GROUP), 16, "e4m3")


def _scale() -> float:
    return float(_stored().scales[0])


def _levels() -> list[float]:
    return [float(level) for level in quant.decode_e2m1(_stored().codes)]


def _slots(width: float) -> tuple[int, float, float]:
    """Values in a row, where the first one begins, and the width of each."""
    per_row, start = (8, 0.0) if width < 500 else (16, float(_LABELS))
    return per_row, start, (width - start) / per_row


def _rows(canvas: Canvas, y: float, rows: list[tuple[str, list[str], str]]) -> float:
    """Rows of short texts over the sixteen places, cells for the last one; returns the y below them.

    Each row is its name, its sixteen texts and the class of the texts. A phone shows two lots of eight.
    """
    per_row, start, slot = _slots(canvas.width)
    for first in range(0, 16, per_row):
        if canvas.narrow and first == 0:
            canvas.text(0, y + 4, ", ".join(name for name, _, _ in rows), "k-muted", "start", SMALL)
            y += 14
        for number, (name, texts, style) in enumerate(rows):
            last = number == len(rows) - 1
            if not canvas.narrow:
                canvas.text(0, y + 16, name, "k-muted", "start", SMALL)
            for place in range(per_row):
                x = start + place * slot
                if last:
                    hot = " k-cell--hot" if abs(GROUP[first + place]) == _AMAX else ""
                    canvas.rect(x + 1, y, slot - 2, 24, "k-cell" + hot, 3)
                canvas.text(x + slot / 2, y + 16, texts[first + place], style, size=SMALL)
            y += 32 if last else 22
        y += 6 if canvas.narrow else 0
    return y


def _picture(rows: list[tuple[str, list[str], str]], title: str, description: str) -> Picture:
    """A picture that is only rows."""

    def paint(width: float) -> Canvas:
        height = _rows(Canvas(width, 0), 4, rows)
        canvas = Canvas(width, height)
        _rows(canvas, 4, rows)
        return canvas

    return draw(paint, title, description, {name: texts for name, texts, _ in rows})


def _texts(values) -> list[str]:
    return [show(float(value), 4) for value in values]


@figure("fp4-walk-values")
def values() -> Picture:
    """The group, its largest magnitude marked."""
    return _picture(
        [("value", _texts(GROUP), "k-value")],
        "Sixteen values",
        f"The values {', '.join(_texts(GROUP))}. The largest magnitude, {show(_AMAX)}, is marked.",
    )


@figure("fp4-walk-scale")
def scale() -> Picture:
    """Where amax / 6 lies between two E4M3 numbers, and the byte of the nearer one."""
    ideal, chosen = _AMAX / quant.FP4_MAX, _scale()
    numbers = quant.decode_e4m3(np.arange(1, 127, dtype=np.uint8))
    near = sorted(float(number) for number in numbers if abs(number - ideal) < 0.25)
    byte = int(quant.encode_e4m3(chosen))
    bits = f"{byte:08b}"

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 148)
        x = linear(near[0], near[-1], 30, width - 30)
        canvas.text(0, 12, "E4M3 numbers near the ideal scale", "k-label k-muted", "start", SMALL)
        canvas.line(8, 54, width - 8, 54, "k-axis", 1.5)
        for number in near:
            is_chosen = number == chosen
            canvas.circle(x(number), 54, 6 if is_chosen else 4, "k-result" if is_chosen else "k-level")
            style = "k-result k-text--strong" if is_chosen else "k-label"
            canvas.text(x(number), 76, show(number), style, size=SMALL)
        canvas.line(x(ideal), 38, x(ideal), 54, "k-value", 2)
        canvas.text(x(ideal) + 4, 34, f"{show(_AMAX)} ÷ {show(quant.FP4_MAX)} = {show(ideal)}", "k-value", size=SMALL)
        cell = 30.0
        for index, bit in enumerate(bits):
            style = "k-cell" if 1 <= index <= 4 else "k-cell k-cell--soft"
            canvas.cell(8 + index * cell, 98, cell - 3, 24, bit, style, "k-text--mono", 12)
        canvas.text(8 + cell / 2 - 1, 138, "sign", "k-muted", size=SMALL)
        canvas.text(8 + 3 * cell, 138, "exponent", "k-muted", size=SMALL)
        canvas.text(8 + 6.5 * cell, 138, "fraction", "k-muted", size=SMALL)
        canvas.text(8 + 8 * cell + 10, 115, f"= 0x{byte:02X}", "k-result k-text--strong", "start")
        return canvas

    description = (
        f"{show(_AMAX)} divided by {show(quant.FP4_MAX)} is {show(ideal)}. The E4M3 numbers near it are "
        f"{', '.join(show(number) for number in near)}; the nearest is {show(chosen)}, stored as the byte {byte:02X}, "
        f"in bits {bits[0]} {bits[1:5]} {bits[5:]}."
    )
    return draw(paint, "The scale of the group", description, {"ideal": ideal, "scale": chosen, "byte": byte})


@figure("fp4-walk-levels")
def levels() -> Picture:
    """Values, quotients, levels."""
    quotients = [f"{value / _scale():.2f}".replace("-", "\N{MINUS SIGN}") for value in GROUP]
    return _picture(
        [
            ("value", _texts(GROUP), "k-value"),
            (f"÷ {show(_scale())}", quotients, "k-muted"),
            ("level", _texts(_levels()), "k-result k-text--strong"),
        ],
        "Divide and round",
        f"Each value divided by {show(_scale())}, and the level it goes to: "
        + "; ".join(f"{q} to {level}" for q, level in zip(quotients, _texts(_levels()), strict=True)),
    )


@figure("fp4-walk-codes")
def codes() -> Picture:
    """Levels and their four-bit codes."""
    stored = [int(code) for code in _stored().codes.ravel()]
    bits = [f"{code:04b}" for code in stored]
    return _picture(
        [
            ("level", _texts(_levels()), "k-result"),
            ("digit", [f"{code:X}" for code in stored], "k-text--mono k-muted"),
            ("code", bits, "k-text--mono"),
        ],
        "Levels become codes",
        "; ".join(f"{level}: {code}" for level, code in zip(_texts(_levels()), bits, strict=True)),
    )


@figure("fp4-walk-bytes")
def packed_bytes() -> Picture:
    """Two codes to a byte: the first one in the low half. Then the scale byte."""
    stored = _stored()
    digits = [f"{int(code):X}" for code in stored.codes.ravel()]
    packed = [f"{int(byte):02X}" for byte in stored.packed.ravel()]
    scale_byte = f"{int(quant.encode_e4m3(_scale())):02X}"

    def paint(width: float) -> Canvas:
        per_row = 4 if width < 500 else 8
        slot = (width - 66) / per_row
        canvas = Canvas(width, 112 * (8 // per_row) - 4)
        for index in range(8):
            x, y = index % per_row * slot, 4 + index // per_row * 112
            half = (slot - 10) / 2
            for side in (0, 1):
                middle = x + half * (side + 0.5)
                digit = digits[2 * index + side]
                canvas.cell(x + half * side, y, half - 3, 24, digit, "k-cell k-cell--soft", "k-text--mono")
                target = x + half * (1.5 - side)
                canvas.arrow(middle - 1.5, y + 28, target - 1.5, y + 60, "k-arrow", 1.2, 6)
            canvas.rect(x, y + 64, slot - 13, 26, "k-cell", 3)
            for side in (0, 1):
                canvas.text(x + half * (side + 0.5) - 1.5, y + 82, packed[index][side], "k-text--mono k-text--strong")
        y = 4 + (8 // per_row - 1) * 112
        canvas.cell(width - 58, y + 64, 56, 26, scale_byte, "k-cell k-cell--hot", "k-text--mono k-text--strong")
        canvas.text(width - 30, y + 104, "scale", "k-muted", size=SMALL)
        canvas.text(0, y + 104, "high half, low half", "k-muted", "start", SMALL)
        return canvas

    description = (
        "Each pair of codes becomes a byte, the first code in the low half: "
        + ", ".join(f"{digits[2 * i]} and {digits[2 * i + 1]} become {packed[i]}" for i in range(8))
        + f". The scale byte is {scale_byte}."
    )
    return draw(paint, "Two codes share a byte", description, {"bytes": packed, "scale": scale_byte})


@figure("fp4-walk-back")
def back() -> Picture:
    """What is read back, and how far it is from what went in."""
    read = [float(value) for value in _stored().values.ravel()]
    errors = [after - before for before, after in zip(GROUP, read, strict=True)]
    return _picture(
        [
            ("value", _texts(GROUP), "k-value"),
            ("error", [show(round(error, 4) + 0.0, 3) for error in errors], "k-error"),
            ("read back", [show(value, 3) for value in read], "k-result k-text--strong"),
        ],
        "Read back",
        "Value, read back, error: "
        + "; ".join(
            f"{show(before)}, {show(after)}, {show(round(error, 4) + 0.0, 3)}"
            for before, after, error in zip(GROUP, read, errors, strict=True)
        ),
    )
