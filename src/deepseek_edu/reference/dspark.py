"""DSpark: three small layers that draft a block of five tokens at once, from what the backbone has just computed.

The backbone leaves the streams at the input of three of its last layers; their means, projected, are the drafter's
context. Each draft stage keeps a window of such context entries, made with the same weights as the entries of its own
rows. A draft call puts the next token and four noise tokens into rows; every row sees the context window and all five
rows, also those to its right. A low-rank bigram head ("Markov") then adds to the logits of each row what its left
neighbour's *drafted* token makes likely, one row after the other; a confidence head says how likely each draft is to be
accepted, given that those before it were.

Source: report, section 2.4.3; reference `DSparkBlock`, `MTPBlock`. Theta is 10 000 without YaRN, the router uses the
text bias, there is no Engram. Acceptance is another matter: acceptance.py.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import attention, block, checks, linear, mhc, moe, norms, rope, storage, window


@dataclass(frozen=True)
class Draft:
    """Proposals for the positions after the token that began the block."""

    ids: np.ndarray  # int64 [1 + block]: the given token, then the drafts
    logits: np.ndarray  # [block V], with the Markov bias: the distribution each draft was taken from
    confidence: np.ndarray  # [block], logits of being accepted, given that the drafts before were


def context(main_hidden, w, eps):
    """Return RMSNorm(main_proj h): [T C] from the backbone's main_hidden [T targets·C]."""
    return norms.rms_norm(linear.product(main_hidden, w["main_proj.weight"]), w["main_norm.weight"], eps)


def insert_context(main_hidden, position, stages, cache, frequencies):
    """Write the context entries of processed positions into the windows of all stages.

    Args:
        main_hidden: [T targets·C], of positions position … position + T − 1.
        stages: weights of the stages by released name.
        cache: Cache; its draft windows are written. A gap before `position` restarts them.
    """
    m = context(main_hidden, stages[0], cache.config.norm_eps)  # T C
    positions = position + np.arange(len(m))
    for w, ring in zip(stages, cache.draft_windows, strict=True):
        entry = attention.shared_entry(m, w["attn.wkv.weight"], w["attn.kv_norm.weight"], cache.config.norm_eps)
        if ring.end != position:
            ring.restart(position)
        ring.write(ring.row_format.encode(rope.rotate_tail(entry, positions, frequencies)))


def attend_block(u, position, w, ring, config, frequencies):
    """Attention of the rows of a block: [block C].

    Args:
        u: [block C].
        position: of the first row; the context window ends just before it.
        w: attention weights of the stage by released name.
        ring: Ring, the stage's context window; only read.
    """
    positions = position + np.arange(len(u))
    query_weights = (w["wq_a.weight"], w["q_norm.weight"], w["wq_b.weight"])
    _, queries = attention.low_rank_query(u, *query_weights, config.n_heads, config.norm_eps)
    queries = rope.rotate_tail(queries, positions[:, None], frequencies)  # R H D
    rows = attention.shared_entry(u, w["wkv.weight"], w["kv_norm.weight"], config.norm_eps)
    rows = storage.read_back(ring.row_format, rope.rotate_tail(rows, positions, frequencies))  # R D
    seen = window.window_positions(position - 1, config.window_size, ring.start)
    context_entries = ring.read(seen[0], seen[-1] + 1) if len(seen) else rows[:0]  # P D
    keys = np.concatenate([context_entries, rows])  # P+R D
    keys = np.broadcast_to(keys, (len(u), *keys.shape))  # every row sees all of them
    valid = np.ones(keys.shape[:2], bool)
    heads = attention.sink_attention(queries, keys, valid, w["attn_sink"], config.head_dim**-0.5)
    heads = rope.rotate_tail(heads, positions[:, None], frequencies, inverse=True)
    return attention.grouped_output(heads, w["wo_a.weight"], w["wo_b.weight"], config.o_groups)


def greedy(logits, _row):
    """Take the most likely token of logits [V]; ties go to the lower id."""
    return int(np.argmax(logits))


def draft(token, position, model, cache, pick=greedy):
    """Draft a block after `token`, which will stand at `position`.

    Args:
        token: id, sampled by the backbone and not yet processed.
        position: its position; the draft windows must hold the positions before it.
        model: object with config, embed, head and stages (model.Model).
        cache: Cache, only read.
        pick: function (logits [V], row) -> id that takes a draft from its distribution.

    Returns:
        Draft.

    Raises:
        ValueError: the context of the position before is missing, or the token is no id.
    """
    config = model.config
    ends = {ring.end for ring in cache.draft_windows}
    if position < 1 or ends != {position}:
        raise ValueError(f"the draft windows must end at position {position}; they end at {ends}; insert the context")
    ids = np.full(config.dspark_block_size, config.dspark_noise_token_id)
    ids[0] = checks.token_ids([token], config.vocab_size)[0]
    streams = np.repeat(model.embed[ids][:, None, :], config.hc_mult, axis=1)  # R S C
    pre = mhc.one_hot(len(ids), config.hc_mult, streams.dtype)  # R S
    for w, parts, ring in zip(model.stages, model.stage_parts, cache.draft_windows, strict=True):

        def attend(u, w=parts["attn"], ring=ring):
            return attend_block(u, position, w, ring, config, model.frequencies[0])

        def feed(u, w=parts["ffn"]):
            return moe.moe(u, w, config.dspark_n_activated_experts, config)

        streams, pre = block.block(streams, pre, w, attend, feed, config)
    hidden = mhc.collapse(streams, pre)  # R C
    last = model.stages[-1]
    logits = norms.rms_norm(hidden, last["norm.weight"], config.norm_eps) @ model.head.T  # R V
    return left_to_right(token, hidden, logits, last, pick)


def left_to_right(token, hidden, logits, w, pick):
    """Add the bigram bias row by row and take the drafts; the confidence reads the same left neighbour.

    Args:
        token: id that began the block.
        hidden: [R C], of the rows, not normalised.
        logits: [R V], of the rows alone.
        w: weights of the last stage by released name.
        pick: as in `draft`.

    Returns:
        Draft.
    """
    markov, markov_head = w["markov_head.embed.weight"], w["markov_head.head.weight"]
    ids, biased, confidence = [int(token)], [], []
    for row in range(len(hidden)):
        neighbour = markov[ids[-1]]  # rank
        biased.append(logits[row] + markov_head @ neighbour)  # V
        confidence.append(w["confidence_head.proj.weight"][0] @ np.concatenate([hidden[row], neighbour]))
        ids.append(pick(biased[-1], row))
    return Draft(np.array(ids), np.stack(biased), np.array(confidence))
