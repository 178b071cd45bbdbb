"""Attention to gathered entries: low-rank query, one vector for key and value, a sink per head, grouped output.

Source: report, section 2.3; reference `Attention.forward` and the kernel `sparse_attn`; formulas in
reference/attention.py. The kernel rounds probabilities to bfloat16 before it sums values; here they stay as they are.
"""

import torch
from torch import nn

from deepseek_edu.model.linear import Matrix, at_least_float32
from deepseek_edu.model.norms import RMSNorm
from deepseek_edu.model.rope import rotate_tail


def sink_attention(queries, parts, sinks, scale):
    """Attend to several sets of entries at once, with one learned score per head that takes weight and gives no value.

    Args:
        queries: [B T H D].
        parts: list of (entries, visible): entries [B N D] that all queries share, with visible bool [B T N]; or entries
            [B T K D] gathered for each query, with visible bool [B T K]. Invisible ones may hold anything finite.
        sinks: [H], added to the denominator unscaled.
        scale: factor of the scores; D^(−1/2) in the model.

    Returns:
        [B T H D]; zeros for a query that sees nothing.
    """
    batch, tokens, heads, width = queries.shape
    if tokens == 1 or all(entries.ndim == 3 for entries, _ in parts):
        return _side_by_side(queries, parts, sinks, scale)
    scaled = queries * scale
    scores = []
    for entries, visible in parts:
        if entries.ndim == 3:
            products = scaled.reshape(batch, tokens * heads, width) @ entries.mT  # B T·H N
            products = products.view(batch, tokens, heads, entries.shape[1])
        else:
            products = scaled @ entries.mT  # B T H K
        scores.append(products.masked_fill(~visible[:, :, None], -torch.inf))
    sink = sinks.to(queries.dtype)[:, None].expand(batch, tokens, heads, 1)
    weights = torch.cat([*scores, sink], dim=-1).softmax(dim=-1)  # B T H N+K+1
    total, begin = 0, 0
    for entries, _ in parts:
        share = weights[..., begin : begin + entries.shape[-2]]  # B T H N
        begin += entries.shape[-2]
        if entries.ndim == 3:
            share = share.reshape(batch, tokens * heads, entries.shape[1])
        total = total + (share @ entries).view(batch, tokens, heads, width)
    return total


def _side_by_side(queries, parts, sinks, scale):
    """The same for entries that all queries share: one product. A zero entry before them has the sinks for scores."""
    batch, tokens, heads, width = queries.shape
    keys = [entries if entries.ndim == 3 else entries[:, 0] for entries, _ in parts]  # B N D
    keys = torch.cat([keys[0].new_zeros(batch, 1, width), *keys], dim=1)  # B 1+N D
    hidden = ~torch.cat([visible for _, visible in parts], dim=-1)[:, :, None]  # B T 1 N
    rows = queries.reshape(batch, tokens * heads, width)
    scores = torch.baddbmm(rows.new_zeros(1), rows, keys.mT, beta=0, alpha=scale)  # B T·H 1+N
    scores = scores.view(batch, tokens, heads, -1)
    scores[..., 1:].masked_fill_(hidden, -torch.inf)
    scores[..., 0] = sinks.to(scores.dtype)
    return (scores.softmax(dim=-1).flatten(1, 2) @ keys).view(batch, tokens, heads, width)


class Attention(nn.Module):
    """The projections every layer and draft stage has.

    Args:
        config: ModelConfig.
        where: device and dtype of the parameters.
    """

    def __init__(self, config, where):
        super().__init__()
        c = self.config = config
        self.attn_sink = nn.Parameter(torch.zeros(c.n_heads, **at_least_float32(where)))
        self.wq_a = Matrix(c.q_lora_rank, c.dim, where)
        self.q_norm = RMSNorm(c.q_lora_rank, c.norm_eps, where)
        self.wq_b = Matrix(c.n_heads * c.head_dim, c.q_lora_rank, where)
        self.wkv = Matrix(c.head_dim, c.dim, where)
        self.kv_norm = RMSNorm(c.head_dim, c.norm_eps, where)
        self.wo_a = Matrix(c.o_groups * c.o_lora_rank, c.n_heads // c.o_groups * c.head_dim, where)
        self.wo_b = Matrix(c.dim, c.o_groups * c.o_lora_rank, where)

    def queries(self, u, rotation):
        """Return (narrow [B T R], which the indexer reads too; queries [B T H D], rotated) for inputs u [B T C]."""
        narrow = self.q_norm(self.wq_a(u))
        queries = self.wq_b(narrow).unflatten(-1, (self.config.n_heads, -1))
        return narrow, rotate_tail(queries, rotation)

    def entry(self, u, rotation):
        """Return the vector that is key and value of all heads, rotated: [B T D]."""
        return rotate_tail(self.kv_norm(self.wkv(u)), rotation)

    def attend(self, queries, parts):
        """Return what `sink_attention` gives with this layer's sinks, [B T H D]."""
        return sink_attention(queries, parts, self.attn_sink, self.config.head_dim**-0.5)

    def output(self, heads, rotation):
        """Turn heads [B T H D] back to relative positions and project them: group by group, then together, [B T C]."""
        groups, wide = self.config.o_groups, self.wo_a.weight.shape[1]
        grouped = rotate_tail(heads, rotation, inverse=True).reshape(-1, groups, wide)  # B·T G H/G·D
        blocks = self.wo_a.weight.view(groups, -1, wide)  # G r H/G·D
        narrow = torch.bmm(grouped.transpose(0, 1), blocks.mT).transpose(0, 1)  # B·T G r
        return self.wo_b(narrow.reshape(*heads.shape[:2], -1))
