"""DeepSeek-V4 in NumPy, for comparison with V4.1: a whole sequence at a time, without a cache.

What is different: the attention layers (v4_attention.py), experts chosen by a table in the first layers, hyper-
connections that collapse with the coefficients of the same streams, a learned collapse before the final norm, and the
preview's multi-token prediction (MTP): one more layer that reads the last streams and the next token's embedding.
There is no Engram, no image and no sharing between layers.

Source: V4 report; V4 reference `Block`, `Gate`, `MTPBlock`. In V4 the shared expert has no clamp. The draft stages of
the 31 July model are in v4_dspark.py.
"""

import numpy as np

from deepseek_edu.reference import checks, mhc, moe, norms, v4_attention
from deepseek_edu.reference import weights as names


def hash_route(ids, table, scores, scale):
    """Take the experts of each token from a table, and their weights from the router's scores.

    Args:
        ids: [T]; table: int64 [V k]; scores: [T E]; scale: factor of the weights.

    Returns:
        (experts int64 [T k], weights [T k] that sum to scale).
    """
    experts = np.asarray(table)[ids]  # T k
    weights = np.take_along_axis(scores, experts, axis=-1)
    return experts, weights / weights.sum(axis=-1, keepdims=True) * scale


def feed_forward(u, ids, w, config, k=None):
    """Route by table or router, run the experts, add the shared one without a clamp: [T C].

    Args:
        u: [T C].
        ids: [T], token ids, which the table is read by.
        w: weights of the experts by released name.
        config: ModelConfig.
        k: experts per token of a router; config.n_activated_experts by default.
    """
    scores = moe.router_scores(u, w["gate.weight"], config.score_func, config.gate_temp)
    if "gate.tid2eid" in w:
        experts, weights = hash_route(ids, w["gate.tid2eid"].astype(np.int64), scores, config.route_scale)
    else:
        k, normalise = k or config.n_activated_experts, config.score_func != "softmax"
        experts, weights = moe.route(scores, w["gate.bias"], k, normalise, config.route_scale)
    total = np.zeros_like(u)
    for expert in np.unique(experts):
        tokens, place = np.nonzero(experts == expert)
        matrices = (w[f"experts.{expert}.{name}.weight"] for name in ("w1", "w2", "w3"))
        total[tokens] += moe.swiglu(u[tokens], *matrices, config.swiglu_limit, weights[tokens, place])
    shared = (w[f"shared_experts.{name}.weight"] for name in ("w1", "w2", "w3"))
    return total + moe.swiglu(u, *shared, 0.0)


def block(streams, w, attend, feed, config):
    """Run one layer with unshifted hyper-connections: X [T S C] to X [T S C].

    Args:
        attend, feed: the two sub-blocks, functions from u [T C] to [T C].
    """
    for part, run in (("attn", attend), ("ffn", feed)):
        own = mhc.coefficients(streams, w[f"hc_{part}_fn"], w[f"hc_{part}_base"], w[f"hc_{part}_scale"], config)
        u = norms.rms_norm(mhc.collapse(streams, own.pre), w[f"{part}_norm.weight"], config.norm_eps)
        streams = mhc.expand(streams, run(u), own)
    return streams


