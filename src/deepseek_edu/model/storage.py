"""How rows lie in a cache (plain, FP8, FP4), and stores of entries that grow, one beginning per sequence.

What is read back is what attention sees, so storing is where the rounding of a quantised cache happens. The released
widths cost 528 bytes for a window entry, 288 for a compressed entry and 68 for an index key (report, section 2.4.4).
While a model is trained nothing is stored: `LiveEntries` hand on the tensors of the call with their gradients.
"""

import torch

from deepseek_edu.model import quant

SCANNED = 1 << 19
"""Numbers that are read back together where all entries are read one after the other (measured on a CPU)."""


class PlainRows:
    """Rows kept as they are.

    Args:
        width: numbers in a row.
        dtype: type in which they are kept.
    """

    def __init__(self, width, dtype):
        self.width, self.dtype = width, dtype
        self.parts = ((width, dtype),)

    def encode(self, values):
        """Return the stored parts of values (…, width)."""
        return (values.to(self.dtype),)

    def decode(self, parts):
        """Return the values (…, width) of stored parts."""
        return parts[0]

    def read_back(self, values):
        """Return values as they would be read."""
        return values.to(self.dtype)


class _Rounded:
    def read_back(self, values):
        """Return values as they would be read; the gradient passes straight through."""
        return quant.straight_through(values, lambda x: self.decode(self.encode(x)))


