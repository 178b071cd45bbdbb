"""Names and shapes of every parameter, as released; checks of a given set, and random ones for experiments.

Source: released checkpoint and reference modules (specification of the shapes: reference `ModelArgs`). A matrix maps
its second dimension to its first. There are no biases outside the vision tower and the router.
"""

import numpy as np

from deepseek_edu.reference import engram


def _attention(c, prefix):
    heads, group = c.n_heads * c.head_dim, c.n_heads // c.o_groups * c.head_dim
    return {
        f"{prefix}attn_sink": (c.n_heads,),
        f"{prefix}wq_a.weight": (c.q_lora_rank, c.dim),
        f"{prefix}q_norm.weight": (c.q_lora_rank,),
        f"{prefix}wq_b.weight": (heads, c.q_lora_rank),
        f"{prefix}wkv.weight": (c.head_dim, c.dim),
        f"{prefix}kv_norm.weight": (c.head_dim,),
        f"{prefix}wo_a.weight": (c.o_groups * c.o_lora_rank, group),
        f"{prefix}wo_b.weight": (c.dim, c.o_groups * c.o_lora_rank),
    }


def _hyper_connections(c, prefix):
    numbers = 2 * c.hc_mult + c.hc_mult**2
    shapes = {}
    for part in ("attn", "ffn"):
        shapes[f"{prefix}hc_{part}_fn"] = (numbers, c.hc_mult * c.dim)
        shapes[f"{prefix}hc_{part}_base"] = (numbers,)
        shapes[f"{prefix}hc_{part}_scale"] = (3,)
    return shapes


def _experts(c, prefix, count):
    shapes = {f"{prefix}gate.weight": (count, c.dim), f"{prefix}gate.bias": (count,)}
    if c.vision_n_layers:
        shapes[f"{prefix}gate.bias_vl"] = (count,)
    names = [f"experts.{e}" for e in range(count)] + ["shared_experts"] * bool(c.n_shared_experts)
    shared = c.moe_inter_dim * c.n_shared_experts
    for name in names:
        inner = shared if name == "shared_experts" else c.moe_inter_dim
        shapes[f"{prefix}{name}.w1.weight"] = shapes[f"{prefix}{name}.w3.weight"] = (inner, c.dim)
        shapes[f"{prefix}{name}.w2.weight"] = (c.dim, inner)
    return shapes


def layer_shapes(c, prefix, experts):
    """Return {name: shape} of what every layer has: attention without sharing, experts, norms, hyper-connections."""
    return {
        **_hyper_connections(c, prefix),
        **_attention(c, f"{prefix}attn."),
        **_experts(c, f"{prefix}ffn.", experts),
        f"{prefix}attn_norm.weight": (c.dim,),
        f"{prefix}ffn_norm.weight": (c.dim,),
    }


def _sharing(c, plan, prefix):
    shapes = {}
    if plan.mode == "full":
        shapes[f"{prefix}compressor.wkv.weight"] = (c.head_dim, c.dim)
        shapes[f"{prefix}compressor.norm.weight"] = (c.head_dim,)
        shapes[f"{prefix}indexer.wk.weight"] = (c.index_head_dim, c.head_dim)
        shapes[f"{prefix}indexer.k_norm.weight"] = (c.index_head_dim,)
        if plan.ratio > 1:
            shapes[f"{prefix}compressor.wgate.weight"] = (c.head_dim, c.dim)
    if plan.mode in ("full", "reindex"):
        shapes[f"{prefix}indexer.wq_b.weight"] = (c.index_n_heads * c.index_head_dim, c.q_lora_rank)
        shapes[f"{prefix}indexer.weights_proj.weight"] = (c.index_n_heads, c.dim)
    return shapes


