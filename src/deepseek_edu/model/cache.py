"""Everything a batch of sequences remembers between calls.

Persistent: compressed entries and index keys of the layers that own them. Transient: the windows of all layers, halves
of groups, the last ids for the n-gram memory, the windows of the draft stages. Rows may have different lengths. With
`quantized=True` the bytes are those of the released formats (storage.py), truly packed.
A decode of one token reads every index key, so it keeps a copy of the quantised ones that need not be unpacked again,
two bytes a number; `nbytes` counts it. It is made anew where it is missing, and no file holds it.

Source: report, section 3.2.1; reference `Attention` buffers; one sequence at a time in reference/cache.py.
"""

import torch

from deepseek_edu.model import storage, window
from deepseek_edu.model.span import Span
from deepseek_edu.model.tiles import numbers
from deepseek_edu.reference import checks
from deepseek_edu.reference.cache import require_storable


class Cache:
    """State of a batch.

    Args:
        config: ModelConfig (V4.1).
        batch: B.
        quantized: store in FP8 and FP4 as the released model does.
        dtype: of what is read.
        device: where the bytes lie.
        spare: positions that can be taken back after they were written; by default the draft length.
        live: keep nothing and pass gradients, for one call from the beginning (training).

    Raises:
        ValueError: a batch below 1, a negative spare, or widths that the released formats cannot store.

    Attributes:
        lengths: positions that have been processed, int64 [B] on the CPU, as are the others.
        stored: positions whose compressed entries exist; above lengths only while a prefix is replayed.
        highest: what the spare positions are counted from: positions ever processed, above lengths after a rollback; or
            `spare` more than what `settle` was told.
        decoded: positions up to which the decoder's windows reach; behind lengths only inside a skipping prefill.
        index_key_writes: for each row (owner, its first new entry) of the last calls that stored index keys, in order;
            as many as a rollback can reach, and one before.
    """

    def __init__(self, config, batch=1, quantized=True, dtype=torch.float32, device="cpu", spare=None, live=False):
        checks.count(batch, "batch", 1)
        self.config, self.batch, self.quantized, self.live = config, batch, quantized, live
        self.dtype, self.device = dtype, torch.device(device)
        self.spare = config.dspark_block_size if spare is None else checks.count(spare, "spare", 0)
        self.lengths, self.stored, self.highest, self.decoded = (torch.zeros(batch, dtype=torch.int64) for _ in "1234")
        self.index_key_writes = [[] for _ in range(batch)]
        if quantized:
            self.window_format = storage.FP8Rows(config.head_dim, dtype)
            self.entry_format = storage.FP4Rows(config.head_dim, "e4m3", 16, dtype)
            self.index_format = storage.FP4Rows(config.index_head_dim, "e8m0", 32, dtype)
        else:
            self.window_format = self.entry_format = storage.PlainRows(config.head_dim, dtype)
            self.index_format = storage.PlainRows(config.index_head_dim, dtype)
        entries = storage.LiveEntries if live else storage.Entries
        owners = config.kv_source_layers
        self.entries = {layer: entries(self.entry_format, batch, self.device) for layer in owners}
        self.index_keys = {layer: entries(self.index_format, batch, self.device) for layer in owners}
        self._make_rings()

    def _make_rings(self):
        c = self.config
        if self.quantized:
            require_storable(c)

        def ring(row_format, size):
            kind = window.LiveRing if self.live else window.Ring
            return kind(row_format, self.batch, size, self.spare, self.device)

        self.windows = [ring(self.window_format, c.window_size) for _ in range(c.n_layers)]
        self.draft_windows = [ring(self.window_format, c.window_size) for _ in range(c.n_mtp_layers)]
        halves = storage.PlainRows(2 * c.head_dim, self.dtype)
        ratios = {layer: c.compress_ratios[layer] for layer in c.kv_source_layers}
        self.open_groups = {layer: ring(halves, ratio - 1) for layer, ratio in ratios.items() if ratio > 1}
        self.history = ring(storage.PlainRows(1, torch.int64), c.engram_max_ngram_size - 1)

    @property
    def rings(self):
        """All rings, in a fixed order."""
        return (*self.windows, *self.draft_windows, *self.open_groups.values(), self.history)

    def span(self, counts, width):
        """Return the Span of new tokens: counts int64 [B] on the CPU, width T of their tile."""
        return Span(self.lengths.clone(), counts, width, self.config, self.device, self.dtype)

    def advance(self, counts):
        """Count processed positions, int64 [B] on the CPU."""
        self.lengths = self.lengths + counts
        self.highest = torch.maximum(self.highest, self.lengths)
        self.stored = torch.maximum(self.stored, self.lengths)

    @property
    def newest_index_keys(self):
        """The owner that stored index keys last in each row, −1 for none: int64 [B]; the stale-key variant reads it."""
        return torch.tensor([writes[-1][0] if writes else -1 for writes in self.index_key_writes])

    def note_index_keys(self, owner, row):
        """Remember that an owner is about to store index keys of a row, and forget what no rollback can reach.

        Args:
            owner: layer.
            row: number of the row.
        """
        writes, safe = self.index_key_writes[row], int(self.highest[row]) - self.spare
        writes.append((owner, int(self.index_keys[owner].counts[row])))
        while len(writes) > 1 and (writes[1][1] + 1) * self.config.compress_ratios[writes[1][0]] <= safe:
            del writes[0]

    def restart(self, ring, first):
        """Let a decoder's or draft stage's ring begin at `first` in rows whose last rows it has not seen."""
        ring.start = torch.where(self.decoded == first, ring.start, first)

    def _per_row(self, lengths):
        lengths = numbers(lengths, "lengths")
        if lengths.is_floating_point() or lengths.shape not in ((), (self.batch,)):
            raise ValueError(f"lengths must be one integer or {self.batch}, one for each row; got {lengths.tolist()}")
        return lengths.to(device="cpu", dtype=torch.int64).expand(self.batch)

    def _require_memory(self):
        if self.live:
            raise ValueError("a live cache keeps nothing to go back to; use model.new_cache(batch)")

    def settle(self, lengths):
        """Let the first lengths[b] positions never be taken back: their windows were made with something left out.

        Args:
            lengths: int64 [B] on the CPU; 0 changes nothing. Why: reference/cache.py.
        """
        self.highest = torch.where(lengths > 0, torch.maximum(self.highest, lengths + self.spare), self.highest)

    def rollback(self, lengths):
        """Forget the positions from lengths[b] on, as if they had never been processed.

        Args:
            lengths: int, or int64 [B]; at least the highest length so far − spare.

        Raises:
            ValueError: more is to be taken back than the spare slots allow, or positions of a prompt whose prefill left
                the decoder out, or of a replayed prefix; or the cache is live.
        """
        self._require_memory()
        lengths = self._per_row(lengths)
        least = torch.minimum((self.highest - self.spare).clamp_min(0), self.lengths)
        wrong = ((lengths < least) | (lengths > self.lengths)).nonzero()
        if len(wrong):
            row = int(wrong[0])
            raise ValueError(
                f"lengths[{row}] must be {least[row]} … {self.lengths[row]}; got {lengths[row]}; only {self.spare} "
                "positions can be taken back, none of a prompt whose decoder was skipped; make the cache with a larger "
                "spare"
            )
        shorter = lengths < self.lengths  # the others keep all, also the entries of a prefix that is being replayed
        for layer in self.entries:
            counts = torch.where(shorter, lengths // self.config.compress_ratios[layer], self.entries[layer].counts)
            self.entries[layer].truncate(counts)
            self.index_keys[layer].truncate(counts)
        for row, writes in enumerate(self.index_key_writes):
            while writes and writes[-1][1] >= int(self.index_keys[writes[-1][0]].counts[row]):
                del writes[-1]
        self.stored = torch.where(shorter, lengths, self.stored)
        self.lengths = lengths.clone()
        self.decoded = torch.minimum(self.decoded, lengths)

    def prefix(self, lengths):
        """Return a new cache that knows only the persistent part of the first positions of each row.

        Args:
            lengths: int, or int64 [B]; at most `stored`, multiples of every ratio, so that no group is half filled.

        Returns:
            Cache with empty windows; replay.py makes it usable.

        Raises:
            ValueError: lengths are no such numbers.
        """
        self._require_memory()
        lengths = self._per_row(lengths).clone()
        ratios = sorted({self.config.compress_ratios[layer] for layer in self.entries})
        if any((lengths % ratio).any() for ratio in ratios) or ((lengths < 0) | (lengths > self.stored)).any():
            raise ValueError(
                f"lengths must be 0 … {self.stored.tolist()} and multiples of {ratios}; got {lengths.tolist()}; "
                "shorten the prefix to whole groups"
            )
        other = Cache(self.config, self.batch, self.quantized, self.dtype, self.device, self.spare)
        for layer in self.entries:
            for mine, theirs in ((self.entries, other.entries), (self.index_keys, other.index_keys)):
                for row, length in enumerate(lengths.tolist()):
                    count = length // self.config.compress_ratios[layer]
                    theirs[layer].restore(row, [part[:count] for part in mine[layer].stored(row)])
        other.stored = lengths
        return other

    @property
    def nbytes(self):
        """Bytes of all rows by part: persistent = entries + index keys; transient = all the others.

        Returns:
            dict with entries, index_keys, windows, draft_windows, open_groups, history, spare, unpacked (the copy of
            packed index keys that a decode of one token keeps, storage.py), persistent, transient.
        """
        return self._by_part(self.open_groups.values(), history=self.history.nbytes)

    def _by_part(self, open_groups, **others):
        """Bytes by part; open_groups: rings that wait for whole groups; others: parts that not every cache has."""
        parts = {
            "entries": sum(entries.nbytes for entries in self.entries.values()),
            "index_keys": sum(keys.nbytes for keys in self.index_keys.values()),
            "windows": sum(ring.nbytes for ring in self.windows),
            "draft_windows": sum(ring.nbytes for ring in self.draft_windows),
            "open_groups": sum(ring.nbytes for ring in open_groups),
            **others,
            "spare": sum(ring.spare_nbytes for ring in self.rings),
            "unpacked": sum(keys.unpacked_nbytes for keys in self.index_keys.values()),
        }
        persistent = parts["entries"] + parts["index_keys"]
        return {**parts, "persistent": persistent, "transient": sum(parts.values()) - persistent}