class FP8Rows(_Rounded):
    """Window entries: E4M3 codes with one power-of-two scale byte for 32 values.

    Args:
        width: numbers in a row, a multiple of 32.
        dtype: type of what is read back.
    """

    def __init__(self, width, dtype):
        self.width, self.dtype, self.block = width, dtype, 32
        self.parts = ((width, torch.uint8), (width // self.block, torch.uint8))

    def encode(self, values):
        """Return (codes (…, width), scale bytes (…, width/32))."""
        return quant.quantize_fp8(values, self.block)

    def decode(self, parts):
        """Return the values (…, width) of stored parts."""
        return quant.read_back_fp8(*parts, self.block).to(self.dtype)


class FP4Rows(_Rounded):
    """Compressed entries (E4M3 scale for 16 values) or index keys (power-of-two scale for 32): two codes in a byte.

    Args:
        width: numbers in a row, a multiple of the block.
        scale_kind: "e4m3" or "e8m0".
        block: numbers that share a scale, even.
        dtype: type of what is read back.
    """

    def __init__(self, width, scale_kind, block, dtype):
        self.width, self.dtype, self.scale_kind, self.block = width, dtype, scale_kind, block
        self.parts = ((width // 2, torch.uint8), (width // block, torch.uint8))

    def encode(self, values):
        """Return (packed codes (…, width/2), scale bytes (…, width/block))."""
        return quant.quantize_fp4(values, self.block, self.scale_kind)

    def decode(self, parts):
        """Return the values (…, width) of stored parts."""
        return quant.dequantize_fp4(*parts, self.block, self.scale_kind).to(self.dtype)


def row_bytes(row_format):
    """Return the bytes of one stored row.

    >>> row_bytes(FP8Rows(512, torch.float32)), row_bytes(FP4Rows(512, "e4m3", 16, torch.float32))
    (528, 288)
    """
    return sum(width * dtype.itemsize for width, dtype in row_format.parts)


def room(row_format, batch, rows, device):
    """Return zeros for so many stored rows of each sequence: list of [B rows …], ordinary tensors in every mode.

    Args:
        rows: of each sequence.
    """
    with torch.inference_mode(False):
        return [torch.zeros(batch, rows, width, dtype=dtype, device=device) for width, dtype in row_format.parts]


def pick(rows, numbers):
    """Return the rows with these numbers: [B T K …] from rows [B N …] and int64 [B T K]."""
    if len(rows) > 1:
        numbers = numbers + torch.arange(len(rows), device=rows.device)[:, None, None] * rows.shape[1]
    return rows.flatten(0, 1).index_select(0, numbers.flatten()).view(*numbers.shape, *rows.shape[2:])


class Entries:
    """Entries of a batch in order of arrival. Room is doubled when it runs out.

    Attributes:
        counts: int64 [B] on the CPU, entries of each row.
    """

    def __init__(self, row_format, batch, device):
        self.row_format, self.batch, self.device = row_format, batch, device
        self.counts = torch.zeros(batch, dtype=torch.int64)
        self._parts = room(row_format, batch, 0, device)
        self._unpacked, self._ready = None, 0  # bfloat16 [B room D], and how many entries of each row are right in it

    @property
    def size(self):
        """Entries of the longest row."""
        return int(self.counts.max())

    @property
    def nbytes(self):
        """Bytes of the stored rows, room for later ones not counted."""
        return int(self.counts.sum()) * row_bytes(self.row_format)

    @property
    def unpacked_nbytes(self):
        """Bytes of the copy that `pieces` keeps, room for later entries not counted."""
        return 0 if self._unpacked is None else int(self.counts.sum()) * 2 * self.row_format.width

    def reserve(self, size):
        """Make room for `size` entries in each row."""
        present = self._parts[0].shape[1]
        if size > present:
            longer = room(self.row_format, self.batch, max(size, 2 * present, 16), self.device)
            for new, part in zip(longer, self._parts, strict=True):
                new[:, :present] = part
            self._parts = longer

    def write(self, values, first, counts):
        """Store new entries; those that a row has already are passed over.

        Args:
            values: [B N D].
            first: int64 [B] on the CPU, the number of each row's first new entry; at most what the row has.
            counts: int64 [B] on the CPU, how many of the N belong to the row.
        """
        ends = torch.maximum(first + counts, self.counts)
        self.reserve(int(ends.max()))
        numbers = first[:, None] + torch.arange(values.shape[1])  # B N
        rows, columns = ((numbers < (first + counts)[:, None]) & (numbers >= self.counts[:, None])).nonzero(
            as_tuple=True
        )
        places = numbers[rows, columns].to(self.device)
        rows, columns = rows.to(self.device), columns.to(self.device)
        for part, new in zip(self._parts, self.row_format.encode(values[rows, columns]), strict=True):
            part[rows, places] = new.detach()
        self._ready = min(self._ready, int(self.counts.min()))
        self.counts = ends

    def put(self, number, new):
        """Store entry `number`, [D], of a store with one row; it comes next.

        Args:
            number: how many there are.
        """
        self.reserve(number + 1)
        self._ready = min(self._ready, number)
        for stored, part in zip(self._parts, self.row_format.encode(new), strict=True):
            stored[0, number].copy_(part)
        self.counts = self.counts + 1

    def read(self):
        """Return all entries, [B size D]; behind a shorter row's own lies what its bytes happen to mean, finite."""
        return self.row_format.decode([part[:, : self.size] for part in self._parts])

    def pieces(self):
        """Yield all entries piece by piece, [B n D], each small enough for a CPU's caches; it holds until the next.

        To unpack four-bit codes takes longer than to compute with them, so a copy is kept from one call to the next:
        16 bits a number, which hold every product of a code and its scale exactly (`unpacked_nbytes`).
        """
        width, size = self.row_format.width, self.size
        rows = max(1, SCANNED // (self.batch * width))
        if isinstance(self.row_format, PlainRows):
            yield from self._parts[0][:, :size].split(rows, dim=1)
            return
        self._unpack(size)
        piece = self._unpacked.new_empty(self.batch, min(rows, size), width, dtype=self.row_format.dtype)
        for some in self._unpacked[:, :size].split(rows, dim=1):
            yield piece[:, : some.shape[1]].copy_(some)

    def _unpack(self, size):
        """Bring the copy up to date, for the first `size` entries."""
        present = self._parts[0].shape[1]
        if self._unpacked is None or self._unpacked.shape[1] < present:
            with torch.inference_mode(False):
                self._unpacked = torch.empty(
                    self.batch, present, self.row_format.width, dtype=torch.bfloat16, device=self.device
                )
            self._ready = 0
        if self._ready < size:
            new = slice(self._ready, size)
            self._unpacked[:, new] = self.row_format.decode([part[:, new] for part in self._parts])
            self._ready = size

    def gather(self, numbers):
        """Return the entries with these numbers: [B T K D] from int64 [B T K]."""
        return self.row_format.decode([pick(part, numbers) for part in self._parts])

    def truncate(self, counts):
        """Keep each row's first counts[b] entries, int64 [B] on the CPU."""
        self.counts = torch.minimum(self.counts, counts)

    def stored(self, row):
        """Return the stored parts of one row, as they lie in memory: list of [count …]."""
        return [part[row, : int(self.counts[row])] for part in self._parts]

    def restore(self, row, parts):
        """Replace one row by parts that `stored` returned."""
        self.reserve(len(parts[0]))
        self._ready = 0
        for mine, theirs in zip(self._parts, parts, strict=True):
            mine[row, : len(theirs)] = theirs
        self.counts = self.counts.clone()
        self.counts[row] = len(parts[0])


class LiveEntries:
    """Entries of one call from the beginning of all rows, with their gradients; nothing is kept afterwards."""

    def __init__(self, row_format, batch, device):
        self.row_format = row_format
        self.counts = torch.zeros(batch, dtype=torch.int64)
        self.values = torch.zeros(batch, 0, row_format.width, dtype=row_format.dtype, device=device)

    @property
    def size(self):
        """Entries of the longest row."""
        return self.values.shape[1]

    def write(self, values, first, counts):
        """Keep the entries of the call, [B N D]."""
        self.values, self.counts = self.row_format.read_back(values), first + counts

    def read(self):
        """Return all entries, [B N D]."""
        return self.values

    def pieces(self):
        """Yield all entries."""
        yield self.values

    def gather(self, numbers):
        """Return the entries with these numbers: [B T K D] from int64 [B T K]."""
        return self.values[torch.arange(len(numbers), device=numbers.device)[:, None, None], numbers]
