"""Checks of the claims about sharing and selecting.

Sources: technical report of DeepSeek-V4.1-Flash, sections 2.3 and 4.2.1; its released configuration and code.
"""

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import compressor, indexer
from deepseek_edu.widgets.indexer_examples import recall_curves


def layers_by_mode() -> str:
    """Layers of the backbone: window only, full, reindex, reuse."""
    config = ModelConfig.v41_flash()
    modes = [plan.mode for plan in config.schedule()[: config.n_layers]]
    return "/".join(str(modes.count(mode)) for mode in ("window", "full", "reindex", "reuse"))


def visible_at_ratio_two() -> list[int]:
    """Entries that the first four positions may read."""
    return compressor.visible_entries(np.arange(4), 2).tolist()


def index_heads() -> str:
    """Heads and width of an indexer."""
    config = ModelConfig.v41_flash()
    return f"{config.index_n_heads} × {config.index_head_dim}"


def scores_are_rectified_and_signed() -> bool:
    """Whether a head counts only where its product is positive, and against the entry where its weight is negative."""
    query, keys = np.array([[[2.0, 0.0]]]), np.array([[3.0, 1.0], [-3.0, 1.0]])
    scores = [indexer.index_scores(query, np.array([[weight]]), keys)[0].tolist() for weight in (0.5, -0.5)]
    return scores == [[3.0, 0.0], [-3.0, 0.0]]


def pool_size() -> int:
    """Entries of a full pool."""
    config = ModelConfig.v41_flash()
    return config.candidate_topk_blocks * config.candidate_block_size


def pool_layers() -> str:
    """The layer that makes the pool, and those that look only there."""
    plans = ModelConfig.v41_flash().schedule()
    source, restricted = ([str(p.index) for p in plans if p.pool == kind] for kind in ("source", "restricted"))
    return f"{'/'.join(source)}, then {'/'.join(restricted)}"


def newest_block_is_kept() -> bool:
    """Whether the block with the newest entry is the only one in a pool of one, though it scores worst."""
    pool = indexer.candidate_pool(np.array([[9.0, 8.0, 7.0, 6.0, -1.0]]), [5], 1, 2)
    return pool.tolist() == [[False, False, False, False, True]]


def recall_of_the_toy() -> str:
    """Mean recall with 8 of 32 blocks, for the three likenesses."""
    return "/".join(f"{100 * curve[7]:.0f}" for curve in recall_curves().values()) + " %"
