"""Arithmetic on the bits of a float32: round the mantissa to what the format keeps, no table of levels."""

import struct


def _bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def _round_bits(bits, keep):
    """Keep `keep` mantissa bits of a float32, nearest, a tie to even."""
    drop = 23 - keep
    last = bits >> drop & 1
    return (bits + (1 << (drop - 1)) - 1 + last) >> drop << drop


def choose_scale(values):
    target = min(max(max(abs(v) for v in values) / 6, 2.0**-9), 448.0)
    if target < 2.0**-6:
        return round(target * 512) / 512
    return struct.unpack("<f", struct.pack("<I", _round_bits(_bits(target), 3)))[0]


def encode(values, scale):
    codes = []
    for value in values:
        bits = _bits(value / scale)
        sign = bits >> 31
        magnitude = min(bits & 0x7FFFFFFF, _bits(6.0))
        if magnitude < _bits(1.0):
            code = round(struct.unpack("<f", struct.pack("<I", magnitude))[0] * 2)
        else:
            code = (_round_bits(magnitude, 1) - _bits(1.0) >> 22) + 2
        codes.append(sign << 3 | code)
    return codes


def decode(codes, scale):
    values = []
    for code in codes:
        exponent, mantissa = code >> 1 & 3, code & 1
        level = mantissa / 2 if exponent == 0 else (1 + mantissa / 2) * 2 ** (exponent - 1)
        values.append((-level if code & 8 else level) * scale)
    return values


def pack(codes):
    return list(bytes.fromhex("".join(f"{codes[i + 1]:x}{codes[i]:x}" for i in range(0, len(codes), 2))))
