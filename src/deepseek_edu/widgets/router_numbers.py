"""The invented numbers of the `router` widget: a toy of four experts, a batch of twelve tokens, a router of 384 boxes.

All are illustrative. The sizes of the large one (384 experts, 6 active, one shared, weights that sum to 1.5) are those
of the released configuration; its router has a width of 16 instead of 5120, and its numbers are drawn at random.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np

from deepseek_edu.config import ModelConfig

WIDTH = 4
NAMES = ("A", "B", "C", "D")
ROUTER = np.array([[1.0, 0.5, 0.0, -0.5], [0.5, -0.5, 0.5, 0.0], [-0.5, 0.0, 1.0, 0.5], [0.0, 0.5, -0.5, 1.0]])
"""Router rows of the toy, one for each expert."""

TOKENS = {"a": (1.2, 0.6, -0.4, 0.8), "b": (-0.8, 0.4, 1.5, 0.2), "c": (0.0, 0.0, 0.0, 0.0)}
OWN = (1.0, -1.0, 0.5, 0.5)

_DRAWS = 8
REAL_WIDTH = 16


@cache
def released() -> ModelConfig:
    """The configuration of the released model."""
    return ModelConfig.v41_flash()


@cache
def toy_experts() -> tuple[dict[str, np.ndarray], SimpleNamespace]:
    """Weights of four routed experts and a shared one by released name (width 4, inner width 3), and their settings."""
    random = np.random.default_rng(6)
    weights = {}
    for name in (*(f"experts.{expert}" for expert in range(len(NAMES))), "shared_experts"):
        for matrix, shape in (("w1", (3, WIDTH)), ("w3", (3, WIDTH)), ("w2", (WIDTH, 3))):
            weights[f"{name}.{matrix}.weight"] = random.integers(-3, 4, shape) / 2
    return weights, SimpleNamespace(swiglu_limit=released().swiglu_limit, n_shared_experts=1)


@cache
def batch() -> np.ndarray:
    """Hidden states of twelve tokens, [12 4]: most of them lie near the row of expert A."""
    random = np.random.default_rng(192)
    return np.round(random.normal(size=(12, WIDTH)) + np.array([1.2, 0.6, 0.1, -0.2]), 1)


@cache
def boxes() -> SimpleNamespace:
    """384 router rows of width 16, eight hidden states, and the correction biases for text and for images."""
    random = np.random.default_rng(384)
    count = released().n_routed_experts
    return SimpleNamespace(
        router=np.round(random.normal(size=(count, REAL_WIDTH)) / 4, 2),
        hidden=np.round(random.normal(size=(_DRAWS, REAL_WIDTH)), 2),
        text_bias=np.round(random.normal(size=count) * 0.12, 2),
        image_bias=np.round(random.normal(size=count) * 0.12, 2),
    )
