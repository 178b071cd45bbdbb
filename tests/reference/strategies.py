"""Random small configurations and prompts for property tests, of any shape the model allows."""

from hypothesis import strategies as st

from deepseek_edu.config import ModelConfig


@st.composite
def configurations(draw, quantizable=False):
    """A V4.1 configuration with 1 … 6 layers, drawn owners, ratios, windows, pools, modules and draft stages.

    Args:
        quantizable: widths that the cache formats can store (multiples of 32).
    """
    layers = draw(st.integers(1, 6))
    stages = draw(st.integers(0, 2))
    owners = sorted(draw(st.sets(st.integers(0, layers - 1), max_size=3)))
    ratios, ratio = [], 0
    for layer in range(layers):
        if layer in owners:
            ratio = draw(st.sampled_from([1, 2, 2, 3]))
        windowed = ratio and layer not in owners and draw(st.integers(0, 3)) == 0
        ratios.append(0 if windowed else ratio)
    others = [layer for layer in range(layers) if ratios[layer] and layer not in owners]
    choosers = sorted({*owners, *(draw(st.sets(st.sampled_from(others))) if others else ())})
    pool = draw(st.sampled_from([-1, *owners]))
    groups = draw(st.integers(1, 3))
    unit = 32 if quantizable else 4
    head_dim = unit * draw(st.integers(1, 1 if quantizable else 6))
    index_head_dim = unit * draw(st.integers(1, 1 if quantizable else 4))
    modules = sorted(draw(st.sets(st.integers(0, layers - 1), max_size=2)))
    experts = draw(st.integers(1, 6))
    vocabulary = draw(st.integers(8, 40))
    return ModelConfig(
        vocab_size=vocabulary,
        dim=draw(st.integers(3, 20)),
        n_layers=layers,
        n_mtp_layers=stages,
        norm_eps=draw(st.sampled_from([1e-20, 1e-6])),
        n_heads=groups * draw(st.integers(1, 3)),
        head_dim=head_dim,
        rope_head_dim=2 * draw(st.integers(1, min(head_dim, index_head_dim) // 2)),
        q_lora_rank=draw(st.integers(1, 10)),
        o_groups=groups,
        o_lora_rank=draw(st.integers(1, 6)),
        window_size=draw(st.integers(1, 9)),
        original_seq_len=draw(st.sampled_from([0, 16, 64])),
        rope_factor=float(draw(st.integers(1, 8))),
        compress_ratios=(*ratios, *[0] * stages),
        kv_source_layers=tuple(owners),
        index_source_layers=tuple(choosers),
        index_n_heads=draw(st.integers(1, 4)),
        index_head_dim=index_head_dim,
        index_topk=draw(st.integers(1, 5)),
        candidate_source_layer=pool,
        candidate_topk_blocks=draw(st.integers(1, 4)),
        candidate_block_size=draw(st.integers(1, 4)),
        moe_inter_dim=draw(st.integers(1, 9)),
        n_routed_experts=experts,
        n_activated_experts=draw(st.integers(1, experts)),
        n_shared_experts=draw(st.integers(0, 2)),
        route_scale=draw(st.sampled_from([1.0, 1.5])),
        swiglu_limit=draw(st.sampled_from([0.0, 0.5, 10.0])),
        hc_mult=draw(st.integers(1, 4)),
        hc_sinkhorn_iters=draw(st.integers(1, 20)),
        engram_layer_ids=tuple(modules),
        engram_max_ngram_size=draw(st.integers(2, 4)),
        engram_vocab_size=draw(st.integers(5, 30)),
        engram_n_heads=draw(st.integers(1, 3)),
        engram_head_dim=draw(st.sampled_from([4, 32])),
        engram_pad_id=draw(st.integers(0, vocabulary - 1)),
        engram_compressed_vocab_size=-(-vocabulary // 2),
        dspark_block_size=draw(st.integers(1, 5)),
        dspark_noise_token_id=vocabulary - 1,
        dspark_target_layer_ids=tuple(sorted(draw(st.sets(st.integers(0, layers - 1), min_size=1, max_size=3)))),
        dspark_markov_rank=draw(st.integers(1, 4)),
        dspark_n_routed_experts=experts,
        dspark_n_activated_experts=draw(st.integers(1, experts)),
        image_token_id=vocabulary - 1,
    )


@st.composite
def prompts(draw, config, longest=24):
    """(token ids, types or None): any length, the window's own length and its neighbours more often than others."""
    edges = [config.window_size - 1, config.window_size, config.window_size + 1, 2 * config.window_size]
    length = draw(st.one_of(st.sampled_from([max(1, edge) for edge in edges]), st.integers(1, longest)))
    ids = draw(st.lists(st.integers(0, config.vocab_size - 1), min_size=length, max_size=length))
    if not draw(st.booleans()):
        return ids, None
    first = draw(st.integers(0, length - 1))
    last = draw(st.integers(first, length - 1))
    return ids, [1 if first <= place <= last else -1 for place in range(length)]
