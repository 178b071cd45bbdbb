"""One token through the tiny model, layer by layer, as the explorer shows it.

The walk calls the functions of `reference` that `Model.forward` calls, in its order, for one token whose predecessors
are in the cache; a test holds its logits against those of the model. Weights are random with a fixed seed: the shapes
and the arithmetic are the model's, the numbers mean nothing.
"""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import (
    attention,
    block,
    csa2,
    dspark,
    engram,
    indexer,
    mhc,
    model,
    moe,
    norms,
    rope,
    storage,
)
from deepseek_edu.reference import weights as names

from .explorer_facts import config_of
from .explorer_inside import Shown
from .memo import remembered

SEED = 41
PROMPT = tuple(int(i) for i in np.random.default_rng(SEED).integers(0, 90, 25))
EARLY = 5  # position of the followed prompt token; it completes a group of two
LATE = len(PROMPT)  # position of the followed new token; so does it

NEW = (
    "Embedding",
    "Four streams",
    "Layer 0: window",
    "Layer 0: experts",
    "Layer 1: Engram",
    "Layer 1: compressor",
    "Layer 1: indexer",
    "Layer 1: attention",
    "Layer 2: reuse",
    "Layer 3: global entry",
    "Layer 3: candidate pool",
    "Layer 4: reuse",
    "Layer 5: reindex",
    "Layers 6 and 7",
    "Head",
    "Draft",
)
EARLIER = (*NEW[:10], "Decoder: not run")


@dataclass(frozen=True)
class Stop:
    """A stop of the walk: which boxes of the map it lights, what happens, and the numbers."""

    name: str
    box: str
    text: str
    rows: tuple[Shown, ...] = ()
    writes: tuple[int, ...] = ()  # owners whose memory gets an entry
    reads: tuple[int, int, int] | None = (
        None  # the layer that scores or reads, owner of the entries, layer that chooses
    )


@remembered(1)
def tiny_model() -> model.Model:
    """The tiny model with random weights."""
    config = config_of("tiny")
    return model.Model(config, names.random_weights(config, SEED), np.arange(config.vocab_size) // 2)


@remembered(2)
def _prefix(length: int):
    """The cache after the first tokens of the prompt."""
    tiny = tiny_model()
    cache = tiny.new_cache()
    tiny.prefill(np.array(PROMPT[:length]), cache)
    return cache


class Walk:
    """Runs the layers one after the other and keeps what stops show."""

    def __init__(self, token: int, position: int) -> None:
        self.model, self.position, self.token = tiny_model(), position, token
        self.config, self.cache = self.model.config, deepcopy(_prefix(position))
        ids = np.array([token])
        compressed = self.model.hash.compress(ids)
        self.rows = self.model.hash.rows(compressed, self.cache.previous_ids())
        self.embedding = self.model.embed[ids]  # 1 C
        self.streams = np.repeat(self.embedding[:, None, :], self.config.hc_mult, axis=1)  # 1 S C
        self.pre = mhc.one_hot(1, self.config.hc_mult)
        self.published = csa2.Published()
        self.means, self.seen = [], {}

    def layer(self, plan) -> dict:
        """Run one layer; returns what was seen in it."""
        seen = {"before": self.streams}
        w, parts = self.model.layers[plan.index], self.model.layer_parts[plan.index]
        self._remember(plan, seen)
        if plan.index in self.config.dspark_target_layer_ids:
            self.means.append(self.streams.mean(axis=1))
        frequencies = self.model.frequencies[plan.ratio]

        def attend(u):
            if plan.mode == "full":
                csa2.store_global(u, self.position, parts["attn"], plan, self.cache, frequencies)
            seen["u"] = u
            if plan.mode in ("full", "reindex"):
                seen["index scores"] = self._index_scores(u, parts["attn"], plan)
            seen["y"] = csa2.attend(u, self.position, parts["attn"], plan, self.cache, frequencies, self.published)
            return seen["y"]

        def feed(u):
            seen["scores"] = moe.router_scores(u, parts["ffn"]["gate.weight"], self.config.score_func)
            seen["experts"], seen["weights"] = moe.route(
                seen["scores"],
                parts["ffn"]["gate.bias"],
                self.config.n_activated_experts,
                True,
                self.config.route_scale,
            )
            seen["z"] = moe.moe(u, parts["ffn"], self.config.n_activated_experts, self.config)
            return seen["z"]

        self.streams, self.pre = block.block(self.streams, self.pre, w, attend, feed, self.config)
        seen["after"] = self.streams
        self.seen[plan.index] = seen
        return seen

    def _index_scores(self, u, w, plan) -> np.ndarray:
        """The scores of a layer's indexer for every entry, [N]; `csa2.choose` makes its choice of the same."""
        c, at, frequencies = self.config, np.array([[self.position]]), self.model.frequencies[plan.ratio]
        weights = (w["wq_a.weight"], w["q_norm.weight"], w["wq_b.weight"])
        narrow, _ = attention.low_rank_query(u, *weights, c.n_heads, c.norm_eps)
        queries = indexer.index_queries(narrow, w["indexer.wq_b.weight"], c.index_n_heads)
        queries = storage.read_back(self.cache.index_format, rope.rotate_tail(queries, at, frequencies))
        heads = indexer.head_weights(u, w["indexer.weights_proj.weight"], c.index_head_dim)
        keys = self.cache.index_keys[plan.owner].read()[: len(self.cache.entries[plan.owner])]
        return indexer.index_scores(queries, heads, keys)[0]

    def store(self, plan) -> None:
        """Make the global entry of a layer, and nothing else of it."""
        self._remember(plan, {})
        u = block.attention_input(self.streams, self.pre, self.model.layers[plan.index], self.config)
        w, frequencies = self.model.layer_parts[plan.index]["attn"], self.model.frequencies[plan.ratio]
        csa2.store_global(u, self.position, w, plan, self.cache, frequencies)

    def _remember(self, plan, seen: dict) -> None:
        if plan.engram is None:
            return
        w = self.model.layer_parts[plan.index]["engram"]
        seen["rows"] = self.rows[0, plan.engram]
        before = self.streams
        self.streams = engram.engram(before, seen["rows"], w, self.config)
        seen["added"] = self.streams - before

    def logits(self) -> np.ndarray:
        hidden = mhc.collapse(self.streams, self.pre)
        return norms.rms_norm(hidden, self.model.norm, self.config.norm_eps)[0] @ self.model.head.T

    def draft(self, following: int) -> dspark.Draft:
        """Draft after the next token."""
        main_hidden = np.concatenate(self.means, axis=-1)
        dspark.insert_context(main_hidden, self.position, self.model.stages, self.cache, self.model.frequencies[0])
        return dspark.draft(following, self.position + 1, self.model, self.cache)
