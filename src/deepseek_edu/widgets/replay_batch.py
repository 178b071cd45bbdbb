"""Several sequences go through the layers of a model side by side.

A layer does most of its work token by token; that is done once for the tokens of all sequences, which takes a fraction
of the time of one run after the other. What a token sees belongs to its sequence: the attention of each runs alone, on
its own cache. Every result is that of `Model.forward` and `Model.prefill` for one sequence (tests).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deepseek_edu.reference import block, csa2, engram, mhc, moe, norms


@dataclass
class Line:
    """One sequence on its way: its cache, and the tokens that are in the layers now."""

    cache: object
    position: int  # of the first of these tokens
    streams: np.ndarray  # [T S C]
    pre: np.ndarray  # [T S]
    hashes: np.ndarray | None  # [T modules rows]
    published: csa2.Published = field(default_factory=csa2.Published)

    def last(self, count, cache=None):
        """Return a line of the last `count` tokens, with a cache of its own or this one's."""
        keep = max(0, len(self.streams) - count)
        hashes = None if self.hashes is None else self.hashes[keep:]
        return Line(cache or self.cache, self.position + keep, self.streams[keep:], self.pre[keep:], hashes)


def begin(model, cache, ids):
    """Return the line of ids [T] that follow what is in the cache, at the input of layer 0."""
    hashes = None
    if model.hash is not None:
        hashes = model.hash.rows(model.hash.compress(ids), cache.previous_ids())  # T modules rows
    streams = np.repeat(model.embed[ids][:, None], model.config.hc_mult, axis=1)  # T S C
    return Line(cache, cache.length, streams, mhc.one_hot(len(ids), model.config.hc_mult), hashes)


def run(model, lines: Sequence[Line], plan, storing=True, asked=None):
    """Take the lines through one layer.

    Args:
        model: model.Model.
        lines: what goes through; changed in place.
        plan: the layer's.
        storing: whether its global entries are made here, if it makes any.
        asked: outputs wanted of each line, counted from its end; all by default. The others only enter the window.
    """
    config, parts, frequencies = model.config, model.layer_parts[plan.index], model.frequencies[plan.ratio]
    ends = np.cumsum([len(line.streams) for line in lines])[:-1]
    streams, pre = (np.concatenate([getattr(line, name) for line in lines]) for name in ("streams", "pre"))
    if plan.engram is not None:
        rows = np.concatenate([line.hashes[:, plan.engram] for line in lines])
        streams = engram.engram(streams, rows, parts["engram"], config)

    def attend(u):
        outputs = []
        for line, mine in zip(lines, np.split(u, ends), strict=True):
            place = (mine, line.position, parts["attn"], plan, line.cache, frequencies)
            if plan.mode == "full" and storing:
                csa2.store_global(*place)
            outputs.append(csa2.attend(*place, line.published))
        return np.concatenate(outputs)

    def feed(u):
        return moe.moe(u, parts["ffn"], config.n_activated_experts, config)

    streams, pre = block.block(streams, pre, model.layers[plan.index], attend, feed, config)
    for index, (line, after, weights) in enumerate(
        zip(lines, np.split(streams, ends), np.split(pre, ends), strict=True)
    ):
        keep = 0 if asked is None else max(0, len(after) - asked[index])
        line.streams, line.pre, line.position = after[keep:], weights[keep:], line.position + keep
        line.hashes = None if line.hashes is None else line.hashes[keep:]


def logits(model, lines: Sequence[Line]):
    """Return the logits of the tokens of each line, if the model ended here: [T V] of each."""
    streams, pre = (np.concatenate([getattr(line, name) for line in lines]) for name in ("streams", "pre"))
    hidden = norms.rms_norm(mhc.collapse(streams, pre), model.norm, model.config.norm_eps)  # T C
    return np.split(hidden @ model.head.T, np.cumsum([len(line.streams) for line in lines])[:-1])
