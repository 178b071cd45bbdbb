"""Four-bit and eight-bit block quantisation, as the caches of DeepSeek-V4.1-Flash use it.

A block of values shares one scale. Each value, divided by the scale, is replaced by the nearest number of a tiny
format; what is stored is that number's code and the scale's byte.

    cache                   codes   block   scale
    main KV entry           E2M1    16      E4M3, amax / 6 rounded to nearest
    index query and key     E2M1    32      E8M0, a power of two, rounded up
    window KV entry         E4M3    32      E8M0, a power of two, rounded up

Both code formats are read in the same way: the code counts the magnitudes from zero upwards, and the bit above it is
the sign. So "nearest, ties to the even code" is one function for both.

Every arithmetic step on blocks is in float32, as in the kernels. For float32 input the codes and scales are those of
exact arithmetic: float32 division never moves a quotient onto or across a midpoint (the tests compare with fractions).

What is known from where:
    report        the formats, block sizes and kinds of scale; no second scale (technical report, section 2.4.4)
    third party   ties, clipping, rounding and floors of the scales, order of the nibbles, float32 (kernels
                  `fp4_act_quant` and `act_quant`, read in a public PyTorch port that cites their lines: tt-metal,
                  `kernel_cpu.py`; their own source was not seen); the meaning of the bits of E2M1, E4M3 and E8M0
                  (Open Compute Project)

Left out: bfloat16 input (every bfloat16 is a float32; round before calling). Quantised matrices: linear.py.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference.checks import integers, real_numbers, scales_fit, whole_blocks

FP4_MAX = 6.0  # largest magnitude of E2M1
FP8_MAX = 448.0  # largest magnitude of E4M3

E2M1_LEVELS = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=np.float32)
"""The eight magnitudes of E2M1 (2 exponent bits, 1 mantissa bit); the position is the code without its sign."""

E4M3_LEVELS = np.array(
    [m * 2.0**-9 for m in range(8)] + [(8 + m) * 2.0 ** (e - 10) for e in range(1, 16) for m in range(8)][:-1],
    dtype=np.float32,
)
"""The 127 magnitudes of E4M3: eight multiples of 2**-9, then eight per power of two up to 448; 0x7F is NaN."""

TIE_RULES = {
    "even": "to the even code (what the hardware does)",
    "away": "away from zero (wrong here)",
    "down": "toward zero (wrong here)",
}
"""What `nearest_code` can do with a value exactly halfway between two levels; only "even" is DeepSeek's."""

E2M1_LEVELS.setflags(write=False)
E4M3_LEVELS.setflags(write=False)


# Numbers to codes and back


def nearest_code(magnitude, levels, ties="even"):
    """Return the position of the level nearest to each magnitude.

    Args:
        magnitude: array of any shape, values ≥ 0. What is larger than the last level counts as the last level.
        levels: float32 [L], ascending from 0.
        ties: a key of TIE_RULES.

    Returns:
        int64 positions 0 … L − 1, shape of magnitude.

    >>> nearest_code(np.array([2.4, 2.5, 2.6, 3.5, 99.0]), E2M1_LEVELS)  # levels 4, 5, 6 are 2, 3, 4
    array([4, 4, 5, 6, 7])
    """
    clipped = np.minimum(magnitude, levels[-1])
    above = np.searchsorted(levels, clipped)  # first level that is not smaller
    below = np.maximum(above - 1, 0)
    halfway = (levels[below] + levels[above]) / 2
    goes_up = (clipped > halfway) | ((clipped == halfway) & _tie_goes_up(below, ties))
    return np.where(goes_up, above, below)


def _tie_goes_up(below, ties):
    """Whether a value halfway above the level at position `below` takes the next level."""
    if ties == "even":
        return below % 2 == 1
    if ties == "away":
        return True
    if ties == "down":
        return False
    raise ValueError(f"ties must be one of {', '.join(TIE_RULES)}; got {ties!r}")


