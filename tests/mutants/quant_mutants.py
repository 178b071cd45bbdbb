"""Wrong variants of reference/quant.py: mistakes that shipped elsewhere, and one for each other rule.

Two differences are no mistakes that a test could see: dividing by 6 or 448 instead of multiplying by the rounded
reciprocal chooses the same power of two for every float32 number
(`test_power_of_two_scales_are_exact_for_every_float32_mantissa`), and so does comparing exponent bits instead of frexp
(`test_power_of_two_at_least_matches_the_exponent_bits`).
"""

from tests.mutants.mutation import Mutant

MODULE = "deepseek_edu.reference.quant"
FORMATS = "tests.reference.test_quant_formats:test_"
SCALES = "tests.reference.test_quant_scales:test_"
BLOCKS = "tests.reference.test_quant_blocks:test_"
VECTORS = "tests.reference.test_quant_vectors:test_"


def _mutant(rule, change, old, new, killed_by):
    return Mutant(rule, change, MODULE, old, new, killed_by)


MUTANTS = (
    # rounding to a code
    _mutant(
        "ties go to the even code",
        "ties go away from zero",
        "return below % 2 == 1",
        "return True",
        f"{FORMATS}the_seven_ties_of_e2m1_go_to_the_even_code",
    ),
    _mutant(
        "ties go to the even code",
        "ties go toward zero",
        "return below % 2 == 1",
        "return False",
        f"{FORMATS}the_126_ties_of_e4m3_go_to_the_even_code",
    ),
    _mutant(
        "ties go to the even code",
        "ties go to the odd code",
        "return below % 2 == 1",
        "return below % 2 == 0",
        f"{FORMATS}the_seven_ties_of_e2m1_go_to_the_even_code",
    ),
    _mutant(
        "the nearest level is taken",
        "the level below is taken (truncation)",
        "goes_up = (clipped > halfway) |",
        "goes_up = (clipped == levels[above]) |",
        f"{FORMATS}every_bfloat16_number_gets_the_nearest_e2m1_code",
    ),
    _mutant(
        "values beyond the largest level are clipped",
        "no clipping",
        "clipped = np.minimum(magnitude, levels[-1])",
        "clipped = magnitude",
        f"{FORMATS}values_beyond_the_largest_number_are_clipped_to_it",
    ),
    _mutant(
        "E2M1 levels 4 and 6 follow 3",
        "the levels go on evenly: 4 and 5",
        "3.0, 4.0, 6.0]",
        "3.0, 4.0, 5.0]",
        f"{FORMATS}all_16_codes_of_e2m1_have_the_value_of_their_bits",
    ),
    _mutant(
        "E4M3 subnormals have steps of 2**-9",
        "steps of 2**-10, as if the hidden bit had gone with the exponent",
        "[m * 2.0**-9 for m in range(8)]",
        "[m * 2.0**-10 for m in range(8)]",
        f"{FORMATS}e4m3_below_its_smallest_normal_number_has_steps_of_two_to_the_minus_nine",
    ),
    _mutant(
        "E4M3 has subnormals",
        "what is below 2**-6 becomes zero",
        "[m * 2.0**-9 for m in range(8)]",
        "[0.0] * 8",
        f"{FORMATS}e4m3_below_its_smallest_normal_number_has_steps_of_two_to_the_minus_nine",
    ),
    _mutant(
        "E4M3 saturates at 448",
        "the pattern of NaN is used as 480",
        "for m in range(8)][:-1],",
        "for m in range(8)],",
        f"{FORMATS}values_beyond_the_largest_number_are_clipped_to_it",
    ),
    _mutant(
        "E4M3 keeps NaN",
        "NaN is stored as zero",
        "np.where(np.isnan(x), 0x7F,",
        "np.where(np.isnan(x), 0,",
        f"{FORMATS}all_256_codes_of_e4m3_round_trip",
    ),
    _mutant(
        "the sign of a zero is kept (FP4)",
        "the sign is taken from x < 0",
        "E2M1_LEVELS, ties) + 8 * np.signbit(x))",
        "E2M1_LEVELS, ties) + 8 * (x < 0))",
        f"{FORMATS}the_sign_of_a_zero_is_kept",
    ),
    _mutant(
        "the sign of a zero is kept (FP8)",
        "the sign is taken from x < 0",
        "128 * np.signbit(x)).astype",
        "128 * (x < 0)).astype",
        f"{FORMATS}the_sign_of_a_zero_is_kept",
    ),
    _mutant(
        "code 8 reads back as −0",
        "negative zero is lost on reading",
        "return np.where(codes & 8, -magnitude, magnitude)",
        "return np.where(codes & 8, 0 - magnitude, magnitude)",
        f"{FORMATS}all_16_codes_of_e2m1_have_the_value_of_their_bits",
    ),
    _mutant(
        "a number is rounded once",
        "a float64 number is rounded to float32 on the way",
        "return (nearest_code(np.abs(x), E2M1_LEVELS, ties)",
        "return (nearest_code(np.abs(np.float32(x)), E2M1_LEVELS, ties)",
        f"{FORMATS}float64_input_is_not_rounded_twice",
    ),
    # the scale
    _mutant(
        "the E4M3 scale is rounded to nearest",
        "it is rounded up, so that nothing is clipped",
        "return round_to_e4m3(amax / np.float32(FP4_MAX))",
        "return E4M3_LEVELS[np.searchsorted(E4M3_LEVELS, np.minimum(amax / np.float32(FP4_MAX), 448))]",
        f"{SCALES}worked_scales_of_the_main_cache",
    ),
    _mutant(
        "the E4M3 scale is amax / 6",
        "amax / 4, as if four were the largest level",
        "return round_to_e4m3(amax / np.float32(FP4_MAX))",
        "return round_to_e4m3(amax / np.float32(4))",
        f"{SCALES}worked_scales_of_the_main_cache",
    ),
    _mutant(
        "the E4M3 scale has a floor of 2**-9",
        "no floor: a zero block divides by zero",
        "np.maximum(_largest(amax), np.float32(6 * 2.0**-9))",
        "_largest(amax)",
        f"{BLOCKS}zero_blocks_read_back_as_zeros",
    ),
    _mutant(
        "the E4M3 scale saturates at 448",
        "it overflows to NaN",
        "return round_to_e4m3(amax / np.float32(FP4_MAX))",
        "scale = amax / np.float32(FP4_MAX); return np.where(scale > 464, np.float32(np.nan), round_to_e4m3(scale))",
        f"{SCALES}e4m3_scale_saturates_at_448",
    ),
    _mutant(
        "the E8M0 scale is rounded up",
        "it is rounded down (floor of the logarithm)",
        "np.where(mantissa == 0.5, exponent - 1, exponent)",
        "exponent - 1",
        f"{SCALES}e8m0_scale_is_rounded_up_to_a_power_of_two",
    ),
    _mutant(
        "an exact power of two is its own scale",
        "it gets the next power",
        "np.where(mantissa == 0.5, exponent - 1, exponent)",
        "exponent",
        f"{SCALES}e8m0_scale_is_rounded_up_to_a_power_of_two",
    ),
    _mutant(
        "ceil(log2) is exact",
        "a rounded logarithm takes a number just above a power of two for that power",
        "np.where(mantissa == 0.5, exponent - 1, exponent))",
        "np.ceil(np.log2(np.float32(x))).astype(int))",
        f"{SCALES}power_of_two_at_least_matches_the_exponent_bits",
    ),
    _mutant(
        "the E8M0 scale of index keys has a floor of 2**-126",
        "no floor",
        "np.maximum(_largest(amax), np.float32(6 * 2.0**-126))",
        "_largest(amax)",
        f"{BLOCKS}zero_blocks_read_back_as_zeros",
    ),
    _mutant(
        "the E8M0 scale of index keys uses 6",
        "it uses 448, the largest FP8 number",
        "amax * np.float32(1 / FP4_MAX)",
        "amax * np.float32(1 / FP8_MAX)",
        f"{VECTORS}index_key_vectors_are_reproduced",
    ),
    _mutant(
        "the window cache has a floor of 1e-4 on amax",
        "the floor lies on amax / 448 (as in one serving engine)",
        "amax = np.maximum(_largest(amax), np.float32(1e-4))",
        "amax = np.maximum(_largest(amax), np.float32(448 * 1e-4))",
        f"{SCALES}the_floor_of_the_window_cache_lies_on_amax_and_not_on_the_scale",
    ),
    _mutant(
        "the bias of E8M0 is 127",
        "128",
        "exponent - 1 + 127",
        "exponent - 1 + 128",
        f"{FORMATS}all_255_powers_of_e8m0_round_trip_and_255_is_nan",
    ),
    _mutant(
        "E8M0 byte 255 is NaN",
        "it is read as 2**127",
        "np.where(scale_bytes == 255, np.float32(np.nan), power)",
        "power",
        f"{FORMATS}all_255_powers_of_e8m0_round_trip_and_255_is_nan",
    ),
    # blocks and bytes
    _mutant(
        "a value is divided by the scale",
        "it is multiplied by the scale's rounded reciprocal, which breaks ties",
        "codes = encode_e2m1(blocks / scales[..., None], ties)",
        "codes = encode_e2m1(blocks * (np.float32(1) / scales)[..., None], ties)",
        f"{BLOCKS}every_tie_under_every_e4m3_scale_goes_to_the_even_code",
    ),
    _mutant(
        "the quotient is rounded once",
        "it is rounded to half precision before it is rounded to E2M1",
        "codes = encode_e2m1(blocks / scales[..., None], ties)",
        "codes = encode_e2m1((blocks / scales[..., None]).astype(np.float16), ties)",
        f"{BLOCKS}every_tie_under_every_e4m3_scale_goes_to_the_even_code",
    ),
    _mutant(
        "values are divided by the stored scale",
        "they are divided by amax / 6 before its rounding",
        "codes = encode_e2m1(blocks / scales[..., None], ties)",
        "codes = encode_e2m1(blocks / (np.abs(blocks).max(-1, keepdims=True) / 6 + 1e-30), ties)",
        f"{VECTORS}main_cache_vectors_are_reproduced",
    ),
    _mutant(
        "amax is the largest magnitude",
        "amax is the largest value, signs ignored",
        "_fp4_scale(scale_kind)(np.abs(blocks).max(axis=-1))",
        "_fp4_scale(scale_kind)(np.maximum(blocks.max(axis=-1), 0))",
        f"{BLOCKS}a_negative_value_can_be_the_largest_magnitude",
    ),
    _mutant(
        "every block has its own scale",
        "one scale for all (a tensor scale)",
        "_fp4_scale(scale_kind)(np.abs(blocks).max(axis=-1))",
        "_fp4_scale(scale_kind)(np.full(blocks.shape[:-1], np.abs(blocks).max()))",
        f"{BLOCKS}each_block_has_its_own_scale_and_the_last_dimension_is_the_one_that_is_split",
    ),
    _mutant(
        "blocks of the main cache have 16 values",
        "32",
        "def quantize_fp4(x, block=16,",
        "def quantize_fp4(x, block=32,",
        f"{BLOCKS}the_default_blocks_are_those_of_the_caches",
    ),
    _mutant(
        "blocks of the window cache have 32 values",
        "128, as in an older model",
        "def quantize_fp8(x, block=32,",
        "def quantize_fp8(x, block=128,",
        f"{BLOCKS}the_default_blocks_are_those_of_the_caches",
    ),
    _mutant(
        "blocks are runs of neighbouring channels",
        "blocks are every n-th channel",
        "return x.astype(np.float32).reshape(*x.shape[:-1], width // block, block)",
        "return x.astype(np.float32).reshape(*x.shape[:-1], block, width // block).swapaxes(-1, -2)",
        f"{BLOCKS}each_block_has_its_own_scale_and_the_last_dimension_is_the_one_that_is_split",
    ),
    _mutant(
        "the main cache stores the E4M3 code of its scale",
        "it stores an exponent",
        "encode_e4m3(scales) if scale_kind",
        "encode_e8m0(power_of_two_at_least(scales)) if scale_kind",
        f"{VECTORS}main_cache_vectors_are_reproduced",
    ),
    _mutant(
        "the even channel lies in the low nibble",
        "packing puts it in the high nibble",
        "codes[..., 0::2] | codes[..., 1::2] << 4",
        "codes[..., 1::2] | codes[..., 0::2] << 4",
        f"{BLOCKS}even_channels_lie_in_the_low_nibble",
    ),
    _mutant(
        "the low nibble is the even channel",
        "unpacking exchanges them",
        "np.stack([packed & 15, packed >> 4], axis=-1)",
        "np.stack([packed >> 4, packed & 15], axis=-1)",
        f"{BLOCKS}even_channels_lie_in_the_low_nibble",
    ),
    _mutant(
        "neighbouring channels share a byte",
        "the two halves of the entry are interleaved",
        "codes[..., 0::2] | codes[..., 1::2] << 4",
        "codes[..., : codes.shape[-1] // 2] | codes[..., codes.shape[-1] // 2 :] << 4",
        f"{VECTORS}main_cache_vectors_are_reproduced",
    ),
    _mutant(
        "an entry's bytes include its scales",
        "the scale bytes are forgotten",
        "return n // 2 + n // block",
        "return n // 2",
        f"{BLOCKS}bytes_of_an_entry_follow_from_its_parts",
    ),
)
