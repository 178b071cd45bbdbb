"""Four-bit and eight-bit blocks: the bytes of reference.quant, and gradients straight through."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.model import quant, storage
from deepseek_edu.reference import quant as numpy_quant

TIES = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0, 0.0, -0.0], np.float32)


def blocks(seed, size=64):
    """Random rows of very different sizes, some with exact ties, zeros and a zero block."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, size)).astype(np.float32) * 2.0 ** rng.integers(-30, 12, (40, 1)).astype(np.float32)
    x[1] = 0
    x[2, :32] = 0
    x[3:20] = rng.choice(np.concatenate([TIES, -TIES]), (17, size)) * 2.0 ** rng.integers(-3, 3, (17, 1))
    x[20:30] = x[20:30].astype(np.float16)
    return x


@pytest.mark.parametrize(("block", "kind"), [(16, "e4m3"), (32, "e8m0"), (32, "e4m3"), (16, "e8m0")])
@pytest.mark.parametrize("seed", range(5))
def test_four_bit_blocks_are_the_same_bytes(block, kind, seed):
    x = blocks(seed)
    expected = numpy_quant.quantize_fp4(x, block, kind)
    packed, scale_bytes = quant.quantize_fp4(torch.tensor(x), block, kind)
    np.testing.assert_array_equal(packed, expected.packed)
    np.testing.assert_array_equal(scale_bytes, expected.scale_bytes)
    values = quant.dequantize_fp4(packed, scale_bytes, block, kind).numpy()
    np.testing.assert_array_equal(values.view(np.int32), expected.values.view(np.int32))


@pytest.mark.parametrize("seed", range(5))
def test_eight_bit_blocks_are_the_same_bytes(seed):
    x = blocks(seed)
    expected = numpy_quant.quantize_fp8(x)
    codes, scale_bytes = quant.quantize_fp8(torch.tensor(x))
    np.testing.assert_array_equal(codes, expected.codes)
    np.testing.assert_array_equal(scale_bytes, expected.scale_bytes)
    values = quant.dequantize_fp8(codes, scale_bytes).numpy()
    np.testing.assert_array_equal(values.view(np.int32), expected.values.view(np.int32))


def test_eight_bit_codes_are_read_back_the_fast_way_as_by_the_type_of_pytorch():
    codes = torch.tensor([code for code in range(256) if code & 0x7F != 0x7F] * 16, dtype=torch.uint8).view(-1, 32)
    scale_bytes = torch.arange(len(codes), dtype=torch.uint8)[:, None] + 60
    values, expected = quant.read_back_fp8(codes, scale_bytes), quant.dequantize_fp8(codes, scale_bytes)
    assert torch.equal(values.view(torch.int32), expected.view(torch.int32))


def test_large_arrays_are_worked_on_in_pieces_with_the_same_bytes():
    x = np.random.default_rng(0).standard_normal((3, 700, 96)).astype(np.float32)
    for block, kind in ((16, "e4m3"), (32, "e8m0")):
        expected = numpy_quant.quantize_fp4(x, block, kind)
        packed, scale_bytes = quant.quantize_fp4(torch.tensor(x), block, kind)
        np.testing.assert_array_equal(packed, expected.packed)
        np.testing.assert_array_equal(scale_bytes, expected.scale_bytes)
        np.testing.assert_array_equal(quant.dequantize_fp4(packed, scale_bytes, block, kind), expected.values)


@given(st.lists(st.floats(-600, 600, width=32), min_size=1, max_size=30))
@settings(max_examples=200)
def test_any_numbers_get_the_same_codes(values):
    x = np.array(values, np.float32)
    np.testing.assert_array_equal(quant.encode_e2m1(torch.tensor(x)), numpy_quant.encode_e2m1(x))
    np.testing.assert_array_equal(quant.encode_e4m3(torch.tensor(x)), numpy_quant.encode_e4m3(x))


def test_every_boundary_and_its_neighbours_get_the_same_codes():
    levels = numpy_quant.E2M1_LEVELS
    middle = (levels[:-1] + levels[1:]) / 2
    x = np.concatenate([middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(9)), levels])
    x = np.concatenate([x, -x])
    np.testing.assert_array_equal(quant.encode_e2m1(torch.tensor(x)), numpy_quant.encode_e2m1(x))
    levels = numpy_quant.E4M3_LEVELS
    middle = (levels[:-1] + levels[1:]) / 2
    x = np.concatenate([middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(999)), levels])
    np.testing.assert_array_equal(quant.encode_e4m3(torch.tensor(x)), numpy_quant.encode_e4m3(x))


def test_codes_are_read_as_in_numpy():
    codes = torch.arange(256, dtype=torch.uint8)
    np.testing.assert_array_equal(quant.decode_e4m3(codes), numpy_quant.decode_e4m3(codes.numpy()))
    np.testing.assert_array_equal(quant.decode_e2m1(codes[:16]), numpy_quant.decode_e2m1(codes[:16].numpy()))
    np.testing.assert_array_equal(quant.decode_e8m0(codes[1:255]), numpy_quant.decode_e8m0(codes[1:255].numpy()))


@pytest.mark.parametrize(
    "row_format", [storage.FP8Rows(32, torch.float32), storage.FP4Rows(32, "e4m3", 16, torch.float32)]
)
def test_the_gradient_passes_a_rounding_unchanged(row_format):
    x = torch.tensor(blocks(0)[10:, :32], requires_grad=True)
    factors = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    read = row_format.read_back(x)
    (read * factors).sum().backward()
    assert not torch.equal(read, x)
    assert torch.equal(read, row_format.decode(row_format.encode(x)))
    assert torch.equal(x.grad, factors)


def test_widths_that_do_not_fit_and_unknown_scales_are_refused():
    with pytest.raises(ValueError, match="multiple of block = 16; got 20"):
        quant.quantize_fp4(torch.ones(20))
    with pytest.raises(ValueError, match="scale_kind must be 'e4m3' or 'e8m0'; got 'e5m2'"):
        quant.quantize_fp4(torch.ones(32), 16, "e5m2")


@pytest.mark.parametrize("shape", [(0, 32), (3, 0), (2, 0, 64)])
def test_nothing_is_quantised_to_nothing(shape):
    codes, scale_bytes = quant.quantize_fp8(torch.zeros(shape))
    assert quant.dequantize_fp8(codes, scale_bytes).shape == shape
    for block, kind in ((16, "e4m3"), (32, "e8m0")):
        packed, scale_bytes = quant.quantize_fp4(torch.zeros(shape), block, kind)
        assert quant.dequantize_fp4(packed, scale_bytes, block, kind).shape == shape