def encode_e2m1(x, ties="even"):
    """Return the four-bit code nearest to each value, clipped to ±6.

    Args:
        x: real numbers, any shape, finite. float32 stays float32, everything else is taken as float64.
        ties: a key of TIE_RULES.

    Returns:
        uint8 codes 0 … 15: bit 3 is the sign (of a zero too), bits 0–2 the position in E2M1_LEVELS.

    Raises:
        ValueError: x holds a NaN or an infinity, for which E2M1 has no code.

    Source: OCP Microscaling formats, E2M1; reference kernel `fp4_act_quant`.

    >>> encode_e2m1([0.25, 0.75, -3.2, 100.0, -0.0]).tolist()
    [0, 2, 13, 7, 8]
    """
    x = real_numbers(x, "x")
    return (nearest_code(np.abs(x), E2M1_LEVELS, ties) + 8 * np.signbit(x)).astype(np.uint8)


def decode_e2m1(codes):
    """Return the float32 value of each code 0 … 15; code 8 is −0. Raises ValueError for other codes.

    >>> decode_e2m1([0, 1, 7, 15]).tolist()
    [0.0, 0.5, 6.0, -6.0]
    """
    codes = integers(codes, "codes", 15)
    magnitude = E2M1_LEVELS[codes & 7]
    return np.where(codes & 8, -magnitude, magnitude)


def round_to_e2m1(x, ties="even"):
    """Return the E2M1 number nearest to each value, clipped to ±6; float32, the sign of a zero is kept.

    Takes and raises what `encode_e2m1` does.

    >>> round_to_e2m1([2.5, 3.5, 5.0, 7.0]).tolist()
    [2.0, 4.0, 4.0, 6.0]
    >>> round_to_e2m1([2.5, 3.5, 5.0, 7.0], ties="away").tolist()
    [3.0, 4.0, 6.0, 6.0]
    """
    return decode_e2m1(encode_e2m1(x, ties))


def encode_e4m3(x, ties="even"):
    """Return the eight-bit code nearest to each value, saturating at ±448.

    Args:
        x: real numbers, any shape. NaN gets the NaN code of its sign.
        ties: a key of TIE_RULES.

    Returns:
        uint8 codes: bit 7 is the sign (of a zero too), bits 0–6 the position in E4M3_LEVELS or 0x7F for NaN.

    Raises:
        ValueError: x holds an infinity, for which E4M3 has no code.

    Source: OCP 8-bit floating point, E4M3 (the variant without infinities); reference kernel `act_quant`.

    >>> encode_e4m3([1.0, -448.0, 1000.0, 2.0**-9]).tolist()
    [56, 254, 126, 1]
    """
    x = real_numbers(x, "x", nan_allowed=True)
    position = np.where(np.isnan(x), 0x7F, nearest_code(np.nan_to_num(np.abs(x)), E4M3_LEVELS, ties))
    return (position + 128 * np.signbit(x)).astype(np.uint8)


def decode_e4m3(codes):
    """Return the float32 value of each code 0 … 255; 0x7F and 0xFF are NaN. Raises ValueError for other codes.

    >>> decode_e4m3([0x38, 0x7E, 0x81]).tolist()
    [1.0, 448.0, -0.001953125]
    """
    codes = integers(codes, "codes", 255)
    magnitude = np.append(E4M3_LEVELS, np.float32(np.nan))[codes & 0x7F]
    return np.where(codes & 0x80, -magnitude, magnitude)


def round_to_e4m3(x, ties="even"):
    """Return the E4M3 number nearest to each value, saturating at ±448; float32, the sign of a zero is kept.

    Takes and raises what `encode_e4m3` does.

    >>> round_to_e4m3([7 / 6, 500.0]).tolist()
    [1.125, 448.0]
    """
    return decode_e4m3(encode_e4m3(x, ties))