class V4Model:
    """DeepSeek-V4.

    Args:
        config: ModelConfig, generation "v4".
        weights: {released name: array}; `mtp.*`, of the preview's layer or of draft stages, is optional.
        dtype: NumPy type of all arithmetic.

    Raises:
        ValueError: another generation, or weights of the backbone that do not fit; all of them are listed.
    """

    def __init__(self, config, weights, dtype=np.float64):
        if config.generation != "v4":
            raise ValueError(f"config.generation must be 'v4'; got {config.generation!r}; V4.1 is in model.py")
        self.config = config
        names.check_shapes(
            {name: array for name, array in weights.items() if not name.startswith("mtp.")},
            v4_weight_shapes(config),
            others=wrong_tables(weights, config),
        )
        self.weights = {name: np.asarray(array, dtype) for name, array in weights.items()}
        self.plans = config.schedule()[: config.n_layers]

    def _layer(self, streams, ids, prefix, plan, quantized):
        w = names.under(self.weights, prefix)
        attention, experts = names.under(w, "attn."), names.under(w, "ffn.")
        return block(
            streams,
            w,
            lambda u: v4_attention.attend(u, attention, plan, self.config, quantized),
            lambda u: feed_forward(u, ids, experts, self.config),
            self.config,
        )

    def streams(self, ids, quantized=False, means=None):
        """Return the streams after the last layer: [T S C].

        Args:
            ids: [T].
            quantized: store what would be cached in FP8 and FP4.
            means: dict that takes in {layer: mean of the streams at its output, [T C]}, or None.

        Raises:
            ValueError: ids are none of the vocabulary.
        """
        ids = checks.token_ids(ids, self.config.vocab_size)
        x = self.weights["embed.weight"][ids]
        streams = np.repeat(x[:, None, :], self.config.hc_mult, axis=1)
        for plan in self.plans:
            streams = self._layer(streams, ids, f"layers.{plan.index}.", plan, quantized)
            if means is not None:
                means[plan.index] = streams.mean(axis=1)
        return streams

    def main_hidden(self, ids, quantized=False):
        """Return what the draft stages read, the means of some layers' outputs side by side: [T targets·C]."""
        means = {}
        self.streams(ids, quantized, means)
        return np.concatenate([means[layer] for layer in self.config.dspark_target_layer_ids], axis=-1)

    def logits_of(self, streams, prefix=""):
        """Collapse by the learned head, normalise, multiply by the output matrix: [T V]."""
        w = self.weights
        pre = mhc.head_pre(
            streams, w[f"{prefix}hc_head_fn"], w[f"{prefix}hc_head_base"], w[f"{prefix}hc_head_scale"], self.config
        )
        hidden = norms.rms_norm(mhc.collapse(streams, pre), w[f"{prefix}norm.weight"], self.config.norm_eps)
        return hidden @ w["head.weight"].T

    def forward(self, ids, quantized=False):
        """Return the logits of all positions, [T V], from ids [T]."""
        return self.logits_of(self.streams(ids, quantized))

    def predict_after_next(self, ids, following, quantized=False):
        """Run the preview's MTP layer: logits [T V] for the token after the next one.

        Args:
            ids: [T]; following: [T], the next token of each position.

        Raises:
            ValueError: ids or following are none of the vocabulary, or of different lengths.
        """
        w, config, prefix = self.weights, self.config, "mtp.0."
        following = checks.token_ids(following, config.vocab_size)
        if len(following) != len(ids):
            raise ValueError(f"following must hold one token for each of {len(ids)} ids; got {len(following)}")
        embedded = norms.rms_norm(w["embed.weight"][following], w[f"{prefix}enorm.weight"], config.norm_eps)
        hidden = norms.rms_norm(self.streams(ids, quantized), w[f"{prefix}hnorm.weight"], config.norm_eps)  # T S C
        streams = (embedded @ w[f"{prefix}e_proj.weight"].T)[:, None] + hidden @ w[f"{prefix}h_proj.weight"].T
        plan = config.schedule()[config.n_layers]
        return self.logits_of(self._layer(streams, following, prefix, plan, quantized), prefix)


def wrong_tables(weights, config):
    """Return the names of tables of experts that hold something else than numbers of experts, each with what it holds.

    Args:
        weights: {released name: array or tensor}; config: ModelConfig.
    """
    wrong, last = [], config.n_routed_experts - 1
    for name in (name for name in weights if name.endswith("gate.tid2eid")):
        table = np.asarray(weights[name].tolist())  # arrays and tensors of any type
        if table.dtype.kind not in "iuf":
            wrong.append(f"{name} (expected whole numbers; got {table.dtype})")
        elif table.size and ((table != np.rint(table)).any() or table.min() < 0 or table.max() > last):
            wrong.append(f"{name} (expected whole numbers 0 … {last}; got {table.min()} … {table.max()})")
    return wrong


