"""NumPy: the distance to every level at once; arrays go out as they are."""

import numpy as np

LEVELS = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def choose_scale(values):
    target = np.clip(np.abs(values).max() / 6, 2.0**-9, 448)
    spacing = np.exp2(np.maximum(np.floor(np.log2(target)), -6) - 3)
    return np.rint(target / spacing) * spacing


def encode(values, scale):
    x = np.asarray(values, dtype=np.float64) / scale
    distance = np.abs(np.abs(x)[:, None] - LEVELS)
    distance += (np.arange(8) % 2) * 1e-9
    return distance.argmin(axis=1) + 8 * np.signbit(x)


def decode(codes, scale):
    codes = np.asarray(codes)
    return np.where(codes >= 8, -1.0, 1.0) * LEVELS[codes % 8] * scale


def pack(codes):
    codes = np.asarray(codes, dtype=np.uint8)
    return codes[0::2] + (codes[1::2] << 4)
