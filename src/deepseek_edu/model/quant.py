"""Four-bit and eight-bit blocks in PyTorch: the same bytes as reference/quant.py, and gradients straight through.

    cache                   codes   block   scale
    main KV entry           E2M1    16      E4M3, amax / 6 rounded to nearest
    index query and key     E2M1    32      E8M0, a power of two, rounded up
    window KV entry         E4M3    32      E8M0, a power of two, rounded up

Everything is computed in float32, as in the kernels; other types are converted first. Infinities and NaNs are the
caller's fault and not looked for: that would read the whole tensor once more.

Source: report, section 2.4.4; reference kernels `fp4_act_quant` and `act_quant`. See reference/quant.py for the rules
in words.
"""

from functools import lru_cache

import torch
from torch import nn

from deepseek_edu.reference import quant as rules

FP4_MAX, FP8_MAX = rules.FP4_MAX, rules.FP8_MAX
PIECE = 1 << 17
"""Values that a CPU works on at once: what lies between the steps then stays in its cache (four times faster)."""

# Numbers to codes and back


def encode_e2m1(x):
    """Return the four-bit codes (uint8 0 … 15) nearest to x, any shape, clipped to ±6, ties to the even code."""
    x = x.float()
    return _encode(x.abs(), x).to(torch.uint8)


def _encode(size, signed):
    """The codes, as int32, of numbers given by their size, which is used up, and by something of their sign; float32.

    Between two powers of two p and 2p the levels lie p/2 apart, below 1 as between 1 and 2. Adding 3 · 2**21 · p puts
    the number where floats lie p/2 apart as well: the addition rounds, half to even. Its last bits then count the steps
    to the level, and its exponent says which p it was; each doubling of p is two codes.
    """
    size.clamp_max_(FP4_MAX)
    power = (size.view(torch.int32) & 0x7F800000).view(torch.float32).clamp_min_(1)  # the exponent alone
    bits = torch.add(size, power, alpha=3 * 2.0**21).view(torch.int32)
    code = (bits >> 22).add_(bits & 7).sub_(2 * (127 + 22) + 1)
    return code.sub_(signed.view(torch.int32) >> 31, alpha=8)


def decode_e2m1(codes):
    """Return the float32 values of codes 0 … 15."""
    return torch.tensor([*rules.E2M1_LEVELS, *-rules.E2M1_LEVELS], device=codes.device).float()[codes.long()]


@lru_cache
def _pairs(device):
    """The two float32 values of every byte, low code first, as one int64: [256]."""
    with torch.inference_mode(False):  # kept for later calls of any kind
        byte = torch.arange(256, device=device)
        return torch.stack([decode_e2m1(byte & 15), decode_e2m1(byte >> 4)], dim=1).view(torch.int64)[:, 0]


def encode_e4m3(x):
    """Return the eight-bit codes (uint8) nearest to x, any shape, saturating at ±448, ties to the even code."""
    return x.float().clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn).view(torch.uint8)


def decode_e4m3(codes):
    """Return the float32 values of codes, bytes of any shape."""
    return codes.view(torch.float8_e4m3fn).float()


def power_of_two_byte(x):
    """Return the E8M0 byte of the smallest power of two that is not below x (float32, 2**-126 or more)."""
    return ((x.view(torch.int32) + 0x7FFFFF) >> 23).to(torch.uint8)  # the exponent, one more with any mantissa bit


def decode_e8m0(scale_bytes):
    """Return 2**(byte − 127) as float32, shape of scale_bytes; from 1 on (smaller ones are never made here)."""
    return (scale_bytes.int() << 23).view(torch.float32)


# Whole blocks


