"""Four-bit rounding in exact fractions by brute force: what the widget's numbers are checked against."""

from fractions import Fraction

MAGNITUDES = [Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12)]


def nearest(value: Fraction, ties: str) -> tuple[int, Fraction]:
    """Code (sign in bit 3) and signed level of the nearest level; the distance decides, then the tie rule."""
    size = abs(value)
    best = min(abs(m - size) for m in MAGNITUDES)
    found = [i for i, m in enumerate(MAGNITUDES) if abs(m - size) == best]
    if len(found) == 2:
        chosen = {"even": next(i for i in found if i % 2 == 0), "away": max(found), "down": min(found)}[ties]
    else:
        chosen = found[0]
    return chosen + (8 if value < 0 else 0), MAGNITUDES[chosen] * (-1 if value < 0 else 1)


def e4m3_scale(amax: Fraction) -> Fraction:
    """Nearest E4M3 number to amax / 6, ties to the even significand, at least 2⁻⁹."""
    target = max(amax, 6 * Fraction(1, 512)) / 6
    grid = [(Fraction(m, 512), m) for m in range(1, 8)]
    grid += [
        (Fraction(8 + m, 8) * Fraction(2) ** (e - 7), m) for e in range(1, 16) for m in range(8) if (e, m) != (15, 7)
    ]
    return min(grid, key=lambda entry: (abs(entry[0] - target), entry[1] % 2))[0]


def e8m0_scale(amax: Fraction) -> Fraction:
    """Smallest power of two that brings amax to 6 or less, at least 2⁻¹²⁶."""
    scale = Fraction(1, 2**126)
    while amax / scale > 6:
        scale *= 2
    return scale
