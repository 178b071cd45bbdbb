"""How a block's scale is chosen, for all three caches."""

from fractions import Fraction

import numpy as np

from deepseek_edu.reference import quant

from . import fractions_oracle as oracle
from .bits import assert_same_bits, every_bfloat16, exact, just_above, just_below

CHOOSERS = [
    ("scale_e4m3_for_fp4", oracle.e4m3_scale),
    ("scale_e8m0_for_fp4", oracle.e8m0_scale),
    ("scale_e8m0_for_fp8", oracle.fp8_scale),
]


def test_worked_scales_of_the_main_cache():
    """amax 7 → 7/6 = 1.1667 lies between 1.125 and 1.25, nearer to 1.125: not rounded up. 22.625 → 3.7708 → 3.75."""
    assert_same_bits(quant.scale_e4m3_for_fp4([6.0, 7.0, 22.625]), [1.0, 1.125, 3.75])


def test_e4m3_scale_ties_go_to_even():
    """amax/6 = 1.0625 lies halfway between 1 (even) and 1.125; 1.1875 between 1.125 and 1.25 (even)."""
    assert_same_bits(quant.scale_e4m3_for_fp4([6.375, 7.125]), [1.0, 1.25])


def test_e4m3_scale_saturates_at_448():
    assert_same_bits(quant.scale_e4m3_for_fp4([2688.0, 2784.0, 1e30]), [448.0, 448.0, 448.0])


def test_e8m0_scale_is_rounded_up_to_a_power_of_two():
    assert_same_bits(quant.scale_e8m0_for_fp4([6.0, just_above(6.0), 7.0, 3.0, 22.625]), [1.0, 2.0, 2.0, 0.5, 4.0])
    assert_same_bits(quant.scale_e8m0_for_fp8([448.0, just_above(448.0), 7.0]), [1.0, 2.0, 2.0**-6])


def test_floors_keep_the_scale_of_an_all_zero_block_positive():
    assert_same_bits(quant.scale_e4m3_for_fp4([0.0, 1e-9]), [2.0**-9, 2.0**-9])
    assert_same_bits(quant.scale_e8m0_for_fp4([0.0, 2.0**-130]), [2.0**-126, 2.0**-126])
    assert_same_bits(quant.scale_e8m0_for_fp8([0.0, 9e-5, 1e-4, 1.2e-4]), [2.0**-22, 2.0**-22, 2.0**-22, 2.0**-21])


def test_the_floor_of_the_window_cache_lies_on_amax_and_not_on_the_scale():
    """A floor of 1e-4 on amax / 448 would give 2**-13 for amax = 0.01; the reference gives 2**-15."""
    assert_same_bits(quant.scale_e8m0_for_fp8(0.01), 2.0**-15)


def test_scales_of_every_bfloat16_amax_are_those_of_exact_arithmetic():
    amax = every_bfloat16()
    amax = amax[amax >= 0][::7]
    for name, expected in CHOOSERS:
        got = getattr(quant, name)(amax)
        assert got.dtype == np.float32
        assert [Fraction(float(s)) for s in got] == [expected(exact(a)) for a in amax], name


def test_power_of_two_scales_are_exact_for_every_float32_mantissa():
    """6 = 1.5 · 2² and 448 = 1.75 · 2⁸: amax = m · 2ᵉ needs the next power exactly when m exceeds 1.5 or 1.75.

    That holds for all 8 388 608 mantissas, so the kernel's product with a rounded reciprocal and a true division
    choose the same scales, and nobody can tell them apart.
    """
    for exponent in (-20, 0, 9):
        mantissas = np.arange(2**23, dtype=np.uint32)
        amax = (mantissas | np.uint32((127 + exponent) << 23)).view(np.float32)
        for name, limit, shift in (("scale_e8m0_for_fp4", 1.5, 2), ("scale_e8m0_for_fp8", 1.75, 8)):
            if name == "scale_e8m0_for_fp8" and exponent == -20:
                continue  # below the floor
            over = mantissas > (limit - 1) * 2**23
            expected = np.where(over, np.float32(2.0 ** (exponent - shift + 1)), np.float32(2.0 ** (exponent - shift)))
            np.testing.assert_array_equal(getattr(quant, name)(amax), expected)


def test_e4m3_scales_next_to_their_ties_are_those_of_exact_arithmetic():
    """The quotient amax / 6 is rounded to float32 before it is rounded to E4M3; that never decides a tie wrongly."""
    for midpoint, _ in oracle.ties(oracle.E4M3[1:]):
        amax = np.float32(float(6 * midpoint))
        for a in (just_below(amax), amax, just_above(amax)):
            assert exact(quant.scale_e4m3_for_fp4(a)) == oracle.e4m3_scale(exact(a))


def test_power_of_two_at_least_matches_the_exponent_bits():
    """The kernel reads the exponent field and adds one if any mantissa bit is set; frexp has to say the same."""
    x = np.random.default_rng(1).uniform(1e-30, 1e30, 10_000).astype(np.float32)
    powers = np.float32(2.0) ** np.arange(-126, 127, dtype=np.float32)
    x = np.concatenate([x, powers, np.nextafter(powers, np.float32(0)), np.nextafter(powers, np.float32(np.inf))])
    x = x[x >= 2.0**-126]
    bits = x.view(np.uint32)
    exponent = (bits >> 23) + ((bits & 0x7FFFFF) != 0)
    assert_same_bits(quant.power_of_two_at_least(x), (exponent << 23).astype(np.uint32).view(np.float32))