def encode_e8m0(scale):
    """Return the byte of a power of two: its exponent plus 127.

    Args:
        scale: powers of two from 2**-127 to 2**127, any shape.

    Returns:
        uint8 bytes 0 … 254, shape of scale.

    Raises:
        ValueError: a scale is not such a power of two.

    Source: OCP Microscaling formats, E8M0.

    >>> encode_e8m0([1.0, 0.5, 4.0]).tolist()
    [127, 126, 129]
    """
    scale = real_numbers(scale, "scale")
    mantissa, exponent = np.frexp(scale)  # scale = mantissa · 2**exponent, mantissa 0.5 for a power of two
    wrong = (mantissa != 0.5) | (exponent < -126) | (exponent > 128)
    if np.any(wrong):
        raise ValueError(
            f"scale must be a power of two from 2**-127 to 2**127; got {scale[wrong].flat[0]}; "
            "round it with power_of_two_at_least first"
        )
    return (exponent - 1 + 127).astype(np.uint8)


def decode_e8m0(scale_bytes):
    """Return 2**(byte − 127) as float32; 255 is NaN. Raises ValueError for what is not a byte.

    >>> decode_e8m0([127, 129]).tolist()
    [1.0, 4.0]
    """
    scale_bytes = integers(scale_bytes, "scale_bytes", 255)
    power = np.ldexp(np.float32(1), np.minimum(scale_bytes, 254).astype(np.int32) - 127)
    return np.where(scale_bytes == 255, np.float32(np.nan), power)


# The scale of a block, chosen from its largest magnitude (amax)


def scale_e4m3_for_fp4(amax):
    """Return the E4M3 scale that puts amax near 6: amax / 6, rounded to nearest and so sometimes too small.

    Args:
        amax: largest magnitude of each block, finite, ≥ 0, any shape. Less than 6 · 2**-9 counts as 6 · 2**-9.

    Returns:
        float32 scales from 2**-9 to 448, shape of amax.

    Raises:
        ValueError: amax is negative or not finite.

    Source: report, section 2.4.4; reference kernel `fp4_act_quant` with an E4M3 scale.

    >>> [float(scale_e4m3_for_fp4(amax)) for amax in (0.0, 7.0, 22.625)]
    [0.001953125, 1.125, 3.75]
    """
    amax = np.maximum(_largest(amax), np.float32(6 * 2.0**-9))
    return round_to_e4m3(amax / np.float32(FP4_MAX))


def scale_e8m0_for_fp4(amax):
    """Return the power of two that brings amax to 6 or less: 2**ceil(log2(amax / 6)).

    The product with float32(1 / 6) is the kernel's; the tests show that a division would choose the same powers.

    Args:
        amax: largest magnitude of each block, finite, ≥ 0, any shape. Less than 6 · 2**-126 counts as 6 · 2**-126.

    Returns:
        float32 powers of two from 2**-126, shape of amax.

    Raises:
        ValueError: amax is negative or not finite.

    Source: report, section 2.4.4; reference kernel `fp4_act_quant` with an E8M0 scale.

    >>> [float(scale_e8m0_for_fp4(amax)) for amax in (6.0, 7.0, 22.625)]
    [1.0, 2.0, 4.0]
    """
    amax = np.maximum(_largest(amax), np.float32(6 * 2.0**-126))
    return power_of_two_at_least(amax * np.float32(1 / FP4_MAX))


def scale_e8m0_for_fp8(amax):
    """Return the power of two that brings amax to 448 or less: 2**ceil(log2(amax / 448)).

    Args:
        amax: largest magnitude of each block, finite, ≥ 0, any shape. Less than 1e-4 counts as 1e-4.

    Returns:
        float32 powers of two from 2**-22, shape of amax.

    Raises:
        ValueError: amax is negative or not finite.

    Source: report, section 2.4.4; reference kernel `act_quant`. The floor of one serving engine differs: it is on
    amax / 448.

    >>> float(scale_e8m0_for_fp8(7.0)), float(scale_e8m0_for_fp8(0.0)) == 2.0**-22
    (0.015625, True)
    """
    amax = np.maximum(_largest(amax), np.float32(1e-4))
    return power_of_two_at_least(amax * np.float32(1 / FP8_MAX))


