"""How many parameters a model has, part by part, and how many of them one token meets.

The parts are kept apart because every published total leaves some of them out:

    backbone   embedding, layers, output                       552 B of V4.1-Flash, 284 B of V4-Flash
    engram     tables (196.6 B), and the matrices that read them (0.3 B)
    draft      the DSpark stages and what only they use        14.2 B
    vision     tower, aligner, delimiters of an image          0.5 B
    stored     what lies in the files without being trained: scales of the table rows, expert tables of V4

Source: shapes of the released weights (reference `ModelArgs` and modules; V4 reference). The report states the rounded
totals; which parts make them up is derived. The draft stages of V4-Flash are those of V4.1 with the sizes of the
31 July model and a head that collapses the streams; no file of them was seen.
"""

import re

PHASES = ("decode", "prefill")  # what a token can be part of

_COMPONENTS = (  # what is in a released name → part, component; the first that matches
    (r"^(vision\.|aligner\.|image_)", "vision"),
    (r"engram\.embed\.scale$|gate\.tid2eid$", "stored"),
    (r"engram\.", "engram"),
    (r"^mtp\.", "draft"),
    (r"", "backbone"),
)
_NAMES = {
    "vision": ((r"^vision\.", "tower"), (r"^aligner\.", "aligner"), (r"", "delimiters")),
    "stored": ((r"scale$", "row scales"), (r"", "expert tables")),
    "engram": ((r"embed\.weight$", "tables"), (r"", "readers")),
    "backbone": (
        (r"main_proj", "main projection"),
        (r"markov_head", "Markov head"),
        (r"confidence_head", "confidence head"),
        (r"indexer\.(wk|k_norm|compressor)", "index keys"),
        (r"indexer\.", "index queries"),
        (r"compressor\.", "compressor"),
        (r"attn\.", "attention"),
        (r"shared_experts", "shared experts"),
        (r"experts\.", "routed experts"),
        (r"ffn\.gate", "router"),
        (r"hc_", "hyper-connections"),
        (r"norm", "norms"),
        (r"^embed", "embedding"),
        (r"^head", "head"),
    ),
}
_NAMES["draft"] = _NAMES["backbone"]


def component_of(name):
    """Return (part, component) under which `parameters` counts the tensor with a released name.

    >>> component_of("layers.2.attn.indexer.wk.weight"), component_of("mtp.2.markov_head.head.weight")
    (('backbone', 'index keys'), ('draft', 'Markov head'))

    Raises:
        ValueError: no tensor of these models has such a name.
    """
    part = next(part for pattern, part in _COMPONENTS if re.search(pattern, name))
    for pattern, component in _NAMES[part]:
        if re.search(pattern, name):
            return part, component
    raise ValueError(f"name must be a released tensor name, such as 'layers.0.attn.wkv.weight'; got {name!r}")


def _attention(c):
    """Query down, its norm, query up; key-value and its norm; grouped output, output; one sink per head."""
    heads = c.n_heads * c.head_dim
    query = c.q_lora_rank * (c.dim + 1 + heads)
    entry = c.head_dim * (c.dim + 1)
    return query + entry + c.o_lora_rank * (heads + c.o_groups * c.dim) + c.n_heads


def _compressor(c, ratio, width):
    """Projection and norm; a gate where several tokens are pooled. V4: twice as wide at ratio 4, with positions."""
    if c.generation == "v4":
        projected = width * (2 if ratio == 4 else 1)
        return projected * (2 * c.dim + ratio) + width
    return width * (c.dim * (1 if ratio == 1 else 2) + 1)


def _index_keys(c):
    if c.generation == "v4":
        return _compressor(c, 4, c.index_head_dim)
    return c.index_head_dim * (c.head_dim + 1)


def _expert(c):
    return 3 * c.dim * c.moe_inter_dim


