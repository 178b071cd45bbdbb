"""Random numbers for the tests of single mechanisms, and the norm in NumPy."""

import numpy as np
import torch

WHERE = {"dtype": torch.float64, "device": torch.device("cpu")}
"""Where the parameters of a module under test are."""


def random(*shape, seed=0):
    """Normal numbers in float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fill(module, seed=0):
    """Random numbers for all parameters of a module, also for those that begin at 0 or 1; returns the module."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            numbers = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.copy_(numbers * parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 1 + 0.3 * numbers)
    return module


def rms(x, eps=1e-6):
    """x over the root of the mean square of its last dimension, in NumPy."""
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)
