"""The quantisers of PyTorch refuse what those of NumPy refuse, in the same words, and mark what they cannot read."""

import numpy as np
import pytest
import torch

from deepseek_edu.model import quant
from deepseek_edu.reference import quant as numpy_quant

X = np.ones(32, np.float32)


def spoilt(value, at=(1, 3), shape=(2, 32)):
    x = np.ones(shape)
    x[at] = value
    return x


CALLS = {
    "quantize_fp4": [
        (np.nan * X,),
        (spoilt(np.nan),),
        (spoilt(-np.nan, (0, 31)), 32, "e8m0"),
        (spoilt(np.inf),),
        (spoilt(-np.inf),),
        (spoilt(-(2.0**127)),),
        (spoilt(1e300),),
        (spoilt(np.nan, (699, 95), (700, 96)),),  # in the second piece of a large array
        (X > 0,),
        (np.ones(20),),
        (np.float32(3),),
        (X, 0),
        (X, 16.0),
        (X, 16, "fp32"),
    ],
    "quantize_fp8": [(np.nan * X,), (spoilt(np.nan),), (spoilt(np.inf),), (spoilt(2.0**127),), (np.ones((2, 33)),)],
    "encode_e2m1": [(np.array([1.0, np.nan]),), (np.array([[-np.inf]]),), (np.array([True]),)],
    "encode_e4m3": [(np.array([np.inf, 1.0]),), (np.array([True]),)],
    "decode_e2m1": [(np.array([3, 16], np.uint8),), (np.array([0.5]),)],
    "dequantize_fp4": [
        (np.zeros(8, np.uint8), np.ones(2, np.uint8)),
        (np.zeros(8, np.uint8), np.ones(1, np.uint8), 16, "e5m2"),
        (np.zeros(12, np.uint8), np.ones(1, np.uint8)),
    ],
    "dequantize_fp8": [
        (np.zeros(30, np.uint8), np.ones(1, np.uint8)),
        (np.zeros((2, 32), np.uint8), np.ones(2, np.uint8)),
    ],
}


@pytest.mark.parametrize(("name", "number"), [(name, n) for name, some in CALLS.items() for n in range(len(some))])
def test_both_refuse_the_same_input_in_the_same_words(name, number):
    args = CALLS[name][number]
    with pytest.raises(ValueError) as expected:
        getattr(numpy_quant, name)(*args)
    with pytest.raises(ValueError) as got:
        getattr(quant, name)(*(torch.tensor(arg) if isinstance(arg, (np.ndarray, np.generic)) else arg for arg in args))
    types = {"bool": "torch.bool", "float64": "torch.float64"}
    said, wanted = str(got.value), str(expected.value)
    assert said in (wanted, *(wanted.replace(a, b) for a, b in types.items())), wanted


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_not_a_number_is_refused_in_any_type(dtype):
    x = torch.ones(4, 32, dtype=dtype)
    x[2, 7] = torch.nan
    for quantise in (quant.quantize_fp4, quant.quantize_fp8):
        with pytest.raises(ValueError, match=r"x must be finite; got nan at index \(2, 7\)"):
            quantise(x)


def test_the_largest_and_smallest_allowed_numbers_are_taken():
    largest = np.full((2, 32), np.nextafter(np.float32(2.0**127), np.float32(0)))
    largest[1] = 1e-45
    for expected, (packed, scales) in (
        (numpy_quant.quantize_fp4(largest), quant.quantize_fp4(torch.tensor(largest))),
        (numpy_quant.quantize_fp4(largest, 32, "e8m0"), quant.quantize_fp4(torch.tensor(largest), 32, "e8m0")),
        (numpy_quant.quantize_fp8(largest), quant.quantize_fp8(torch.tensor(largest))),
    ):
        np.testing.assert_array_equal(packed, expected.packed)
        np.testing.assert_array_equal(scales, expected.scale_bytes)


def test_a_not_a_number_keeps_its_code_and_sign_in_eight_bits():
    x = np.array([np.nan, -np.nan, 1.0])
    assert quant.encode_e4m3(torch.tensor(x)).tolist() == numpy_quant.encode_e4m3(x).tolist() == [0x7F, 0xFF, 0x38]


def test_every_scale_byte_means_what_it_means_in_numpy():
    codes = torch.arange(256, dtype=torch.uint8)
    np.testing.assert_array_equal(quant.decode_e8m0(codes), numpy_quant.decode_e8m0(codes.numpy()))
    assert bool(quant.decode_e8m0(codes)[255].isnan())


def test_numbers_that_are_no_floats_are_quantised_as_in_numpy():
    x = np.arange(-16, 16)
    np.testing.assert_array_equal(quant.quantize_fp4(torch.tensor(x))[0], numpy_quant.quantize_fp4(x).packed)
