"""Bad input is refused with a sentence that says what was got, what is expected and what to do."""

import numpy as np
import pytest

from deepseek_edu.reference import quant

X = np.ones(32)
WITH_NAN = np.array([1.0] * 15 + [np.nan])
WITH_INF = np.array([[1.0] * 16, [1.0] * 3 + [-np.inf] + [1.0] * 12])

CASES = [
    (lambda: quant.quantize_fp4(WITH_NAN), ["x must be finite", "got nan at index (15,)"]),
    (lambda: quant.quantize_fp4(WITH_INF), ["x must be finite", "got -inf at index (1, 3)", "before quantising"]),
    (lambda: quant.quantize_fp8(np.full(32, np.nan)), ["x must be finite", "got nan"]),
    (lambda: quant.encode_e2m1(np.nan), ["x must be finite", "got nan"]),
    (lambda: quant.encode_e4m3(np.inf), ["x must be finite", "got inf"]),
    (lambda: quant.quantize_fp4(np.ones(20)), ["multiple of block = 16", "got 20", "pad"]),
    (lambda: quant.quantize_fp8(np.ones((2, 33))), ["multiple of block = 32", "got 33"]),
    (lambda: quant.quantize_fp4(3.0), ["multiple of block = 16", "got 1"]),
    (lambda: quant.quantize_fp4(X, block=0), ["block must be a positive integer", "got 0"]),
    (lambda: quant.quantize_fp4(X, block=16.0), ["block must be a positive integer", "got 16.0"]),
    (lambda: quant.quantize_fp4(X, scale_kind="fp32"), ["scale_kind must be 'e4m3' or 'e8m0'", "got 'fp32'"]),
    (lambda: quant.quantize_fp4(X, ties="up"), ["ties must be one of even, away, down", "got 'up'"]),
    (lambda: quant.quantize_fp4(X * 2.0**127), ["x must be below 2**127", "overflow"]),
    (lambda: quant.quantize_fp4(["1", "2"]), ["x must be real numbers", "convert"]),
    (lambda: quant.round_to_e2m1([1 + 2j]), ["x must be real numbers", "complex128"]),
    (lambda: quant.decode_e2m1([3, 16]), ["codes must be integers 0 … 15", "got 3 … 16"]),
    (lambda: quant.decode_e2m1([0.5]), ["codes must be integers 0 … 15", "float64", "encode"]),
    (lambda: quant.decode_e4m3([-1]), ["codes must be integers 0 … 255", "got -1"]),
    (lambda: quant.pack_nibbles([1, 2, 3]), ["even last dimension", "(3,)", "append"]),
    (lambda: quant.pack_nibbles([1, 16]), ["codes must be integers 0 … 15"]),
    (lambda: quant.unpack_nibbles([256]), ["packed must be integers 0 … 255"]),
    (lambda: quant.unpack_nibbles(7), ["packed must have at least one dimension"]),
    (lambda: quant.encode_e8m0([1.0, 3.0]), ["scale must be a power of two", "got 3.0", "power_of_two_at_least"]),
    (lambda: quant.encode_e8m0(0.0), ["scale must be a power of two", "got 0.0"]),
    (lambda: quant.encode_e8m0(-2.0), ["scale must be a power of two", "got -2.0"]),
    (lambda: quant.encode_e8m0(2.0**128), ["scale must be a power of two from 2**-127 to 2**127"]),
    (lambda: quant.encode_e8m0(2.0**-128), ["scale must be a power of two from 2**-127 to 2**127"]),
    (lambda: quant.decode_e8m0(256), ["scale_bytes must be integers 0 … 255", "got 256"]),
    (lambda: quant.scale_e4m3_for_fp4(-1.0), ["amax must be 0 … 2**127", "got -1.0"]),
    (lambda: quant.scale_e8m0_for_fp4(np.nan), ["amax must be finite", "got nan"]),
    (lambda: quant.scale_e8m0_for_fp8(1e300), ["amax must be 0 … 2**127"]),
    (lambda: quant.scale_e8m0_for_fp4(2.0**127), ["amax must be 0 … 2**127"]),
    (lambda: quant.power_of_two_at_least(2.0**-128), ["x must be 2**-127 … 2**127"]),
    (lambda: quant.power_of_two_at_least(1.01 * 2.0**127), ["x must be 2**-127 … 2**127"]),
    (lambda: quant.power_of_two_at_least(0.0), ["x must be 2**-127 … 2**127", "got 0.0", "floor"]),
    (lambda: quant.dequantize_fp4(np.zeros(8, int), [1, 1]), ["one byte per block of 16", "(2,)", "(16,)"]),
    (lambda: quant.dequantize_fp4(np.zeros(8, int), [1], scale_kind="e5m2"), ["scale_kind must be"]),
    (lambda: quant.dequantize_fp8(np.zeros(30, int), [1]), ["multiple of block = 32", "got 30"]),
    (lambda: quant.fp4_bytes(100, 16), ["multiple of block = 16", "got 100"]),
    (lambda: quant.bits_per_value(-4), ["block must be a positive integer"]),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_bad_input_is_refused_with_got_expected_and_next_step(number):
    call, words = CASES[number]
    with pytest.raises(ValueError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_bad_input_gives_no_numpy_warning(number, recwarn):
    with pytest.raises(ValueError):
        CASES[number][0]()
    assert [str(warning.message) for warning in recwarn] == []


def test_the_largest_and_smallest_allowed_numbers_are_taken():
    powers = np.float32([2.0**-127, 2.0**127])
    np.testing.assert_array_equal(quant.power_of_two_at_least(powers), powers)
    np.testing.assert_array_equal(quant.encode_e8m0(powers), [0, 254])
    assert float(quant.scale_e8m0_for_fp4(1.99 * 2.0**126)) == 2.0**125
    largest = np.full(16, np.nextafter(np.float32(2.0**127), np.float32(0)))
    for result in (quant.quantize_fp4(largest, 16, "e8m0"), quant.quantize_fp8(largest, 16)):
        assert np.all(np.isfinite(result.values))
    assert quant.quantize_fp4(largest).values.max() == 2688
    assert quant.bits_per_value(1) == 12


def test_a_result_cannot_be_rebound_and_compares_by_identity():
    result = quant.quantize_fp4(X)
    with pytest.raises(AttributeError):
        result.codes = None
    assert result == result and result != quant.quantize_fp4(X)
