"""One token of one sequence through the layers on a CPU, as decoding needs it: csa2.py and moe.py by the means of
one_token.py.

The work that grows with the context is done here too: every index key is read once, some thousand at a time, so that
what is made of them stays in the core's cache.

Source: report, section 2; reference `Block`; in words in reference/model.py and reference/csa2.py.
"""

import numpy as np
import torch
from torch import nn

from deepseek_edu.model import one_token, selection
from deepseek_edu.model.linear import times
from deepseek_edu.model.one_token import array, normed, turn
from deepseek_edu.model.rope import Rotation


def fits(run):
    """Whether `run`, a run.Run, is for this file: one token of text, and nothing of it wanted that is not made here."""
    return (
        one_token.fits(run.span, run.cache)
        and run.mask is None
        and run.routing is None
        and not run.published.stale_index_keys
        and not run.model.rounds_inputs
    )


def candidates(scores, n_blocks, block_size):
    """Return the entries of the best blocks, the newest block among them: int64 [P], rising; some may not be there yet.

    Args:
        scores: [N], of the entries that the token may read.
        n_blocks: blocks to keep.
        block_size: entries in a block.
    """
    if not len(scores):
        return torch.arange(0)
    best = nn.functional.max_pool1d(scores[None, None], block_size, ceil_mode=True)[0, 0]  # blocks
    best[-1] = torch.inf
    blocks = selection.top_k(best, min(n_blocks, len(best)))
    return (blocks[:, None] * block_size + torch.arange(block_size)).flatten()