def v4_weight_shapes(config, mtp=False, dspark=False):
    """Return {released name: shape} of a V4 backbone.

    Args:
        config: ModelConfig, generation "v4".
        mtp: with the preview's MTP layer.
        dspark: with the draft stages of the 31 July model.
    """
    c = config
    shapes = {"embed.weight": (c.vocab_size, c.dim), "norm.weight": (c.dim,), "head.weight": (c.vocab_size, c.dim)}
    shapes.update(_head_shapes(c, ""))
    for plan in c.schedule()[: c.n_layers]:
        shapes.update(_layer_shapes(c, plan, f"layers.{plan.index}."))
    if mtp:
        prefix = "mtp.0."
        shapes.update(_layer_shapes(c, c.schedule()[c.n_layers], prefix))
        shapes.update(_head_shapes(c, prefix))
        for name in ("e_proj", "h_proj"):
            shapes[f"{prefix}{name}.weight"] = (c.dim, c.dim)
        for name in ("enorm", "hnorm", "norm"):
            shapes[f"{prefix}{name}.weight"] = (c.dim,)
    if dspark:
        shapes.update(_stage_shapes(c))
    return shapes


def _stage_shapes(c):
    shapes, last = {}, f"mtp.{c.n_mtp_layers - 1}."
    for stage in range(c.n_mtp_layers):
        plan = c.schedule()[c.n_layers + stage]
        shapes.update(_layer_shapes(c, plan, f"mtp.{stage}.", c.dspark_n_routed_experts))
    shapes["mtp.0.main_proj.weight"] = (c.dim, c.dim * len(c.dspark_target_layer_ids))
    shapes["mtp.0.main_norm.weight"] = shapes[f"{last}norm.weight"] = (c.dim,)
    shapes.update(_head_shapes(c, last))
    for name in ("embed", "head"):
        shapes[f"{last}markov_head.{name}.weight"] = (c.vocab_size, c.dspark_markov_rank)
    shapes[f"{last}confidence_head.proj.weight"] = (1, c.dim + c.dspark_markov_rank)
    return shapes


def _head_shapes(c, prefix):
    return {
        f"{prefix}hc_head_fn": (c.hc_mult, c.hc_mult * c.dim),
        f"{prefix}hc_head_base": (c.hc_mult,),
        f"{prefix}hc_head_scale": (1,),
    }


def _layer_shapes(c, plan, prefix, experts=None):
    shapes = names.layer_shapes(c, prefix, experts or c.n_routed_experts)
    shapes.pop(f"{prefix}ffn.gate.bias_vl", None)
    if plan.hash_routed:
        del shapes[f"{prefix}ffn.gate.bias"]
        shapes[f"{prefix}ffn.gate.tid2eid"] = (c.vocab_size, c.n_activated_experts)
    if plan.ratio:
        shapes.update(_compressor_shapes(c, f"{prefix}attn.compressor.", plan.ratio, c.head_dim))
    if plan.mode == "csa":
        shapes.update(_compressor_shapes(c, f"{prefix}attn.indexer.compressor.", 4, c.index_head_dim))
        shapes[f"{prefix}attn.indexer.wq_b.weight"] = (c.index_n_heads * c.index_head_dim, c.q_lora_rank)
        shapes[f"{prefix}attn.indexer.weights_proj.weight"] = (c.index_n_heads, c.dim)
    return shapes


def _compressor_shapes(c, prefix, ratio, width):
    projected = width * (2 if ratio == 4 else 1)
    return {
        f"{prefix}wkv.weight": (projected, c.dim),
        f"{prefix}wgate.weight": (projected, c.dim),
        f"{prefix}ape": (ratio, projected),
        f"{prefix}norm.weight": (width,),
    }
