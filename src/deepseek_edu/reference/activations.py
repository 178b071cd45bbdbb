"""The scalar functions of the model: sigmoid, SiLU, softplus, softmax, GELU. None of them overflows.

Source: reference code; the functions themselves are textbook.
"""

import math

import numpy as np


def sigmoid(x):
    """Return 1 / (1 + e^−x), any shape.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def silu(x):
    """Return x · sigmoid(x), any shape."""
    return x * sigmoid(x)


def softplus(x):
    """Return log(1 + e^x), any shape.

    >>> softplus(np.array([-1000.0, 1000.0])).tolist()
    [0.0, 1000.0]
    """
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def softmax(x, axis=-1):
    """Return e^x / Σ e^x along one axis.

    >>> softmax(np.array([1000.0, 1000.0])).tolist()
    [0.5, 0.5]
    """
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def gelu(x):
    """Return x · Φ(x) with the exact normal distribution function, any shape (the aligner's activation)."""
    erf = np.vectorize(math.erf, otypes=[float])
    return x * 0.5 * (1 + erf(x / math.sqrt(2))) if np.size(x) else x
