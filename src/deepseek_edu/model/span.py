"""A span of positions: where the tokens of one call stand in every row of the batch.

A tile [B T …] holds the new tokens of all rows from the left; row b has `counts[b]` of them, at positions
first[b], first[b] + 1, …; what follows in the tile is padding. Everything that layers need to know about positions
(rotations, places in rings, visible entries) is worked out here once for a call and kept.

Bookkeeping (first, counts) lies in ordinary memory, so that no layer waits for a GPU; indices go to the device once.

Source: our own; the reference knows one length for all rows of a batch.
"""

from functools import cached_property

import torch

from deepseek_edu.model.rope import Rotation


class Span:
    """Positions of a tile.

    Args:
        first: int64 [B] on the CPU, position of each row's first token.
        counts: int64 [B] on the CPU, tokens of each row, 0 … width.
        width: T.
        config: ModelConfig.
        device, dtype: where and as what tables are wanted.
    """

    def __init__(self, first, counts, width, config, device, dtype):
        self.first, self.counts, self.width = first, counts, width
        self.config, self.device, self.dtype = config, device, dtype
        self.full = bool((counts == width).all())
        self._tables = {}

    @property
    def ends(self):
        """One past each row's last position: int64 [B] on the CPU."""
        return self.first + self.counts

    @cached_property
    def positions(self):
        """int64 [B T]; padding counts on."""
        return (self.first[:, None] + torch.arange(self.width)).to(self.device)

    @cached_property
    def valid(self):
        """bool [B T], false for padding."""
        return (torch.arange(self.width) < self.counts[:, None]).to(self.device)

    def _once(self, key, make):
        if key not in self._tables:
            self._tables[key] = make()
        return self._tables[key]

    def rotation(self, ratio):
        """Rotation of the tokens in layers with this ratio."""
        kind = bool(ratio)
        return self._once(("rotation", kind), lambda: Rotation.at(self.positions, self.config, ratio, self.dtype))

    def line_positions(self, back):
        """int64 [B back+T]: positions of the line that begins `back` positions before the tile."""

        def make():
            return (self.first[:, None] - back + torch.arange(back + self.width)).to(self.device)

        return self._once(("line", back), make)

    def _row_starts(self, slots):
        return slots * torch.arange(len(self.first))[:, None]

    def past_slots(self, back, slots):
        """int64 [B·back]: where rings with so many slots, row behind row, keep the last positions before the tile."""

        def make():
            places = (self.first[:, None] - back + torch.arange(back)) % slots  # B back
            return (places + self._row_starts(slots)).flatten().to(self.device)

        return self._once(("past", back, slots), make)

    def writes(self, slots):
        """What a ring keeps of the tile: which of its B·T tokens, and in which of the B·slots slots; two int64 [n]."""

        def make():
            columns = torch.arange(self.width)
            kept = (columns < self.counts[:, None]) & (columns >= self.counts[:, None] - slots)  # B T
            places = (self.first[:, None] + columns) % slots + self._row_starts(slots)  # B T
            return kept.flatten().nonzero()[:, 0].to(self.device), places[kept].to(self.device)

        return self._once(("writes", slots), make)

    def held(self, slots):
        """int64 [B slots]: the position in each slot once the tile is written; negative where nothing was written."""

        def make():
            newest = self.ends[:, None] - 1
            return (newest - (newest - torch.arange(slots)) % slots).to(self.device)

        return self._once(("held", slots), make)

    def groups(self, ratio):
        """Groups of `ratio` tokens that the tile completes: (number of each row's first, how many), int64 [B], CPU."""
        first = self.first // ratio
        return first, self.ends // ratio - first

    def last(self, rows):
        """Return the span of each row's last `rows` tokens; the same object if that is all of them."""
        if rows >= self.width:
            return self

        def make():
            kept = self.counts.clamp_max(rows)
            return Span(self.ends - kept, kept, rows, self.config, self.device, self.dtype)

        return self._once(("last", rows), make)

    def take_last(self, x, rows):
        """Return the tile of each row's last `rows` tokens, [B rows …] from x [B T …]."""
        if rows >= self.width:
            return x
        if self.full:
            return x[:, self.width - rows :]
        skipped = (self.counts - rows).clamp_min(0)
        columns = (skipped[:, None] + torch.arange(rows)).to(x.device)  # B rows
        return x[torch.arange(len(x), device=x.device)[:, None], columns]
