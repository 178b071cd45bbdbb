"""How rows of numbers lie in a cache: plain, as FP8, or as FP4; and a store that grows.

A format turns rows of numbers into bytes and back. What is read back is what attention sees, so storing is where the
rounding of a quantised cache happens. The released widths cost 528 bytes for a window entry, 288 for a compressed
entry and 68 for an index key (report, section 2.4.4; the formats are in quant.py).
"""

import numpy as np

from deepseek_edu.reference import quant


class PlainRows:
    """Rows kept as they are.

    Args:
        width: numbers in a row.
        dtype: NumPy type in which they are kept.
    """

    def __init__(self, width, dtype=np.float64):
        self.width, self.dtype = width, np.dtype(dtype)
        self.parts = ((width, self.dtype),)

    def encode(self, values):
        """Return the stored parts of values [n width]."""
        return (np.asarray(values, self.dtype).reshape(-1, self.width),)

    def decode(self, parts):
        """Return the values [n width] of stored parts."""
        return parts[0]


class FP8Rows:
    """Window entries: E4M3 codes with one power-of-two scale byte for 32 values.

    Args:
        width: numbers in a row, a multiple of 32.
        dtype: NumPy type of what is read back.
    """

    def __init__(self, width, dtype=np.float64):
        self.width, self.dtype, self.block = width, np.dtype(dtype), 32
        self.parts = ((width, np.dtype(np.uint8)), (width // self.block, np.dtype(np.uint8)))

    def encode(self, values):
        """Return (codes [n width], scale bytes [n width/32])."""
        stored = quant.quantize_fp8(np.asarray(values).reshape(-1, self.width), self.block)
        return stored.packed, stored.scale_bytes

    def decode(self, parts):
        """Return the values [n width] of stored parts."""
        return quant.dequantize_fp8(*parts, self.block).astype(self.dtype)


class FP4Rows:
    """Compressed entries (E4M3 scale for 16 values) or index keys (power-of-two scale for 32): two codes in a byte.

    Args:
        width: numbers in a row, a multiple of the block.
        scale_kind: "e4m3" or "e8m0".
        block: numbers that share a scale, even.
        dtype: NumPy type of what is read back.
    """

    def __init__(self, width, scale_kind, block, dtype=np.float64):
        self.width, self.dtype, self.scale_kind, self.block = width, np.dtype(dtype), scale_kind, block
        self.parts = ((width // 2, np.dtype(np.uint8)), (width // block, np.dtype(np.uint8)))

    def encode(self, values):
        """Return (packed codes [n width/2], scale bytes [n width/block])."""
        rows = np.asarray(values).reshape(-1, self.width)
        stored = quant.quantize_fp4(rows, self.block, self.scale_kind)
        return stored.packed, stored.scale_bytes

    def decode(self, parts):
        """Return the values [n width] of stored parts."""
        return quant.dequantize_fp4(*parts, self.block, self.scale_kind).astype(self.dtype)


def read_back(row_format, values):
    """Return values (…, width) as the format would give them back."""
    values = np.asarray(values)
    return row_format.decode(row_format.encode(values)).reshape(values.shape)


def row_bytes(row_format):
    """Return the bytes of one stored row.

    >>> row_bytes(FP8Rows(512)), row_bytes(FP4Rows(512, "e4m3", 16)), row_bytes(FP4Rows(128, "e8m0", 32))
    (528, 288, 68)
    """
    return sum(width * dtype.itemsize for width, dtype in row_format.parts)


class Entries:
    """Rows in order of arrival: appended, read by number, cut off at the end. Room is doubled when it runs out."""

    def __init__(self, row_format):
        self.row_format = row_format
        self.count = 0
        self._parts = [np.empty((0, width), dtype) for width, dtype in row_format.parts]

    def __len__(self):
        return self.count

    @property
    def nbytes(self):
        """Bytes of the stored rows, room for later ones not counted."""
        return self.count * row_bytes(self.row_format)

    def append(self, values):
        """Add rows [n width] at the end."""
        if not len(values):
            return
        parts = self.row_format.encode(values)
        needed = self.count + len(parts[0])
        if needed > len(self._parts[0]):
            room = max(needed, 2 * len(self._parts[0]), 16)
            self._parts = [np.concatenate([p, np.empty((room - len(p), p.shape[1]), p.dtype)]) for p in self._parts]
        for part, new in zip(self._parts, parts, strict=True):
            part[self.count : needed] = new
        self.count = needed

    def truncate(self, count):
        """Keep the first `count` rows.

        Raises:
            ValueError: there are fewer.
        """
        if not 0 <= count <= self.count:
            raise ValueError(f"count must be 0 … {self.count}; got {count}; rows that were never stored cannot be kept")
        self.count = count

    def read(self, rows=None):
        """Return all rows [n width], or those with the given numbers (any shape, then width).

        Raises:
            IndexError: a number of a row that is not stored.
        """
        if rows is None:
            return self.row_format.decode([part[: self.count] for part in self._parts])
        rows = np.asarray(rows)
        if rows.size and (rows.min() < 0 or rows.max() >= self.count):
            raise IndexError(f"rows must be 0 … {self.count - 1}; got {rows.min()} … {rows.max()}")
        flat = self.row_format.decode([part[rows.ravel()] for part in self._parts])
        return flat.reshape(*rows.shape, self.row_format.width)

    def stored(self):
        """Return copies of the stored parts, as they lie in memory: list of arrays [count …]."""
        return [part[: self.count].copy() for part in self._parts]

    def restore(self, parts):
        """Replace the content by parts that `stored` returned. Raises ValueError if they have another layout."""
        expected = [(len(parts[0]), width, dtype) for width, dtype in self.row_format.parts] if parts else []
        got = [(*part.shape, part.dtype) for part in parts]
        if got != expected or not parts:
            raise ValueError(f"parts must have the layout {expected}; got {got}; they belong to another configuration")
        self._parts = [np.array(part) for part in parts]
        self.count = len(parts[0])