def power_of_two_at_least(x):
    """Return the smallest power of two that is not below each x: float32, exact, since no logarithm is taken.

    Raises ValueError for x outside 2**-127 … 2**127, the range of E8M0.

    >>> power_of_two_at_least(np.float32([1.0, 1.0000001, 3.0])).tolist()
    [1.0, 2.0, 4.0]
    """
    x = real_numbers(x, "x")
    if np.any((x < 2.0**-127) | (x > 2.0**127)):
        raise ValueError(f"x must be 2**-127 … 2**127; got {x.min()} … {x.max()}; apply the floor of the format first")
    mantissa, exponent = np.frexp(x)  # x = mantissa · 2**exponent with 0.5 ≤ mantissa < 1
    return np.ldexp(np.float32(1), np.where(mantissa == 0.5, exponent - 1, exponent))


# Two codes in one byte


def pack_nibbles(codes):
    """Store pairs of four-bit codes in bytes: the even channel in the low four bits, the odd one in the high.

    Args:
        codes: integers 0 … 15, last dimension even.

    Returns:
        uint8, last dimension halved.

    Raises:
        ValueError: a code is out of range or the last dimension is odd.

    Source: reference kernel `fp4_act_quant`, packed type with two E2M1 values.

    >>> pack_nibbles([1, 2]).tolist()  # 0x21
    [33]
    """
    codes = integers(codes, "codes", 15)
    if codes.ndim == 0 or codes.shape[-1] % 2:
        raise ValueError(f"codes must have an even last dimension; got shape {codes.shape}; append a zero code")
    return codes[..., 0::2] | codes[..., 1::2] << 4


def unpack_nibbles(packed):
    """Return the two codes of each byte in channel order: uint8 0 … 15, last dimension doubled.

    Raises ValueError for what is not an array of bytes.

    >>> unpack_nibbles([0x21]).tolist()
    [1, 2]
    """
    packed = integers(packed, "packed", 255)
    if packed.ndim == 0:
        raise ValueError("packed must have at least one dimension; got a single number; put it in a list")
    pairs = np.stack([packed & 15, packed >> 4], axis=-1)  # … n/2 2
    return pairs.reshape(*packed.shape[:-1], 2 * packed.shape[-1])


# Whole blocks


@dataclass(frozen=True, eq=False)
class Quantized:
    """A quantised array: what is stored (packed, scale_bytes) and what it means (codes, scales, values).

    Shapes for an input of shape (…, n) in blocks of b.
    """

    codes: np.ndarray  # uint8 (…, n), one code per value
    packed: np.ndarray  # uint8 (…, n/2) for four-bit codes, (…, n) for eight-bit codes
    scales: np.ndarray  # float32 (…, n/b)
    scale_bytes: np.ndarray  # uint8 (…, n/b)
    values: np.ndarray  # float32 (…, n), read back

    @property
    def nbytes(self):
        """Bytes stored: codes and scales."""
        return self.packed.nbytes + self.scale_bytes.nbytes


def quantize_fp4(x, block=16, scale_kind="e4m3", ties="even"):
    """Quantise the last dimension to four bits, one scale per block.

    Args:
        x: real numbers (…, n), finite, below 2**127 in magnitude; taken as float32. n is a multiple of block.
        block: values per scale; 16 for the main cache, 32 for index queries and keys.
        scale_kind: "e4m3" (main cache) or "e8m0" (index queries and keys).
        ties: a key of TIE_RULES.

    Returns:
        Quantized.

    Raises:
        ValueError: a wrong value, block or option.

    Source: report, section 2.4.4; reference kernel `fp4_act_quant`.

    >>> quantize_fp4([7.0, 1.0, -3.5, 0.0], block=4).values.tolist()
    [6.75, 1.125, -3.375, 0.0]
    """
    blocks = _blocks(x, block)  # … G b
    scales = _fp4_scale(scale_kind)(np.abs(blocks).max(axis=-1))  # … G
    codes = encode_e2m1(blocks / scales[..., None], ties)  # … G b
    values = decode_e2m1(codes) * scales[..., None]  # … G b
    shape = np.shape(x)
    codes = codes.reshape(shape)
    scale_bytes = encode_e4m3(scales) if scale_kind == "e4m3" else encode_e8m0(scales)
    return Quantized(codes, pack_nibbles(codes), scales, scale_bytes, values.reshape(shape))


