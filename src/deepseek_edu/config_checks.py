"""The checks of `ModelConfig`: one sentence for each value that no model can have. Standard library only.

Source: what follows from the shapes and from the schedule (report, sections 2.3.1 and 4.2.1; reference `ModelArgs`).
"""

from dataclasses import fields

GENERATIONS = ("v4.1", "v4")  # forward passes that the package has
MOST_ROWS = 1 << 40  # of an Engram table; the primes above it take too long to find
SCORE_FUNCTIONS = ("sqrtsoftplus", "sigmoid", "softmax")  # of the router


class ConfigError(ValueError):
    """A field has a value that no model can have. The message names field, value, what is allowed and why."""


def _require(held, field, value, allowed, why):
    if not held:
        raise ConfigError(f"{field} must be {allowed}; got {value!r}; {why}")


def validate(c):
    """Check every field of the ModelConfig c; raise ConfigError for the first that does not fit."""
    _require(c.generation in GENERATIONS, "generation", c.generation, f"one of {GENERATIONS}", "it picks the forward")
    positive = (
        "vocab_size dim n_layers n_heads head_dim rope_head_dim q_lora_rank o_groups o_lora_rank window_size "
        "moe_inter_dim n_routed_experts n_activated_experts hc_mult hc_sinkhorn_iters max_positions"
    )
    for name in positive.split():
        value = getattr(c, name)
        _require(type(value) is int and value > 0, name, value, "a positive integer", "it is a size")
    for field in fields(c):
        value = getattr(c, field.name)
        if field.type == "int" or field.type is int:
            least = -1 if field.name in ("candidate_source_layer", "image_token_id") else 0
            ok = type(value) is int and value >= least
            _require(ok, field.name, value, f"an integer, {least} or more", "it counts something or names it")
        elif field.type in (float, "float"):
            ok = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")
            _require(ok, field.name, value, "a finite number, 0 or more", "it scales something")
        elif field.type in (tuple, "tuple"):
            ok = isinstance(value, tuple) and all(type(item) is int and item >= 0 for item in value)
            _require(ok, field.name, value, "a list of integers, 0 or more", "it names layers or sizes")
        elif field.type in (bool, "bool"):
            _require(type(value) is bool, field.name, value, "True or False", "it is a switch")
    _validate_attention(c)
    _validate_sharing(c)
    _validate_experts(c)
    _validate_extras(c)


def _validate_attention(c):
    even = c.rope_head_dim % 2 == 0 and c.rope_head_dim <= c.head_dim
    _require(
        even, "rope_head_dim", c.rope_head_dim, f"even and at most head_dim = {c.head_dim}", "channels turn in pairs"
    )
    _require(
        c.n_heads % c.o_groups == 0, "o_groups", c.o_groups, f"a divisor of n_heads = {c.n_heads}", "groups are equal"
    )
    for name in ("rope_theta", "compress_rope_theta"):
        _require(getattr(c, name) > 1, name, getattr(c, name), "above 1", "frequencies fall with the channel")
    if c.original_seq_len:
        _require(c.rope_factor >= 1, "rope_factor", c.rope_factor, "1 or more", "YaRN stretches positions")
        fast = c.beta_fast > c.beta_slow > 0
        _require(
            fast, "beta_fast", c.beta_fast, f"above beta_slow = {c.beta_slow} > 0", "fast channels keep their frequency"
        )


def _validate_sharing(c):
    layers = c.n_layers + c.n_mtp_layers
    ratios = c.compress_ratios
    _require(len(ratios) == layers, "compress_ratios", ratios, f"{layers} long", "one per layer and draft stage")
    _require(not any(ratios[c.n_layers :]), "compress_ratios", ratios, "0 for draft stages", "they read windows only")
    for name in ("kv_source_layers", "index_source_layers", "engram_layer_ids"):
        ids = getattr(c, name)
        ok = list(ids) == sorted(set(ids)) and all(layer < c.n_layers for layer in ids)
        _require(ok, name, ids, f"rising layer numbers below {c.n_layers}", "each layer is named once")
    sources = c.index_source_layers
    for name in ("kv_source_layers", "index_source_layers"):
        ok = all(ratios[layer] for layer in getattr(c, name))
        _require(ok, name, getattr(c, name), "layers with a ratio above 0", "others have no compressed entries")
    if c.generation == "v4":
        own = tuple(layer for layer in range(c.n_layers) if ratios[layer])
        _require(c.kv_source_layers == own, "kv_source_layers", c.kv_source_layers, f"{own}", "V4 layers share nothing")
        own = tuple(layer for layer in own if ratios[layer] == 4)
        _require(sources == own, "index_source_layers", sources, f"{own}", "V4 chooses where the ratio is 4")
    else:
        owned = set(c.kv_source_layers) <= set(sources)
        _require(owned, "index_source_layers", sources, f"all of {c.kv_source_layers} and more", "an owner chooses too")
        for layer in range(c.n_layers):
            owner = max((s for s in c.kv_source_layers if s <= layer), default=None)
            ok = not ratios[layer] or (owner is not None and ratios[owner] == ratios[layer])
            why = f"layer {layer} has ratio {ratios[layer]} and needs an owner of the same ratio at or below it"
            _require(ok, "kv_source_layers", c.kv_source_layers, "an owner for every compressed layer", why)
    if sources:
        for name in ("index_n_heads", "index_topk"):
            _require(getattr(c, name) > 0, name, getattr(c, name), "positive", "some layers choose entries")
        wide = c.index_head_dim >= c.rope_head_dim
        _require(
            wide, "index_head_dim", c.index_head_dim, f"at least rope_head_dim = {c.rope_head_dim}", "its tail turns"
        )
    if c.candidate_source_layer >= 0:
        ok = c.candidate_source_layer in c.kv_source_layers
        _require(
            ok, "candidate_source_layer", c.candidate_source_layer, f"one of {c.kv_source_layers}", "it scores all"
        )
        for name in ("candidate_topk_blocks", "candidate_block_size"):
            _require(getattr(c, name) > 0, name, getattr(c, name), "positive", "there is a candidate pool")


