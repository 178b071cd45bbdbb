"""V4's attention layers: window only (SWA), chosen compressed entries (CSA), all compressed entries (HCA).

Every compressed layer makes its own entries. Reading all entries under a mask is one matrix product; gathering the
chosen ones moves less where there are many. csa2.gathering_pays says which is taken.

Source: V4 report, section 2; V4 reference `Attention` and `Indexer`; in words in reference/v4_attention.py.
"""

from functools import cached_property

import torch
from torch import nn

from deepseek_edu.model import indexer
from deepseek_edu.model.attention import Attention
from deepseek_edu.model.csa2 import gathering_pays
from deepseek_edu.model.linear import Matrix
from deepseek_edu.model.rope import Rotation, rotate_tail
from deepseek_edu.model.storage import pick
from deepseek_edu.model.v4_compressor import V4Compressor
from deepseek_edu.model.v4_reading import query_blocks, read
from deepseek_edu.reference.v4_attention import hadamard as numpy_hadamard


def hadamard_matrix(width, dtype, device):
    """Return the normalised Walsh–Hadamard matrix, [n n]; n is a power of two."""
    return torch.tensor(numpy_hadamard(torch.eye(width, dtype=torch.float64).numpy()), dtype=dtype, device=device)


def turn(x, rotation, inverse=False):
    """Turn the last channels of x [B T D] or [B T H D], in place where x may be written to, and return it.

    x must not be needed afterwards.
    """
    if x.dtype not in (torch.float32, torch.float64) or not x.is_contiguous() or x.shape[-1] % 2:
        return rotate_tail(x, rotation, inverse)
    turns = rotation.turns.conj() if inverse else rotation.turns  # B T F
    tail = x[..., x.shape[-1] - 2 * turns.shape[-1] :]
    pairs = torch.view_as_complex(tail.unflatten(-1, (-1, 2)))
    pairs.mul_(turns[:, :, None] if x.ndim == 4 else turns)
    return x


class Call:
    """What all layers share in one pass of a tile: positions, masks, rotations.

    Args:
        span: Span of the tile; cache: V4Cache.
    """

    def __init__(self, span, cache):
        self.span, self.cache = span, cache
        self._entry_rotations = {}
        self.choices = {}

    @cached_property
    def _cut(self):
        return query_blocks(self.span, self.cache)

    @property
    def blocks(self):
        """Blocks of queries (v4_reading.Block)."""
        return self._cut[0]

    @property
    def slots(self):
        """Whether the blocks read the slots of rings as they lie."""
        return self._cut[1]

    def entry_rotation(self, ratio, number):
        """Rotation of the first `number` entries that the tile completes, each at its group's first token.

        Args:
            ratio: tokens of a group.
        """
        if ratio not in self._entry_rotations:
            first, _ = self.span.groups(ratio)
            positions = (first[:, None] + torch.arange(number)) * ratio
            positions = positions.to(self.span.device)
            self._entry_rotations[ratio] = Rotation.at(positions, self.cache.config, ratio, self.cache.dtype)
        return self._entry_rotations[ratio]


class V4Indexer(nn.Module):
    """Index queries, their heads' weights, and keys by a compressor of its own."""

    def __init__(self, config, where):
        super().__init__()
        c = self.config = config
        self.wq_b = Matrix(c.index_n_heads * c.index_head_dim, c.q_lora_rank, where)
        self.weights_proj = Matrix(c.index_n_heads, c.dim, where)
        self.compressor = V4Compressor(c, 4, c.index_head_dim, where)

    def _spread(self, x, cache):
        """Turn vectors by the Hadamard matrix; without rounding it would change no product and is left out."""
        if not cache.quantized:
            return x
        return x @ hadamard_matrix(x.shape[-1], x.dtype, x.device)

    def queries(self, narrow, rotation, cache):
        """Return index queries [B T Hi Di] as they meet the keys."""
        return self.met(turn(self.wq_b(narrow).unflatten(-1, (self.config.index_n_heads, -1)), rotation), cache)

    def met(self, queries, cache):
        """Return turned index queries [… Hi Di] as they meet the keys: spread and rounded, if the cache's keys are."""
        return cache.index_format.read_back(self._spread(queries, cache))

    def weights(self, u):
        """Return the signed weights of the heads for inputs u [B T C]: [B T Hi]."""
        return self.weights_proj(u) * (self.config.index_head_dim**-0.5 * self.config.index_n_heads**-0.5)

    def store_keys(self, u, call, layer):
        """Make and store the index keys that a tile completes.

        Args:
            call: Call, what all layers share.
            layer: number of the layer.
        """
        cache = call.cache
        latents = self.compressor(u, call.span, cache.open_index_groups[layer])
        if latents is None:
            return
        keys = self._spread(turn(latents, call.entry_rotation(4, latents.shape[1])), cache)
        cache.index_keys[layer].write(keys, *call.span.groups(4))


