"""Bytes that a sequence keeps between tokens, from sizes alone.

    row             V4.1                                    V4
    window entry    E4M3, a scale byte for 32               E4M3 for 64 to a scale byte, the rotated channels in BF16
    main entry      E2M1, an E4M3 scale for 16              as a window entry
    index key       E2M1, a power-of-two scale for 32       the same

Global entries and index keys grow with the sequence and can be stored for later requests; windows have a fixed size.
Source: report, sections 2.4.4 and 3.2.1; for V4 the report's 3 514 bytes per token, which these sizes reproduce; the
cache layout of V3.2 and the sizes of DeepSeek-V1 (67B) are public. reference/cache.py holds exactly these bytes.
"""

INDEX_BLOCK = 32  # values that share a scale in an index key
ALIGNMENT = 8  # V4 fills the scale bytes of an entry up to a multiple of this


def _e4m3(width):
    return width + width // 32


def _e2m1(width, block):
    return width // 2 + width // block


def _mixed(width, rotated):
    """V4: FP8 with a scale byte for 64, then `rotated` channels of two bytes; the scale bytes are filled up to 8."""
    coded = width - rotated
    scales = -(-coded // 64)
    return coded + 2 * rotated + -(-scales // ALIGNMENT) * ALIGNMENT


def entry_bytes(config):
    """Return the bytes of one stored row of each kind: {"window", "main", "index"}.

    >>> from deepseek_edu.config import ModelConfig
    >>> entry_bytes(ModelConfig.v41_flash()), entry_bytes(ModelConfig.v4_flash_0731())
    ({'window': 528, 'main': 288, 'index': 68}, {'window': 584, 'main': 584, 'index': 68})
    """
    c = config
    index = _e2m1(c.index_head_dim, INDEX_BLOCK)
    if c.generation == "v4":
        row = _mixed(c.head_dim, c.rope_head_dim)
        return {"window": row, "main": row, "index": index}
    return {"window": _e4m3(c.head_dim), "main": _e2m1(c.head_dim, 16), "index": index}


def _row_of(config, layer):
    """Bytes of one compressed entry of an owner, with its index key where the layer has an indexer."""
    size = entry_bytes(config)
    return size["main"] + (size["index"] if layer in config.index_source_layers else 0)


def global_bytes_by_layer(config):
    """Return {layer: bytes per token} of the layers that own compressed entries: main entry plus index key, over ratio.

    >>> from deepseek_edu.config import ModelConfig
    >>> global_bytes_by_layer(ModelConfig.v41_flash())
    {2: 178.0, 8: 178.0, 14: 178.0, 20: 356.0}
    """
    return {layer: _row_of(config, layer) / config.compress_ratios[layer] for layer in config.kv_source_layers}


def global_bytes_per_token(config):
    """Return the bytes by which the global cache of a config grows with a token.

    890.0 for V4.1-Flash, 3514.25 for V4-Flash; fractions, since an entry may stand for several tokens.
    """
    return sum(global_bytes_by_layer(config).values())


def global_bytes(config, tokens):
    """Return the bytes of global entries and index keys after `tokens` tokens; half-filled groups store nothing yet.

    Raises:
        ValueError: tokens is no integer, 0 or more.

    >>> from deepseek_edu.config import ModelConfig
    >>> global_bytes(ModelConfig.v41_flash(), 2**20) / 2**20  # MiB
    890.0
    """
    _require_count("tokens", tokens)
    return sum(tokens // config.compress_ratios[layer] * _row_of(config, layer) for layer in config.kv_source_layers)


def window_bytes(config):
    """Return the bytes of full windows of one sequence, spare slots for drafts not counted.

    Returns:
        {"backbone": all layers, "encoder": those below the decoder (all of V4), "draft": the draft stages}.

    >>> from deepseek_edu.config import ModelConfig
    >>> window_bytes(ModelConfig.v41_flash())
    {'backbone': 2703360, 'encoder': 1351680, 'draft': 202752}
    """
    layer = config.window_size * entry_bytes(config)["window"]
    return {
        "backbone": config.n_layers * layer,
        "encoder": config.decoder_start * layer,
        "draft": config.n_mtp_layers * layer,
    }


def sequence_bytes(config, tokens):
    """Return the bytes that a sequence of a config holds after `tokens` tokens, by kind.

    Returns:
        {"entries", "index keys", "windows", "draft windows"}.

    Raises:
        ValueError: tokens is no integer, 0 or more.

    Windows take their room from the first token on. Not counted: the projections of half-filled groups, the last token
    ids, and spare slots for drafts.
    """
    _require_count("tokens", tokens)
    c, size, windows = config, entry_bytes(config), window_bytes(config)
    groups = {layer: tokens // c.compress_ratios[layer] for layer in c.kv_source_layers}
    return {
        "entries": sum(groups.values()) * size["main"],
        "index keys": sum(count for layer, count in groups.items() if layer in c.index_source_layers) * size["index"],
        "windows": windows["backbone"],
        "draft windows": windows["draft"],
    }


def turn_bytes(config, tokens, window_checkpoints=0):
    """Return the bytes stored for later requests after a turn of a conversation.

    Args:
        config: ModelConfig.
        tokens: length of the turn.
        window_checkpoints: how often the windows of all layers are stored with it. V4 stored them twice (end of prompt,
            end of answer); V4.1 never, since bounded replay makes them again.

    Raises:
        ValueError: tokens or window_checkpoints is no integer, 0 or more.

    With turns of 1 830 tokens V4-Flash stores 7.9 times what V4.1-Flash does; with longer turns the ratio falls to
    3.95. So "an eighth" is a statement about a workload.
    """
    _require_count("window_checkpoints", window_checkpoints)
    return global_bytes(config, tokens) + window_checkpoints * window_bytes(config)["backbone"]


def grouped_query_bytes(layers, kv_heads, head_dim, bytes_per_number=2):
    """Return bytes per token of keys and values kept in every layer: layers · heads · width · 2 · bytes.

    Args:
        layers: that keep them.
        kv_heads: heads with keys and values of their own.
        head_dim: numbers in a key, and in a value.
        bytes_per_number: 2 for BF16.

    >>> grouped_query_bytes(95, 8, 128)  # DeepSeek-V1, 67B
    389120
    """
    return layers * kv_heads * head_dim * 2 * bytes_per_number


def latent_bytes(layers, latent, rotated, index_key):
    """Return bytes per token of V3.2, in every layer: an FP8 latent with a float32 scale for 128 values, rotated
    channels in BF16, and an FP8 index key scaled likewise.

    Args:
        layers: that keep them.
        latent: numbers in the latent, a multiple of 128.
        rotated: channels that turn with the position.
        index_key: numbers in an index key, a multiple of 128.

    >>> latent_bytes(61, 512, 64, 128)  # 61 · (656 + 132)
    48068
    """
    entry = latent + 4 * (latent // 128) + 2 * rotated
    return layers * (entry + index_key + 4 * (index_key // 128))


GENERATIONS = {  # sizes of models that no ModelConfig describes
    "DeepSeek-V1": grouped_query_bytes(layers=95, kv_heads=8, head_dim=128),
    "DeepSeek-V3.2": latent_bytes(layers=61, latent=512, rotated=64, index_key=128),
}


def generation_bytes():
    """Return {model: bytes of cache per token}, oldest first.

    >>> generation_bytes()["DeepSeek-V1"] / generation_bytes()["DeepSeek-V4.1-Flash"]  # the 437-fold of the report
    437.2134831460674
    """
    from deepseek_edu.config import ModelConfig

    return {
        **GENERATIONS,
        "DeepSeek-V4-Flash": global_bytes_per_token(ModelConfig.v4_flash_0731()),
        "DeepSeek-V4.1-Flash": global_bytes_per_token(ModelConfig.v41_flash()),
    }


def _require_count(name, value):
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} must be an integer, 0 or more; got {value!r}")
