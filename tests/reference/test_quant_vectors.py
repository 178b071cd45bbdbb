"""The quantisers reproduce the recorded outputs of the reference kernels, bit by bit."""

import numpy as np

from deepseek_edu.reference import quant

from .bits import assert_same_bits, recorded_vectors


def test_main_cache_vectors_are_reproduced():
    case = recorded_vectors()["fp4_e4m3_block16"]
    got = quant.quantize_fp4(np.float32(case["input_bf16"]), block=16, scale_kind="e4m3")
    np.testing.assert_array_equal(got.packed, case["packed_bytes_low_nibble_first"])
    np.testing.assert_array_equal(got.scale_bytes, case["scale_bits"])
    assert_same_bits(got.scales, case["scale"])
    assert_same_bits(got.values, case["dequant_bf16"])


def test_index_key_vectors_are_reproduced():
    case = recorded_vectors()["fp4_e8m0_block32"]
    got = quant.quantize_fp4(np.float32(case["input_bf16"]), block=32, scale_kind="e8m0")
    np.testing.assert_array_equal(got.packed, case["packed_bytes_low_nibble_first"])
    assert_same_bits(got.scales, case["scale"])
    assert_same_bits(got.values, case["dequant_bf16"])


def test_window_cache_vectors_are_reproduced():
    case = recorded_vectors()["fp8_e8m0_block32"]
    got = quant.quantize_fp8(np.float32(case["input_bf16"]), block=32)
    np.testing.assert_array_equal(got.codes, case["codes"])
    assert_same_bits(got.scales, case["scale"])
    assert_same_bits(got.values, case["dequant_bf16"])


def test_recorded_bytes_read_back_to_the_recorded_values():
    cases = recorded_vectors()
    main, index, window = cases["fp4_e4m3_block16"], cases["fp4_e8m0_block32"], cases["fp8_e8m0_block32"]
    assert_same_bits(
        quant.dequantize_fp4(main["packed_bytes_low_nibble_first"], main["scale_bits"], 16, "e4m3"),
        main["dequant_bf16"],
    )
    exponents = (np.log2(np.float64(index["scale"])) + 127).astype(int)
    assert_same_bits(
        quant.dequantize_fp4(index["packed_bytes_low_nibble_first"], exponents, 32, "e8m0"), index["dequant_bf16"]
    )
    exponents = (np.log2(np.float64(window["scale"])) + 127).astype(int)
    assert_same_bits(quant.dequantize_fp8(window["codes"], exponents, 32), window["dequant_bf16"])


def test_every_quantiser_case_of_the_vectors_is_used():
    cases = recorded_vectors()
    assert set(cases) == {"fp4_e4m3_block16", "fp4_e8m0_block32", "fp8_e8m0_block32"}
    assert [len(case["input_bf16"]) for case in cases.values()] == [5, 5, 5]


def test_read_back_values_are_bfloat16_numbers():
    """A code times a scale needs at most eight significant bits, so storing the result in bfloat16 loses nothing."""
    x = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32) * 10
    results = [quant.quantize_fp4(x), quant.quantize_fp4(x, 32, "e8m0"), quant.quantize_fp8(x)]
    for result in results:
        assert not np.any(result.values.view(np.uint32) & 0xFFFF)
