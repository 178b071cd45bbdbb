"""V4's attention layers: window only (SWA), chosen compressed entries (CSA), all compressed entries (HCA).

    kind   entries per query at 2^20 tokens
    SWA    128
    CSA    128 + 512 chosen of 262 144
    HCA    128 + 8 192

Against V4.1: every compressed layer makes its own entries and nothing is shared; each head of the query is divided by
its root mean square; index queries and keys are turned by a Hadamard matrix before FP4; the channels that do not rotate
are stored in FP8, 64 to a scale, the others in bfloat16.

Source: V4 report, section 2; V4 reference `Attention` and `Indexer`.
"""

import numpy as np

from deepseek_edu.reference import attention, compressor, indexer, norms, quant, rope, v4_compressor, window
from deepseek_edu.reference import weights as names


def hadamard(x):
    """Multiply the last dimension by the normalised Walsh–Hadamard matrix; its length is a power of two.

    Products of two vectors that are both turned stay the same; single large channels are spread out before rounding.

    Raises:
        ValueError: the length is no power of two.

    >>> hadamard(np.array([1.0, 0.0])).round(4).tolist()
    [0.7071, 0.7071]
    """
    width = x.shape[-1]
    if width & (width - 1):
        raise ValueError(f"the width must be a power of two; got {width}")
    y, step = np.asarray(x), 1
    while step < width:
        pairs = y.reshape(*x.shape[:-1], width // (2 * step), 2, step)
        y = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], axis=-2)
        step *= 2
    return y.reshape(x.shape) * width**-0.5


def round_to_bfloat16(x):
    """Return the bfloat16 numbers nearest to x, any shape, ties to even: float32 with the last 16 bits zero.

    >>> round_to_bfloat16(np.array([1.0, 1.00390625, 3.14159])).tolist()
    [1.0, 1.0, 3.140625]
    """
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


def read_back_entry(entry, rope_width, quantized):
    """Return entries as stored: the last `rope_width` channels in bfloat16, the others in FP8, 64 to a scale.

    Args:
        entry: [N D]; D − rope_width a multiple of 64.
        rope_width: channels that turn.
        quantized: False to return entries unchanged.
    """
    if not quantized or not len(entry):
        return entry
    kept = entry.shape[-1] - rope_width
    stored = quant.quantize_fp8(entry[..., :kept], 64).values
    return np.concatenate([stored, round_to_bfloat16(entry[..., kept:])], axis=-1).astype(entry.dtype)


def choose(u, narrow, w, config, frequencies, quantized):
    """Return the entries each token of a sequence chooses: int64 [T K], −1 for none.

    The indexer has a compressor of its own; its keys turn with the position and then by the Hadamard matrix.

    Args:
        narrow: [T R], the low-rank query.
    """
    positions = np.arange(len(u))
    keys = hadamard(v4_compressor.compress(u, 4, names.under(w, "indexer.compressor."), frequencies, config.norm_eps))
    queries = indexer.index_queries(narrow, w["indexer.wq_b.weight"], config.index_n_heads)
    queries = hadamard(rope.rotate_tail(queries, positions[:, None], frequencies))
    if quantized:
        queries, keys = (_fp4(part) for part in (queries, keys))
    weights = indexer.head_weights(u, w["indexer.weights_proj.weight"], config.index_head_dim)
    scores = indexer.index_scores(queries, weights, keys)
    return indexer.top_k(scores, compressor.visible_entries(positions, 4), config.index_topk)


def _fp4(x):
    return quant.quantize_fp4(x, 32, "e8m0").values.astype(x.dtype) if x.size else x


def attend(u, w, plan, config, quantized=False):
    """Run one attention layer over a whole sequence: [T C] from u [T C].

    Args:
        w: attention weights by released name.
        plan: LayerPlan with mode "window", "csa" or "hca".
        quantized: store entries in FP8 and choose with FP4.
    """
    positions = np.arange(len(u))
    frequencies = rope.layer_frequencies(config, plan.ratio)
    query_weights = (w["wq_a.weight"], w["q_norm.weight"], w["wq_b.weight"])
    narrow, queries = attention.low_rank_query(u, *query_weights, config.n_heads, config.norm_eps)
    queries = norms.rms_norm(queries, None, config.norm_eps)  # T H D, each head by itself
    queries = rope.rotate_tail(queries, positions[:, None], frequencies)
    own = attention.shared_entry(u, w["wkv.weight"], w["kv_norm.weight"], config.norm_eps)
    own = read_back_entry(rope.rotate_tail(own, positions, frequencies), config.rope_head_dim, quantized)  # T D

    table = window.window_table(positions, config.window_size)  # T W
    gathered, valid = [own[np.maximum(table, 0)]], [table >= 0]
    if plan.ratio:
        entries = v4_compressor.compress(u, plan.ratio, names.under(w, "compressor."), frequencies, config.norm_eps)
        entries = read_back_entry(entries, config.rope_head_dim, quantized)  # N D
        if len(entries):
            visible = compressor.visible_entries(positions, plan.ratio)  # T
            numbers = np.arange(len(entries))
            choice = np.where(numbers < visible[:, None], numbers, -1)  # T N
            if plan.mode == "csa":
                choice = choose(u, narrow, w, config, frequencies, quantized)  # T K
            gathered.append(entries[np.maximum(choice, 0)])
            valid.append(choice >= 0)
    scale = config.head_dim**-0.5
    keys, valid = np.concatenate(gathered, axis=1), np.concatenate(valid, axis=1)
    heads = attention.sink_attention(queries, keys, valid, w["attn_sink"], scale)
    heads = rope.rotate_tail(heads, positions[:, None], frequencies, inverse=True)
    return attention.grouped_output(heads, w["wo_a.weight"], w["wo_b.weight"], config.o_groups)


def entries_read(position, ratio, config):
    """Return how many keys a query at `position` reads in a layer of this ratio.

    >>> from deepseek_edu.config import ModelConfig
    >>> [entries_read(2**20 - 1, ratio, ModelConfig.v4_flash_0731()) for ratio in (0, 4, 128)]
    [128, 640, 8320]
    """
    count = min(position + 1, config.window_size)
    if not ratio:
        return count
    visible = int(compressor.visible_entries(position, ratio))
    return count + (min(visible, config.index_topk) if ratio == 4 else visible)
