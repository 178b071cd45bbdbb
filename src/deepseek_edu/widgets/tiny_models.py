"""Small models for widgets: the lower layers of `ModelConfig.tiny` with seeded random weights.

    layer   0        1              2              3               4       5         6       7
    mode    window   full, ratio 2  reuse, ratio 2 full, ratio 1   reuse   reindex   reuse   reuse
            encoder                                decoder

Layers 1 and 2 have n-gram memories. There are no draft stages and no vision tower, and fewer experts and Sinkhorn steps
than in the tiny model, for speed: every layer costs about a millisecond, whatever its sizes.
"""

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import model as models
from deepseek_edu.reference import weights

from .memo import remembered

SEED = 1
SMALLER = {
    "n_mtp_layers": 0,
    "dspark_target_layer_ids": (),
    "vision_n_layers": 0,
    "n_routed_experts": 4,
    "n_activated_experts": 2,
    "hc_sinkhorn_iters": 4,
}


def toy_config(layers, window, **changes):
    """The first `layers` layers of the tiny model with another window."""
    tiny = ModelConfig.tiny()
    below = {
        name: tuple(layer for layer in getattr(tiny, name) if layer < layers)
        for name in ("kv_source_layers", "index_source_layers", "engram_layer_ids")
    }
    return ModelConfig.tiny(
        n_layers=layers,
        window_size=window,
        compress_ratios=tiny.compress_ratios[:layers],
        engram_num_embeddings=tiny.engram_num_embeddings[: len(below["engram_layer_ids"])],
        candidate_source_layer=tiny.candidate_source_layer if layers > tiny.candidate_source_layer else -1,
        **{**SMALLER, **below, **changes},
    )


@remembered(32)
def toy_model(layers, window):
    """The model of a setting. Its weights are drawn layer by layer, so deeper models begin with the same layers."""
    config = toy_config(layers, window)
    return models.Model(config, weights.random_weights(config, SEED), np.arange(config.vocab_size) // 2)


@remembered(8)
def prompt(length):
    """Token ids, the same for every model."""
    return np.random.default_rng(SEED).integers(3, 90, length)
