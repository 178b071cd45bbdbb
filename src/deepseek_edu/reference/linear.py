"""Quantised matrix products: weights in FP8 or FP4 with shared scales, activations rounded to FP8 before the product.

    weight           codes   one power-of-two scale for     used by
    dense matrices   E4M3    32 × 32 numbers (V4: 128²)     projections, shared experts
    routed experts   E2M1    32 numbers along the input     w1, w2, w3

The kernel multiplies block by block and adds in float32; with exact arithmetic that is the product of what the codes
mean. Rounding what such a matrix multiplies is an option of the model, `Model(…, round_inputs=True)`: every 32
neighbouring numbers of the input share a power of two, as rows of the window cache do. (V4: 128.) The other matrices,
and those of the vision tower, multiply what they get.

Source: report, section 2.4.4; reference `linear`, `Linear`, kernels `act_quant`, `fp8_gemm` and `fp4_gemm`.
"""

import re
from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import quant

BLOCK = 32  # numbers of an input that share a scale

QUANTISED = re.compile(
    r"\.(attn\.(wq_a|wq_b|wkv|wo_b|indexer\.wq_b)|ffn\.(experts\.\d+|shared_experts)\.w[123]|engram\.wkv|main_proj)\.weight$"
)
"""Names of the matrices that the release stores in FP8 or FP4, and whose inputs its kernels therefore round."""


@dataclass(frozen=True, eq=False)
class RoundedInput:
    """A matrix [O I] that multiplies rounded numbers only; `product` rounds them."""

    values: np.ndarray  # [O I]


def product(x, weight):
    """Return x Wᵀ: (…, O) from x (…, I) and weight [O I], an array or a RoundedInput.

    >>> x, weight = np.array([[1.0, 2.1] + [0.0] * 30]), np.ones((1, 32))
    >>> product(x, weight).tolist(), product(x, RoundedInput(weight)).tolist()  # 2.1 is stored as 2
    ([[3.1]], [[3.0]])
    """
    if isinstance(weight, RoundedInput):
        return round_input(x) @ weight.values.T
    return x @ weight.T


def round_input(x, block=BLOCK):
    """Return x as the kernels would multiply it: rounded to E4M3, one power of two for `block` numbers; type of x.

    Args:
        x: (…, n), n a multiple of block.
        block: 32 in V4.1, 128 in V4.

    Raises:
        ValueError: the width does not fit, or a value is not finite.
    """
    x = np.asarray(x)
    return quant.quantize_fp8(x, block).values.astype(x.dtype)


def round_inputs(weights):
    """Return the weights of a model with those matrices marked whose inputs are to be rounded.

    Args:
        weights: {released name: array}.

    Raises:
        ValueError: lists matrices whose input is no whole number of blocks.
    """
    marked = {name: array for name, array in weights.items() if QUANTISED.search(name)}
    require_whole_blocks({name: array.shape for name, array in marked.items()})
    return {**weights, **{name: RoundedInput(array) for name, array in marked.items()}}


def require_whole_blocks(shapes):
    """Refuse matrices whose input cannot be rounded.

    Args:
        shapes: {released name: (O, I)}.

    Raises:
        ValueError: lists those whose I is no multiple of 32.
    """
    wrong = [f"{name} {tuple(shape)}" for name, shape in shapes.items() if shape[1] % BLOCK]
    if wrong:
        listed = f"{', '.join(wrong[:6])}{' …' * (len(wrong) > 6)}"
        raise ValueError(f"round_inputs needs matrices with a multiple of {BLOCK} columns; got {listed}")


def dequantize_fp8_weight(codes, scale_bytes, block=None):
    """Read an FP8 matrix: float32 [O I].

    Args:
        codes: uint8 [O I].
        scale_bytes: uint8 [⌈O/b⌉ ⌈I/b⌉], E8M0.
        block: b; None to find it by the shapes (`block_size`).

    Raises:
        ValueError: no block from 1 to 1024 (powers of two) fits both shapes.
    """
    rows, columns = np.shape(codes)
    block = block_size((rows, columns), np.shape(scale_bytes)) if block is None else block
    scales = quant.decode_e8m0(scale_bytes).repeat(block, axis=0)[:rows].repeat(block, axis=1)[:, :columns]
    return quant.decode_e4m3(codes) * scales


def block_size(shape, scale_shape):
    """Return the side b of the square blocks: the power of two with ⌈shape/b⌉ = scale_shape.

    Of several that fit, 32 is taken (V4.1), then 128 (V4), then the smallest.

    Raises:
        ValueError: none fits.

    >>> block_size((1280, 5120), (40, 160)), block_size((1024, 4096), (8, 32))
    (32, 128)
    """
    for block in (32, 128, *(2**n for n in range(11))):
        if tuple(-(-size // block) for size in shape) == tuple(scale_shape):
            return block
    raise ValueError(f"scales of shape {tuple(scale_shape)} do not belong to a matrix of shape {tuple(shape)}")


def dequantize_fp4_weight(packed, scale_bytes):
    """Read an FP4 matrix: float32 [O I] from packed codes uint8 [O I/2] and scale bytes uint8 [O I/32].

    Raises:
        ValueError: the two shapes do not belong together.
    """
    rows, half = np.shape(packed)
    if np.shape(scale_bytes) != (rows, 2 * half // 32) or half % 16:
        raise ValueError(f"packed {np.shape(packed)} needs scales {(rows, half / 16)}; got {np.shape(scale_bytes)}")
    return quant.dequantize_fp4(packed, scale_bytes, 32, "e8m0")


def quantize_fp8_weight(weight, block=32):
    """Store a matrix in FP8: (codes uint8 [O I], scale bytes uint8 [⌈O/b⌉ ⌈I/b⌉]); the rule is that of activations."""
    weight = np.asarray(weight, np.float32)
    rows, columns = weight.shape
    padded = np.pad(weight, ((0, -rows % block), (0, -columns % block)))
    tiles = padded.reshape(padded.shape[0] // block, block, -1, block)  # O/b b I/b b
    scales = quant.scale_e8m0_for_fp8(np.abs(tiles).max(axis=(1, 3)))  # O/b I/b
    codes = quant.encode_e4m3(tiles / scales[:, None, :, None]).reshape(padded.shape)[:rows, :columns]
    return codes, quant.encode_e8m0(scales)


def quantize_fp4_weight(weight):
    """Store a matrix in FP4: (packed uint8 [O I/2], scale bytes uint8 [O I/32]); the rule is that of index keys."""
    stored = quant.quantize_fp4(weight, 32, "e8m0")
    return stored.packed, stored.scale_bytes
