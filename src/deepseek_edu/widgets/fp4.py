"""Widget `fp4`: store numbers in four bits, one at a time on a number line, or a whole block with its scale.

Mechanism: `reference.quant` (report, section 2.4.4). Every number comes from it, called through the module, so that the
text a reader edits changes the picture. The two scale kinds are those of the model: E4M3 for 16 values of a main KV
entry, a power of two (E8M0) for 32 values of an index query or key.
"""

import math
from dataclasses import dataclass

import numpy as np

from deepseek_edu.drawing.numbers import show
from deepseek_edu.reference import quant

from .contract import Choice, Numbers, Slider, View, widget
from .fp4_drawing import block_picture, line_picture
from .parts import Metric, Metrics, Prose, Table

KIND_NAMES = {"e4m3": "E4M3", "e8m0": "power of two (E8M0)"}
TYPICAL = (
    -1.25,
    0.25,
    0.0,
    0.5,
    -1.35,
    1.1,
    0.1,
    -1.2,
    -1.4,
    -1.3,
    -0.75,
    1.2,
    0.9,
    -0.55,
    -0.55,
    1.95,
    0.9,
    -0.8,
    -0.15,
    -0.45,
    0.15,
    0.9,
    -0.3,
    0.35,
    0.6,
    0.8,
    -0.65,
    -0.2,
    2.0,
    -0.2,
    0.05,
    0.45,
)
"""The first 32 of 512 Gaussian numbers (seed 41), divided by their root mean square and rounded to 0.05."""

EXAMPLE = (7.0, 1.0, -3.5, 0.4, -0.1, 2.2, -1.7, 0.0, 3.3, -0.6, 0.9, -2.4, 1.4, -0.2, 0.3, -1.0)
"""Sixteen invented values: the worked example of the chapter."""

_MIDPOINTS = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
_TIES = (6.0, *_MIDPOINTS, *(-m for m in _MIDPOINTS), 0.0)
_RULES = {"e4m3": "E4M3, nearest", "e8m0": "Power of two, up"}
PRESETS = {
    "latent": TYPICAL,
    "zero": (0.0,) * 32,
    "outlier": (*TYPICAL[:5], 12.0, *TYPICAL[6:]),
    "ties": (*_TIES, *(m + 0.05 for m in _MIDPOINTS), *(m - 0.05 for m in _MIDPOINTS), -6.0, 6.0),
}

ONE = {"part": "one"}
BLOCK = {"part": "block"}


@dataclass(frozen=True)
class Stored:
    """One value on its way through the format; `scaled` is value / scale, `level` what the code means."""

    value: float
    scale: float
    scaled: float
    code: int
    level: float
    back: float

    @property
    def error(self) -> float:
        return self.back - self.value

    @property
    def clipped(self) -> bool:
        return abs(self.scaled) > quant.FP4_MAX

    @property
    def bits(self) -> str:
        return f"{self.code:04b}"


