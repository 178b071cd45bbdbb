"""The draft stages of V4's model of 31 July: DSpark as in dspark.py, made of V4's layers.

What differs from V4.1: the drafter reads the streams at the *outputs* of layers 40, 41 and 42; its hyper-connections
are unshifted, so the last stage ends with a learned collapse (`hc_head`); queries are divided by their size head by
head; a stage has as many experts as a backbone layer, 256 and 6.

Here a draft is made from a whole sequence, without a cache. Source: configuration and tensor names of
DeepSeek-V4-Flash-0731 (third-party copies); V4 reference `Block`; reference `DSparkBlock`.
"""

import numpy as np

from deepseek_edu.reference import attention, checks, dspark, mhc, norms, rope, v4_attention, v4_model
from deepseek_edu.reference import weights as names


def attend_block(u, context, position, w, config, quantized=False):
    """Attention of the rows of a block, each of which sees the context window and all rows: [R C] from u [R C].

    Args:
        context: [P D], entries of the last positions before the block, as stored.
        position: of the first row.
        w: attention weights of the stage by released name.
        quantized: store the rows' entries as the cache would.
    """
    positions = position + np.arange(len(u))
    frequencies = rope.layer_frequencies(config, 0)
    query_weights = (w["wq_a.weight"], w["q_norm.weight"], w["wq_b.weight"])
    _, queries = attention.low_rank_query(u, *query_weights, config.n_heads, config.norm_eps)
    queries = norms.rms_norm(queries, None, config.norm_eps)  # R H D
    queries = rope.rotate_tail(queries, positions[:, None], frequencies)
    keys = np.concatenate([context, entries(u, positions, w, config, quantized)])  # P+R D
    keys = np.broadcast_to(keys, (len(u), *keys.shape))
    valid = np.ones(keys.shape[:2], bool)
    heads = attention.sink_attention(queries, keys, valid, w["attn_sink"], config.head_dim**-0.5)
    heads = rope.rotate_tail(heads, positions[:, None], frequencies, inverse=True)
    return attention.grouped_output(heads, w["wo_a.weight"], w["wo_b.weight"], config.o_groups)


def entries(u, positions, w, config, quantized=False):
    """Return a stage's entries of inputs u [T C] at positions [T], as stored: [T D]."""
    entry = attention.shared_entry(u, w["wkv.weight"], w["kv_norm.weight"], config.norm_eps)
    entry = rope.rotate_tail(entry, positions, rope.layer_frequencies(config, 0))
    return v4_attention.read_back_entry(entry, config.rope_head_dim, quantized)


def draft(token, ids, model, quantized=False, pick=dspark.greedy):
    """Draft a block after `token`, which follows the sequence `ids`.

    Args:
        token: id, sampled by the backbone and not yet processed.
        ids: [T], one or more, what has been processed.
        model: v4_model.V4Model with weights `mtp.0.*` … of the draft stages.
        quantized: as for V4Model.forward.
        pick: function (logits [V], row) -> id that takes a draft from its distribution.

    Returns:
        dspark.Draft.

    Raises:
        ValueError: the sequence is empty, an id is none of the vocabulary, or the weights have no draft stages.
    """
    config, position = model.config, len(ids)
    if not position:
        raise ValueError("ids must hold one token or more; the drafter reads what the backbone made of them")
    if "mtp.0.main_proj.weight" not in model.weights:
        raise ValueError("the weights must have draft stages, mtp.0.main_proj.weight and others; got none")
    stages = [names.under(model.weights, f"mtp.{stage}.") for stage in range(config.n_mtp_layers)]
    m = dspark.context(model.main_hidden(ids, quantized), stages[0], config.norm_eps)  # T C
    seen = np.arange(max(0, position - config.window_size), position)
    rows = np.full(config.dspark_block_size, config.dspark_noise_token_id)
    rows[0] = checks.token_ids([token], config.vocab_size)[0]
    streams = np.repeat(model.weights["embed.weight"][rows][:, None], config.hc_mult, axis=1)  # R S C
    k = config.dspark_n_activated_experts
    for w in stages:
        attn, ffn = names.under(w, "attn."), names.under(w, "ffn.")
        context = entries(m[seen], seen, attn, config, quantized)  # P D

        def attend(u, attn=attn, context=context):
            return attend_block(u, context, position, attn, config, quantized)

        def feed(u, ffn=ffn):
            return v4_model.feed_forward(u, rows, ffn, config, k)

        streams = v4_model.block(streams, w, attend, feed, config)
    last = stages[-1]
    pre = mhc.head_pre(streams, last["hc_head_fn"], last["hc_head_base"], last["hc_head_scale"], config)
    hidden = mhc.collapse(streams, pre)  # R C
    logits = norms.rms_norm(hidden, last["norm.weight"], config.norm_eps) @ model.weights["head.weight"].T  # R V
    return dspark.left_to_right(token, hidden, logits, last, pick)
