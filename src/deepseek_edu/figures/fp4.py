"""Figures of the chapter on the four-bit KV cache; every number comes from `reference.quant`."""

import itertools

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw
from deepseek_edu.drawing.axes import linear
from deepseek_edu.drawing.chart import Axis, Chart, Series
from deepseek_edu.drawing.numbers import show
from deepseek_edu.reference import quant

from . import figure

LATENT = 512


@figure("fp4-levels")
def levels() -> Picture:
    """The levels of E2M1: all 15 on one line, then the eight magnitudes with their codes and gaps."""
    magnitudes = [float(m) for m in quant.E2M1_LEVELS]
    codes = [f"{int(code):04b}" for code in quant.encode_e2m1(magnitudes)]
    gaps = [b - a for a, b in itertools.pairwise(magnitudes)]

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 262)
        whole = linear(-6, 6, 26, width - 26)
        canvas.text(0, 14, "All 15 values", "k-label k-muted", "start", SMALL)
        canvas.line(8, 40, width - 8, 40, "k-axis")
        for level in sorted({*magnitudes, *(0.0 - m for m in magnitudes)}):
            canvas.circle(whole(level), 40, 4, "k-result" if level >= 0 else "k-level")
            if level == int(level) and (abs(level) > 2 or level == 0):
                canvas.text(whole(level), 62, show(level + 0.0), "k-label", size=SMALL)
        half = linear(0, 6, 22, width - 22)
        canvas.text(0, 92, "The magnitudes, the gaps between them, and their codes", "k-label k-muted", "start", SMALL)
        canvas.line(22, 144, width - 22, 144, "k-axis", 1.5)
        for left, right, gap in zip(magnitudes, magnitudes[1:], gaps, strict=False):
            canvas.polyline(
                [(half(left) + 2, 130), (half(left) + 2, 124), (half(right) - 2, 124), (half(right) - 2, 130)],
                "k-arrow",
            )
            words = show(gap).replace("0.", ".") if canvas.narrow and gap < 1 else show(gap)
            canvas.text((half(left) + half(right)) / 2, 117, words, "k-muted", size=SMALL)
        for index, (magnitude, code) in enumerate(zip(magnitudes, codes, strict=True)):
            x = half(magnitude)
            canvas.circle(x, 144, 5, "k-result")
            canvas.text(x, 167, show(magnitude), "k-label k-text--strong", size=SMALL if canvas.narrow else 13)
            low = canvas.narrow and index % 2 == 1
            canvas.line(x, 172, x, 178 + (18 if low else 0), "k-tick")
            canvas.text(x, 190 + (18 if low else 0), code, "k-text--mono k-label", size=SMALL)
        _anatomy(canvas, 222)
        return canvas

    description = (
        "Fifteen values from −6 to 6. Their magnitudes are "
        + ", ".join(f"{show(m)} (code {c})" for m, c in zip(magnitudes, codes, strict=True))
        + f"; the gaps between them grow: {', '.join(show(g) for g in gaps)}. "
        "The first bit of a code is the sign, two bits are the exponent, the last is the mantissa."
    )
    return draw(paint, "The levels of E2M1", description, {"magnitudes": magnitudes, "gaps": gaps, "codes": codes})


def _anatomy(canvas: Canvas, y: float) -> None:
    """The four bits of one code, named."""
    code = f"{int(quant.encode_e2m1(-3.0)):04b}"
    names = ("sign", "exponent", "", "mantissa")
    cell = 40 if canvas.narrow else 52
    for index, bit in enumerate(code):
        style = "k-cell k-cell--hot" if index == 0 else "k-cell"
        canvas.cell(8 + index * cell, y, cell - 4, 22, bit, style, "k-text--mono", 12)
    for index, name in enumerate(names):
        x = 8 + index * cell + (cell - 4) / 2 + (cell / 2 if name == "exponent" else 0)
        canvas.text(x, y + 36, name, "k-muted", size=SMALL)
    canvas.text(
        8 + 4 * cell + 10,
        y + 16,
        f"= {show(float(quant.decode_e2m1(int(code, 2))))}",
        "k-result k-text--strong",
        "start",
    )


