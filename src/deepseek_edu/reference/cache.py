"""Everything one sequence remembers between calls.

Persistent: compressed entries and index keys of the layers that own them; they can be stored and shared between
requests, and the rest can be made again from them (replay.py). Transient: the windows of all layers, projections of
half-filled groups, the last ids for the n-gram memory, the windows of the draft stages.

A cache belongs to one sequence; a batch is a list of caches, each as long as it likes. With `quantized=True` rows lie
in the released formats (storage.py) and attention sees what they read back; otherwise they are kept as they are.

Source: report, section 3.2.1; reference `Attention` buffers.
"""

import numpy as np

from deepseek_edu.reference import checks, engram, storage, window


def require_storable(config):
    """Raise ValueError unless rows of a model's entries and index keys consist of whole blocks of 32 numbers."""
    for name in ("head_dim", "index_head_dim"):
        width = getattr(config, name)
        if width % 32:
            raise ValueError(
                f"{name} must be a multiple of 32 in a quantised cache, a scale serves 32 numbers; got {width}; "
                "make the cache with quantized=False"
            )


class Cache:
    """State of one sequence.

    Args:
        config: ModelConfig (V4.1).
        quantized: store in FP8 and FP4 as the released model does.
        dtype: NumPy type of what is read.
        spare: positions that can be taken back after they were written; by default the draft length.

    Raises:
        ValueError: a negative spare, or widths that the released formats cannot store.

    Attributes:
        length: positions that have been processed.
        stored: positions whose compressed entries exist; above length only while a prefix is replayed.
        highest: what the spare positions are counted from: positions ever processed, above length after a rollback; or
            `spare` more than what `settle` was told.
        index_key_writes: (owner, its first new entry) of the last calls that stored index keys, in order; as many as a
            rollback can reach, and one before.
    """

    def __init__(self, config, quantized=True, dtype=np.float64, spare=None):
        self.config, self.quantized, self.dtype = config, quantized, np.dtype(dtype)
        self.spare = config.dspark_block_size if spare is None else checks.count(spare, "spare", 0)
        self.length = self.stored = self.highest = 0
        if quantized:
            require_storable(config)
            self.window_format = storage.FP8Rows(config.head_dim, dtype)
            self.entry_format = storage.FP4Rows(config.head_dim, "e4m3", 16, dtype)
            self.index_format = storage.FP4Rows(config.index_head_dim, "e8m0", 32, dtype)
        else:
            self.window_format = self.entry_format = storage.PlainRows(config.head_dim, dtype)
            self.index_format = storage.PlainRows(config.index_head_dim, dtype)
        self.entries = {layer: storage.Entries(self.entry_format) for layer in config.kv_source_layers}
        self.index_keys = {layer: storage.Entries(self.index_format) for layer in config.kv_source_layers}
        self.index_key_writes = []
        self._clear_transient()

    def _clear_transient(self):
        c = self.config
        self.windows = [window.Ring(self.window_format, c.window_size, self.spare) for _ in range(c.n_layers)]
        self.draft_windows = [window.Ring(self.window_format, c.window_size, self.spare) for _ in range(c.n_mtp_layers)]
        halves = storage.PlainRows(2 * c.head_dim, self.dtype)
        self.open_groups = {
            layer: window.Ring(halves, c.compress_ratios[layer] - 1, self.spare)
            for layer in c.kv_source_layers
            if c.compress_ratios[layer] > 1
        }
        ids = storage.PlainRows(1, np.int64)
        self.history = window.Ring(ids, c.engram_max_ngram_size - 1, self.spare)

    @property
    def newest_index_keys(self):
        """The owner that stored index keys last, None for none; only the stale-key variant reads it."""
        return self.index_key_writes[-1][0] if self.index_key_writes else None

    def note_index_keys(self, owner):
        """Remember that an owner is about to store index keys, and forget what no rollback can reach.

        Args:
            owner: layer.
        """
        writes, safe = self.index_key_writes, self.highest - self.spare
        writes.append((owner, len(self.index_keys[owner])))
        while len(writes) > 1 and (writes[1][1] + 1) * self.config.compress_ratios[writes[1][0]] <= safe:
            del writes[0]

    def previous_ids(self):
        """Return the compressed ids before the next position, as `engram.ngram_history` wants them: int64 [G − 1]."""
        count = self.config.engram_max_ngram_size - 1
        if not self.config.engram_layer_ids:
            return np.full(count, engram.NO_TOKEN)
        first = max(self.history.start, self.length - count)
        known = self.history.read(first, self.length)[:, 0]
        return np.concatenate([np.full(count - len(known), engram.NO_TOKEN), known]).astype(np.int64)

    def settle(self, length):
        """Let the first `length` positions never be taken back: their windows were made with something left out.

        A prefill that skips the decoder makes only the last rows of its windows, a replay only those of its tokens. To
        forget some of these would leave other windows than if they had never been processed.
        """
        self.highest = max(self.highest, length + self.spare)

    def rollback(self, length):
        """Forget the positions from `length` on, as if they had never been processed.

        Args:
            length: at least the present length − spare.

        Raises:
            ValueError: more is to be taken back than the spare slots allow, or positions of a prompt whose prefill left
                the decoder out, or of a replayed prefix.
        """
        least = min(max(0, self.highest - self.spare), self.length)
        if not isinstance(length, (int, np.integer)) or not least <= length <= self.length:
            raise ValueError(
                f"length must be {least} … {self.length}; got {length}; only {self.spare} positions can be taken back, "
                "none of a prompt whose decoder was skipped; make the cache with a larger spare"
            )
        if length == self.length:
            return  # also while a prefix is replayed, whose entries lie ahead
        for ring in (*self.windows, *self.draft_windows, *self.open_groups.values(), self.history):
            if ring.end > length:
                ring.rollback(length)
        for layer, entries in self.entries.items():
            count = length // self.config.compress_ratios[layer]
            entries.truncate(count)
            self.index_keys[layer].truncate(count)
        writes = self.index_key_writes
        while writes and writes[-1][1] >= len(self.index_keys[writes[-1][0]]):
            del writes[-1]
        self.length = self.stored = length

    def prefix(self, length):
        """Return a new cache that knows only the persistent part of the first `length` positions.

        Args:
            length: at most `stored`, and a multiple of every ratio, so that no group is half filled.

        Returns:
            Cache with empty windows; replay.py makes it usable.

        Raises:
            ValueError: the length is no such number.
        """
        ratios = [self.config.compress_ratios[layer] for layer in self.entries]
        whole = isinstance(length, (int, np.integer))
        if not whole or not 0 <= length <= self.stored or any(length % ratio for ratio in ratios):
            raise ValueError(
                f"length must be 0 … {self.stored} and a multiple of {sorted(set(ratios))}; got {length}; "
                "shorten the prefix to whole groups"
            )
        other = Cache(self.config, self.quantized, self.dtype, self.spare)
        for layer in self.entries:
            for mine, theirs in ((self.entries, other.entries), (self.index_keys, other.index_keys)):
                count = length // self.config.compress_ratios[layer]
                theirs[layer].restore([part[:count] for part in mine[layer].stored()])
        other.stored = length
        return other

    @property
    def nbytes(self):
        """Bytes by part: persistent = entries + index keys; transient = all the others.

        Returns:
            dict with entries, index_keys, windows, draft_windows, open_groups, history, spare, persistent, transient.
        """
        rings = (*self.windows, *self.draft_windows, *self.open_groups.values(), self.history)
        parts = {
            "entries": sum(entries.nbytes for entries in self.entries.values()),
            "index_keys": sum(keys.nbytes for keys in self.index_keys.values()),
            "windows": sum(ring.nbytes for ring in self.windows),
            "draft_windows": sum(ring.nbytes for ring in self.draft_windows),
            "open_groups": sum(ring.nbytes for ring in self.open_groups.values()),
            "history": self.history.nbytes,
            "spare": sum(ring.spare_nbytes for ring in rings),
        }
        persistent = parts["entries"] + parts["index_keys"]
        return {**parts, "persistent": persistent, "transient": sum(parts.values()) - persistent}