def layer_parameters(config, plan):
    """Return the parameters of one layer or draft stage by component.

    Args:
        config: ModelConfig.
        plan: one of `config.schedule()`.

    Returns:
        {component: count}, only components that the layer has. An n-gram memory is not in it (see `parameters`).

    >>> from deepseek_edu.config import ModelConfig
    >>> flash = ModelConfig.v41_flash()
    >>> layer_parameters(flash, flash.schedule()[20])["compressor"]
    2621952
    """
    c = config
    experts = c.dspark_n_routed_experts if plan.side == "draft" else c.n_routed_experts
    images = c.generation == "v4.1" and c.vision_n_layers > 0  # their tokens have a bias of their own
    biases = 0 if plan.hash_routed else 1 + images
    numbers = c.hc_mult * (c.hc_mult + 2)
    chooses, makes = plan.mode in ("full", "reindex", "csa"), plan.mode in ("full", "csa", "hca")
    counts = {
        "attention": _attention(c),
        "compressor": _compressor(c, plan.ratio, c.head_dim) if makes else 0,
        "index queries": c.index_n_heads * (c.index_head_dim * c.q_lora_rank + c.dim) if chooses else 0,
        "index keys": _index_keys(c) if plan.mode in ("full", "csa") else 0,
        "routed experts": experts * _expert(c),
        "shared experts": c.n_shared_experts * _expert(c),
        "router": experts * (c.dim + biases),
        "hyper-connections": 2 * (numbers * (c.hc_mult * c.dim + 1) + 3),
        "norms": 2 * c.dim,
    }
    return {component: count for component, count in counts.items() if count}


def _last_collapse(c):
    """V4 learns how to collapse the last streams; V4.1 uses coefficients that exist already."""
    return c.hc_mult * (c.hc_mult * c.dim + 1) + 1 if c.generation == "v4" else 0


def _add(*tables):
    names = list(dict.fromkeys(name for table in tables for name in table))
    return {name: sum(table.get(name, 0) for table in tables) for name in names}


def _engram_rows(c):
    if not c.engram_layer_ids:
        return ()  # whatever rows are configured, there is no module to have them
    if c.engram_num_embeddings:
        return c.engram_num_embeddings
    from deepseek_edu.reference.weights import engram_rows  # needs NumPy; only where the rows are not configured

    return engram_rows(c)


def _engram(c):
    read = (c.engram_max_ngram_size - 1) * c.engram_n_heads * c.engram_head_dim
    reader = (c.hc_mult + 1) * c.dim * read + 2 * c.hc_mult * c.dim
    return {"tables": sum(_engram_rows(c)) * c.engram_head_dim, "readers": len(c.engram_layer_ids) * reader}


def _draft(c, stages):
    if not stages:
        return {}
    extras = {
        "main projection": len(c.dspark_target_layer_ids) * c.dim**2,
        "norms": 2 * c.dim,
        "hyper-connections": _last_collapse(c),
        "Markov head": 2 * c.vocab_size * c.dspark_markov_rank,
        "confidence head": c.dim + c.dspark_markov_rank,
    }
    return _add(*(layer_parameters(c, plan) for plan in stages), extras)


def _vision(c):
    if not c.vision_n_layers:
        return {}
    v, pixels = c.vision_dim, 3 * c.vision_patch_size**2
    block = 2 * v + 3 * v * (v + 1) + v * (v + 1) + 3 * v * c.vision_inter_dim
    merged = v * c.vision_downsample_ratio**2
    return {
        "tower": v * (pixels + 1) + c.vision_n_layers * block + v,
        "aligner": c.dim * (merged + 1) + c.dim * (c.dim + 1),
        "delimiters": 3 * c.dim,
    }


