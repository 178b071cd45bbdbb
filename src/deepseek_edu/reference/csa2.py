"""CSA2: attention over the window and over compressed entries that layers share, in three modes.

    mode      makes entries and index keys   chooses entries   reads
    full      yes                            yes               its own
    reindex   no                             yes               entries of the owner below, chosen anew
    reuse     no                             no                entries of the owner, choice of the layer that chose last
    window    no                             no                its window only

A choice is made for each token and lives for one call; entries and index keys live in the cache, which also has a ring
of window entries for every layer and the projections of half-filled groups (cache.py, to be read later). An indexer
reads the index keys of its own layer's owner. The released decode reads whatever was stored last instead, which is
wrong at positions that complete no group; that defect is kept as the variant `stale_index_keys`.

Source: report, sections 2.3 and 4.2.1; reference `Attention`, `SharedAttentionRuntime`.
"""

from dataclasses import dataclass, field

import numpy as np

from deepseek_edu.reference import attention, compressor, indexer, rope, storage, window


@dataclass
class Published:
    """What layers leave for those above, for the tokens of this call."""

    choices: dict = field(default_factory=dict)  # layer that chose -> int64 [T K], −1 for none
    pool: np.ndarray | None = None  # bool [T N], candidates
    stale_index_keys: bool = False  # read the index keys stored last, as the released decode does


def store_global(u, position, w, plan, cache, frequencies):
    """Make and store the compressed entries and index keys that the tokens complete (full mode only).

    Args:
        u: [T C], inputs of the layer's attention.
        position: of the first token. Tokens before `cache.stored` have their entries already and are passed over.
        w: the layer's attention weights by released name.
    """
    config, ratio = cache.config, plan.ratio
    known = min(max(cache.stored - position, 0), len(u))
    u, position = u[known:], position + known
    if not len(u):
        return
    values, gates = compressor.project(u, w["compressor.wkv.weight"], w.get("compressor.wgate.weight"))  # T D
    if ratio == 1:
        first, pooled = position, values
    else:
        halves = cache.open_groups[plan.index]
        if halves.end != position:
            halves.restart(position)
        waiting = halves.read(position - position % ratio, position)  # (position mod r) 2D
        rows = np.concatenate([values, gates], axis=-1)  # T 2D
        first, complete = compressor.split_groups(position, waiting, rows, ratio)
        halves.write(halves.row_format.encode(rows))
        pooled = compressor.pool(*np.split(complete, 2, axis=-1), ratio)  # N D
    if not len(pooled):
        return
    latents = compressor.latents(pooled, w["compressor.norm.weight"], config.norm_eps)  # N D
    positions = (first + np.arange(len(latents))) * ratio  # of the groups' first tokens
    keys = indexer.index_keys(latents, w["indexer.wk.weight"], w["indexer.k_norm.weight"], config.norm_eps)
    cache.note_index_keys(plan.index)
    cache.index_keys[plan.index].append(rope.rotate_tail(keys, positions, frequencies))
    cache.entries[plan.index].append(rope.rotate_tail(latents, positions, frequencies))


def choose(u, narrow, positions, w, plan, cache, frequencies, published):
    """Choose the entries of each token (full and reindex mode) and publish them.

    Args:
        narrow: [T R], the low-rank query.

    Returns:
        int64 [T K], entry numbers in rising order, −1 behind them.
    """
    config = cache.config
    queries = indexer.index_queries(narrow, w["indexer.wq_b.weight"], config.index_n_heads)  # T Hi Di
    queries = rope.rotate_tail(queries, positions[:, None], frequencies)
    queries = storage.read_back(cache.index_format, queries)
    weights = indexer.head_weights(u, w["indexer.weights_proj.weight"], config.index_head_dim)  # T Hi
    owner = cache.newest_index_keys if published.stale_index_keys else plan.owner
    known = len(cache.entries[plan.owner])
    keys = cache.index_keys[owner].read()[:known] if owner is not None else u[:0]
    keys = keys.reshape(-1, config.index_head_dim)  # N Di, fewer where they are stale
    visible = np.minimum(compressor.visible_entries(positions, plan.ratio), len(keys))  # T
    scores = indexer.index_scores(queries, weights, np.pad(keys, ((0, known - len(keys)), (0, 0))))  # T N
    if plan.pool == "source":
        blocks, size = config.candidate_topk_blocks, config.candidate_block_size
        published.pool = indexer.candidate_pool(scores, visible, blocks, size)
    allowed = published.pool[-len(u) :] if plan.pool == "restricted" else None
    choice = indexer.top_k(scores, visible, config.index_topk, allowed)  # T K
    published.choices[plan.index] = choice
    return choice


def attend(u, position, w, plan, cache, frequencies, published, rows=None):
    """Run the attention of one layer: window and chosen entries.

    Args:
        u: [T C], inputs at positions position … position + T − 1.
        rows: outputs are needed for the last `rows` tokens; all by default. The others only enter the window.

    Returns:
        [rows C].
    """
    config, ring = cache.config, cache.windows[plan.index]
    entry = attention.shared_entry(u, w["wkv.weight"], w["kv_norm.weight"], config.norm_eps)  # T D
    positions = position + np.arange(len(u))
    parts = ring.row_format.encode(rope.rotate_tail(entry, positions, frequencies))
    if ring.end != position:
        ring.restart(position)
    first, past = ring.latest()
    window_entries = np.concatenate([past, ring.row_format.decode(parts)])  # P+T D
    start = ring.start
    ring.write(parts)

    rows = len(u) if rows is None else rows
    u, positions = u[len(u) - rows :], positions[len(u) - rows :]
    query_weights = (w["wq_a.weight"], w["q_norm.weight"], w["wq_b.weight"])
    narrow, queries = attention.low_rank_query(u, *query_weights, config.n_heads, config.norm_eps)
    queries = rope.rotate_tail(queries, positions[:, None], frequencies)  # T H D

    table = window.window_table(positions, config.window_size, start)  # T W
    gathered, valid = [window_entries[np.maximum(table - first, 0)]], [table >= 0]
    if plan.ratio:
        if plan.mode in ("full", "reindex"):
            choice = choose(u, narrow, positions, w, plan, cache, frequencies, published)
        else:
            choice = published.choices[plan.chooser][-rows:]
        if choice.shape[-1]:
            gathered.append(cache.entries[plan.owner].read(np.maximum(choice, 0)))
            valid.append(choice >= 0)
    entries = np.concatenate(gathered, axis=1)  # T W+K D
    scale = config.head_dim**-0.5
    heads = attention.sink_attention(queries, entries, np.concatenate(valid, axis=1), w["attn_sink"], scale)
    heads = rope.rotate_tail(heads, positions[:, None], frequencies, inverse=True)  # T H D
    return attention.grouped_output(heads, w["wo_a.weight"], w["wo_b.weight"], config.o_groups)