class Step:
    """What all layers share: the position, its turns, what has been chosen and gathered.

    Args:
        run: run.Run whose token it is; its cache takes in the token.
    """

    def __init__(self, run):
        self.run, self.cache, self.config = run, run.cache, run.cache.config
        self.position = int(run.span.first[0])
        self.choices = {}  # layer that chose -> int64 [K], entries in rising order
        self.pool = None  # int64 [P], entries that later layers may choose from
        self.turns = one_token.Turns(run.span)
        self._hidden, self._gathered = {}, {}

    def hidden(self, ring):
        """Slots of a window that the token does not see: int [n]."""
        start = int(ring.start[0])
        if start not in self._hidden:
            back = (self.position - np.arange(ring.slots)) % ring.slots
            unseen = (back > self.position - start) | (back >= self.config.window_size)
            self._hidden[start] = np.flatnonzero(unseen)
        return self._hidden[start]

    def layer(self, layer, streams, pre):
        """Run a model.Layer: (X' [4 C], A [4] for the next one) from X [4 C] and A [4]."""
        attention, experts = (
            [getattr(layer, f"hc_{part}_{name}") for name in ("fn", "base", "scale")] for part in ("attn", "ffn")
        )
        following, post, mix = one_token.coefficients(streams, *attention, self.config)
        y = self.attention(layer.attn, normed(pre @ streams, layer.attn_norm))
        streams = one_token.expand(streams, y, post, mix)
        pre, post, mix = one_token.coefficients(streams, *experts, self.config)
        y = self.feed(layer.ffn, normed(following @ streams, layer.ffn_norm))
        return one_token.expand(streams, y, post, mix), pre

    def attention(self, attention, u):
        """Run a CSA2: [C] from [C]."""
        plan, c = attention.plan, self.config
        turns, back = self.turns(plan.ratio)
        if plan.mode == "full":
            self._store(attention, u)
        ring = self.cache.windows[plan.index]
        entry = turn(normed(times(array(attention.wkv.weight), u), attention.kv_norm), turns)
        ring.put(self.position, torch.from_numpy(entry))
        narrow = normed(times(array(attention.wq_a.weight), u), attention.q_norm)  # R
        queries = turn(times(array(attention.wq_b.weight), narrow).reshape(c.n_heads, -1), turns)  # H D
        keys = [ring.read()[0]]  # slots D
        if plan.mode in ("full", "reindex"):
            self._choose(attention, u, narrow)
        if plan.ratio and len(self.choices[plan.chooser]):
            keys.append(self._entries(plan))
        sinks, scale = array(attention.attn_sink), c.head_dim**-0.5
        heads = one_token.attend(queries, keys, self.hidden(ring), sinks, scale)
        return one_token.output(turn(heads, back), attention)

    def _entries(self, plan):
        """Entries chosen, [K D]; gathered once for all layers that reuse a choice."""
        key = plan.chooser, plan.owner
        if key not in self._gathered:
            self._gathered[key] = self.cache.entries[plan.owner].gather(self.choices[plan.chooser][None, None])[0, 0]
        return self._gathered[key]

    def _store(self, attention, u):
        """Keep what compression needs of the token; if it completes a group, its entry and index key."""
        cache, plan, compressor, mine = self.cache, attention.plan, attention.compressor, attention.indexer
        values = times(array(compressor.wkv.weight), u)
        number, place = divmod(self.position, plan.ratio)
        turns, _ = self.turns(plan.ratio)
        if plan.ratio > 1:
            row = np.concatenate([values, times(array(compressor.wgate.weight), u)])  # 2D
            ring = cache.open_groups[plan.index]
            past = ring.past(self.run.span, plan.ratio - 1)[0].numpy()  # r-1 2D
            ring.put(self.position, torch.from_numpy(row))
            if place < plan.ratio - 1:
                return
            values, gates = np.split(np.concatenate([past, row[None]]), 2, axis=1)  # r D
            shares = np.exp(gates - gates.max(axis=0))
            values = (shares * values).sum(axis=0) / shares.sum(axis=0)
            first = torch.tensor([[number * plan.ratio]])  # position of the group's first token
            turns = Rotation.at(first, self.config, plan.ratio, cache.dtype).turns[0, 0].numpy()
        if number < int(cache.entries[plan.index].counts[0]):
            return  # of a replayed prefix
        latent = normed(values, compressor.norm)
        key = turn(normed(times(array(mine.wk.weight), latent), mine.k_norm), turns)
        cache.note_index_keys(plan.index, 0)
        cache.index_keys[plan.index].put(number, torch.from_numpy(key))
        cache.entries[plan.index].put(number, torch.from_numpy(turn(latent, turns)))

    def _choose(self, attention, u, narrow):
        """Choose the entries of the token, for this layer and those that reuse its choice."""
        c, plan, mine = self.config, attention.plan, attention.indexer
        queries = times(array(mine.wq_b.weight), narrow).reshape(c.index_n_heads, -1)  # Hi Di
        queries = torch.from_numpy(turn(queries, self.turns(plan.ratio)[0]))
        form = self.cache.index_format
        queries = form.decode(form.encode(queries)).numpy()
        weights = times(array(mine.weights_proj.weight), u) * (c.index_head_dim * c.index_n_heads) ** -0.5  # Hi
        visible = (self.position + 1) // plan.ratio
        members = self.pool[self.pool < visible] if plan.pool == "restricted" else None
        scores = self._scores(queries, weights, self.cache.index_keys[plan.owner], members)[:visible]
        if plan.pool == "source":
            self.pool = candidates(scores, c.candidate_topk_blocks, c.candidate_block_size)
        choice = selection.top_k(scores, min(c.index_topk, len(scores)))
        self.choices[plan.index] = choice = choice if members is None else members[choice]
        room = min(c.index_topk, self.cache.entries[plan.owner].size) - len(choice)
        published = nn.functional.pad(choice, (0, room), value=-1)[None, None]
        self.run.published.choices[plan.index] = published, self.run.span

    def _scores(self, queries, weights, keys, members):
        """Scores of all entries, or of members, int64 [P]: tensor [N] or [P]."""
        pieces = keys.pieces() if members is None else [keys.gather(members[None, None])[0]]
        scores = [one_token.index_scores(queries, weights, piece[0].numpy()) for piece in pieces]
        return torch.from_numpy(np.concatenate(scores) if scores else weights[:0])

    def feed(self, experts, u):
        """Run a MoE: [C] from [C]."""
        c, gate = self.config, experts.gate
        scores = one_token.scores_of_experts(times(array(gate.weight), u) / c.gate_temp, c.score_func)
        chosen = one_token.largest(scores + array(gate.bias), experts.k)
        weights = scores[chosen]
        if c.norm_topk_prob and experts.k > 1:
            weights = weights / (weights.sum() + 1e-20)
        return one_token.run_experts(
            u, experts.experts, chosen.tolist(), weights * c.route_scale, experts.shared_experts
        )
