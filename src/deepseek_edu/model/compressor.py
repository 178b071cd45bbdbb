"""Compressed entries: r neighbouring tokens become one entry; ratio 1 projects, larger ratios mix channel by channel.

Rows of a batch may stand at different places inside a group. The line that begins r − 1 positions before the tile
holds every group that the tile completes; which columns belong to it differs from row to row, so they are gathered.

Source: report, section 2.3; reference `Compressor`; formulas in reference/compressor.py.
"""

import torch
from torch import nn

from deepseek_edu.model.linear import Matrix
from deepseek_edu.model.norms import RMSNorm


def visible_entries(positions, ratio):
    """Return how many entries a query at each position may read: ⌊(t + 1)/ratio⌋, int64 like positions."""
    return (positions + 1) // ratio


class Compressor(nn.Module):
    """Tokens to latents: what index keys are made from, and entries by rotation.

    Args:
        config: ModelConfig.
        ratio: tokens for one entry.
        where: device and dtype of the parameters.
    """

    def __init__(self, config, ratio, where):
        super().__init__()
        self.ratio = ratio
        self.wkv = Matrix(config.head_dim, config.dim, where)
        self.wgate = Matrix(config.head_dim, config.dim, where) if ratio > 1 else None
        self.norm = RMSNorm(config.head_dim, config.norm_eps, where)

    def forward(self, u, span, waiting):
        """Return the normalised latents of the groups that a tile completes.

        Args:
            u: [B T C], inputs of the layer's attention.
            span: Span of the tile.
            waiting: Ring with values and gate scores of the tokens before it; None for ratio 1. It takes in the tile.

        Returns:
            [B N D], group number span.groups(ratio)[0] + n for n = 0 … N − 1, as far as the row completes them.
        """
        if self.ratio == 1:
            return self.norm(self.wkv(u))
        ratio = self.ratio
        rows = torch.cat([self.wkv(u), self.wgate(u)], dim=-1)  # B T 2D
        line = waiting.line(span, ratio - 1, rows)  # B r-1+T 2D
        first, counts = span.groups(ratio)
        begin = first * ratio - span.first + ratio - 1  # column where each row's first group begins
        columns = begin[:, None] + torch.arange(int(counts.max()) * ratio)  # B N·r
        columns = columns.clamp_max(line.shape[1] - 1).to(u.device)
        members = line[torch.arange(len(u), device=u.device)[:, None], columns]  # B N·r 2D
        values, gates = members.unflatten(1, (-1, ratio)).chunk(2, dim=-1)  # B N r D
        return self.norm((gates.softmax(dim=2) * values).sum(dim=2))
