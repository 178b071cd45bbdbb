"""Properties that hold for any input."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from deepseek_edu.reference import quant

from . import fractions_oracle as oracle
from .bits import assert_same_bits, exact

finite = st.floats(-1e6, 1e6, width=32)
blocks16 = arrays(np.float32, 16, elements=st.floats(-(2.0**14), 2.0**14, width=32))
blocks32 = arrays(np.float32, 32, elements=st.floats(-(2.0**14), 2.0**14, width=32))


@given(finite)
def test_rounding_twice_is_rounding_once(x):
    for round_to in (quant.round_to_e2m1, quant.round_to_e4m3):
        assert_same_bits(round_to(round_to(x)), round_to(x))


@given(finite, finite)
def test_rounding_keeps_the_order(x, y):
    low, high = sorted([x, y])
    for round_to in (quant.round_to_e2m1, quant.round_to_e4m3):
        assert round_to(low) <= round_to(high)


@given(finite)
def test_rounding_is_symmetric_in_the_sign(x):
    for round_to in (quant.round_to_e2m1, quant.round_to_e4m3):
        assert_same_bits(round_to(np.float32(-x)), -round_to(np.float32(x)))


@given(finite)
def test_the_error_is_at_most_half_the_gap_around_the_value(x):
    for name, numbers in (("round_to_e2m1", oracle.E2M1), ("round_to_e4m3", oracle.E4M3)):
        magnitude = min(exact(x), numbers[-1])
        above = next(k for k, number in enumerate(numbers) if number >= magnitude)
        gap = numbers[above] - numbers[max(above - 1, 0)]
        got = exact(getattr(quant, name)(np.float32(x)))
        assert abs(got - magnitude) <= gap / 2


@given(st.floats(0, 2.0**100, width=32))
def test_a_power_of_two_scale_brings_amax_into_the_upper_half_of_the_range(amax):
    scale = exact(quant.scale_e8m0_for_fp4(np.float32(amax)))
    assert exact(amax) / scale <= 6
    assert exact(amax) / scale > 3 or scale == exact(2.0**-126)
    scale = exact(quant.scale_e8m0_for_fp8(np.float32(amax)))
    assert exact(amax) / scale <= 448
    assert exact(amax) / scale > 224 or scale == exact(2.0**-22)


@given(st.floats(6 * 2.0**-6, 6 * 448, width=32))
def test_an_e4m3_scale_is_within_a_sixteenth_of_amax_over_six(amax):
    ratio = exact(quant.scale_e4m3_for_fp4(np.float32(amax))) / (exact(amax) / 6)
    assert abs(ratio - 1) <= exact(1 / 16)


@given(blocks16)
@settings(max_examples=60)
def test_a_main_cache_block_equals_exact_arithmetic(x):
    got = quant.quantize_fp4(x)
    scale = oracle.e4m3_scale(max(map(exact, x)))
    assert exact(got.scales[0]) == scale
    assert [code & 7 for code in got.codes.tolist()] == [oracle.nearest(exact(v) / scale, oracle.E2M1) for v in x]
    assert [exact(v) for v in got.values] == [oracle.E2M1[code & 7] * scale for code in got.codes.tolist()]
    np.testing.assert_array_equal(np.signbit(got.values), np.signbit(x))


@given(blocks32)
@settings(max_examples=40)
def test_an_index_key_block_and_a_window_block_equal_exact_arithmetic(x):
    amax = max(map(exact, x))
    for got, scale, numbers, mask in (
        (quant.quantize_fp4(x, 32, "e8m0"), oracle.e8m0_scale(amax), oracle.E2M1, 7),
        (quant.quantize_fp8(x), oracle.fp8_scale(amax), oracle.E4M3, 127),
    ):
        assert exact(got.scales[0]) == scale
        expected = [oracle.nearest(exact(v) / scale, numbers) for v in x]
        assert [code & mask for code in got.codes.tolist()] == expected
        np.testing.assert_array_equal(got.codes > mask, np.signbit(x))


@given(blocks32)
def test_storing_what_was_read_back_changes_nothing(x):
    for quantize in (lambda v: quant.quantize_fp4(v, 32, "e8m0"), quant.quantize_fp8):
        once = quantize(x).values
        assert_same_bits(quantize(once).values, once)
    once = quant.quantize_fp4(x)
    if once.scales.min() >= 3 * 2.0**-9:
        assert_same_bits(quant.quantize_fp4(once.values).values, once.values)


def test_the_smallest_e4m3_scales_can_shrink_on_a_second_pass():
    """The limit of the property above: steps between scales of 2**-9 and 2**-8 are too coarse for it."""
    x = np.zeros(16)
    x[0] = 6 * 1.6 * 2.0**-9
    once = quant.quantize_fp4(x)
    again = quant.quantize_fp4(once.values)
    assert (once.scales.tolist(), again.scales.tolist()) == ([2.0**-8], [2.0**-9])
    assert (once.values[0], again.values[0]) == (8 * 2.0**-9, 6 * 2.0**-9)


@given(arrays(np.uint8, array_shapes(min_dims=1, max_dims=3), elements=st.integers(0, 15)))
def test_unpacking_undoes_packing(codes):
    codes = np.repeat(codes, 2, axis=-1)
    codes[..., ::2] ^= 5  # the two nibbles of a byte differ, so an exchange would be seen
    packed = quant.pack_nibbles(codes)
    assert packed.size * 2 == codes.size
    np.testing.assert_array_equal(quant.unpack_nibbles(packed), codes)


@given(blocks32, st.integers(-40, 40))
def test_a_power_of_two_scale_follows_a_change_of_unit_by_a_power_of_two(x, shift):
    """Between the floors, the codes of index keys do not depend on the unit of the values."""
    if np.abs(x).max() > 1e-3:
        scaled = np.ldexp(x, shift)
        np.testing.assert_array_equal(
            quant.quantize_fp4(scaled, 32, "e8m0").codes, quant.quantize_fp4(x, 32, "e8m0").codes
        )
