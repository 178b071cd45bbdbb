"""An independent derivation of both formats and all rules, in exact fractions and from the bit patterns.

Nothing here imports the code under test. A number is read from its bits by the formula of the format
(sign, exponent with bias, mantissa with hidden bit); the nearest number is found by comparing with every number.
"""

from bisect import bisect_left
from fractions import Fraction
from itertools import pairwise


def number_of(bits, exponent_bits, mantissa_bits):
    """Value of an unsigned bit pattern: subnormal with exponent field 0, else hidden bit 1."""
    bias = 2 ** (exponent_bits - 1) - 1
    exponent, mantissa = divmod(bits, 2**mantissa_bits)
    if exponent == 0:
        return Fraction(mantissa, 2**mantissa_bits) * Fraction(2) ** (1 - bias)
    return (1 + Fraction(mantissa, 2**mantissa_bits)) * Fraction(2) ** (exponent - bias)


E2M1 = [number_of(bits, 2, 1) for bits in range(8)]
E4M3 = [number_of(bits, 4, 3) for bits in range(127)]  # pattern 127 is NaN


def nearest(x, numbers):
    """Position of the number nearest to the fraction x ≥ 0, a tie to the pattern whose last bit is 0."""
    above = bisect_left(numbers, x)
    if above == len(numbers):
        return above - 1
    candidates = range(max(0, above - 2), min(len(numbers), above + 2))
    return min(candidates, key=lambda k: (abs(numbers[k] - x), k % 2))


def ties(numbers):
    """[(midpoint, position of the even one of its two neighbours)] for all neighbours."""
    return [((low + high) / 2, k if k % 2 == 0 else k + 1) for k, (low, high) in enumerate(pairwise(numbers))]


def power_of_two_at_least(x):
    """Smallest power of two ≥ x, by doubling and halving."""
    power = Fraction(1)
    while power < x:
        power *= 2
    while power / 2 >= x:
        power /= 2
    return power


def e4m3_scale(amax):
    """Scale of the main cache for an amax given as a fraction."""
    return E4M3[nearest(max(amax, 6 * Fraction(1, 2**9)) / 6, E4M3)]


def e8m0_scale(amax):
    """Scale of index queries and keys."""
    return power_of_two_at_least(max(amax, 6 * Fraction(1, 2**126)) / 6)


def fp8_scale(amax):
    """Scale of the window cache; its floor is the float32 number nearest to 0.0001."""
    return power_of_two_at_least(max(amax, Fraction(13743895, 2**37)) / 448)