def parameters(config):
    """Count every parameter of a model, by part and component.

    Args:
        config: ModelConfig of either generation.

    Returns:
        {"backbone" | "engram" | "draft" | "vision" | "stored": {component: count}}; parts that the model lacks are
        empty. Scales of FP8 and FP4 weights are not counted, except the row scales under "stored".

    >>> from deepseek_edu.config import ModelConfig
    >>> parameters(ModelConfig.tiny())["engram"]["tables"]  # (384 + 552) rows of 32
    29952
    """
    c = config
    plans = c.schedule()
    ends = {
        "embedding": c.vocab_size * c.dim,
        "head": c.vocab_size * c.dim,
        "norms": c.dim,
        "hyper-connections": _last_collapse(c),
    }
    hashed = sum(plan.hash_routed for plan in plans)
    return {
        "backbone": _add(*(layer_parameters(c, plan) for plan in plans[: c.n_layers]), ends),
        "engram": _engram(c) if c.engram_layer_ids else {},
        "draft": _draft(c, plans[c.n_layers :]),
        "vision": _vision(c),
        "stored": {
            "row scales": sum(_engram_rows(c)) * -(-c.engram_head_dim // 32),
            "expert tables": hashed * c.vocab_size * c.n_activated_experts,
        },
    }


def total_parameters(config, *parts):
    """Return the sum over parts of `parameters`; without names over all that are trained.

    Raises:
        ValueError: there is no such part.
    """
    table = parameters(config)
    if unknown := [part for part in parts if part not in table]:
        raise ValueError(f"parts must be of {', '.join(table)}; got {unknown[0]!r}")
    return sum(sum(table[part].values()) for part in parts or ("backbone", "engram", "draft", "vision"))


def backbone_parameters(config):
    """Return a config's parameters of embedding, layers and output: 551.57 B of V4.1-Flash, 284.33 B of V4-Flash."""
    return total_parameters(config, "backbone")


def engram_table_parameters(config):
    """Return the numbers in a config's n-gram tables: (384 006 168 + 384 016 682) · 256 = 196.61 B of V4.1-Flash."""
    return parameters(config)["engram"].get("tables", 0)


def activated_parameters(config, phase, *, engram=False, embedding=False, skip_decoder=True):
    """Count the parameters that one text token meets, by component.

    Conventions, all open to be changed by the arguments: of the routed experts only the chosen ones count, of all other
    matrices every number. Decode runs every layer and the output matrix. Prefill of a long prompt runs the encoder, and
    of the first decoder layer only what makes the global entries; the few tokens that the decoder processes (a window)
    and the one that needs logits are left out. Draft stages and vision never count.

    Args:
        config: ModelConfig.
        phase: "decode" or "prefill".
        engram: count the matrices that read the n-gram tables, where the phase runs their layers. The table rows read
            (order · hashes rows per module) are never counted.
        embedding: count the whole input embedding, of which a token reads one row.
        skip_decoder: prefill stops at the global entries; False: it runs every layer (as all of V4 does).

    Returns:
        {component: count}; its sum is the headline number.

    Raises:
        ValueError: phase is neither.

    Source: the report says 16 B in decode and 8 B in prefill; the conventions that give these numbers are derived.

    >>> from deepseek_edu.config import ModelConfig
    >>> flash = ModelConfig.v41_flash()
    >>> [round(sum(activated_parameters(flash, phase).values()) / 1e9, 2) for phase in ("decode", "prefill")]
    [15.82, 7.58]
    """
    if phase not in PHASES:
        raise ValueError(f"phase must be one of {', '.join(PHASES)}; got {phase!r}")
    c, counts = config, {}
    last = c.decoder_start if phase == "prefill" and skip_decoder else c.n_layers
    for plan in c.schedule()[:last]:
        layer = layer_parameters(c, plan)
        layer["routed experts"] = c.n_activated_experts * _expert(c)
        counts = _add(counts, layer)
        if engram and plan.engram is not None:
            counts = _add(counts, {"engram readers": _engram(c)["readers"] // len(c.engram_layer_ids)})
    if last < c.n_layers:
        first = layer_parameters(c, c.schedule()[last])
        counts = _add(counts, {"norms": c.dim, **{name: first[name] for name in ("compressor", "index keys")}})
    if phase == "decode":
        ends = {"norms": c.dim, "hyper-connections": _last_collapse(c), "head": c.vocab_size * c.dim}
        counts = _add(counts, ends)
    if embedding:
        counts = _add(counts, {"embedding": c.vocab_size * c.dim})
    return {component: count for component, count in counts.items() if count}
