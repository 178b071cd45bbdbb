"""CSA2: attention over the window and over compressed entries that layers share, in three modes.

    mode      makes entries and index keys   chooses entries   reads
    full      yes                            yes               its own
    reindex   no                             yes               entries of the owner below, chosen anew
    reuse     no                             no                entries of the owner, choice of the layer that chose last
    window    no                             no                its window only

How entries are read is a matter of cost only. Gathering K rows for every query moves K·D numbers; reading all N under a
mask is one matrix product. The cheaper is taken: decoding gathers, so that a token costs the same at any length;
prefilling a short context does not.

Source: report, sections 2.3 and 4.2.1; reference `Attention`, `SharedAttentionRuntime`.
"""

from dataclasses import dataclass, field

import torch

from deepseek_edu.model import indexer
from deepseek_edu.model.attention import Attention
from deepseek_edu.model.compressor import Compressor, visible_entries
from deepseek_edu.model.indexer import Indexer
from deepseek_edu.model.rope import Rotation, rotate_tail
from deepseek_edu.model.storage import pick
from deepseek_edu.model.window import QUERY_BLOCK, query_blocks, slot_block

GATHER_COST = 24
"""Moving one entry costs about as much as this many heads reading it (measured on a CPU)."""


def gathering_pays(tokens, entries, chosen, heads):
    """Whether gathering `chosen` entries for each query is cheaper than reading all entries under a mask.

    Args:
        tokens, heads: T and H, of the queries.
        entries: N, of which each query reads some.
        chosen: how many it reads.

    >>> gathering_pays(1, 65536, 512, 8), gathering_pays(2048, 1024, 512, 8)
    (True, False)
    """
    return chosen < entries and (tokens == 1 or entries * heads > chosen * (heads + GATHER_COST))


@dataclass
class Published:
    """What layers leave for those above, for the tokens of one call."""

    stale_index_keys: bool = False  # read the index keys stored last, as the released decode does
    choices: dict = field(default_factory=dict)  # layer that chose -> (int64 [B T K], Span)
    pool: tuple | None = None  # (candidate blocks bool [B T blocks], Span)
    read: dict = field(default_factory=dict)  # entries and index keys, read back once for all layers

    def once(self, key, read):
        """Return read(), the first time under this key; then the same again."""
        if key not in self.read:
            self.read[key] = read()
        return self.read[key]

    def for_rows(self, value, asked):
        """Return a published value, (tile, Span), for the last tokens of each row that `asked` spans."""
        tile, span = value
        return span.take_last(tile, asked.width)


