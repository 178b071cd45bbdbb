"""Four layers of the `csa2` widget, run by `reference.csa2` itself on vectors in a plane.

A token's input of a layer holds two directions: one that entries are made from, one that the query is made from. Index
queries, index keys, queries and entries are these directions as they are; the window is the token itself. All numbers
are invented. Rotation and four-bit rounding are left out.
"""

import math
from dataclasses import dataclass

import numpy as np

from deepseek_edu.config import LayerPlan
from deepseek_edu.reference import attention, cache, compressor, csa2, storage

LAYERS = ("A", "B", "C", "D")
TOKENS = 12
TOP = 3
MODES = ("reuse", "reindex", "reuse")  # of layers B, C and D; layer A is always full
_ENTRIES = (301, 182, 38, 135, 207, 74, 338, 97, 233, 268, 8, 157)  # degrees, of layer A
QUERIES = (68.3, 95.3, 204.3, 170.3)  # degrees, of each layer


@dataclass(frozen=True)
class ToyConfig:
    """The fields of a configuration that `csa2` and `Cache` read."""

    kv_source_layers: tuple[int, ...]
    n_layers: int = len(LAYERS)
    compress_ratios: tuple[int, ...] = (1,) * len(LAYERS)
    head_dim: int = 2
    n_heads: int = 1
    o_groups: int = 1
    window_size: int = 1
    index_n_heads: int = 1
    index_head_dim: int = 2
    index_topk: int = TOP
    norm_eps: float = 1e-20
    candidate_topk_blocks: int = 0
    candidate_block_size: int = 0
    dspark_block_size: int = 0
    n_mtp_layers: int = 0
    engram_max_ngram_size: int = 1


@dataclass(frozen=True)
class Layer:
    """What one layer did for the last token."""

    mode: str
    owner: int  # whose entries it read
    chooser: int  # whose choice
    query: np.ndarray  # [2]
    own: np.ndarray  # its window entry [2]
    entries: np.ndarray  # all entries of its owner [N 2]
    chosen: tuple[int, ...]
    weights: tuple[float, ...]  # of the window, of each chosen entry, of the sink
    output: np.ndarray  # [2]


class _Watched(storage.Entries):
    """Entries that remember which of them were read last."""

    rows: tuple[int, ...] = ()

    def read(self, rows=None):
        if rows is not None:
            self.rows = tuple(dict.fromkeys(int(j) for j in np.ravel(rows)))
        return super().read(rows)


def plans(modes: tuple[str, ...]) -> list[LayerPlan]:
    """The schedule: entries and choices come from the nearest layer below that makes them."""
    found, owner, chooser = [], 0, 0
    for index, mode in enumerate(modes):
        owner = index if mode == "full" else owner
        chooser = index if mode != "reuse" else chooser
        found.append(LayerPlan(index, "decoder", 1, mode, owner, chooser))
    return found


def _directions(degrees) -> np.ndarray:
    return np.array([(round(math.cos(math.radians(a)), 6), round(math.sin(math.radians(a)), 6)) for a in degrees])


def inputs(layer: int, tokens: int, query: float) -> np.ndarray:
    """Inputs of a layer [T 5]: direction of the entry, direction of the query, and a one for the index weight."""
    shift = [25 * layer + (17 * layer * i) % 13 - 6 if layer else 0 for i in range(tokens)]
    u = np.ones((tokens, 5))
    u[:, :2] = _directions([a + s for a, s in zip(_ENTRIES, shift, strict=False)])
    u[:, 2:4] = _directions([query] * tokens)
    return u


def _weights() -> dict[str, np.ndarray]:
    plane, gain = np.eye(2), np.ones(2)
    first, second = np.eye(5)[:2], np.eye(5)[2:4]
    return {
        "wkv.weight": first,
        "kv_norm.weight": gain,
        "wq_a.weight": second,
        "q_norm.weight": gain,
        "wq_b.weight": 2 * plane,
        "attn_sink": np.zeros(1),
        "wo_a.weight": plane,
        "wo_b.weight": plane,
        "compressor.wkv.weight": first,
        "compressor.norm.weight": gain,
        "indexer.wk.weight": plane,
        "indexer.k_norm.weight": gain,
        "indexer.wq_b.weight": plane,
        "indexer.weights_proj.weight": 2**0.5 * np.eye(5)[4:],
    }


def run(modes: tuple[str, ...], queries: tuple[float, ...], position: int) -> tuple[Layer, ...]:
    """All layers over tokens 0 … position; what they did for the last one."""
    schedule = plans(modes)
    config = ToyConfig(tuple(plan.index for plan in schedule if plan.mode == "full"))
    memory, published = cache.Cache(config, quantized=False), csa2.Published()
    memory.entries = {layer: _Watched(memory.entry_format) for layer in memory.entries}
    w, none, layers = _weights(), np.zeros(0), []
    for plan, degrees in zip(schedule, queries, strict=True):
        u = inputs(plan.index, position + 1, degrees)
        if plan.mode == "full":
            csa2.store_global(u, 0, w, plan, memory, none)
        output = csa2.attend(u, 0, w, plan, memory, none, published, rows=1)[0]
        chosen = memory.entries[plan.owner].rows
        entries = memory.entries[plan.owner].read()
        own = attention.shared_entry(u[-1:], w["wkv.weight"], w["kv_norm.weight"], config.norm_eps)[0]
        query_weights = (w["wq_a.weight"], w["q_norm.weight"], w["wq_b.weight"])
        query = attention.low_rank_query(u[-1:], *query_weights, 1, config.norm_eps)[1][0, 0]
        read = np.concatenate([own[None], entries[list(chosen)]])
        shares = _shares(query, read, w["attn_sink"], config.head_dim**-0.5)
        layers.append(Layer(plan.mode, plan.owner, plan.chooser, query, own, entries, chosen, shares, output))
    return tuple(layers)


def _shares(query, read, sinks, scale) -> tuple[float, ...]:
    """The weight of each entry that was read, and of the sink: attention over entries that also carry their number."""
    numbered = np.concatenate([read, np.eye(len(read))], axis=1)[None]  # 1 K 2+K
    asking = np.concatenate([query, np.zeros(len(read))])[None, None]
    heads = attention.sink_attention(asking, numbered, np.ones((1, len(read)), bool), sinks, scale)
    shares = [float(share) for share in heads[0, 0, 2:]]
    return (*shares, 1 - math.fsum(shares))


def complete_entries(ratio: int, values, gates) -> tuple[np.ndarray, int]:
    """Complete groups of tokens from the beginning: their entries [N 1], and how many tokens wait."""
    rows = np.array([values, gates], float).T  # T 2
    _, complete = compressor.split_groups(0, rows[:0], rows, ratio)
    pooled = compressor.pool(complete[:, :1], complete[:, 1:] if ratio > 1 else None, ratio)
    return pooled, len(rows) - len(complete)