def quantize_fp4(x, block=16, scale_kind="e4m3"):
    """Store the last dimension in four bits.

    Args:
        x: (…, n), finite; n a multiple of block and even.
        block: values per scale.
        scale_kind: "e4m3" (main cache) or "e8m0" (index queries and keys).

    Returns:
        (packed uint8 (…, n/2), scale bytes uint8 (…, n/block)).

    Raises:
        ValueError: the width does not fit, or an unknown scale kind.
    """
    if x.numel() > PIECE and not x.is_cuda:
        return _in_pieces(lambda some: quantize_fp4(some, block, scale_kind), x.shape[-1], x)
    blocks = _blocks(x, block)  # … G b
    sizes = blocks.abs()
    amax = _largest(sizes)  # … G
    if scale_kind == "e4m3":
        six = torch.full((), FP4_MAX, device=x.device)  # a tensor: CUDA would replace a number by its reciprocal
        scale_bytes = encode_e4m3(amax.clamp_min(6 * 2.0**-9) / six)
    elif scale_kind == "e8m0":
        scale_bytes = power_of_two_byte(amax.clamp_min(6 * 2.0**-126) * (1 / FP4_MAX))
    else:
        raise ValueError(f"scale_kind must be 'e4m3' or 'e8m0'; got {scale_kind!r}")
    scales = decode_e4m3(scale_bytes) if scale_kind == "e4m3" else decode_e8m0(scale_bytes)
    two = _encode(sizes.div_(scales[..., None]), blocks).view(torch.int64)
    two = two.reshape(*x.shape[:-1], x.shape[-1] // 2)  # … n/2, low code first
    return (two | two >> 28).to(torch.uint8), scale_bytes


def dequantize_fp4(packed, scale_bytes, block=16, scale_kind="e4m3"):
    """Read back what `quantize_fp4` stored: float32 (…, n)."""
    width = 2 * packed.shape[-1]
    if 2 * packed.numel() > PIECE and not packed.is_cuda:
        return _in_pieces(lambda *some: (dequantize_fp4(*some, block, scale_kind),), width, packed, scale_bytes)[0]
    scales = decode_e4m3(scale_bytes) if scale_kind == "e4m3" else decode_e8m0(scale_bytes)  # … G
    values = _pairs(packed.device).index_select(0, packed.flatten().int()).view(torch.float32)
    return values.view(*scales.shape, block).mul_(scales[..., None]).view(*packed.shape[:-1], width)


def quantize_fp8(x, block=32):
    """Store the last dimension in eight bits: (codes uint8 (…, n), scale bytes uint8 (…, n/block))."""
    blocks = _blocks(x, block)  # … G b
    amax = _largest(blocks.abs())  # … G
    scale_bytes = power_of_two_byte(amax.clamp_min(1e-4) * (1 / FP8_MAX))
    codes = encode_e4m3(blocks / decode_e8m0(scale_bytes)[..., None])
    return codes.reshape(x.shape), scale_bytes


def dequantize_fp8(codes, scale_bytes, block=32):
    """Read back what `quantize_fp8` stored: float32 (…, n)."""
    values = decode_e4m3(codes).reshape(*scale_bytes.shape, block) * decode_e8m0(scale_bytes)[..., None]
    return values.reshape(codes.shape)


def _in_pieces(function, width, *tensors):
    """Apply a function of rows (…, width) to some rows at a time; tuple of results."""
    shape, rows = tensors[0].shape[:-1], max(1, PIECE // width)
    flat, made = [x.flatten(0, -2) for x in tensors], None
    for begin in range(0, len(flat[0]), rows):
        results = function(*(x[begin : begin + rows] for x in flat))
        if made is None:
            made = tuple(result.new_empty(len(flat[0]), result.shape[-1]) for result in results)
        for whole, result in zip(made, results, strict=True):
            whole[begin : begin + rows] = result
    return tuple(whole.view(*shape, -1) for whole in made)


def _largest(sizes):
    """Return the largest of each block, (…, G) from (…, G, b); pooling is what a CPU does this fastest with."""
    if not sizes.numel():
        return sizes.new_zeros(sizes.shape[:-1])
    return nn.functional.max_pool1d(sizes.view(1, 1, -1), sizes.shape[-1]).view(sizes.shape[:-1])


def _blocks(x, block):
    if x.shape[-1] % block:
        raise ValueError(f"the last dimension must be a multiple of block = {block}; got {x.shape[-1]}; pad with zeros")
    return x.float().reshape(*x.shape[:-1], x.shape[-1] // block, block)


class _StraightThrough(torch.autograd.Function):
    """Forward: a rounding. Backward: as if nothing had been rounded (quantisation-aware training)."""

    @staticmethod
    def forward(ctx, x, rounding):
        return rounding(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def straight_through(x, rounding):
    """Return rounding(x); its gradient is that of x.

    Args:
        x: any tensor.
        rounding: function from x to a tensor of the same shape and type.
    """
    return _StraightThrough.apply(x, rounding)