class CSA2(Attention):
    """Attention of one backbone layer.

    Args:
        config: ModelConfig.
        plan: LayerPlan of the layer.
        where: device and dtype of the parameters.
    """

    def __init__(self, config, plan, where):
        super().__init__(config, where)
        self.plan = plan
        self.compressor = Compressor(config, plan.ratio, where) if plan.mode == "full" else None
        chooses = plan.mode in ("full", "reindex")
        self.indexer = Indexer(config, plan.mode == "full", where) if chooses else None

    def store_global(self, u, span, cache):
        """Make and store the compressed entries and index keys that a tile completes (full mode only).

        Args:
            u: [B T C], inputs of the layer's attention.
            span: Span of the tile. Entries that a row has already (a replayed prefix) are not made anew.
            cache: Cache.
        """
        layer, ratio = self.plan.index, self.plan.ratio
        latents = self.compressor(u, span, cache.open_groups.get(layer))  # B N D
        first, counts = span.groups(ratio)
        for row in (first + counts > cache.entries[layer].counts).nonzero()[:, 0].tolist():
            cache.note_index_keys(layer, row)
        if not latents.shape[1]:
            return
        if ratio == 1:
            rotation = span.rotation(ratio)
        else:
            positions = (first[:, None] + torch.arange(latents.shape[1])) * ratio  # of the groups' first tokens
            rotation = Rotation.at(positions.to(u.device), self.config, ratio, cache.dtype)
        cache.index_keys[layer].write(self.indexer.keys(latents, rotation), first, counts)
        cache.entries[layer].write(rotate_tail(latents, rotation), first, counts)

    @torch.no_grad()
    def choose(self, u, narrow, asked, cache, published):
        """Choose the entries of each token (full and reindex mode) and publish them: int64 [B T K].

        Args:
            u: [B T C]; narrow: [B T R]; asked: their Span.
            published: Published; the choice is added to it.
        """
        c, plan = self.config, self.plan
        queries = cache.index_format.read_back(self.indexer.queries(narrow, asked.rotation(plan.ratio)))  # B T Hi Di
        weights = self.indexer.weights(u)  # B T Hi
        visible = visible_entries(asked.positions, plan.ratio)  # B T
        count = cache.entries[plan.owner].size
        if plan.pool == "restricted":
            blocks = published.for_rows(published.pool, asked)
            size = c.candidate_topk_blocks * c.candidate_block_size
            own = not published.stale_index_keys
            if own and gathering_pays(asked.width, count, size, c.index_n_heads):
                choice = self._choose_in_pool(queries, weights, visible, blocks, cache)
                published.choices[plan.index] = choice, asked
                return choice
        scores, visible = self._scores(queries, weights, visible, asked, cache, published)  # B T N
        readable = torch.arange(scores.shape[-1], device=u.device) < visible[..., None]  # B T N
        if plan.pool == "source":
            few = c.candidate_topk_blocks, c.candidate_block_size
            published.pool = indexer.candidate_blocks(scores, visible, *few), asked
        elif plan.pool == "restricted":
            readable &= blocks.repeat_interleave(c.candidate_block_size, dim=-1)[..., : readable.shape[-1]]
        choice = indexer.top_k(scores, readable, c.index_topk)  # B T K
        published.choices[plan.index] = choice, asked
        return choice

    def _scores(self, queries, weights, visible, asked, cache, published):
        """Scores of all entries, [B T N], and how many of them each query may read."""
        own, count = cache.index_keys[self.plan.owner], cache.entries[self.plan.owner].size
        if published.stale_index_keys:
            keys, visible = self._stale_keys(visible, count, cache)
            return indexer.index_scores(queries, weights, keys), visible
        if asked.width == 1 and count:
            scores = [indexer.index_scores(queries, weights, keys) for keys in own.pieces()]
            return torch.cat(scores, dim=-1), visible
        keys = published.once(("keys", self.plan.owner), own.read)  # B N Di
        last = int(asked.first.max())

        def most(some):  # visible to the last of these queries
            return (last + some.stop) // self.plan.ratio

        return indexer.index_scores(queries, weights, keys, most), visible

    def _stale_keys(self, visible, count, cache):
        """The keys stored last in each row, [B N Di], and how many of them each query may read."""
        keys = torch.zeros_like(cache.index_keys[self.plan.owner].read())  # B N Di
        counts = torch.zeros_like(cache.lengths)
        for owner, store in cache.index_keys.items():
            rows = cache.newest_index_keys == owner
            stale = store.read()[:, :count]
            keys[rows, : stale.shape[1]] = stale[rows]
            counts[rows] = store.counts[rows].clamp_max(count)
        return keys, torch.minimum(visible, counts.to(visible.device)[:, None])

    def _choose_in_pool(self, queries, weights, visible, blocks, cache):
        """The same choice, with the keys of the pool's entries only: work does not grow with the context."""
        c = self.config
        numbers = indexer.top_k(blocks.float(), blocks, c.candidate_topk_blocks)  # B T blocks, −1 behind
        within = torch.arange(c.candidate_block_size, device=blocks.device)
        members = (numbers[..., None] * c.candidate_block_size + within).flatten(-2)  # B T P, rising
        readable = (members >= 0) & (members < visible[..., None])
        keys = cache.index_keys[self.plan.owner].gather(torch.where(readable, members, 0))  # B T P Di
        places = indexer.top_k(indexer.index_scores(queries, weights, keys), readable, c.index_topk)
        return torch.where(places < 0, -1, members.gather(-1, places.clamp_min(0)))

    def forward(self, u, span, cache, published, asked=None):
        """Run the attention of the layer.

        Args:
            u: [B T C], inputs.
            span: Span of the tile.
            cache: Cache; the layer's window takes in the tile.
            published: Published of this call.
            asked: Span of the last tokens of each row whose outputs are needed; all by default. The others only enter
                the window.

        Returns:
            [B T' C], for the tokens of asked.
        """
        plan, ring = self.plan, cache.windows[self.plan.index]
        asked = asked or span
        line, blocks = self._window(self.entry(u, span.rotation(plan.ratio)), span, asked, ring, published)
        u = span.take_last(u, asked.width)
        rotation = asked.rotation(plan.ratio)
        narrow, queries = self.queries(u, rotation)  # B T' R, B T' H D
        chosen = self._chosen(u, narrow, asked, cache, published) if plan.ratio else None
        heads = []
        for block in blocks:
            parts = [(line[:, block.line], block.visible)]
            if chosen is not None:
                parts.append(chosen(block.queries))
            heads.append(self.attend(queries[:, block.queries], parts))
        heads = torch.cat(heads, dim=1) if len(heads) > 1 else heads[0]
        return self.output(heads, rotation)

    def _window(self, entry, span, asked, ring, published):
        """Store the tile [B T D] in the window; what holds all that is seen, [B N D], and who sees it: QueryBlocks."""
        size, key = self.config.window_size, (span.width, asked.width, tuple(ring.start.tolist()))
        if ring.holds(span.width):
            ring.write(span, entry)
            block = published.once(("slots", *key), lambda: slot_block(span, asked, ring.start, size, ring.slots))
            return ring.read(), [block]
        line = ring.line(span, size - 1, entry)  # B W-1+T D
        return line, published.once(("blocks", *key), lambda: query_blocks(span, asked, ring.start, size))

    def _chosen(self, u, narrow, asked, cache, published):
        """A function from a slice of queries to (entries, visible) as `sink_attention` takes them; None without any."""
        plan, entries = self.plan, cache.entries[self.plan.owner]
        if plan.mode in ("full", "reindex"):
            choice = self.choose(u, narrow, asked, cache, published)
        else:
            choice = published.for_rows(published.choices[plan.chooser], asked)  # B T K
        count = entries.size
        if not choice.shape[-1]:
            return None
        if gathering_pays(asked.width, count, choice.shape[-1], self.config.n_heads):
            if asked.width == 1:  # one gather serves all layers that reuse the choice
                rows = published.once(
                    ("gathered", plan.chooser, plan.owner), lambda: entries.gather(choice.clamp_min(0))
                )
                return lambda _: (rows, choice >= 0)
            if count > min(asked.width, QUERY_BLOCK) * choice.shape[-1]:
                return lambda some: (entries.gather(choice[:, some].clamp_min(0)), choice[:, some] >= 0)
            # all entries are no more than one block of queries chooses: they are read back once for all of them
            whole = published.once(("entries", plan.owner), entries.read)  # B N D
            return lambda some: (pick(whole, choice[:, some].clamp_min(0)), choice[:, some] >= 0)
        shared = published.once(("entries", plan.owner), entries.read)  # B N D

        def under_mask(some):
            places = torch.where(choice[:, some] < 0, count, choice[:, some])
            marks = torch.zeros(*places.shape[:2], count + 1, dtype=torch.bool, device=u.device)
            return shared, marks.scatter_(-1, places, True)[..., :count]

        return under_mask
