"""Bounded replay for a batch: make the missing windows of stored prefixes again from their last tokens.

What is stored of a prompt is its global memory. The windows are made anew by feeding the last min(W, P) of the P known
tokens again, with windows that begin where the replay begins. Each row may have its own P.

Source: report, section 3.2.2; in words, with the exact variant, in reference/replay.py.
"""

import torch

from deepseek_edu.model.span import Span
from deepseek_edu.model.tiles import image_input, numbers, padded
from deepseek_edu.reference.replay import replay_start, usable_hit

__all__ = ["replay_start", "resume", "usable_hit"]


@torch.no_grad()
def resume(model, stored, ids, hits, types=None, exact=False):
    """Return a cache that continues stored prefixes, and what to feed it next.

    Args:
        model: model.Model.
        stored: Cache of sequences whose row b begins with the first hits[b] tokens of row b of ids.
        ids: new prompts, [B T] or lists of different lengths, longer than the hits.
        hits: tokens shared with the stored sequences, int or [B]; multiples of every ratio, see `usable_hit`.
        types: [B T] or None, as for `Model.forward`.
        exact: replay so far back that nothing is approximate.

    Returns:
        (Cache with lengths = replay starts and stored = hits; ids int64 [B T'] and counts [B] to feed; types or None).

    Raises:
        ValueError: hits, ids or types do not fit.

    `model.prefill(ids, cache, counts, types, decoder="report")` with what is returned then does all of it.
    """
    ids, counts = padded(ids, None, model.device)
    if ids.min() < 0 or ids.max() >= model.config.vocab_size:
        raise ValueError(f"ids must be 0 … {model.config.vocab_size - 1}; got {int(ids.min())} … {int(ids.max())}")
    kinds, _ = image_input(types, None, ids, counts, model.config.dim)
    hits = numbers(hits, "hits")
    if hits.is_floating_point() or hits.shape not in ((), (len(ids),)) or len(ids) != stored.batch:
        raise ValueError(f"hits must be integers, one for each of {stored.batch} rows of ids; got {hits.tolist()}")
    hits = hits.to(device="cpu", dtype=torch.int64).expand(len(ids)).clone()
    if bool(((hits < 0) | (hits >= counts)).any()):
        raise ValueError(
            f"hits must be 0 … {(counts - 1).tolist()}, so that a token is left to feed; got {hits.tolist()}"
        )
    cache = stored.prefix(hits)
    starts = torch.tensor([replay_start(hit, model.config, exact) for hit in hits.tolist()])
    cache.lengths = cache.decoded = starts.clone()
    cache.settle(hits)
    for ring in (*cache.windows, *cache.draft_windows):
        ring.start = starts.clone()
    if model.hash is not None:
        _restore_history(model, cache, ids, kinds, starts)
    left = counts - starts
    columns = (starts[:, None] + torch.arange(int(left.max()))).clamp_max(ids.shape[1] - 1).to(model.device)
    return cache, ids.gather(1, columns), left, None if kinds is None else kinds.gather(1, columns)


def _restore_history(model, cache, ids, kinds, starts):
    """The n-gram memory reads the real ids before the replay, not padding."""
    back = model.config.engram_max_ngram_size - 1
    known = starts.clamp_max(back)
    before = Span(starts - known, known, back, model.config, cache.device, cache.dtype)
    columns = before.positions.clamp_max(ids.shape[1] - 1)
    mask = None if kinds is None else kinds.gather(1, columns) >= 0
    cache.history.write(before, model.hash.compress(ids.gather(1, columns), mask)[..., None])
