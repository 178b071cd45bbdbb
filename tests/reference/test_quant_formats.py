"""E2M1, E4M3 and E8M0: every code, every tie, every bfloat16 number."""

from fractions import Fraction

import numpy as np
import pytest

from deepseek_edu.reference import quant

from . import fractions_oracle as oracle
from .bits import assert_same_bits, every_bfloat16, exact, just_above, just_below

E2M1_TIES = [(0.25, 0.0), (0.75, 1.0), (1.25, 1.0), (1.75, 2.0), (2.5, 2.0), (3.5, 4.0), (5.0, 4.0)]


def test_all_16_codes_of_e2m1_have_the_value_of_their_bits():
    expected = [float(oracle.E2M1[code & 7]) * (-1 if code & 8 else 1) for code in range(16)]
    assert_same_bits(quant.decode_e2m1(range(16)), expected)
    assert len(set(expected)) == 15  # +0 and −0 are one number


def test_all_16_codes_of_e2m1_round_trip():
    np.testing.assert_array_equal(quant.encode_e2m1(quant.decode_e2m1(range(16))), range(16))


def test_all_256_codes_of_e4m3_have_the_value_of_their_bits():
    numbers = [*map(float, oracle.E4M3), float("nan")]
    got = quant.decode_e4m3(range(256))
    np.testing.assert_array_equal(np.abs(got), np.float32(numbers * 2))
    np.testing.assert_array_equal(np.signbit(got), np.arange(256) >= 128)


def test_all_256_codes_of_e4m3_round_trip():
    np.testing.assert_array_equal(quant.encode_e4m3(quant.decode_e4m3(range(256))), range(256))


def test_all_255_powers_of_e8m0_round_trip_and_255_is_nan():
    scales = quant.decode_e8m0(range(255))
    assert [Fraction(float(s)) for s in scales] == [Fraction(2) ** (byte - 127) for byte in range(255)]
    np.testing.assert_array_equal(quant.encode_e8m0(scales), range(255))
    assert np.isnan(quant.decode_e8m0(255))


def test_the_seven_ties_of_e2m1_go_to_the_even_code():
    points, expected = np.array(E2M1_TIES).T
    assert [(float(m), float(oracle.E2M1[even])) for m, even in oracle.ties(oracle.E2M1)] == E2M1_TIES
    for dtype in (np.float32, np.float64):
        assert_same_bits(quant.round_to_e2m1(points.astype(dtype)), expected)
        assert_same_bits(quant.round_to_e2m1(-points.astype(dtype)), -expected)


def test_the_126_ties_of_e4m3_go_to_the_even_code():
    midpoints, even = zip(*oracle.ties(oracle.E4M3), strict=True)
    points = np.array([float(m) for m in midpoints])
    assert len(points) == 126
    np.testing.assert_array_equal(quant.encode_e4m3(points), even)
    np.testing.assert_array_equal(quant.encode_e4m3(-points), np.array(even) + 128)


@pytest.mark.parametrize("name", ["e2m1", "e4m3"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_numbers_next_to_a_tie_go_to_the_nearer_side(name, dtype):
    numbers = getattr(oracle, name.upper())
    encode = getattr(quant, f"encode_{name}")
    for k, (midpoint, _) in enumerate(oracle.ties(numbers)):
        point = dtype(float(midpoint))
        assert encode(np.nextafter(point, dtype(0))) == k
        assert encode(np.nextafter(point, dtype(9999))) == k + 1


def test_every_bfloat16_number_gets_the_nearest_e2m1_code():
    x = every_bfloat16()
    expected = [oracle.nearest(exact(v), oracle.E2M1) for v in x]
    np.testing.assert_array_equal(quant.encode_e2m1(x), np.array(expected) + 8 * np.signbit(x))


def test_every_bfloat16_number_gets_the_nearest_e4m3_code():
    x = every_bfloat16()
    expected = [oracle.nearest(exact(v), oracle.E4M3) for v in x]
    np.testing.assert_array_equal(quant.encode_e4m3(x), np.array(expected) + 128 * np.signbit(x))


def test_values_beyond_the_largest_number_are_clipped_to_it():
    assert_same_bits(quant.round_to_e2m1([6.01, 7.0, -1e30]), [6.0, 6.0, -6.0])
    assert_same_bits(quant.round_to_e4m3([449.0, 1e30, -480.0]), [448.0, 448.0, -448.0])
    np.testing.assert_array_equal(quant.encode_e4m3([480.0, -1e30]), [0x7E, 0xFE])


def test_the_sign_of_a_zero_is_kept():
    zeros = [0.0, -0.0, 0.2, -0.2, 0.25, -0.25]
    np.testing.assert_array_equal(quant.encode_e2m1(zeros), [0, 8, 0, 8, 0, 8])
    assert_same_bits(quant.round_to_e2m1(zeros), [0.0, -0.0] * 3)
    assert_same_bits(quant.round_to_e4m3([0.0, -0.0, 0.0009, -0.0009]), [0.0, -0.0, 0.0, -0.0])


def test_e4m3_below_its_smallest_normal_number_has_steps_of_two_to_the_minus_nine():
    step = 2.0**-9
    assert_same_bits(quant.round_to_e4m3(np.arange(9) * step), np.arange(9) * step)
    assert_same_bits(quant.round_to_e4m3([0.5 * step, 1.5 * step, 2.5 * step]), [0.0, 2 * step, 2 * step])
    assert_same_bits(quant.round_to_e4m3(just_above(0.5 * step)), step)
    assert_same_bits(quant.round_to_e4m3(just_below(1.5 * step)), step)


def test_the_wrong_tie_rules_differ_from_the_right_one_at_ties_only():
    points = [m for m, _ in E2M1_TIES]
    away = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    down = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0]
    assert_same_bits(quant.round_to_e2m1(points, "away"), away)
    assert_same_bits(quant.round_to_e2m1(np.negative(points), "away"), np.negative(away))
    assert_same_bits(quant.round_to_e2m1(points, "down"), down)
    x = np.random.default_rng(0).uniform(-7, 7, 10_000)
    for rule in quant.TIE_RULES:
        np.testing.assert_array_equal(quant.encode_e2m1(x, rule), quant.encode_e2m1(x))


def test_float64_input_is_not_rounded_twice():
    """0.25 + 1e-12 is above the tie; rounded to float32 first it would be the tie and go to zero."""
    assert float(quant.round_to_e2m1(0.25 + 1e-12)) == 0.5
    assert float(quant.round_to_e4m3(2.0**-10 + 1e-14)) == 2.0**-9
    assert float(quant.round_to_e2m1(np.float16(0.25))) == 0.0


def test_integers_and_lists_are_taken_and_the_shape_is_kept():
    np.testing.assert_array_equal(quant.round_to_e2m1([[3, -5], [7, 0]]), [[3.0, -4.0], [6.0, 0.0]])
    assert quant.encode_e2m1(3).shape == ()
    assert quant.encode_e2m1(np.zeros((0, 4))).shape == (0, 4)
    assert quant.round_to_e2m1(1.0).dtype == np.float32
