"""Four-bit and eight-bit blocks in PyTorch: the same bytes as reference/quant.py, and gradients straight through.

    cache                   codes   block   scale
    main KV entry           E2M1    16      E4M3, amax / 6 rounded to nearest
    index query and key     E2M1    32      E8M0, a power of two, rounded up
    window KV entry         E4M3    32      E8M0, a power of two, rounded up

Everything is computed in float32, as in the kernels; other types are converted first. What NumPy's quantisers refuse
is refused here in the same words. For whole blocks that takes one look at their largest magnitudes, which are needed
anyway: a NaN is larger than everything.

Source: report, section 2.4.4; reference kernels `fp4_act_quant` and `act_quant`. See reference/quant.py for the rules
in words.
"""

from functools import lru_cache

import torch
from torch import nn

from deepseek_edu.reference import checks
from deepseek_edu.reference import quant as rules

FP4_MAX, FP8_MAX = rules.FP4_MAX, rules.FP8_MAX
LIMIT = 2.0**127  # what is not below it would overflow when it is read back
PIECE = 1 << 17
"""Values that a CPU works on at once: what lies between the steps then stays in its cache (four times faster)."""

# Numbers to codes and back


def encode_e2m1(x):
    """Return the four-bit codes (uint8 0 … 15) nearest to x, any shape, clipped to ±6, ties to the even code.

    Raises ValueError for what is not a finite real number.
    """
    x = _real(x)
    if not bool(x.isfinite().all()):
        _refuse(x)
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
    """Return the float32 values of codes 0 … 15. Raises ValueError for other codes."""
    if codes.is_floating_point() or (codes.numel() and not 0 <= int(codes.min()) <= int(codes.max()) <= 15):
        checks.integers(codes.detach().cpu().numpy(), "codes", 15)
    return torch.tensor([*rules.E2M1_LEVELS, *-rules.E2M1_LEVELS], device=codes.device).float()[codes.long()]


@lru_cache
def _pairs(device):
    """The two float32 values of every byte, low code first, as one int64: [256]."""
    with torch.inference_mode(False):  # kept for later calls of any kind
        byte = torch.arange(256, device=device)
        return torch.stack([decode_e2m1(byte & 15), decode_e2m1(byte >> 4)], dim=1).view(torch.int64)[:, 0]


def encode_e4m3(x):
    """Return the eight-bit codes (uint8) nearest to x, any shape, saturating at ±448, ties to the even code.

    A NaN gets the NaN code of its sign. Raises ValueError for an infinity, for which E4M3 has no code.
    """
    x = _real(x)
    if bool(x.isinf().any()):
        _refuse(x, nan_allowed=True)
    return _eight_bits(x)


def _eight_bits(x):
    return x.clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn).view(torch.uint8)


def decode_e4m3(codes):
    """Return the float32 values of codes, uint8 of any shape; 0x7F and 0xFF are NaN."""
    return codes.view(torch.float8_e4m3fn).float()


def power_of_two_byte(x):
    """Return the E8M0 byte of the smallest power of two that is not below x (float32, 2**-126 or more)."""
    return ((x.view(torch.int32) + 0x7FFFFF) >> 23).to(torch.uint8)  # the exponent, one more with any mantissa bit


def decode_e8m0(scale_bytes):
    """Return 2**(byte − 127) as float32, shape of scale_bytes, uint8; 255 is NaN."""
    return scale_bytes.view(torch.float8_e8m0fnu).float()


# Whole blocks


def quantize_fp4(x, block=16, scale_kind="e4m3"):
    """Store the last dimension in four bits.

    Args:
        x: (…, n), finite, below 2**127 in magnitude; n a multiple of block and even.
        block: values per scale.
        scale_kind: "e4m3" (main cache) or "e8m0" (index queries and keys).

    Returns:
        (packed uint8 (…, n/2), scale bytes uint8 (…, n/block)).

    Raises:
        ValueError: the width does not fit, an unknown scale kind, or a value that has no code.
    """
    _require_blocks(x, block)
    if x.numel() > PIECE and not x.is_cuda:
        return _in_pieces(lambda some: _quantize_fp4(some, block, scale_kind, x), x.shape[-1], x)
    return _quantize_fp4(x, block, scale_kind, x)