def _validate_experts(c):
    few = c.n_activated_experts <= c.n_routed_experts
    allowed = f"at most n_routed_experts = {c.n_routed_experts}"
    _require(few, "n_activated_experts", c.n_activated_experts, allowed, "each expert is chosen once")
    ok = c.score_func in SCORE_FUNCTIONS
    _require(ok, "score_func", c.score_func, f"one of {SCORE_FUNCTIONS}", "the reference knows these")
    ok = c.generation != "v4" or c.n_shared_experts > 0
    _require(ok, "n_shared_experts", c.n_shared_experts, "1 or more", "V4 runs a shared expert in every layer")
    _require(c.gate_temp > 0, "gate_temp", c.gate_temp, "above 0", "the logits are divided by it")
    ok = c.n_hash_layers == 0 or (c.generation == "v4" and c.n_hash_layers <= c.n_layers)
    _require(
        ok, "n_hash_layers", c.n_hash_layers, "0, or layers of a V4 model", "V4.1 routes every layer by its router"
    )


def _validate_extras(c):
    for name in ("bos_token_id", "eos_token_id", "pad_token_id", "image_token_id"):
        _require(getattr(c, name) < c.vocab_size, name, getattr(c, name), f"below {c.vocab_size}", "it is a token id")
    ok = c.engram_max_ngram_size > 0 or c.generation == "v4"
    _require(
        ok, "engram_max_ngram_size", c.engram_max_ngram_size, "1 or more", "the cache keeps the ids before a token"
    )
    if c.engram_layer_ids:
        for name in ("engram_vocab_size", "engram_n_heads", "engram_head_dim", "engram_compressed_vocab_size"):
            _require(getattr(c, name) > 0, name, getattr(c, name), "positive", "there are Engram layers")
        _require(c.engram_max_ngram_size > 1, "engram_max_ngram_size", c.engram_max_ngram_size, "2 or more", "n-grams")
        pad = c.engram_pad_id < c.vocab_size
        _require(pad, "engram_pad_id", c.engram_pad_id, f"below vocab_size = {c.vocab_size}", "it is a token id")
        few = c.engram_compressed_vocab_size <= c.vocab_size
        allowed = f"at most vocab_size = {c.vocab_size}"
        _require(few, "engram_compressed_vocab_size", c.engram_compressed_vocab_size, allowed, "it numbers its tokens")
        few = c.engram_vocab_size < MOST_ROWS
        _require(few, "engram_vocab_size", c.engram_vocab_size, f"below {MOST_ROWS}", "it is the rows of a table")
        rows = len(c.engram_num_embeddings) in (0, len(c.engram_layer_ids))
        allowed = f"empty or {len(c.engram_layer_ids)} long"
        _require(rows, "engram_num_embeddings", c.engram_num_embeddings, allowed, "each module has a table")
    if c.n_mtp_layers:
        for name in (
            "dspark_block_size",
            "dspark_markov_rank",
            "dspark_n_routed_experts",
            "dspark_n_activated_experts",
        ):
            _require(getattr(c, name) > 0, name, getattr(c, name), "positive", "there are draft stages")
        few = c.dspark_n_activated_experts <= c.dspark_n_routed_experts
        allowed = f"at most dspark_n_routed_experts = {c.dspark_n_routed_experts}"
        _require(few, "dspark_n_activated_experts", c.dspark_n_activated_experts, allowed, "each is chosen once")
        ids = c.dspark_target_layer_ids
        ok = ids and list(ids) == sorted(set(ids)) and ids[-1] < c.n_layers
        allowed = f"rising layer numbers below {c.n_layers}"
        _require(ok, "dspark_target_layer_ids", ids, allowed, "the drafter reads each of them once, in this order")
        noise = c.dspark_noise_token_id < c.vocab_size
        _require(noise, "dspark_noise_token_id", c.dspark_noise_token_id, f"below {c.vocab_size}", "it is a token id")
    if c.vision_n_layers:
        for name in (
            "vision_dim",
            "vision_n_heads",
            "vision_inter_dim",
            "vision_patch_size",
            "vision_downsample_ratio",
        ):
            _require(getattr(c, name) > 0, name, getattr(c, name), "positive", "there is a vision tower")
        theta, least = c.vision_rope_theta, 4
        _require(theta > 1, "vision_rope_theta", theta, "above 1", "frequencies fall with the channel")
        enough = c.vision_max_tokens >= least
        why = "the smallest image has a start, one cell, a newline and an end"
        _require(enough, "vision_max_tokens", c.vision_max_tokens, f"{least} or more", why)
        ok = c.vision_dim % (4 * c.vision_n_heads) == 0
        _require(
            ok,
            "vision_dim",
            c.vision_dim,
            f"a multiple of 4 · {c.vision_n_heads} heads",
            "rows and columns turn in pairs",
        )