def dequantize_fp4(packed, scale_bytes, block=16, scale_kind="e4m3"):
    """Read back what `quantize_fp4` stored: float32 (…, n) from packed (…, n/2) and scale_bytes (…, n/block).

    Raises ValueError if the shapes do not belong together.

    >>> dequantize_fp4([0x27, 0x0D], [57], block=4).tolist()
    [6.75, 1.125, -3.375, 0.0]
    """
    _fp4_scale(scale_kind)
    scales = decode_e4m3(scale_bytes) if scale_kind == "e4m3" else decode_e8m0(scale_bytes)
    return _scale_up(decode_e2m1(unpack_nibbles(packed)), scales, block)


def quantize_fp8(x, block=32, ties="even"):
    """Quantise the last dimension to E4M3 with one power-of-two scale per block (window cache).

    Takes, returns and raises what `quantize_fp4` does; packed and codes are the same array.

    Source: report, section 2.4.4; reference kernel `act_quant` with power-of-two scales.

    >>> quantize_fp8([7.0, 1.0, -3.5, 0.001], block=4).codes.tolist()
    [126, 104, 246, 24]
    """
    blocks = _blocks(x, block)  # … G b
    scales = scale_e8m0_for_fp8(np.abs(blocks).max(axis=-1))  # … G
    codes = encode_e4m3(blocks / scales[..., None], ties)  # … G b
    values = decode_e4m3(codes) * scales[..., None]  # … G b
    shape = np.shape(x)
    codes = codes.reshape(shape)
    return Quantized(codes, codes, scales, encode_e8m0(scales), values.reshape(shape))


def dequantize_fp8(codes, scale_bytes, block=32):
    """Read back what `quantize_fp8` stored: float32 (…, n) from codes (…, n) and scale_bytes (…, n/block)."""
    return _scale_up(decode_e4m3(codes), decode_e8m0(scale_bytes), block)


def fp4_bytes(n, block):
    """Return the bytes of n four-bit values with one scale byte per block.

    >>> fp4_bytes(512, 16), fp4_bytes(128, 32)  # a main KV entry, an index key
    (288, 68)
    """
    whole_blocks(n, block)
    return n // 2 + n // block


def fp8_bytes(n, block):
    """Return the bytes of n eight-bit values with one scale byte per block.

    >>> fp8_bytes(512, 32)  # a window KV entry
    528
    """
    whole_blocks(n, block)
    return n + n // block


def bits_per_value(block):
    """Return the bits that a four-bit value costs in a block of `block` values, with its share of the scale byte.

    >>> bits_per_value(16), bits_per_value(32)
    (4.5, 4.25)
    """
    whole_blocks(block, block)
    return 4 + 8 / block


# Checks of what comes in


def _largest(amax):
    amax = real_numbers(amax, "amax")
    if np.any((amax < 0) | (amax >= 2.0**127)):
        raise ValueError(f"amax must be 0 … 2**127; got {amax.min()} … {amax.max()}; take np.abs(x).max() first")
    return amax.astype(np.float32)


def _fp4_scale(scale_kind):
    if scale_kind == "e4m3":
        return scale_e4m3_for_fp4
    if scale_kind == "e8m0":
        return scale_e8m0_for_fp4
    raise ValueError(f"scale_kind must be 'e4m3' or 'e8m0'; got {scale_kind!r}")


def _blocks(x, block):
    x = real_numbers(x, "x")
    width = x.shape[-1] if x.ndim else 1
    whole_blocks(width, block)
    if np.any(np.abs(x) >= 2.0**127):
        raise ValueError(f"x must be below 2**127 in magnitude; got {np.abs(x).max()}; its read-back would overflow")
    return x.astype(np.float32).reshape(*x.shape[:-1], width // block, block)


def _scale_up(values, scales, block):
    scales_fit(values.shape, scales.shape, block)
    return (values.reshape(*scales.shape, block) * scales[..., None]).reshape(values.shape)
