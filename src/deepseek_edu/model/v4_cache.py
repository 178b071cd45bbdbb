"""What a batch of V4 sequences remembers: windows, compressed entries, index keys and groups that are not whole yet.

    what                          of which layers   bytes of a row at the released widths
    window entry                  all               584 = 448 E4M3 + 64 bfloat16 + 7 scale bytes + 1 of padding
    compressed entry              CSA, HCA          584
    index key                     CSA               68 = 128 E2M1 + 4 scale bytes
    values and gates of a token   CSA, HCA          not quantised

Nothing is shared between layers, so a token costs 21 · (584 + 68)/4 + 20 · 584/128 = 3514.25 bytes that grow with the
sequence. CSA's groups overlap: an entry reads the four tokens before its own, so 2 · 4 − 1 tokens wait.

Source: V4 report, section 2; V4 reference `Attention` and `Compressor` buffers.
"""

import torch

from deepseek_edu.model import quant, storage, window
from deepseek_edu.model.cache import Cache

SCALED = 64
"""Values that share one scale byte."""


class V4Rows:
    """Entries of V4: E4M3 codes with a power-of-two scale for 64 values; the last channels, which turn, in bfloat16.

    Args:
        width: D.
        rope_width: channels that turn; D less these must be a multiple of 64.
        dtype: of what is read.

    Raises:
        ValueError: the width does not fit.
    """

    def __init__(self, width, rope_width, dtype):
        self.width, self.dtype, self.kept = width, dtype, width - rope_width
        if self.kept % SCALED:
            raise ValueError(
                f"head_dim − rope_head_dim must be a multiple of {SCALED} to be stored in FP8; got {width} − "
                f"{rope_width}; use quantized=False"
            )
        scales = -(-self.kept // SCALED // 8) * 8  # padded to 8 bytes
        self.parts = ((self.kept, torch.uint8), (rope_width, torch.bfloat16), (scales, torch.uint8))

    def encode(self, values):
        """Return (codes (…, D−R), turning channels (…, R), scale bytes (…, ⌈(D−R)/512⌉·8)) of values (…, D)."""
        codes, scales = quant.quantize_fp8(values[..., : self.kept], SCALED)
        scales = torch.nn.functional.pad(scales, (0, self.parts[2][0] - scales.shape[-1]))
        return codes, values[..., self.kept :].to(torch.bfloat16), scales

    def decode(self, parts):
        """Return the values (…, D) of stored parts."""
        codes, turning, scales = parts
        values = quant.read_back_fp8(codes, scales[..., : self.kept // SCALED], SCALED)
        return torch.cat([values.to(self.dtype), turning.to(self.dtype)], dim=-1)

    def read_back(self, values):
        """Return values as they would be read; the gradient passes straight through."""
        return quant.straight_through(values, lambda x: self.decode(self.encode(x)))


def waiting_tokens(ratio):
    """Return how many tokens before a new one its group may still need: ratio − 1, if groups overlap 2 · ratio − 1."""
    return 2 * ratio - 1 if ratio == 4 else ratio - 1


class V4Cache(Cache):
    """State of a batch; lengths and rollback are those of `cache.Cache`.

    Args:
        dtype, live: as for `cache.Cache`.

    Attributes:
        entries, index_keys: of every compressed layer; those of HCA layers have no index keys.
        open_groups, open_index_groups: values and gates of the last tokens, for the two compressors of a layer.
    """

    def _make_rings(self):
        c = self.config
        if self.quantized:
            self.window_format = self.entry_format = V4Rows(c.head_dim, c.rope_head_dim, self.dtype)
        entries = storage.LiveEntries if self.live else storage.Entries
        self.entries = {layer: entries(self.entry_format, self.batch, self.device) for layer in c.kv_source_layers}

        def ring(width, size, row_format=None):
            kind = window.LiveRing if self.live else window.Ring
            row_format = row_format or storage.PlainRows(width, self.dtype)
            return kind(row_format, self.batch, max(1, size), self.spare, self.device)

        self.windows = [ring(c.head_dim, c.window_size, self.window_format) for _ in range(c.n_layers)]
        self.draft_windows = [ring(c.head_dim, c.window_size, self.window_format) for _ in range(c.n_mtp_layers)]
        self.open_groups, self.open_index_groups = {}, {}
        for layer in c.kv_source_layers:
            ratio = c.compress_ratios[layer]
            series = 2 if ratio == 4 else 1
            self.open_groups[layer] = ring(2 * series * c.head_dim, waiting_tokens(ratio))
            if ratio == 4:
                self.open_index_groups[layer] = ring(2 * series * c.index_head_dim, waiting_tokens(ratio))

    @property
    def rings(self):
        """All rings, in a fixed order."""
        return (
            *self.windows,
            *self.draft_windows,
            *self.open_groups.values(),
            *self.open_index_groups.values(),
        )

    def prefix(self, lengths):
        """Raise ValueError for any lengths: the windows of a V4 prefix cannot be made from its entries."""
        raise ValueError("a V4 cache has no prefix without windows; copy the cache, or prefill the tokens again")

    @property
    def nbytes(self):
        """Bytes of all rows by part: persistent = entries + index keys; transient = all the others.

        Returns:
            dict with entries, index_keys, windows, draft_windows, open_groups, spare, unpacked, persistent, transient.
        """
        return self._by_part((*self.open_groups.values(), *self.open_index_groups.values()))
