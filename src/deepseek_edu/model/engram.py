"""Engram: a memory addressed by the last few tokens themselves, read in two early layers.

The hash (primes, multipliers, XOR) is that of reference/engram.py, on whole batches of int64; the token map comes from
there as well.

Source: report, section 2.4.2; reference `engram.py`.
"""

import torch
from torch import nn

from deepseek_edu.model.linear import Matrix
from deepseek_edu.model.norms import precise, reciprocal_rms
from deepseek_edu.reference import engram as rules

NO_TOKEN = rules.NO_TOKEN  # compressed id of a position without text
SCALED = 32
"""Values of a table row that share a scale."""


class EngramHash(nn.Module):
    """Tokens to table rows, for all Engram modules of a model; integers only, nothing is learned.

    Args:
        config: ModelConfig.
        token_map: compressed id of each token id [V].
        device: where ids come from.

    Raises:
        ValueError: the map does not fit the configuration.
    """

    def __init__(self, config, token_map, device):
        super().__init__()
        checked = rules.EngramHash(config, token_map)
        self.pad, self.size, self.orders = checked.pad, checked.size, config.engram_max_ngram_size - 1
        primes = torch.tensor([checked.primes[layer] for layer in checked.layers])  # modules orders heads
        flat = primes.flatten(1)
        tables = {
            "token_map": torch.tensor(checked.token_map),
            "multipliers": torch.stack([torch.tensor(checked.multipliers[layer]) for layer in checked.layers]),
            "primes": primes,
            "offsets": (flat.cumsum(dim=1) - flat).view_as(primes),
        }
        for name, table in tables.items():
            self.register_buffer(name, table.to(device), persistent=False)

    def compress(self, ids, image_mask=None):
        """Return compressed ids [B T] of token ids, NO_TOKEN where image_mask is set."""
        compressed = self.token_map[ids]
        return compressed if image_mask is None else compressed.masked_fill(image_mask, NO_TOKEN)

    def rows(self, line):
        """Return the rows of all modules: int64 [B T modules orders·heads].

        Args:
            line: compressed ids [B size−1+T]; NO_TOKEN where there is none. Behind a NO_TOKEN everything older is
                padding as well.
        """
        tokens = line.shape[1] - self.size + 1
        table = torch.stack([line[:, self.size - 1 - k :][:, :tokens] for k in range(self.size)], dim=-1)  # B T G
        blocked = (table == NO_TOKEN).cumsum(dim=-1) > 0
        history = torch.where(blocked, self.pad, table)[:, :, None]  # B T 1 G
        products = history * self.multipliers  # B T modules G
        mixed, rows = products[..., 0], []
        for order in range(self.orders):
            mixed = mixed ^ products[..., order + 1]  # B T modules
            rows.append(mixed[..., None] % self.primes[:, order] + self.offsets[:, order])  # B T modules heads
        return torch.cat(rows, dim=-1)


class Table(nn.Module):
    """Rows of numbers with one scale for 32 of them: weight [rows D], scale [rows D/32].

    Args:
        rows: of the table.
        width: D.
    """

    def __init__(self, rows, width, where):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, width, **where))
        nn.init.normal_(self.weight)
        self.scale = nn.Parameter(torch.ones(rows, -(-width // SCALED), **where), requires_grad=False)

    def forward(self, rows):
        """Return (…, D) for row numbers (…)."""
        values = nn.functional.embedding(rows, self.weight)  # … D
        scales = nn.functional.embedding(rows, self.scale).repeat_interleave(SCALED, dim=-1)
        return values * scales[..., : values.shape[-1]]


def gate(dot):
    """Return σ(±sqrt(max(|dot|, 1e-6))) with the sign of dot, of a zero too."""
    return torch.copysign(dot.abs().clamp_min(1e-6).sqrt(), dot).sigmoid()


class Engram(nn.Module):
    """The memory of one layer.

    Args:
        rows: of the table.
        config: ModelConfig.
        where: device and dtype of the parameters.
    """

    def __init__(self, rows, config, where):
        super().__init__()
        c = self.config = config
        read = (c.engram_max_ngram_size - 1) * c.engram_n_heads * c.engram_head_dim
        self.embed = Table(rows, c.engram_head_dim, where)
        self.wkv = Matrix((c.hc_mult + 1) * c.dim, read, where)
        self.q_weight = nn.Parameter(torch.ones(c.hc_mult, c.dim, **where))
        self.k_weight = nn.Parameter(torch.ones(c.hc_mult, c.dim, **where))

    def forward(self, streams, rows, image_mask=None):
        """Add the memory of the last tokens to every stream.

        Args:
            streams: X [B T S C].
            rows: int64 [B T orders·heads], of this module.
            image_mask: bool [B T]; nothing is added where it is set.

        Returns:
            [B T S C].
        """
        c = self.config
        both = self.wkv(self.embed(rows).flatten(2)).unflatten(-1, (c.hc_mult + 1, c.dim))  # B T S+1 C
        keys, value = precise(both[:, :, :-1]), precise(both[:, :, -1:])  # B T S C, B T 1 C
        x = precise(streams)
        products = (x * (self.q_weight * self.k_weight) * keys).sum(dim=-1, keepdim=True)  # B T S 1
        dots = products * reciprocal_rms(x, c.norm_eps) * reciprocal_rms(keys, c.norm_eps) / c.dim**0.5
        gates = gate(dots)
        if image_mask is not None:
            gates = gates.masked_fill(image_mask[..., None, None], 0)
        return (x + gates * value).to(streams.dtype)
