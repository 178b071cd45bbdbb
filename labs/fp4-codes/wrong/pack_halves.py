"""Pairs position i with position i + n/2 instead of its neighbour. Fails pack-order."""

import math

LEVELS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def choose_scale(values: list[float]) -> float:
    """Return the scale of a group: the largest magnitude divided by 6, as the nearest E4M3 number."""
    target = max(abs(value) for value in values) / 6
    target = min(max(target, 2.0**-9), 448.0)
    exponent = max(math.frexp(target)[1] - 1, -6)  # below 2**-6 the spacing stays 2**-9
    spacing = 2.0 ** (exponent - 3)
    return round(target / spacing) * spacing


def encode(values: list[float], scale: float) -> list[int]:
    """Return one code from 0 to 15 for each value."""
    return [_code(value / scale) for value in values]


def _code(x: float) -> int:
    magnitude = abs(x)
    code = 0
    for position in range(7):
        halfway = (LEVELS[position] + LEVELS[position + 1]) / 2
        # An odd position yields at the tie: the level above it has the even code.
        if magnitude > halfway or (magnitude == halfway and position % 2 == 1):
            code = position + 1
    return code + (8 if math.copysign(1.0, x) < 0 else 0)


def decode(codes: list[int], scale: float) -> list[float]:
    """Return the value of each code: its level times the scale, with its sign."""
    return [(-LEVELS[code - 8] if code >= 8 else LEVELS[code]) * scale for code in codes]


def pack(codes: list[int]) -> list[int]:
    """Return one byte for two codes: the even position in the low four bits."""
    return [low + 16 * high for low, high in zip(codes, codes[len(codes) // 2 :], strict=True)]
