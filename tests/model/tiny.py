"""The tiny recorded model in PyTorch, and pairs of equal models in NumPy and PyTorch."""

from functools import cache

import numpy as np
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model.model import Model
from deepseek_edu.reference import model as numpy_model
from deepseek_edu.reference.weights import random_weights

from ..reference.tiny import ORACLES, recorded, tiny_weights, token_map

__all__ = ["ORACLES", "gap", "pair", "recorded", "rows", "tiny_model", "token_map"]


@cache
def _tiny(dtype):
    return Model(ModelConfig.tiny(), token_map(), dtype).load_weights(tiny_weights())


def tiny_model(dtype=torch.float64):
    """The recorded model."""
    return _tiny(dtype)


def rows(*lengths, first=0):
    """Recorded ids as lists: the row b of the file from `first`, lengths[b] of them; rows take turns."""
    return [recorded()["ids"][b % 2][first : first + length].tolist() for b, length in enumerate(lengths)]


def pair(config, seed=0):
    """(NumPy model, PyTorch model) with the same random weights, both in float64."""
    weights, ids = random_weights(config, seed), np.arange(config.vocab_size) // 2
    return numpy_model.Model(config, weights, ids), Model(config, ids, torch.float64).load_weights(weights)


def gap(got, expected):
    """Largest absolute difference of two arrays or tensors of one shape."""
    got, expected = (np.asarray(x.detach() if isinstance(x, torch.Tensor) else x, float) for x in (got, expected))
    assert got.shape == expected.shape
    return float(np.abs(got - expected).max(initial=0))
