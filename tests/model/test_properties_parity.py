"""Random models at every edge: what the drawn cases have to contain is counted, so that a lucky draw cannot pass.

test_parity.py draws anything; here lengths are the edges of windows and groups, and the shapes are tallied.
"""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import dspark
from deepseek_edu.reference import dspark as numpy_dspark

from ..reference.strategies import configurations
from .test_parity import TOLERANCE, feed_both
from .tiny import gap, pair

EDGES = {
    "1": lambda window: 1,
    "w-1": lambda window: max(1, window - 1),
    "w": lambda window: window,
    "w+1": lambda window: window + 1,
    "2w": lambda window: 2 * window,
    "2w+1": lambda window: 2 * window + 1,
}
WANTED = {
    *(f"length {name}" for name in EDGES),
    *(f"ratio {ratio}" for ratio in (0, 1, 2, 3)),
    *(f"rows {rows}" for rows in (1, 2, 3)),
    *(f"owners {owners}" for owners in (0, 1, 2)),
    *(f"modules {modules}" for modules in (0, 1, 2)),
    *(f"draft stages {stages}" for stages in (0, 1, 2)),
    *(f"block {block}" for block in range(1, 6)),
    *(f"top-k {count}" for count in range(1, 6)),
    *(f"visible {count}" for count in (0, 1, 2)),
    *(f"mode {mode}" for mode in ("full", "reindex", "reuse", "window")),
    *(f"pool {pool}" for pool in ("source", "restricted")),
    *(f"layers {layers}" for layers in ("1", "2", "more")),
    "odd length",
    "even length",
    "one piece",
    "pieces",
    "fewer entries than chosen",
    "more entries than chosen",
    "a pool that leaves entries out",
}


def features(config, lengths, pieces):
    """What a drawn case contains, in the words of WANTED."""
    found = {
        f"rows {len(lengths)}",
        f"layers {config.n_layers if config.n_layers < 3 else 'more'}",
        f"owners {len(config.kv_source_layers)}",
    }
    found |= {f"modules {len(config.engram_layer_ids)}", f"draft stages {config.n_mtp_layers}"}
    found |= {f"top-k {config.index_topk}", "pieces" if pieces else "one piece"}
    if config.n_mtp_layers:
        found.add(f"block {config.dspark_block_size}")
    found |= {"odd length" if length % 2 else "even length" for length in lengths}
    found |= {f"length {name}" for name, edge in EDGES.items() if edge(config.window_size) in lengths}
    for plan in config.schedule()[: config.n_layers]:
        found |= {f"ratio {plan.ratio}", f"mode {plan.mode}", f"pool {plan.pool}"}
        for length in lengths if plan.ratio else ():
            entries = length // plan.ratio
            found.add(f"visible {entries}")
            found.add("more entries than chosen" if entries > config.index_topk else "fewer entries than chosen")
            if plan.pool == "restricted" and entries > config.candidate_topk_blocks * config.candidate_block_size:
                found.add("a pool that leaves entries out")
    return found


def test_models_of_every_shape_agree_at_every_edge():
    found = set()

    @given(st.data())
    @settings(max_examples=70)
    def agree(data):
        config = data.draw(configurations())
        edges = st.sampled_from(list(EDGES.values()))
        lengths = [edge(config.window_size) for edge in data.draw(st.lists(edges, min_size=1, max_size=3))]
        pieces = data.draw(st.lists(st.integers(1, 7), max_size=3))
        batch = [data.draw(st.lists(st.integers(0, config.vocab_size - 1), min_size=n, max_size=n)) for n in lengths]
        found.update(features(config, lengths, pieces))
        numpy_model, torch_model = pair(config)
        caches, cache = feed_both(numpy_model, torch_model, batch, None, pieces)
        if config.n_mtp_layers:
            tokens = [row[0] for row in batch]
            with torch.no_grad():
                draft = dspark.draft(torch.tensor(tokens), torch_model, cache)
            for b, state in enumerate(caches):
                expected = numpy_dspark.draft(tokens[b], len(batch[b]), numpy_model, state)
                assert gap(draft.logits[b, 0], expected.logits[0]) < TOLERANCE

    agree()
    assert WANTED - found == set()


def test_a_short_model_agrees_with_no_and_one_visible_entry():
    """Ratio 3: the first two tokens see no entry, the next three one; token by token and in one piece."""
    config = ModelConfig.tiny(compress_ratios=(0, 3, 3, 1, 1, 1, 1, 1, 0, 0, 0))
    numpy_model, torch_model = pair(config, 4)
    ids = np.random.default_rng(0).integers(0, 96, (1, 7)).tolist()
    feed_both(numpy_model, torch_model, ids, None, [1] * 7)
    feed_both(numpy_model, torch_model, ids, None, [])