@widget(
    "fp4",
    title="Store numbers in four bits",
    mechanism={
        "reference.quant": (
            "nearest_code",
            "_tie_goes_up",
            "scale_e4m3_for_fp4",
            "scale_e8m0_for_fp4",
            "pack_nibbles",
        )
    },
    source="report §2.4.4",
    chapter="04b_fp4_cache",
)
def fp4(
    part: Choice({"one": "One value", "block": "A block"}, "What to store", look="segments") = "one",
    value: Slider(-8, 8, 0.05, "Value", stops=321, when=ONE) = 3.2,
    scale: Choice(
        {"unit": "Scale 1", "e4m3": "E4M3, as in the main KV cache", "e8m0": "Power of two, as for index keys"},
        "Scale",
        when=ONE,
    ) = "unit",
    amax: Slider(
        0,
        24,
        0.125,
        "Largest magnitude (amax)",
        help="The scale is chosen from it. With scale 1 it is not used.",
        when=ONE,
    ) = 7.0,
    block: Choice({"16": "16, E4M3 scale", "32": "32, power of two"}, "Block", look="segments", when=BLOCK) = "16",
    preset: Choice(
        {
            "latent": "Typical latent",
            "outlier": "One outlier",
            "ties": "Ties",
            "zero": "All zero",
            "own": "Your own numbers",
        },
        "Values",
        when=BLOCK,
    ) = "latent",
    values16: Numbers(
        -24, 24, 0.05, "Your 16 values", length=16, when={"part": "block", "preset": "own", "block": "16"}
    ) = EXAMPLE,
    values32: Numbers(
        -24, 24, 0.05, "Your 32 values", length=32, when={"part": "block", "preset": "own", "block": "32"}
    ) = TYPICAL,
    ties: Choice(
        {"even": "To the even code (hardware)", "away": "Away from zero (wrong)", "down": "Toward zero (wrong)"},
        "A value halfway between two levels goes",
    ) = "even",
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "one":
        return _one_value(value, scale, amax, ties)
    size = int(block)
    own = values16 if size == 16 else values32
    return _block(own if preset == "own" else PRESETS[preset][:size], size, ties)


def _one_value(value: float, kind: str, amax: float, ties: str) -> View:
    group = max(amax, abs(value))
    scales = {"e4m3": float(quant.scale_e4m3_for_fp4(group)), "e8m0": float(quant.scale_e8m0_for_fp4(group))}
    scale = scales.get(kind, 1.0)
    scaled = value / scale
    code = int(quant.encode_e2m1(scaled, ties))
    level = float(quant.decode_e2m1(code))
    stored = Stored(value, scale, scaled, code, level, level * scale)
    metrics = Metrics(
        (
            Metric("Scale", scale),
            Metric("Value ÷ scale", scaled, note=f"{show(value)} ÷ {show(scale)}"),
            Metric("Code", code, stored.bits, note="sign, then three bits"),
            Metric("Stored level", level, role="result"),
            Metric("Read back", stored.back, note="level × scale", role="result"),
            Metric("Error", stored.error, _error(stored.error), role="error"),
        ),
        "One value",
    )
    summary = (
        f"{show(value)} with scale {show(scale)} is stored as code {stored.bits}, read back as {show(stored.back)}, "
        f"error {_error(stored.error)}{', clipped' if stored.clipped else ''}."
    )
    return View(
        (line_picture(stored, ties), metrics, _remark(stored, ties), _scale_table(group, amax, scales, kind)), summary
    )


def _error(error: float) -> str:
    """The error as text; the dust of binary fractions is not shown."""
    return show(0.0 if abs(error) < 1e-12 else error)


def _remark(stored: Stored, ties: str) -> Prose:
    """What happened to the value, in a sentence or two."""
    size = abs(stored.scaled)
    if stored.clipped:
        return Prose(
            f"Clipped: {show(stored.scaled)} lies beyond the largest level, so it is stored as {show(stored.level)}. "
            "The error grows with every further step.",
            "warn",
        )
    if size in _MIDPOINTS:
        below = _MIDPOINTS.index(size)
        low, high = show(float(quant.E2M1_LEVELS[below])), show(float(quant.E2M1_LEVELS[below + 1]))
        even, taken = (low if below % 2 == 0 else high), show(abs(stored.level))
        tie = (
            f"A tie: {show(size)} lies exactly halfway between {low}, code {below:03b}, and {high}, "
            f"code {below + 1:03b}{'' if stored.scaled > 0 else ' (with the sign set aside)'}."
        )
        if ties == "even":
            return Prose(f"{tie} The hardware takes {even}; the last bit of its code is 0.")
        return Prose(f"{tie} This rule takes {taken}; the hardware takes {even}.", "warn")
    if stored.scaled == stored.level:
        return Prose("The value is one of the levels: nothing is lost.")
    return Prose(f"No tie: {show(stored.level)} is the nearest level, so all three rules store the same code.")


def _scale_table(group: float, amax: float, scales: dict[str, float], kind: str) -> Table:
    """Both scales, how they come about, and what the largest value of the group becomes."""
    rows, text = [], []
    for name, scale in scales.items():
        top = float(quant.decode_e2m1(quant.encode_e2m1(group / scale))) * scale
        byte = _scale_byte(name, scale)
        rows.append((_RULES[name], scale, byte, top))
        text.append(("", _scale_text(name, scale), f"0x{byte:02X}" if byte >= 0 else "none", ""))
    raised = "" if group == amax else " (amax is raised to this value, which is in the group)"
    return Table(
        f"How each scale is chosen: {show(group)} ÷ 6 = {show(group / quant.FP4_MAX)}{raised}, rounded",
        ("Scale", "Becomes", "Byte", "amax reads back"),
        tuple(rows),
        tuple(text),
        selected=tuple(i for i, name in enumerate(scales) if name == kind),
    )


def _scale_byte(kind: str, scale: float) -> int:
    """The byte of a scale, or −1 if an edited mechanism chose a scale its format cannot hold."""
    try:
        byte = int(quant.encode_e4m3(scale) if kind == "e4m3" else quant.encode_e8m0(scale))
        held = float(quant.decode_e4m3(byte) if kind == "e4m3" else quant.decode_e8m0(byte))
    except ValueError:
        return -1
    return byte if held == scale else -1


def _scale_text(kind: str, scale: float) -> str:
    """A scale for readers; a very small one as a power of two."""
    if 0 < scale < 0.01 and math.frexp(scale)[0] == 0.5:
        from deepseek_edu.drawing.numbers import superscript

        return f"2{superscript(math.frexp(scale)[1] - 1)}"
    return show(scale)


def _block(values: tuple[float, ...], size: int, ties: str) -> View:
    kind = "e4m3" if size == 16 else "e8m0"
    done = quant.quantize_fp4(np.array(values), size, kind, ties)
    scale = float(done.scales[0])
    levels = [float(v) for v in quant.decode_e2m1(done.codes)]
    stored = [
        Stored(v, scale, v / scale, int(code), level, float(back))
        for v, code, level, back in zip(values, done.codes, levels, done.values, strict=True)
    ]
    packed = [int(byte) for byte in done.packed]
    amax = max(abs(v) for v in values)
    errors = [s.error for s in stored]
    clipped = sum(s.clipped for s in stored)
    rms = math.sqrt(math.fsum(e * e for e in errors) / size)
    worst = max(errors, key=abs)
    byte = int(done.scale_bytes[0])
    total = quant.fp4_bytes(size, size)
    metrics = Metrics(
        (
            Metric(
                "Scale",
                scale,
                _scale_text(kind, scale),
                note=f"{KIND_NAMES[kind]}, byte 0x{byte:02X}, for amax {show(amax)}",
            ),
            Metric("Largest error", worst, _error(worst), role="error"),
            Metric("Root mean square error", rms, show(rms, 3), role="error"),
            Metric("Clipped", clipped, unit="values" if clipped != 1 else "value", role="clip" if clipped else ""),
            Metric("Stored in", total, unit="bytes", note=f"{size // 2} of codes, 1 of scale"),
            Metric("Bits per value", quant.bits_per_value(size), note="BF16 takes 16"),
        ),
        "The block",
    )
    table = Table(
        f"All {size} values",
        ("Channel", "Value", "÷ scale", "Code", "Level", "Read back", "Error"),
        tuple((i, s.value, s.scaled, s.code, s.level, s.back, s.error) for i, s in enumerate(stored)),
        tuple(("", "", "", s.bits, "", "", _error(s.error)) for s in stored),
        selected=tuple(i for i, s in enumerate(stored) if s.clipped),
        folded=True,
    )
    first = " ".join(f"{b:02X}" for b in packed)
    prose = Prose(
        f"Two codes share a byte, the even channel in the low four bits: {stored[0].bits} and {stored[1].bits} become "
        f"0x{packed[0]:02X}. The {len(packed)} bytes of codes are {first}; the scale byte is {byte:02X}."
    )
    lost = "no value is clipped" if not clipped else f"{clipped} {'value is' if clipped == 1 else 'values are'} clipped"
    summary = (
        f"{size} values with largest magnitude {show(amax)} get scale {_scale_text(kind, scale)} and are stored in "
        f"{total} bytes; the largest error is {_error(worst)}, {lost}."
    )
    return View((block_picture(stored, packed, byte, amax), metrics, prose, table), summary)
