"""The indexer: small extra heads score the compressed entries; the best are read, or make a pool of candidates.

    score(t, j) = Σ_h ω_{t,h} · max(0, q_{t,h} · k_j)

Choosing has no gradient; the indexer's own parameters are trained, if at all, by a loss on its scores.

Source: report, section 2.3.2; reference `Indexer` and `select_candidate_blocks`; in words in reference/indexer.py.
"""

import torch
from torch import nn

from deepseek_edu.model import selection
from deepseek_edu.model.linear import Matrix
from deepseek_edu.model.norms import RMSNorm
from deepseek_edu.model.rope import rotate_tail

SCORE_NUMBERS = 1 << 22
"""Products of index heads and keys that are held at once (16 MB in float32)."""


def index_scores(queries, weights, keys, most=None):
    """Return score(t, j) of the entries: [B T N].

    Args:
        queries: [B T Hi Di].
        weights: [B T Hi].
        keys: [B N Di], shared by the queries of a row, or [B T N Di], gathered for each query.
        most: function from a slice of queries to how many of the first entries any of them may read; the scores of
            the others are not computed but 0. All by default.
    """
    batch, tokens, heads, _ = queries.shape
    count = keys.shape[-2]
    block = max(1, SCORE_NUMBERS // max(1, batch * heads * count))
    rows = []
    for begin in range(0, tokens, block):
        part = slice(begin, begin + block)
        some, needed = queries[:, part], count if most is None else min(count, most(part))
        if keys.ndim == 3:
            products = (some.flatten(1, 2) @ keys[:, :needed].mT).unflatten(1, (-1, heads))  # B t Hi n
        else:
            products = some @ keys[:, part].mT  # B t Hi N
        scores = (weights[:, part, None] @ products.relu_())[:, :, 0]  # B t n
        rows.append(nn.functional.pad(scores, (0, count - needed)) if needed < count else scores)
    return torch.cat(rows, dim=1) if len(rows) != 1 else rows[0]


def top_k(scores, readable, k):
    """Choose the k best readable entries of each query.

    Args:
        scores: [B T N].
        readable: bool [B T N]: visible, and in the pool if there is one.
        k: entries to choose.

    Returns:
        int64 [B T min(k, N)], entry numbers in rising order, −1 behind them where there are no more.
    """
    count = scores.shape[-1]
    places = selection.top_k(scores.masked_fill(~readable, -torch.inf), min(k, count))
    places = torch.where(readable.gather(-1, places), places, count).sort(dim=-1).values
    return torch.where(places < count, places, -1)


def candidate_blocks(scores, visible, n_blocks, block_size):
    """Return which blocks of entries belong to the pool of each query.

    Args:
        scores: [B T N].
        visible: int64 [B T], entries that each query may read.
        n_blocks: blocks to keep, the newest visible one among them.
        block_size: entries in a block.

    Returns:
        bool [B T ⌈N/block_size⌉].
    """
    count = scores.shape[-1]
    numbers = torch.arange(count, device=scores.device)
    seen = scores.masked_fill(numbers >= visible[..., None], -torch.inf)
    blocks = nn.functional.pad(seen, (0, -count % block_size), value=-torch.inf)
    best = blocks.unflatten(-1, (-1, block_size)).amax(dim=-1)  # B T blocks
    newest = torch.div(visible - 1, block_size, rounding_mode="floor")[..., None]  # −1 where nothing is visible
    best = torch.where(torch.arange(best.shape[-1], device=best.device) == newest, torch.inf, best)
    chosen = selection.top_k(best, min(n_blocks, best.shape[-1]))
    kept = torch.zeros_like(best, dtype=torch.bool).scatter_(-1, chosen, True)
    return kept & (best > -torch.inf)


class Indexer(nn.Module):
    """Index queries, their heads' weights and, in an owner, index keys.

    Args:
        config: ModelConfig.
        owner: whether the layer makes keys.
        where: device and dtype of the parameters.
    """

    def __init__(self, config, owner, where):
        super().__init__()
        c = self.config = config
        self.wq_b = Matrix(c.index_n_heads * c.index_head_dim, c.q_lora_rank, where)
        self.weights_proj = Matrix(c.index_n_heads, c.dim, where)
        self.wk = Matrix(c.index_head_dim, c.head_dim, where) if owner else None
        self.k_norm = RMSNorm(c.index_head_dim, c.norm_eps, where) if owner else None

    def queries(self, narrow, rotation):
        """Return index queries [B T Hi Di], rotated, of low-rank queries [B T R]; FP4 comes after it."""
        return rotate_tail(self.wq_b(narrow).unflatten(-1, (self.config.index_n_heads, -1)), rotation)

    def weights(self, u):
        """Return the signed weights of the heads for inputs u [B T C]: [B T Hi]."""
        return self.weights_proj(u) * (self.config.index_head_dim**-0.5 * self.config.index_n_heads**-0.5)

    def keys(self, latents, rotation):
        """Return index keys [B N Di], rotated, of latents [B N D] that are not."""
        return rotate_tail(self.k_norm(self.wk(latents)), rotation)
