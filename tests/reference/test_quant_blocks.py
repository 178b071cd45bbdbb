"""Whole blocks: packing, clipping, zero groups, ties inside a scaled block, bytes."""

import numpy as np
import pytest

from deepseek_edu.reference import quant

from . import fractions_oracle as oracle
from .bits import assert_same_bits, exact, just_above, just_below


def block_of(values, n=16):
    """A block that starts with the given values and goes on with zeros."""
    return np.concatenate([np.float32(values), np.zeros(n - len(values), np.float32)])


def test_even_channels_lie_in_the_low_nibble():
    np.testing.assert_array_equal(quant.pack_nibbles([1, 2, 15, 0]), [0x21, 0x0F])
    np.testing.assert_array_equal(quant.unpack_nibbles([0x21, 0x0F]), [1, 2, 15, 0])


def test_all_256_bytes_unpack_and_pack():
    every_byte = np.arange(256, dtype=np.uint8).reshape(4, 64)
    codes = quant.unpack_nibbles(every_byte)
    assert codes.shape == (4, 128)
    assert [f"{a:x}{b:x}" for b, a in codes.reshape(-1, 2)] == [f"{byte:02x}" for byte in range(256)]
    np.testing.assert_array_equal(quant.pack_nibbles(codes), every_byte)


def test_worked_block_with_amax_7():
    got = quant.quantize_fp4(block_of([7.0, 1.0, -3.5]))
    assert_same_bits(got.scales, [1.125])
    assert_same_bits(got.values[:3], [6.75, 1.125, -3.375])


def test_worked_block_with_amax_22_625():
    got = quant.quantize_fp4(block_of([22.625, -10.0, 3.296875]))
    assert_same_bits(got.scales, [3.75])
    assert_same_bits(got.values[:3], [22.5, -11.25, 3.75])


def test_worked_value_3_2_at_scale_1_is_stored_as_3():
    got = quant.quantize_fp4(block_of([6.0, 3.2]))
    assert_same_bits(got.values[:2], [6.0, 3.0])


def test_a_negative_value_can_be_the_largest_magnitude():
    assert_same_bits(quant.quantize_fp4(block_of([-12.0, 3.0])).scales, [2.0])
    assert_same_bits(quant.quantize_fp4(block_of([-12.0, 3.0], 32), 32, "e8m0").scales, [2.0])
    assert_same_bits(quant.quantize_fp8(block_of([-448.0, 3.0], 32)).scales, [1.0])


def test_a_scale_rounded_down_clips_the_largest_value():
    got = quant.quantize_fp4(block_of([7.0]))
    assert 7.0 / 1.125 > 6.0
    assert got.codes[0] == 7 and got.values[0] == 6.75


def test_zero_blocks_read_back_as_zeros():
    for x in (np.zeros(32, np.float32), -np.zeros(32, np.float32)):
        results = [quant.quantize_fp4(x), quant.quantize_fp4(x, 32, "e8m0"), quant.quantize_fp8(x)]
        for result in results:
            assert_same_bits(result.values, x)
            assert np.all(result.scales > 0)
    assert quant.quantize_fp4(np.zeros(16)).scale_bytes.tolist() == [1]
    assert quant.quantize_fp4(np.zeros(32), 32, "e8m0").scale_bytes.tolist() == [1]
    assert quant.quantize_fp8(np.zeros(32)).scale_bytes.tolist() == [127 - 22]


def test_every_tie_under_every_e4m3_scale_goes_to_the_even_code():
    """A block with amax 6·s has the scale s; midpoint · s is then a tie, and its float32 neighbours are not."""
    for s in map(float, oracle.E4M3[1:]):
        for k, (midpoint, even) in enumerate(oracle.ties(oracle.E2M1)):
            tie = np.float32(float(midpoint) * s)
            got = quant.quantize_fp4(block_of([6 * s, tie, just_below(tie), just_above(tie), -tie]))
            assert float(got.scales[0]) == s
            assert got.codes[:5].tolist() == [7, even, k, k + 1, even + 8]


def test_every_tie_under_power_of_two_scales_goes_to_the_even_code():
    for s in (2.0**-126, 2.0**-9, 0.5, 1.0, 2.0**20, 2.0**124):
        for k, (midpoint, even) in enumerate(oracle.ties(oracle.E2M1)):
            tie = np.float32(float(midpoint) * s)
            got = quant.quantize_fp4(block_of([6 * s, tie, just_above(tie)], 32), 32, "e8m0")
            assert float(got.scales[0]) == s
            assert got.codes[:3].tolist() == [7, even, k + 1]


