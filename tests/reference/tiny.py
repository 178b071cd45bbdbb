"""The tiny model of the recorded outputs."""

from functools import cache
from pathlib import Path

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import model

ORACLES = Path(__file__).parents[1] / "oracles"


@cache
def recorded():
    """All arrays of v41_tiny.npz by name."""
    with np.load(ORACLES / "v41_tiny.npz") as file:
        return {name: file[name] for name in file.files}


def tiny_weights():
    """{released name: array} of the recorded model."""
    return {name[2:]: array for name, array in recorded().items() if name.startswith("w/")}


def token_map():
    """The stub tokenizer of the recorded model: two neighbouring ids are one compressed id."""
    return np.arange(96) // 2


@cache
def tiny_model():
    """The recorded model in NumPy."""
    return model.Model(ModelConfig.tiny(), tiny_weights(), token_map())


def gap(got, expected):
    """Largest absolute difference of two arrays of one shape."""
    assert np.shape(got) == np.shape(expected)
    return float(np.abs(np.asarray(got, float) - expected).max(initial=0))
