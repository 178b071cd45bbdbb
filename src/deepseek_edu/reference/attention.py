"""Attention of one query over the entries gathered for it: low-rank query, a sink per head, grouped output.

Every head reads the same entries, and an entry is key and value at once (multi-query attention with one shared
vector). Where the entries come from is told in window.py, compressor.py and indexer.py.

Source: report, section 2.3; reference `Attention.forward` and the kernel `sparse_attn`. The kernel rounds the
probabilities to bfloat16 before it sums values; here they stay as they are.
"""

import numpy as np

from deepseek_edu.reference import linear, norms


def low_rank_query(u, down, gain, up, n_heads, eps):
    """Project to queries through a narrow vector, which the indexer reads too.

    Args:
        u: [T C], normalised input of the layer.
        down, gain, up: wq_a [R C], q_norm [R], wq_b [H·D R].
        n_heads: H.
        eps: of the norm.

    Returns:
        (narrow [T R], queries [T H D]). V4.1 normalises the narrow vector only; V4 also each head of the query.
    """
    narrow = norms.rms_norm(linear.product(u, down), gain, eps)  # T R
    return narrow, linear.product(narrow, up).reshape(len(u), n_heads, -1)  # T H D


def shared_entry(u, weight, gain, eps):
    """Return the vector that is key and value of all heads, before rotation: RMSNorm(wkv u), [T D].

    Args:
        u: [T C].
        weight: wkv [D C].
    """
    return norms.rms_norm(linear.product(u, weight), gain, eps)


def sink_attention(queries, entries, valid, sinks, scale):
    """Attend to gathered entries, with one learned score per head that takes weight and gives no value.

    Args:
        queries: [T H D].
        entries: [T K D], gathered for each query; rows that are not valid may hold anything finite.
        valid: bool [T K].
        sinks: [H], added to the denominator unscaled.
        scale: factor of the scores; D^(−1/2) in the model.

    Returns:
        [T H D]; zeros for a query without a valid entry.

    >>> one = np.ones((1, 1, 1))
    >>> sink_attention(one, 3 * one, np.array([[True]]), np.array([3.0]), 1.0).tolist()  # half the weight is the sink's
    [[[1.5]]]
    """
    scores = np.einsum("thd,tkd->thk", queries, entries, optimize=True) * scale  # T H K
    scores = np.where(valid[:, None, :], scores, -np.inf)
    highest = np.maximum(scores.max(axis=-1, initial=-np.inf), sinks)  # T H
    weights = np.exp(scores - highest[..., None])  # T H K
    total = weights.sum(axis=-1) + np.exp(sinks - highest)  # T H
    values = np.einsum("thk,tkd->thd", weights, entries, optimize=True)  # T H D
    return values / total[..., None]


def grouped_output(heads, group_weight, weight, n_groups):
    """Project heads to the model's width in two steps: each group of heads to a narrow vector, all of them together.

    Args:
        heads: [T H D], already turned back to relative positions.
        group_weight: wo_a [G·r  H/G·D], one block of rows per group.
        weight: wo_b [C  G·r].
        n_groups: G.

    Returns:
        [T C].

    Raises:
        ValueError: the groups would not be equal.
    """
    if n_groups < 1 or heads.shape[1] % n_groups:
        raise ValueError(f"n_groups must divide the number of heads, {heads.shape[1]}; got {n_groups}")
    grouped = heads.reshape(len(heads), n_groups, -1)  # T G H/G·D
    blocks = group_weight.reshape(n_groups, -1, grouped.shape[-1])  # G r H/G·D
    narrow = np.einsum("tgi,gri->tgr", grouped, blocks, optimize=True)  # T G r
    return linear.product(narrow.reshape(len(heads), -1), weight)
