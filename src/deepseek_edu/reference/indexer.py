"""The indexer: which compressed entries a query reads, chosen by small extra heads; and a pool that bounds the work.

Each query has a few narrow index heads, each entry has one index key. A head's product with the key counts only where
it is positive, and the heads are summed with learned weights that may be negative:

    score(t, j) = Σ_h ω_{t,h} · max(0, q_{t,h} · k_j)

The K best visible entries are read; nothing of the score enters attention itself. One layer may keep a pool of
candidates: the blocks of entries with the best scores, the newest block always among them. Later layers that score
again look only there.

Source: report, section 2.3.2; reference `Indexer` and `select_candidate_blocks`. V4 also turns queries and keys by a
Hadamard matrix; V4.1 does not. Equal scores are left open by the reference; here the earlier entry wins.
"""

import numpy as np

from deepseek_edu.reference import checks, linear, norms


def index_keys(entries, weight, gain, eps):
    """Return the index keys: RMSNorm(wk c), [N Di]; rotation and FP4 come after it.

    Args:
        entries: c [N D], latents that are not rotated yet.
        weight: wk [Di D].
    """
    return norms.rms_norm(entries @ weight.T, gain, eps)


def index_queries(narrow, weight, n_heads):
    """Project the low-rank query [T R] to index queries [T Hi Di]; rotation and FP4 come after it."""
    return linear.product(narrow, weight).reshape(len(narrow), n_heads, -1)


def head_weights(u, weight, head_dim):
    """Return the signed weights of the index heads: (weights_proj u) · Di^(−1/2) · Hi^(−1/2), [T Hi]."""
    return u @ weight.T * head_dim**-0.5 * len(weight) ** -0.5


def index_scores(queries, weights, keys):
    """Return score(t, j) for all entries, visible or not.

    Args:
        queries: [T Hi Di].
        weights: [T Hi].
        keys: [N Di].

    Returns:
        [T N].

    >>> index_scores(np.array([[[1.0], [-1.0]]]), np.array([[2.0, -3.0]]), np.array([[1.0], [-1.0]])).tolist()
    [[2.0, -3.0]]
    """
    products = np.einsum("thd,nd->thn", queries, keys, optimize=True)  # T Hi N
    return np.einsum("th,thn->tn", weights, np.maximum(products, 0), optimize=True)


def top_k(scores, visible, k, allowed=None):
    """Choose the k best visible entries of each query.

    Args:
        scores: [T N].
        visible: [T], how many of the first entries each query may read.
        k: entries to choose; fewer are chosen where fewer are visible.
        allowed: bool [T N], the candidate pool, or None for all.

    Returns:
        int64 [T min(k, N)], entry numbers in rising order, −1 behind them where there are no more.

    Raises:
        ValueError: k is no integer, 0 or more.

    >>> scores = np.array([[0.2, 0.9, 0.1, 0.8]])
    >>> top_k(scores, [4], 2).tolist(), top_k(scores, [1], 2).tolist()
    ([[1, 3]], [[0, -1]])
    """
    k, count = checks.count(k, "k", 0), scores.shape[-1]
    readable = np.arange(count) < np.asarray(visible)[:, None]  # T N
    if allowed is not None:
        readable &= allowed
    masked = np.where(readable, scores, -np.inf)
    best = np.argsort(-masked, axis=-1, kind="stable")[:, : min(k, count)]  # T K
    kept = np.take_along_axis(readable, best, axis=-1)
    rising = np.sort(np.where(kept, best, count), axis=-1)
    return np.where(rising < count, rising, -1)


def candidate_pool(scores, visible, n_blocks, block_size):
    """Return which entries belong to the pool of each query.

    Blocks are `block_size` consecutive entries, each as good as its best visible entry. The block of the newest visible
    entry is always kept; a query that sees nothing has an empty pool.

    Args:
        scores: [T N].
        visible: [T].
        n_blocks: blocks to keep.
        block_size: entries in a block.

    Returns:
        bool [T N]; entries ahead of the query inside a kept block are marked as well, `top_k` leaves them out.

    >>> candidate_pool(np.array([[0.9, 0.1, 5.0, 4.0, 0.3]]), [5], 2, 2).tolist()
    [[False, False, True, True, True]]
    """
    tokens, count = scores.shape
    visible = np.asarray(visible)
    blocks = -(-count // block_size)
    padded = np.full((tokens, blocks * block_size), -np.inf)
    padded[:, :count] = np.where(np.arange(count) < visible[:, None], scores, -np.inf)
    block_scores = padded.reshape(tokens, blocks, block_size).max(axis=-1)  # T blocks
    sees = np.flatnonzero(visible > 0)
    block_scores[sees, (visible[sees] - 1) // block_size] = np.inf
    best = np.argsort(-block_scores, axis=-1, kind="stable")[:, :n_blocks]
    kept = np.zeros((tokens, blocks), bool)
    np.put_along_axis(kept, best, np.take_along_axis(block_scores, best, axis=-1) > -np.inf, axis=-1)
    return np.repeat(kept, block_size, axis=-1)[:, :count]