class V4Attention(Attention):
    """Attention of one layer or draft stage.

    Args:
        config: ModelConfig.
        plan: LayerPlan with mode "window", "csa" or "hca".
        where: device and dtype of the parameters.
    """

    def __init__(self, config, plan, where):
        super().__init__(config, where)
        self.plan = plan
        self.compressor = V4Compressor(config, plan.ratio, config.head_dim, where) if plan.ratio else None
        self.indexer = V4Indexer(config, where) if plan.mode == "csa" else None

    def queries(self, u, rotation):
        """Return (narrow [B T R], queries [B T H D], each head divided by its root mean square and turned)."""
        narrow = self.q_norm(self.wq_a(u))
        queries = self.wq_b(narrow).unflatten(-1, (self.config.n_heads, -1))
        queries = nn.functional.rms_norm(queries, queries.shape[-1:], None, self.config.norm_eps)
        return narrow, turn(queries, rotation)

    def entry(self, u, rotation):
        """Return the vector that is key and value of all heads, turned: [B T D]."""
        return turn(self.kv_norm(self.wkv(u)), rotation)

    def store_global(self, u, call):
        """Make and store the compressed entries and index keys that a tile completes; call is the Call."""
        layer, ratio, cache = self.plan.index, self.plan.ratio, call.cache
        latents = self.compressor(u, call.span, cache.open_groups[layer])
        if latents is not None:
            entries = turn(latents, call.entry_rotation(ratio, latents.shape[1]))
            cache.entries[layer].write(entries, *call.span.groups(ratio))
        if self.indexer is not None:
            self.indexer.store_keys(u, call, layer)

    def forward(self, u, call, ring=None):
        """Run the attention of the layer.

        Args:
            u: [B T C], inputs.
            call: Call of this pass; its cache takes in the tile.
            ring: window of the layer; that of the plan's layer by default.

        Returns:
            [B T C].
        """
        span, plan, cache = call.span, self.plan, call.cache
        ring = cache.windows[plan.index] if ring is None else ring
        rotation = span.rotation(plan.ratio)
        entry = self.entry(u, rotation)  # B T D
        if call.slots:
            ring.write(span, entry)
            own = ring.read()  # B slots D
        else:
            own = ring.line(span, self.config.window_size - 1, entry)  # B W-1+T D
        narrow, queries = self.queries(u, rotation)  # B T R, B T H D
        entries = None
        if plan.ratio:
            self.store_global(u, call)
            if cache.entries[plan.index].size:
                entries = cache.entries[plan.index]
        choose = None
        if entries is not None and plan.mode == "csa" and entries.size > self.config.index_topk:
            choose = self._chooser(u, narrow, rotation, call)
        stored = [None]  # all entries, read back when the first block needs them
        heads = [self._read(queries, own, entries, choose, block, stored) for block in call.blocks]
        heads = torch.cat(heads, dim=1) if len(heads) > 1 else heads[0]
        return self.output(heads, rotation)

    def _read(self, queries, own, entries, choose, block, stored):
        """Heads of one block of queries: [B t H D]."""
        some = queries if block.line is None else queries[:, block.queries]
        line = own if block.line is None else own[:, block.line]
        zero, scale, ratio = line.new_zeros(len(line), 1, line.shape[-1]), self.config.head_dim**-0.5, self.plan.ratio
        count = 0 if entries is None else min(block.entries(ratio), entries.size)
        if not count:
            return read(some, torch.cat([zero, line], dim=1), block.window, self.attn_sink, scale)
        if choose is None or count <= self.config.index_topk:
            keys = torch.cat([zero, line, self._all(entries, stored)[:, :count]], dim=1)
            return read(some, keys, block.hidden(ratio, count), self.attn_sink, scale)
        choice = choose(block, count)  # B t K, −1 for none
        tokens, most = choice.shape[1:]
        none = choice < 0
        if tokens * most < count:  # few queries: the chosen entries of all of them are keys for all of them
            keys = torch.cat([zero, line, entries.gather(choice.clamp_min(0)).flatten(1, 2)], dim=1)
            own_only = torch.eye(tokens, dtype=torch.bool, device=none.device)[..., None]
            others = (none[:, None] | ~own_only).flatten(2) if tokens > 1 else none
            return read(some, keys, torch.cat([block.window, others], dim=-1), self.attn_sink, scale)
        if gathering_pays(tokens, count, most, self.config.n_heads):
            chosen = pick(self._all(entries, stored), choice.clamp_min(0))  # B t K D
            parts = [(line, ~block.window[..., 1:]), (chosen, ~none)]
            return self.attend(some, parts)
        hidden = torch.ones(*choice.shape[:2], count + 1, dtype=torch.bool, device=none.device)
        hidden = hidden.scatter_(-1, choice.masked_fill(none, count), False)[..., :count]
        keys = torch.cat([zero, line, self._all(entries, stored)[:, :count]], dim=1)
        return read(some, keys, torch.cat([block.window, hidden], dim=-1), self.attn_sink, scale)

    def _all(self, entries, stored):
        if stored[0] is None:
            stored[0] = entries.read()  # B N D
        return stored[0]

    def _chooser(self, u, narrow, rotation, call):
        """A function (block, entries in reach) -> entries that each query reads, int64 [B t K]."""
        layer, ratio, cache = self.plan.index, self.plan.ratio, call.cache
        with torch.no_grad():
            queries, weights = self.indexer.queries(narrow, rotation, cache), self.indexer.weights(u)
            keys = cache.index_keys[layer].read()  # B N Di

        @torch.no_grad()
        def choose(block, count):
            scores = indexer.index_scores(
                queries[:, block.queries], weights[:, block.queries], keys[:, :count]
            )  # B t count
            readable = torch.arange(count, device=u.device) < block.visible(ratio)[..., None]
            return indexer.top_k(scores, readable, self.config.index_topk)

        return choose
