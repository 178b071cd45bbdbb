"""The names that released configuration files use, and which field of `ModelConfig` each one is.

Two spellings exist: `inference/config.json` (the reference code's own) and the Hugging Face `config.json`, which V4.1
nests in `text_config` and `vision_config`. Standard library only.

Source: the released files, and reference `ModelArgs` for what they leave out.
"""

HUGGING_FACE_TEXT = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_nextn_predict_layers": "n_mtp_layers",
    "max_position_embeddings": "max_positions",
    "rms_norm_eps": "norm_eps",
    "num_attention_heads": "n_heads",
    "qk_rope_head_dim": "rope_head_dim",
    "sliding_window": "window_size",
    "moe_intermediate_size": "moe_inter_dim",
    "num_experts_per_tok": "n_activated_experts",
    "scoring_func": "score_func",
    "routed_scaling_factor": "route_scale",
    "num_hash_layers": "n_hash_layers",
    "kv_source_layer_ids": "kv_source_layers",
    "index_source_layer_ids": "index_source_layers",
    "candidate_source_layer_id": "candidate_source_layer",
    "engram_pad_token_id": "engram_pad_id",
    "dspark_num_experts_per_tok": "dspark_n_activated_experts",
}
"""Name in the Hugging Face file → field; names that are equal are not listed."""

HUGGING_FACE_VISION = {
    "num_hidden_layers": "vision_n_layers",
    "hidden_size": "vision_dim",
    "num_attention_heads": "vision_n_heads",
    "intermediate_size": "vision_inter_dim",
    "patch_size": "vision_patch_size",
    "rope_theta": "vision_rope_theta",
    "downsample_ratio": "vision_downsample_ratio",
    "max_image_tokens": "vision_max_tokens",
    "min_pixels": "vision_min_pixels",
}
"""The same for what stands in `vision_config`."""

REFERENCE_DEFAULTS = {
    "n_mtp_layers": 1,
    "compress_rope_theta": 40_000.0,
    "original_seq_len": 0,
    "rope_factor": 40.0,
    "index_n_heads": 16,
    "index_head_dim": 64,
    "index_topk": 64,
    "dspark_markov_rank": 256,
}
"""What `inference/config.json` may leave out, where it is not what ModelConfig takes (reference `ModelArgs`)."""

ROPE_SCALING = {
    "factor": "rope_factor",
    "original_max_position_embeddings": "original_seq_len",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
}
"""The same for what stands in `rope_scaling`."""


def read_released(released, known):
    """Return {field of ModelConfig: value} from the content of a released file.

    Args:
        released: dict, either spelling.
        known: names of the fields of ModelConfig.

    Raises:
        TypeError: released is no dict.

    >>> read_released({"hidden_size": 8, "torch_dtype": "bfloat16"}, {"dim"})
    {'dim': 8}
    """
    if not isinstance(released, dict):
        raise TypeError(f"released must be a dict, as json.load returns it; got {type(released).__name__}")
    for name in ("text_config", "vision_config", "rope_scaling", "rope_parameters"):
        if not isinstance(released.get(name) or {}, dict):
            raise TypeError(f"{name} must be a dict; got {released[name]!r}")
    merged = dict(released)
    merged.update(released.get("text_config") or {})
    renames = HUGGING_FACE_TEXT if "hidden_size" in merged else {"vision_max_n_token": "vision_max_tokens"}
    values = {}
    for name, value in merged.items():
        field = renames.get(name, name)
        if name != field and merged.get(field) is not None:
            continue  # the field's own name wins, whatever stands first in the file
        if field in known and value is not None:
            values[field] = value
    for name, value in (merged.get("rope_scaling") or merged.get("rope_parameters") or {}).items():
        if ROPE_SCALING.get(name) in known:
            values[ROPE_SCALING[name]] = value
    for name, value in (released.get("vision_config") or {}).items():
        if HUGGING_FACE_VISION.get(name) in known and value is not None:
            values[HUGGING_FACE_VISION[name]] = value
    ratios = _whole_numbers(values.get("compress_ratios", ()))
    if "kv_source_layers" not in values and any(ratio > 2 for ratio in ratios):
        values.update(_v4_sources(values))  # V4 names no owners, and its ratios are 4 and 128
    elif "dim" in merged and values.get("generation") != "v4":
        values = _with_reference_defaults(values, known)
    return values


def _with_reference_defaults(values, known):
    """Fill in what the reference code takes for names that are not in its file."""
    values = {**{name: value for name, value in REFERENCE_DEFAULTS.items() if name in known}, **values}
    if not values.get("dspark_block_size"):
        values["n_mtp_layers"] = 0  # the reference builds no stage then
    if values.get("n_mtp_layers"):
        for name in ("n_routed_experts", "n_activated_experts"):
            values[f"dspark_{name}"] = values.get(f"dspark_{name}") or values.get(name)
    ratios, counts = values.get("compress_ratios"), (values.get("n_layers"), values.get("n_mtp_layers", 0))
    if isinstance(ratios, (list, tuple)) and len(_whole_numbers(counts)) == 2:
        values["compress_ratios"] = tuple(ratios[: sum(counts)])  # more are never read
    return values


def _whole_numbers(numbers):
    """Return numbers if it is a list of integers, else none of them: what is wrong is told by the field's check."""
    whole = isinstance(numbers, (list, tuple)) and all(type(number) is int for number in numbers)
    return numbers if whole else ()


def _v4_sources(values):
    """What V4 files leave unsaid: every compressed layer is its own source; draft stages are counted by the ratios.

    The preview has no draft stages (no `dspark_block_size`); the ratio of its next-token layer is left out.
    """
    layers, ratios = values.get("n_layers", 0), list(values.get("compress_ratios", ()))
    if type(layers) is not int:
        return {"generation": "v4"}
    sources = {
        "generation": "v4",
        "kv_source_layers": [layer for layer, ratio in enumerate(ratios[:layers]) if ratio],
        "index_source_layers": [layer for layer, ratio in enumerate(ratios[:layers]) if ratio == 4],
    }
    if not values.get("dspark_block_size"):
        sources |= {"n_mtp_layers": 0, "compress_ratios": ratios[:layers]}
    elif len(ratios) > layers:
        sources["n_mtp_layers"] = len(ratios) - layers
    for name in ("n_routed_experts", "n_activated_experts"):
        if f"dspark_{name}" not in values and name in values:
            sources[f"dspark_{name}"] = values[name]
    return sources
