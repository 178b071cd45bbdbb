"""V4's compressed entries in batches: overlapping groups of 4 (CSA), plain groups of 128 (HCA), with a position term.

The line that begins before the tile holds every group that the tile completes and, where groups overlap, the one
before it. Rows of a batch that stand at different places inside a group are gathered, others sliced.

Source: V4 report; V4 reference `Compressor`; in words in reference/v4_compressor.py.
"""

import torch
from torch import nn

from deepseek_edu.model.linear import Matrix
from deepseek_edu.model.norms import RMSNorm
from deepseek_edu.model.v4_cache import waiting_tokens
from deepseek_edu.reference.v4_compressor import CSA_RATIO


def pool(values, gates):
    """Mix the tokens of groups channel by channel: Σ softmax(gates) · values over the second to last dimension."""
    return (gates.softmax(dim=-2) * values).sum(dim=-2)


def overlapping(members, first):
    """Return the candidates of overlapping entries: second halves of their tokens, first halves of those before.

    Args:
        members: values or gates, [B N+1 r 2D], the group before the first entry's own included.
        first: what to write for the tokens before group 0 where a row begins there: (bool [B N], number).

    Returns:
        [B N 2r D].
    """
    width = members.shape[-1] // 2
    before, own = members[:, :-1, :, :width], members[:, 1:, :, width:]  # B N r D
    none, number = first
    if none is not None:
        before = before.masked_fill(none[..., None, None], number)
    return torch.cat([before, own], dim=2)


class V4Compressor(nn.Module):
    """Tokens to entries, before they turn.

    Args:
        config: ModelConfig.
        ratio: 4 (overlapping) or another (plain).
        width: D of the entries: head_dim, or index_head_dim for index keys.
        where: device and dtype of the parameters.
    """

    def __init__(self, config, ratio, width, where):
        super().__init__()
        self.ratio, self.overlaps = ratio, ratio == CSA_RATIO
        projected = width * (2 if self.overlaps else 1)
        self.wkv = Matrix(projected, config.dim, where)
        self.wgate = Matrix(projected, config.dim, where)
        self.ape = nn.Parameter(torch.zeros(ratio, projected, **where))
        self.norm = RMSNorm(width, config.norm_eps, where)

    def forward(self, u, span, waiting):
        """Return the normalised entries of the groups that a tile completes.

        Args:
            u: [B T C], inputs of the layer's attention.
            span: Span of the tile.
            waiting: Ring with values and gates of the tokens before it; it takes in the tile.

        Returns:
            [B N D], group number span.groups(ratio)[0] + n for n = 0 … N − 1, as far as the row completes them; None if
            no row completes any.
        """
        ratio, back = self.ratio, waiting_tokens(self.ratio)
        rows = torch.cat([self.wkv(u), self.wgate(u)], dim=-1)  # B T 2P
        first, counts = span.groups(ratio)
        number = int(counts.max())
        if not number:
            waiting.write(span, rows)
            return None
        line = waiting.line(span, back, rows)  # B back+T 2P
        before = ratio if self.overlaps else 0
        begin = first * ratio - span.first + back - before  # column of each row's first group, or the one before it
        members = _columns(line, begin, before + number * ratio).unflatten(1, (-1, ratio))  # B (1+)N r 2P
        values, gates = members.chunk(2, dim=-1)
        gates = gates + self.ape
        if self.overlaps:
            none = None
            if not bool(first.all()):  # some row begins with group 0
                none = (first[:, None] + torch.arange(number) == 0).to(u.device)  # B N
            values = overlapping(values, (none, 0.0))
            gates = overlapping(gates, (none, -torch.inf))
        return self.norm(pool(values, gates))


def _columns(line, begin, width):
    """Return `width` columns of each row, [B width …], from its own begin [B] on."""
    if bool((begin == begin[0]).all()):
        return line[:, int(begin[0]) : int(begin[0]) + width]
    columns = (begin[:, None] + torch.arange(width)).clamp_max(line.shape[1] - 1).to(line.device)
    return line[torch.arange(len(line), device=line.device)[:, None], columns]