def _engram(c, prefix, rows):
    read = (c.engram_max_ngram_size - 1) * c.engram_n_heads * c.engram_head_dim
    return {
        f"{prefix}embed.weight": (rows, c.engram_head_dim),
        f"{prefix}embed.scale": (rows, -(-c.engram_head_dim // 32)),
        f"{prefix}wkv.weight": ((c.hc_mult + 1) * c.dim, read),
        f"{prefix}q_weight": (c.hc_mult, c.dim),
        f"{prefix}k_weight": (c.hc_mult, c.dim),
    }


def vision_shapes(c):
    """Return {name: shape} of the vision tower, the aligner and the delimiters of an image; {} without a tower."""
    if not c.vision_n_layers:
        return {}
    v, shapes = c.vision_dim, {f"image_{name}": (c.dim,) for name in ("start", "end", "newline")}
    shapes["vision.patch_embed.proj.weight"] = (v, 3 * c.vision_patch_size**2)
    shapes["vision.patch_embed.proj.bias"] = (v,)
    for layer in range(c.vision_n_layers):
        prefix = f"vision.blocks.{layer}."
        shapes[f"{prefix}norm1.weight"] = shapes[f"{prefix}norm2.weight"] = (v,)
        shapes[f"{prefix}attn.wqkv.weight"], shapes[f"{prefix}attn.wqkv.bias"] = (3 * v, v), (3 * v,)
        shapes[f"{prefix}attn.wo.weight"], shapes[f"{prefix}attn.wo.bias"] = (v, v), (v,)
        shapes[f"{prefix}mlp.w1.weight"] = (2 * c.vision_inter_dim, v)
        shapes[f"{prefix}mlp.w2.weight"] = (v, c.vision_inter_dim)
    shapes["vision.norm.weight"] = (v,)
    shapes["aligner.w1.weight"] = (c.dim, v * c.vision_downsample_ratio**2)
    shapes["aligner.w2.weight"] = (c.dim, c.dim)
    shapes["aligner.w1.bias"] = shapes["aligner.w2.bias"] = (c.dim,)
    return shapes


def weight_shapes(config):
    """Return {released name: shape} of every parameter of a V4.1 model.

    >>> from deepseek_edu.config import ModelConfig
    >>> shapes = weight_shapes(ModelConfig.v41_flash())
    >>> shapes["layers.2.attn.indexer.wq_b.weight"], shapes["layers.20.ffn.gate.bias_vl"]
    ((4096, 1280), (384,))
    """
    c = config
    shapes = {"embed.weight": (c.vocab_size, c.dim), "norm.weight": (c.dim,), "head.weight": (c.vocab_size, c.dim)}
    for plan in c.schedule()[: c.n_layers]:
        prefix = f"layers.{plan.index}."
        shapes.update(layer_shapes(c, prefix, c.n_routed_experts))
        shapes.update(_sharing(c, plan, f"{prefix}attn."))
        if plan.engram is not None:
            shapes.update(_engram(c, f"{prefix}engram.", engram_rows(c)[plan.engram]))
    for stage in range(c.n_mtp_layers):
        shapes.update(layer_shapes(c, f"mtp.{stage}.", c.dspark_n_routed_experts))
    if c.n_mtp_layers:
        last = f"mtp.{c.n_mtp_layers - 1}."
        shapes["mtp.0.main_proj.weight"] = (c.dim, c.dim * len(c.dspark_target_layer_ids))
        shapes["mtp.0.main_norm.weight"] = shapes[f"{last}norm.weight"] = (c.dim,)
        shapes[f"{last}markov_head.embed.weight"] = (c.vocab_size, c.dspark_markov_rank)
        shapes[f"{last}markov_head.head.weight"] = (c.vocab_size, c.dspark_markov_rank)
        shapes[f"{last}confidence_head.proj.weight"] = (1, c.dim + c.dspark_markov_rank)
    return {**shapes, **vision_shapes(c)}


def engram_rows(config):
    """Return the rows of each Engram table: as configured, or else the sums of the primes."""
    if config.engram_num_embeddings:
        return config.engram_num_embeddings
    primes = engram.prime_moduli(config)
    return tuple(sum(map(sum, primes[layer])) for layer in config.engram_layer_ids)


def check_weights(weights, config, optional=("vision.", "aligner.", "image_")):
    """Compare a set of weights with the configuration.

    Args:
        weights: {released name: array}.
        config: ModelConfig.
        optional: beginnings of names that may be missing (text-only models).

    Raises:
        ValueError: lists all missing, unknown and misshapen names together, and what is no number.
    """
    check_shapes(weights, weight_shapes(config), optional)


def check_shapes(weights, shapes, optional=(), others=()):
    """Compare a set of weights with names and shapes.

    Args:
        weights: {released name: array or tensor}.
        shapes: {released name: shape}.
        optional: beginnings of names that may be missing.
        others: names that are wrong for another reason, which each says in its text.

    Raises:
        ValueError: lists everything that is wrong together.
    """
    missing = [name for name in shapes if name not in weights and not name.startswith(tuple(optional))]
    unknown = [name for name in weights if name not in shapes]
    known = {name: weights[name] for name in shapes if name in weights}
    wrong = [
        f"{name} {tuple(np.shape(array))} (expected {shapes[name]})"
        for name, array in known.items()
        if tuple(np.shape(array)) != shapes[name]
    ]
    kinds = [f"{name} {kind}" for name, array in known.items() if (kind := _type_unless_real(array))]
    problems = [("missing", missing), ("unknown", unknown), ("of another shape", wrong), ("not of real numbers", kinds)]
    problems.append(("of wrong values", list(others)))
    found = [f"{len(some)} {what}: {', '.join(some[:12])}{' …' * (len(some) > 12)}" for what, some in problems if some]
    if found:
        raise ValueError(f"the weights do not belong to this configuration; {'; '.join(found)}")


def _type_unless_real(array):
    """The type of an array or tensor, unless it is one of real numbers; then None."""
    kind = str(array.dtype if hasattr(array, "dtype") else np.asarray(array).dtype).removeprefix("torch.")
    return None if kind.startswith(("float", "bfloat", "int", "uint")) else kind


def random_weights(config, seed, scale=1.0):
    """Return random weights for experiments: {released name: float64 array}, the same for the same seed.

    Args:
        config: ModelConfig, small.
        seed: integer.
        scale: factor of all matrices; 1 keeps the size of what passes through about the same.
    """
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in weight_shapes(config).items():
        draw = rng.standard_normal(shape)
        if name.endswith(("norm.weight", "norm1.weight", "norm2.weight", "q_weight", "k_weight")):
            weights[name] = 1 + 0.1 * draw
        elif name.endswith("embed.scale"):
            weights[name] = np.ones(shape)
        elif len(shape) == 1:
            weights[name] = 0.5 * draw if "scale" not in name else 1 + 0.1 * draw
        else:
            weights[name] = scale * draw / np.sqrt(shape[-1] if "embed" not in name else 1)
    return weights


def under(weights, prefix):
    """Return {rest of the name: array} of the weights whose name begins with prefix."""
    return {name[len(prefix) :]: array for name, array in weights.items() if name.startswith(prefix)}
