"""One token of one sequence through V4's layers on a CPU, as decoding needs it: v4_attention.py and v4_experts.py by
the means of one_token.py.

Compressed entries, which come every 4 or 128 tokens, are made by the modules themselves.

Source: V4 report; V4 reference; in words in reference/v4_attention.py and reference/v4_model.py.
"""

import numpy as np
import torch

from deepseek_edu.model import one_token
from deepseek_edu.model.linear import times
from deepseek_edu.model.one_token import array, normed, turn


def fits(call):
    """Whether `call`, a v4_attention.Call, is for this file: one token of one sequence, on a CPU, no gradients."""
    return one_token.fits(call.span, call.cache)


class Step:
    """What all layers share: the position, its turns, and slots of windows that the query does not see.

    Args:
        token: its number.
        call: v4_attention.Call; its cache takes in the token.
    """

    def __init__(self, token, call):
        self.token, self.call, self.cache, self.config = token, call, call.cache, call.cache.config
        self.position = int(call.span.first[0])
        ring = self.cache.windows[0]
        back = (self.position - np.arange(ring.slots)) % ring.slots
        self.hidden = np.flatnonzero((back > self.position) | (back >= self.config.window_size))
        self.turns = one_token.Turns(call.span)

    def layer(self, layer, streams):
        """Run a V4Block: X' [4 C] from X [4 C]."""
        for part, norm, act in (("attn", layer.attn_norm, self.attention), ("ffn", layer.ffn_norm, self.feed)):
            fn, base, scale = (getattr(layer, f"hc_{part}_{name}") for name in ("fn", "base", "scale"))
            pre, post, mix = one_token.coefficients(streams, fn, base, scale, self.config)
            y = act(getattr(layer, part), normed(pre @ streams, norm))
            streams = one_token.expand(streams, y, post, mix)
        return streams

    def attention(self, attention, u):
        """Run a V4Attention: [C] from [C]."""
        plan, cache, c = attention.plan, self.cache, self.config
        turns, back = self.turns(plan.ratio)
        ring = cache.windows[plan.index]
        entry = turn(normed(times(array(attention.wkv.weight), u), attention.kv_norm), turns)
        ring.put(self.position, torch.from_numpy(entry))
        narrow = normed(times(array(attention.wq_a.weight), u), attention.q_norm)  # R
        queries = times(array(attention.wq_b.weight), narrow).reshape(c.n_heads, -1)  # H D
        squares = np.vecdot(queries, queries)[:, None]
        queries /= np.sqrt(squares / queries.shape[1] + c.norm_eps)
        keys = [ring.read()[0]]  # slots D
        if plan.ratio:
            self._store(attention, u)
            entries = cache.entries[plan.index]
            if entries.size > c.index_topk and plan.mode == "csa":
                choice = self._choose(attention, u, narrow)  # 1 1 K
                keys.append(entries.gather(choice)[0, 0])
            elif entries.size:
                keys.append(entries.read()[0])
        sinks, scale = array(attention.attn_sink), c.head_dim**-0.5
        heads = one_token.attend(turn(queries, turns), keys, self.hidden, sinks, scale)
        return one_token.output(turn(heads, back), attention)

    def _store(self, attention, u):
        """Keep the values and gates of the token; if it completes a group, its entry and index key."""
        plan, cache = attention.plan, self.cache
        makers = [(attention.compressor, cache.open_groups)]
        if attention.indexer is not None:
            makers.append((attention.indexer.compressor, cache.open_index_groups))
        if (self.position + 1) % plan.ratio == 0:
            attention.store_global(torch.from_numpy(u)[None, None], self.call)
            return
        for maker, groups in makers:
            row = np.concatenate([times(array(maker.wkv.weight), u), times(array(maker.wgate.weight), u)])
            groups[plan.index].put(self.position, torch.from_numpy(row))

    def _choose(self, attention, u, narrow):
        """Entries that the token reads, int64 [1 1 K]."""
        c, plan, mine = self.config, attention.plan, attention.indexer
        queries = times(array(mine.wq_b.weight), narrow).reshape(c.index_n_heads, -1)  # Hi Di
        queries = mine.met(torch.from_numpy(turn(queries, self.turns(plan.ratio)[0])), self.cache).numpy()
        weights = times(array(mine.weights_proj.weight), u) * (c.index_head_dim * c.index_n_heads) ** -0.5  # Hi
        pieces = self.cache.index_keys[plan.index].pieces()
        scores = [one_token.index_scores(queries, weights, keys[0].numpy()) for keys in pieces]
        return torch.from_numpy(one_token.largest(np.concatenate(scores), c.index_topk))[None, None]

    def feed(self, experts, u):
        """Run a V4MoE: [C] from [C]."""
        c, gate = self.config, experts.gate
        scores = one_token.scores_of_experts(times(array(gate.weight), u) / c.gate_temp, c.score_func)
        if gate.hash_routed:
            chosen = gate.tid2eid[self.token].numpy()
        else:
            chosen = one_token.largest(scores + array(gate.bias), gate.k)
        weights = scores[chosen] * c.route_scale
        if gate.hash_routed or c.score_func != "softmax":
            weights /= scores[chosen].sum()
        return one_token.run_experts(u, experts.experts, chosen.tolist(), weights, experts.shared_experts)