def _quantize_fp4(x, block, scale_kind, whole):
    """The same for a piece x of the whole."""
    blocks = _blocks(x, block)  # … G b
    sizes = blocks.abs()
    amax = _largest(sizes, whole)  # … G
    if scale_kind == "e4m3":
        six = torch.full((), FP4_MAX, device=x.device)  # a tensor: CUDA would replace a number by its reciprocal
        scale_bytes = _eight_bits(amax.clamp_min(6 * 2.0**-9) / six)
    elif scale_kind == "e8m0":
        scale_bytes = power_of_two_byte(amax.clamp_min(6 * 2.0**-126) * (1 / FP4_MAX))
    else:
        raise ValueError(f"scale_kind must be 'e4m3' or 'e8m0'; got {scale_kind!r}")
    scales = decode_e4m3(scale_bytes) if scale_kind == "e4m3" else decode_e8m0(scale_bytes)
    two = _encode(sizes.div_(scales[..., None]), blocks).view(torch.int64)
    two = two.reshape(*x.shape[:-1], x.shape[-1] // 2)  # … n/2, low code first
    return (two | two >> 28).to(torch.uint8), scale_bytes


def dequantize_fp4(packed, scale_bytes, block=16, scale_kind="e4m3"):
    """Read back what `quantize_fp4` stored: float32 (…, n). Raises ValueError if the shapes do not belong together."""
    width = 2 * packed.shape[-1]
    checks.scales_fit((*packed.shape[:-1], width), scale_bytes.shape, block)
    if 2 * packed.numel() > PIECE and not packed.is_cuda:
        return _in_pieces(lambda *some: (dequantize_fp4(*some, block, scale_kind),), width, packed, scale_bytes)[0]
    if scale_kind not in ("e4m3", "e8m0"):
        raise ValueError(f"scale_kind must be 'e4m3' or 'e8m0'; got {scale_kind!r}")
    scales = decode_e4m3(scale_bytes) if scale_kind == "e4m3" else decode_e8m0(scale_bytes)  # … G
    values = _pairs(packed.device).index_select(0, packed.flatten().int()).view(torch.float32)
    return values.view(*scales.shape, block).mul_(scales[..., None]).view(*packed.shape[:-1], width)


def quantize_fp8(x, block=32):
    """Store the last dimension in eight bits: (codes uint8 (…, n), scale bytes uint8 (…, n/block)).

    Takes and raises what `quantize_fp4` does.
    """
    _require_blocks(x, block)
    blocks = _blocks(x, block)  # … G b
    amax = _largest(blocks.abs(), x)  # … G
    scale_bytes = power_of_two_byte(amax.clamp_min(1e-4) * (1 / FP8_MAX))
    codes = _eight_bits(blocks / decode_e8m0(scale_bytes)[..., None])
    return codes.reshape(x.shape), scale_bytes


def dequantize_fp8(codes, scale_bytes, block=32):
    """Read back what `quantize_fp8` stored: float32 (…, n). Raises ValueError if the shapes do not belong together."""
    checks.scales_fit(codes.shape, scale_bytes.shape, block)
    values = decode_e4m3(codes).reshape(*scale_bytes.shape, block) * decode_e8m0(scale_bytes)[..., None]
    return values.reshape(codes.shape)


def read_back_fp8(codes, scale_bytes, block=32):
    """Return what `dequantize_fp8` does, three times as fast on a CPU; for codes that `quantize_fp8` made, no NaN.

    Sign, exponent and mantissa move to their places in a float16, whose exponent counts from 15 and not from 7.
    """
    halves = ((codes.view(torch.int8).to(torch.int16) << 7) & 0xBFFF - 0x10000).view(torch.float16)
    scales = decode_e8m0(scale_bytes).mul_(2.0**8)[..., None]
    return halves.float().view(*scale_bytes.shape, block).mul_(scales).view(codes.shape)


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


def _largest(sizes, whole):
    """Return the largest of each block, (…, G) from (…, G, b); pooling is what a CPU does this fastest with.

    It also looks whether all can be stored; if not, the message is about the whole tensor that the caller gave.
    """
    if not sizes.numel():
        return sizes.new_zeros(sizes.shape[:-1])
    amax = nn.functional.max_pool1d(sizes.view(1, 1, -1), sizes.shape[-1]).view(sizes.shape[:-1])
    if not amax.max().item() < LIMIT:  # a NaN is not below anything
        _refuse(whole)
    return amax


def _real(x):
    """Return x as float32, unless it is made of no real numbers."""
    if x.dtype == torch.bool or x.is_complex():
        _refuse(x)
    return x.float()


def _refuse(x, nan_allowed=False):
    """Raise the ValueError that NumPy's quantisers raise for x."""
    x = x.detach().cpu()
    x = checks.real_numbers((x.double() if x.is_floating_point() else x).numpy(), "x", nan_allowed)
    raise ValueError(f"x must be below 2**127 in magnitude; got {abs(x).max()}; its read-back would overflow")


def _require_blocks(x, block):
    checks.whole_blocks(x.shape[-1] if x.ndim else 1, block)
    if not x.is_floating_point():
        _real(x)


def _blocks(x, block):
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
