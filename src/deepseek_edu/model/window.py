"""Sliding window in batches: rings that keep the last positions of every row, and who sees whom.

A ring with n slots holds position p in slot p mod n. With `spare` slots more than the window needs, positions that are
written and then rejected overwrite only what no query needs any more; taking them back is a matter of counting.

Source: report, section 2.3; reference `get_window_topk_idxs` and `Attention.forward`.
"""

from dataclasses import dataclass

import torch

from deepseek_edu.model import storage

QUERY_BLOCK = 128
"""Queries whose scores are held at once; the scores of a block take B · 128 · H · (W + 127) numbers."""


class Ring:
    """The last rows of growing sequences, by absolute position.

    Args:
        window: rows that a query may read, its own included.

    Attributes:
        start: int64 [B] on the CPU, the first position that exists for the ring; later than 0 after a replay.
    """

    def __init__(self, row_format, batch, window, spare, device):
        self.row_format, self.window, self.spare = row_format, window, spare
        self.slots = window + spare
        self.start = torch.zeros(batch, dtype=torch.int64)
        self._parts = storage.room(row_format, batch, self.slots, device)

    @property
    def nbytes(self):
        """Bytes of the windows' slots; the spare ones are `spare_nbytes`."""
        return len(self.start) * self.window * storage.row_bytes(self.row_format)

    @property
    def spare_nbytes(self):
        """Bytes of the slots beyond the windows."""
        return len(self.start) * self.spare * storage.row_bytes(self.row_format)

    def past(self, span, back):
        """Return the values of the `back` positions before a span, [B back D]; where there are none, anything finite.

        Args:
            back: at most the window's size.
        """
        slots = span.past_slots(back, self.slots)
        past = self.row_format.decode([part.flatten(0, 1).index_select(0, slots) for part in self._parts])
        return past.view(len(self.start), back, -1)

    def line(self, span, back, new):
        """Store the rows of a span and return the line that ends with them.

        Args:
            back: columns of the line before the tile.
            new: [B T D].

        Returns:
            [B back+T D], as read back.
        """
        past = self.past(span, back) if back else None
        parts = self.row_format.encode(new)
        self._write(span, parts)
        read = self.row_format.decode(parts)
        return torch.cat([past, read], dim=1) if back else read

    def write(self, span, new):
        """Store the rows of a span, [B T D]."""
        self._write(span, self.row_format.encode(new))

    def _write(self, span, parts):
        taken, slots = span.writes(self.slots)
        for stored, part in zip(self._parts, parts, strict=True):
            rows = part.detach().flatten(0, 1)
            rows = rows if len(taken) == len(rows) else rows.index_select(0, taken)
            stored.flatten(0, 1).index_copy_(0, slots, rows)

    def put(self, position, new):
        """Store the row of one position, [D], of a ring with one row of the batch."""
        for stored, part in zip(self._parts, self.row_format.encode(new), strict=True):
            stored[0, position % self.slots].copy_(part)

    def holds(self, width):
        """Whether a tile of this width can be written without losing what its first query sees."""
        return width <= self.spare + 1

    def read(self):
        """Return all slots as they lie, [B slots D]; `Span.held` says whose they are."""
        return self.row_format.decode(self._parts)

    def stored(self, row):
        """Return the stored parts of one row's slots: list of [slots …]."""
        return [part[row] for part in self._parts]

    def restore(self, row, parts, start):
        """Replace one row by parts that `stored` returned, with its first position `start`."""
        for mine, theirs in zip(self._parts, parts, strict=True):
            mine[row] = theirs
        self.start = self.start.clone()
        self.start[row] = start


class LiveRing:
    """A ring without memory, for training: before the call there is nothing, and gradients stay whole.

    Args:
        window: as for `Ring`, whose arguments it takes; nothing is kept here.
    """

    def __init__(self, row_format, batch, window, spare, device):
        self.row_format = row_format
        self.start = torch.zeros(batch, dtype=torch.int64)

    def past(self, span, back):
        """Return zeros, [B back D]."""
        shape = len(self.start), back, self.row_format.width
        return torch.zeros(shape, dtype=self.row_format.dtype, device=span.device)

    def line(self, span, back, new):
        """Return the line [B back+T D]."""
        return torch.cat([self.past(span, back), self.row_format.read_back(new)], dim=1)

    def write(self, span, new):
        """Nothing is kept of new [B T D]."""

    def holds(self, width):
        """No tile can be read back, whatever its width."""
        return False


@dataclass(frozen=True)
class QueryBlock:
    """Some neighbouring queries and the stretch of the line that holds all they see."""

    queries: slice  # columns of the tile of queries
    line: slice  # columns of the line, or slots
    visible: torch.Tensor  # bool [B queries line]


def slot_block(span, asked, start, window, slots):
    """Say what each query of a short call sees of the slots of rings that have taken in its tile.

    Args:
        span, asked, start, window: as for `query_blocks`.
        slots: of the rings.

    Returns:
        QueryBlock of all queries; the order of slots makes no difference to attention.
    """
    held = span.held(slots)  # B slots
    back = asked.positions[..., None] - held[:, None]  # B T slots
    exists = held >= start.to(span.device)[:, None]
    return QueryBlock(slice(None), slice(None), (back >= 0) & (back < window) & exists[:, None])


def query_blocks(span, asked, start, window):
    """Cut the queries of a call into blocks and say what each sees of the line that begins window − 1 positions before.

    Args:
        span: Span of the tile whose entries are in the line.
        asked: Span of the queries, the last ones of each row.
        start: int64 [B] on the CPU, first position that exists.
        window: W; a query at p sees max(start, p − W + 1) … p.

    Returns:
        list of QueryBlock.
    """
    line = span.line_positions(window - 1)  # B W-1+T
    offsets = asked.first - span.first  # columns of the tile before each row's first query
    least, most = int(offsets.min()), int(offsets.max())
    exists = line >= start.to(span.device)[:, None]  # B W-1+T
    blocks = []
    for begin in range(0, asked.width, QUERY_BLOCK):
        queries = slice(begin, min(begin + QUERY_BLOCK, asked.width))
        keys = slice(begin + least, min(queries.stop + most, span.width) + window - 1)
        back = asked.positions[:, queries, None] - line[:, None, keys]  # B queries line
        blocks.append(QueryBlock(queries, keys, (back >= 0) & (back < window) & exists[:, None, keys]))
    return blocks
