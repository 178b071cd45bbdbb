"""Sorted tables and bisect: midpoints for the codes, all E4M3 numbers for the scale."""

import math
from bisect import bisect_left, bisect_right
from itertools import pairwise

LEVELS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
MIDPOINTS = [(a + b) / 2 for a, b in pairwise(LEVELS)]
SCALES = [k * 2.0**-9 for k in range(1, 8)] + [(8 + k) * 2.0**e for e in range(-9, 6) for k in range(8)][:-1]


def choose_scale(values):
    target = max(map(abs, values)) / 6
    place = bisect_left(SCALES, target)
    if place == 0:
        return SCALES[0]
    if place == len(SCALES):
        return SCALES[-1]
    low, high = SCALES[place - 1], SCALES[place]
    if target - low == high - target:
        return high if place % 2 else low
    return low if target - low < high - target else high


def encode(values, scale):
    codes = []
    for value in values:
        x = abs(value / scale)
        left, right = bisect_left(MIDPOINTS, x), bisect_right(MIDPOINTS, x)
        code = left if left % 2 == 0 else right
        codes.append(code | (8 if math.copysign(1, value) < 0 else 0))
    return codes


def decode(codes, scale):
    return [math.copysign(LEVELS[code % 8], -1 if code > 7 else 1) * scale for code in codes]


def pack(codes):
    pairs = iter(codes)
    return [low | high << 4 for low, high in zip(pairs, pairs, strict=True)]