@figure("fp4-layout")
def layout() -> Picture:
    """How 512 values of a latent become 288 bytes."""
    group = 16
    groups, code_bytes = LATENT // group, group // 2
    total = quant.fp4_bytes(LATENT, group)

    def paint(width: float) -> Canvas:
        per_row = 4 if width < 500 else 8
        rows = groups // per_row
        canvas = Canvas(width, 128 + 30 * rows + 44)
        one = min(width, 460)
        byte = (one - 80) / (code_bytes + 1)
        canvas.text(0, 14, f"One group: {group} values, two codes to a byte", "k-label k-muted", "start", SMALL)
        for index in range(code_bytes):
            x = index * byte
            canvas.rect(x, 26, byte - 3, 30, "k-cell", 3)
            canvas.line(x + (byte - 3) / 2, 30, x + (byte - 3) / 2, 52, "k-grid")
            for half in (0, 1):
                canvas.text(
                    x + (byte - 3) * (0.25 + 0.5 * half),
                    45,
                    2 * index + half,
                    "k-muted",
                    size=SMALL if byte > 30 else 9,
                )
        canvas.cell(code_bytes * byte + 6, 26, byte + 24, 30, "scale", "k-cell k-cell--hot", size=SMALL)
        canvas.bracket(0, code_bytes * byte - 3, 60)
        canvas.text((code_bytes * byte - 3) / 2, 82, f"{code_bytes} bytes of codes", "k-label", size=SMALL)
        canvas.text(code_bytes * byte + 18 + byte / 2, 82, "1 byte", "k-label", size=SMALL)
        canvas.text(0, 116, f"The latent: {LATENT} values in {groups} groups", "k-label k-muted", "start", SMALL)
        slot = width / per_row
        for index in range(groups):
            x, y = index % per_row * slot, 126 + index // per_row * 30
            piece = (slot - 12) / (code_bytes + 1)
            for k in range(code_bytes):
                canvas.rect(x + k * piece, y, piece - 1.5, 20, "k-cell k-cell--soft", 1.5)
            canvas.rect(x + code_bytes * piece + 1.5, y, piece, 20, "k-cell k-cell--hot", 1.5)
        sentence = f"{groups} × ({code_bytes} + 1) = {groups * code_bytes} + {groups} = {total} bytes"
        canvas.text(0, 126 + 30 * rows + 22, sentence, "k-result k-text--strong", "start")
        return canvas

    description = (
        f"A latent of {LATENT} values is cut into {groups} groups of {group}. Each group takes {code_bytes} bytes "
        f"of codes, two codes to a byte, and one scale byte: {groups * code_bytes} + {groups} = {total} bytes."
    )
    return draw(paint, "From 512 values to 288 bytes", description, {"groups": groups, "bytes": total})


@figure("fp4-scales")
def scales() -> Chart:
    """The scale each rule chooses, against the largest magnitude of the group."""
    amax = np.arange(1, 24 * 64 + 1) / 64

    def steps(name: str, choose) -> Series:
        chosen = choose(amax)
        kept = np.flatnonzero(np.r_[True, chosen[1:] != chosen[:-1]])
        kept = np.r_[kept, len(amax) - 1]
        return Series(name, amax[kept], chosen[kept], "step")

    return Chart(
        "Scale chosen for a group",
        "Against the largest magnitude of a group, from 0 to 24: amax divided by 6 is a straight line. The E4M3 scale "
        "follows it in small steps, sometimes a little below it. The power of two lies above it in steps that double: "
        "1 up to 6, 2 up to 12, 4 up to 24.",
        Axis("largest magnitude in the group (amax)", low=0, high=24, ticks=(0, 3, 6, 9, 12, 15, 18, 21, 24)),
        Axis("scale", low=0, high=4.25, ticks=(0, 1, 2, 3, 4)),
        (
            steps("power of two (E8M0)", quant.scale_e8m0_for_fp4),
            steps("E4M3", quant.scale_e4m3_for_fp4),
            Series("amax ÷ 6", (0, 24), (0, 24 / quant.FP4_MAX), "line", dash=True, token="k-muted"),
        ),
    )


@figure("fp4-error")
def error() -> Chart:
    """The error of every value of a group, for the scale either rule chooses."""
    amax = 7.0
    values = np.arange(0, 281) / 40
    series, said = [], []
    chosen = (("power of two (E8M0)", quant.scale_e8m0_for_fp4), ("E4M3", quant.scale_e4m3_for_fp4))
    for name, choose in chosen:
        scale = float(choose(amax))
        back = quant.round_to_e2m1(values / scale) * scale
        errors = back - values
        rms = show(float(np.sqrt((errors**2).mean())), 2)
        said.append(f"{name}: scale {show(scale)}, at most {show(float(abs(errors).max()), 4)}, root mean square {rms}")
        bend = np.abs(errors[2:] - 2 * errors[1:-1] + errors[:-2]) > 1e-9
        corners = np.flatnonzero(np.r_[True, bend, True])  # the line between two corners is straight
        series.append(Series(f"{name}, scale {show(scale)}", values[corners], errors[corners], "line"))
    return Chart(
        "Error against value in a group whose largest magnitude is 7",
        "Two saw-tooth lines around zero for values from 0 to 7; the teeth grow with the gaps between the levels. "
        f"Size of the error: {'; '.join(said)}.",
        Axis("value", low=0, high=7, ticks=tuple(range(8))),
        Axis("value read back − value", low=-1.25, high=1.25, ticks=(-1, -0.5, 0, 0.5, 1)),
        tuple(series),
    )


@figure("fp4-entry-bytes")
def entry_bytes() -> Chart:
    """Bytes of one entry of 512 values in three formats, data and scales apart."""
    formats = (
        ("BF16", 2 * LATENT, 0),
        ("FP8, scale per 32", LATENT, quant.fp8_bytes(LATENT, 32) - LATENT),
        ("FP4, scale per 16", LATENT // 2, quant.fp4_bytes(LATENT, 16) - LATENT // 2),
    )
    names = tuple(name for name, _, _ in formats)
    totals = tuple(data + scales for _, data, scales in formats)
    listed = "; ".join(f"{name}: {data} of data and {scales} of scales" for name, data, scales in formats)
    return Chart(
        "Bytes of one entry of 512 values",
        f"Stacked bars for three formats. Bytes are {listed}.",
        Axis("", "category"),
        Axis("bytes", low=0, high=1100, ticks=(0, 256, 512, 768, 1024)),
        (
            Series("data", names, tuple(data for _, data, _ in formats), "bar"),
            Series("scales", names, tuple(s for _, _, s in formats), "bar", text=tuple(f"{t} B" for t in totals)),
        ),
        stacked=True,
    )
