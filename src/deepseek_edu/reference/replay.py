"""Bounded replay: make the missing windows of a stored prefix again from its last tokens.

What is stored of a prompt is its global memory: compressed entries and index keys. The windows are not. When a later
request begins with the same P tokens, the last min(W, P) of them are fed again, with windows that begin where the
replay begins. Their global entries exist already and are not written again; what they compute fills the windows. The
result is approximate, since the first replayed tokens miss what lay before them; so it depends on where the prefix was
cut. Replaying W − 1 tokens for every layer would be exact (`exact=True`): 5 080 tokens instead of 128 at full size.

The decoder half of the same idea, at every prefill, is the argument `decoder` of `Model.prefill`.

Source: report, section 3.2.2; served by vLLM with 128 replayed tokens. The n-gram memory reads the real ids before the
replay, not padding.
"""

import numpy as np

from deepseek_edu.reference import checks


def replay_start(hit, config, exact=False, tokens=None):
    """Return the first position to feed again after a prefix of `hit` tokens was found; `tokens` as for `resume`.

    >>> from deepseek_edu.config import ModelConfig
    >>> flash = ModelConfig.v41_flash()
    >>> replay_start(1000, flash), replay_start(100, flash), replay_start(6000, flash, exact=True)
    (872, 0, 920)
    """
    if tokens is None:
        tokens = config.n_layers * (config.window_size - 1) if exact else config.window_size
    return max(0, hit - tokens)


def usable_hit(length, config):
    """Return the longest prefix of at most `length` tokens that leaves no compression group half filled.

    >>> from deepseek_edu.config import ModelConfig
    >>> usable_hit(1001, ModelConfig.v41_flash())
    1000
    """
    group = 1
    for layer in config.kv_source_layers:
        group = int(np.lcm(group, config.compress_ratios[layer]))
    return length // group * group


def resume(model, stored, ids, hit, types=None, exact=False, tokens=None):
    """Return a cache that continues a stored prefix; feed it ids[cache.length:] next.

    Args:
        model: model.Model.
        stored: Cache (or what `Cache.prefix` made of it) of a sequence that begins with ids[:hit].
        ids: token ids of the new prompt [N], N > hit.
        hit: tokens shared with the stored sequence; a multiple of every ratio, see `usable_hit`.
        types: [N] or None, as for `Model.forward`.
        exact: replay so far back that nothing is approximate.
        tokens: how many to replay, for experiments; W by default.

    Returns:
        Cache with length = replay start and stored = hit.

    Raises:
        ValueError: hit, ids or types do not fit.

    `model.prefill(ids[cache.length:], cache, types, decoder="report")` then does all of it.
    """
    ids = checks.token_ids(ids, model.config.vocab_size)
    types, _ = checks.image_input(types, None, ids, model.config.dim)
    if checks.count(hit, "hit", 0) >= len(ids):
        raise ValueError(f"hit must be 0 … {len(ids) - 1}, so that a token is left to feed; got {hit}")
    cache = stored.prefix(hit)
    start = replay_start(hit, model.config, exact, tokens)
    cache.length = start
    cache.settle(hit)
    for ring in (*cache.windows, *cache.draft_windows):
        ring.restart(start)
    if model.hash is not None:
        first = max(0, start - model.config.engram_max_ngram_size + 1)
        mask = None if types is None else types[first:start] >= 0
        cache.history.restart(first)
        cache.history.write(cache.history.row_format.encode(model.hash.compress(ids[first:start], mask)))
    return cache
