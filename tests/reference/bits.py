"""Helpers for tests that compare numbers bit by bit."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np

VECTORS = Path(__file__).parents[1] / "oracles" / "quantisers.json"


def recorded_vectors():
    """The quantiser cases recorded from a public port of the reference kernels."""
    return json.loads(VECTORS.read_text())


def assert_same_bits(got, expected):
    """Equal as float32, the sign of a zero included."""
    got, expected = np.asarray(got, np.float32), np.asarray(expected, np.float32)
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32))


def every_bfloat16():
    """All finite bfloat16 numbers below 2**127 in magnitude, as float32: 65 024 of them."""
    x = (np.arange(2**16, dtype=np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):
        return x[np.abs(x) < 2.0**127]


def exact(x):
    """Magnitude of a float as a fraction."""
    return abs(Fraction(float(x)))


def just_above(x):
    """The next float32 away from zero."""
    return np.nextafter(np.float32(x), np.copysign(np.float32(np.inf), np.float32(x)), dtype=np.float32)


def just_below(x):
    """The next float32 toward zero."""
    return np.nextafter(np.float32(x), np.float32(0), dtype=np.float32)
