"""Sliding window: a query reads the last W positions, its own included; and the ring that keeps them.

A ring with W slots holds position p in slot p mod W, so a new position overwrites the one that has just left the
window. Speculative decoding writes positions that may be rejected; with `spare` extra slots they overwrite only
positions that no query needs any more, and taking them back is a matter of counting.

`start` is the first position that exists for this ring: 0, or later after a bounded replay (replay.py).

Source: report, section 2.3; reference `get_window_topk_idxs` and `Attention.forward`.
"""

import numpy as np

from deepseek_edu.reference import storage


def window_positions(position, window, start=0):
    """Return the positions that the query at `position` reads, oldest first.

    >>> window_positions(5, 4).tolist(), window_positions(1, 4).tolist(), window_positions(5, 4, start=4).tolist()
    ([2, 3, 4, 5], [0, 1], [4, 5])
    """
    return np.arange(max(position - window + 1, start), position + 1)


def window_table(positions, window, start=0):
    """Return, for each query, the positions it reads, right-aligned: int64 [T window]; −1 where there is none.

    >>> window_table([0, 5], 4).tolist()
    [[-1, -1, -1, 0], [2, 3, 4, 5]]
    """
    table = np.asarray(positions)[:, None] + np.arange(1 - window, 1)  # T W
    return np.where(table >= start, table, -1)


def ring_slots(position, window):
    """Return the slots of a plain ring in the order of the positions they hold, oldest first; −1 for an empty slot.

    >>> ring_slots(5, 4).tolist(), ring_slots(1, 4).tolist()
    ([2, 3, 0, 1], [-1, -1, 0, 1])
    """
    table = window_table([position], window)[0]  # W
    return np.where(table >= 0, table % window, -1)


class Ring:
    """The last `window` rows of a growing sequence, by absolute position.

    Args:
        row_format: how rows are stored.
        window: rows that a query may read, its own included.
        spare: slots beyond it, so that as many rows can be taken back.
    """

    def __init__(self, row_format, window, spare=0):
        self.row_format, self.window, self.spare = row_format, window, spare
        self.slots = window + spare
        self.start = 0  # first position that exists
        self.end = 0  # one past the last position that counts
        self.highest = 0  # one past the last position ever written; above end after a rollback
        self._parts = [np.zeros((self.slots, width), dtype) for width, dtype in row_format.parts]

    @property
    def nbytes(self):
        """Bytes of the window's slots; the spare ones are `spare_nbytes`."""
        return self.window * storage.row_bytes(self.row_format)

    @property
    def spare_nbytes(self):
        """Bytes of the slots beyond the window."""
        return self.spare * storage.row_bytes(self.row_format)

    def restart(self, position):
        """Forget everything; the next row to come has this position."""
        self.start = self.end = self.highest = position

    def write(self, parts):
        """Store rows at the positions that follow `end`.

        Args:
            parts: what `row_format.encode` returned for them, arrays [n …].
        """
        count = len(parts[0])
        positions = np.arange(self.end, self.end + count)[-self.slots :]
        for stored, new in zip(self._parts, parts, strict=True):
            stored[positions % self.slots] = new[-self.slots :] if count else new
        self.end += count
        self.highest = max(self.highest, self.end)

    def read(self, first, last):
        """Return the values of positions first … last − 1, [n width].

        Raises:
            IndexError: one of them has been overwritten or was never written.
        """
        oldest = max(self.start, self.highest - self.slots)
        if first < last and not oldest <= first <= last <= self.end:
            raise IndexError(
                f"positions {first} … {last - 1} were asked for; the ring holds {oldest} … {self.end - 1}; "
                "restore an earlier cache"
            )
        slots = np.arange(first, last) % self.slots
        return self.row_format.decode([part[slots] for part in self._parts])

    def latest(self):
        """Return (first position, values) of what the next query still reads besides itself: up to window − 1 rows."""
        first = max(self.start, self.end - self.window + 1)
        return first, self.read(first, self.end)

    def stored(self):
        """Return copies of the stored parts of all slots, as they lie in memory: list of arrays [slots …]."""
        return [part.copy() for part in self._parts]

    def restore(self, parts, start, end, highest):
        """Replace the content by what another ring stored.

        Args:
            parts: its arrays [slots …].
            start, end, highest: its positions; see the attributes of the same names.

        Raises:
            ValueError: the other ring had another layout.
        """
        if [(p.shape, p.dtype) for p in parts] != [(p.shape, p.dtype) for p in self._parts]:
            raise ValueError("parts must have the layout of this ring; they belong to another configuration")
        self._parts = [np.array(part) for part in parts]
        self.start, self.end, self.highest = start, end, highest

    def rollback(self, end):
        """Take back the positions from `end` on. Raises ValueError for more than the spare slots allow."""
        least = max(self.start, self.highest - self.spare)
        if not least <= end <= self.end:
            raise ValueError(f"end must be {least} … {self.end}; got {end}; only {self.spare} rows can be taken back")
        self.end = end