def test_random_blocks_equal_exact_arithmetic():
    x = np.random.default_rng(11).standard_normal((40, 64)).astype(np.float32)
    x *= np.float32(2.0) ** np.arange(-20, 20, dtype=np.float32)[:, None]
    for block, kind, scale_of in ((16, "e4m3", oracle.e4m3_scale), (32, "e8m0", oracle.e8m0_scale)):
        got = quant.quantize_fp4(x, block, kind)
        for row, blocks in enumerate(x.reshape(len(x), -1, block)):
            for group, values in enumerate(blocks):
                scale = scale_of(max(map(exact, values)))
                assert exact(got.scales[row, group]) == scale
                expected = [oracle.nearest(exact(v) / scale, oracle.E2M1) + 8 * (v < 0) for v in values]
                assert got.codes[row, group * block : (group + 1) * block].tolist() == expected


def test_each_block_has_its_own_scale_and_the_last_dimension_is_the_one_that_is_split():
    x = np.zeros((2, 48), np.float32)
    x[0, 1], x[0, 16], x[1, 47] = 6.0, 12.0, 24.0
    got = quant.quantize_fp4(x)
    assert_same_bits(got.scales, [[1.0, 2.0, 2.0**-9], [2.0**-9, 2.0**-9, 4.0]])
    assert got.codes.shape == (2, 48) and got.packed.shape == (2, 24) and got.scale_bytes.shape == (2, 3)


def test_the_default_blocks_are_those_of_the_caches():
    x = np.random.default_rng(2).standard_normal((3, 512))
    assert quant.quantize_fp4(x).scales.shape == (3, 32)
    assert quant.quantize_fp8(x).scales.shape == (3, 16)


def test_stored_bytes_alone_are_enough_to_read_back():
    x = np.random.default_rng(4).standard_t(3, (5, 64))
    for block, kind in ((16, "e4m3"), (32, "e8m0"), (8, "e8m0")):
        stored = quant.quantize_fp4(x, block, kind)
        assert_same_bits(quant.dequantize_fp4(stored.packed, stored.scale_bytes, block, kind), stored.values)
    stored = quant.quantize_fp8(x)
    assert_same_bits(quant.dequantize_fp8(stored.codes, stored.scale_bytes), stored.values)


def test_bytes_of_an_entry_follow_from_its_parts():
    """Main entry: 512 · 4 bits = 256 B and 32 scales. Index key: 64 B and 4. Window entry: 512 B and 16."""
    assert quant.fp4_bytes(512, 16) == 256 + 32 == 288
    assert quant.fp4_bytes(128, 32) == 64 + 4 == 68
    assert quant.fp8_bytes(512, 32) == 512 + 16 == 528
    assert quant.fp4_bytes(16, 16) == 9
    assert (quant.bits_per_value(16), quant.bits_per_value(32)) == (4.5, 4.25)
    assert (288 + 68) * (3 / 2 + 1) == 890


def test_bytes_of_real_arrays_agree_with_the_closed_forms():
    x = np.ones((1, 512))
    assert quant.quantize_fp4(x).nbytes == 288
    assert quant.quantize_fp4(x[:, :128], 32, "e8m0").nbytes == 68
    assert quant.quantize_fp8(x).nbytes == 528


@pytest.mark.parametrize("rule", ["away", "down"])
def test_wrong_tie_rules_reach_whole_blocks(rule):
    got = quant.quantize_fp4(block_of([6.0, 2.5, 0.75]), ties=rule)
    assert got.values[1:3].tolist() == {"away": [3.0, 1.0], "down": [2.0, 0.5]}[rule]


def test_results_are_fresh_and_the_input_is_untouched():
    x = np.random.default_rng(6).standard_normal(32)
    before = x.copy()
    got = quant.quantize_fp4(x)
    got.values[:] = 0
    np.testing.assert_array_equal(x, before)
    assert not quant.E2M1_LEVELS.flags.writeable and not quant.E4M3_LEVELS.flags.writeable


@pytest.mark.parametrize("shape", [(0, 32), (0,), (3, 0), (2, 0, 64), (0, 0)])
def test_nothing_is_quantised_to_nothing(shape):
    for stored, read in (
        (quant.quantize_fp8(np.zeros(shape)), lambda s: quant.dequantize_fp8(s.packed, s.scale_bytes)),
        (quant.quantize_fp4(np.zeros(shape)), lambda s: quant.dequantize_fp4(s.packed, s.scale_bytes)),
        (
            quant.quantize_fp4(np.zeros(shape), 32, "e8m0"),
            lambda s: quant.dequantize_fp4(s.packed, s.scale_bytes, 32, "e8m0"),
        ),
    ):
        assert stored.values.shape == stored.codes.shape == read(stored).shape == shape
