"""How V4's queries read windows and entries: all keys of a block of queries side by side in one matrix product.

The first key is a zero vector. Its score is set to the head's sink, so it takes weight and gives nothing, and no
second softmax is needed. What a query must not see is hidden by a mask; masks depend on positions only and serve all
layers of a call.

A short tile (a decode step) reads the slots of the ring as they lie; a long one reads the line, in blocks of queries.

Source: our own; the results are those of reference/v4_attention.py.
"""

import torch

from deepseek_edu.model.compressor import visible_entries

QUERY_BLOCK = 64
"""Queries whose scores are held at once. A block reads W + 63 keys of the line, of which each query sees W."""


def read(queries, keys, hidden, sinks, scale):
    """Attend to keys that are values too.

    Args:
        queries: [B T H D].
        keys: [B 1+N D]; the first is zero.
        hidden: bool [B T 1+N], true for what a query does not see; never for the first key.
        sinks: [H].
        scale: factor of the scores.

    Returns:
        [B T H D].
    """
    batch, tokens, heads, width = queries.shape
    rows = queries.reshape(batch, tokens * heads, width)
    scores = torch.baddbmm(rows.new_zeros(1), rows, keys.mT, beta=0, alpha=scale)  # B T·H 1+N
    scores = scores.view(batch, tokens, heads, -1).masked_fill_(hidden[:, :, None], -torch.inf)
    scores[..., 0] = sinks.to(scores.dtype)
    return (scores.softmax(dim=-1).view(batch, tokens * heads, -1) @ keys).view(batch, tokens, heads, width)


class Block:
    """Some neighbouring queries of a tile.

    Args:
        queries, line, window, most: see the attributes.
        positions: int64 [B queries], their absolute positions.

    Attributes:
        queries: slice of the tile's columns.
        line: slice of the line's columns that hold all they see; None where the ring's slots are read.
        window: bool [B queries 1+L], what of the zero key and the line or slots is hidden.
        most: one past the last position of any of them.
    """

    def __init__(self, queries, line, window, positions, most):
        self.queries, self.line, self.window, self.most = queries, line, window, most
        self._positions = positions
        self._masks = {}

    def entries(self, ratio):
        """Entries of `ratio` tokens that any of these queries may read."""
        return self.most // ratio

    def visible(self, ratio):
        """int64 [B queries]: entries that each query may read."""
        return visible_entries(self._positions, ratio)

    def hidden(self, ratio, count):
        """bool [B queries 1+L+count]: what of window and the first `count` entries is hidden."""
        key = ratio, count
        if key not in self._masks:
            numbers = torch.arange(count, device=self.window.device)
            later = numbers >= self.visible(ratio)[..., None]  # B queries count
            self._masks[key] = torch.cat([self.window, later], dim=-1)
        return self._masks[key]


def query_blocks(span, cache):
    """Cut the queries of a tile into blocks: (blocks, whether they read slots)."""
    size = cache.config.window_size
    ring = cache.windows[0]
    if ring.holds(span.width):
        window = _hidden(span.positions, span.held(ring.slots), size)
        return [Block(slice(0, span.width), None, window, span.positions, int(span.ends.max()))], True
    line, latest = span.line_positions(size - 1), int(span.first.max())
    missing = max(0, size - 1 - latest)  # columns of the line before position 0 in all rows
    blocks = []
    for begin in range(0, span.width, QUERY_BLOCK):
        queries = slice(begin, min(begin + QUERY_BLOCK, span.width))
        columns = slice(max(begin, missing), queries.stop + size - 1)
        positions = span.positions[:, queries]
        window = _hidden(positions, line[:, columns], size)
        blocks.append(Block(queries, columns, window, positions, latest + queries.stop))
    return blocks, False


def _hidden(positions, held, size):
    """bool [B T 1+L]: what queries at positions [B T] do not see of keys at positions held [B L], behind a zero key."""
    back = positions[..., None] - held[:, None]  # B T L
    hidden = (back < 0) | (back >= size) | (held < 0)[:, None]
    return torch.nn.functional.pad(hidden, (1, 0))
