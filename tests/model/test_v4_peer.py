"""DeepSeek-V4 against the implementation in transformers; what differs is said in transformers_v4.py."""

import numpy as np
import torch

from deepseek_edu.model.v4_model import V4Model
from deepseek_edu.reference import v4_model as numpy_v4

from ..reference.test_v4 import random_weights, tiny_v4
from .tiny import gap
from .transformers_v4 import peer

TOLERANCE = 5e-5
"""The peer computes in float32: logits of size 7 after five layers; 7e-6 is what was seen."""


def models(config, seed):
    """(NumPy model, PyTorch model in float64, peer in float32) with the same random weights."""
    weights = {name: a for name, a in random_weights(config, seed).items() if not name.startswith("mtp.")}
    return (
        numpy_v4.V4Model(config, weights),
        V4Model(config, dtype=torch.float64).load_weights(weights),
        peer(weights, config),
    )


@torch.no_grad()
def test_prefill_and_cached_decode_give_the_peers_logits():
    """Layers window, CSA, HCA, CSA, window; the first two routed by a table; windows, groups and Top-k all at work."""
    numpy_model, torch_model, other = models(tiny_v4(), 3)
    ids = np.random.default_rng(0).integers(0, 96, (1, 70))
    expected = other(torch.tensor(ids), use_cache=False).logits[0]
    assert gap(numpy_model.forward(ids[0]), expected) < TOLERANCE
    assert gap(torch_model(ids.tolist()).logits[0], expected) < TOLERANCE
    output = other(torch.tensor(ids[:, :33]), use_cache=True)
    cache = torch_model.new_cache(quantized=False)
    assert gap(torch_model.prefill(ids[:, :33].tolist(), cache).logits, output.logits) < TOLERANCE
    for place in range(33, 70):
        token = torch.tensor(ids[:, place : place + 1])
        theirs = other(token, cache=output.cache, use_cache=True).logits
        assert gap(torch_model.decode(token, cache).logits, theirs) < TOLERANCE


@torch.no_grad()
def test_the_peers_shared_expert_clamps_and_the_released_one_does_not():
    """With a small clamp and the peer's shared experts as they come, logits differ; without their clamp they do not."""
    _, torch_model, other = models(tiny_v4(swiglu_limit=0.05), 4)
    ids = torch.arange(12)[None]
    ours = torch_model(ids).logits
    assert gap(ours, other(ids).logits) < TOLERANCE
    for layer in other.model.layers:
        layer.mlp.shared_experts.limit = 0.05
    assert gap(ours, other(ids).logits) > 1e-3
