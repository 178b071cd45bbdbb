"""The tiny model of the recorded outputs."""

import json
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


@cache
def tiny_weights():
    """{released name: float64 array} of the recorded model."""
    return {name[2:]: array.astype(np.float64) for name, array in recorded().items() if name.startswith("w/")}


def token_map():
    """The stub tokenizer of the recorded model: two neighbouring ids are one compressed id."""
    return np.arange(96) // 2


def tiny_model():
    """The recorded model in NumPy, made anew on each call, so that a mutant of any module takes effect."""
    return model.Model(ModelConfig.tiny(), tiny_weights(), token_map())


def gap(got, expected):
    """Largest absolute difference of two arrays of one shape."""
    assert np.shape(got) == np.shape(expected)
    return float(np.abs(np.asarray(got, float) - expected).max(initial=0))


def vectors():
    """The small recorded cases of vectors.json."""
    return json.loads((ORACLES / "vectors.json").read_text())
