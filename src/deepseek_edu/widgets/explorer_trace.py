"""The stops of a followed token: what happens there, and the numbers of the walk that show it."""

import numpy as np

from deepseek_edu.drawing.numbers import grouped, show
from deepseek_edu.reference import dspark, window

from .explorer_facts import config_of
from .explorer_inside import Shown
from .explorer_layout import plans_of
from .explorer_walk import EARLIER, EARLY, LATE, NEW, Stop, Walk
from .memo import remembered


@remembered(4)
def new_token(token: int) -> tuple[tuple[Stop, ...], np.ndarray]:
    """All stops of a token that comes after the prompt, and its logits."""
    walk = Walk(token, LATE)
    plans = plans_of(walk.config)[: walk.config.n_layers]
    for plan in plans:
        walk.layer(plan)
    logits = walk.logits()
    following = int(np.argmax(logits))
    stops = (*_encoder_stops(walk), *_decoder_stops(walk, logits, following, walk.draft(following)))
    return stops, logits


@remembered(4)
def prompt_token(token: int) -> tuple[Stop, ...]:
    """All stops of a token in the middle of a prompt that is longer than the window."""
    walk = Walk(token, EARLY)
    plans = plans_of(walk.config)
    for plan in plans[: walk.config.decoder_start]:
        walk.layer(plan)
    walk.store(plans[walk.config.decoder_start])
    end = Stop(
        EARLIER[-1],
        "layer-4",
        f"Token {EARLY} of the prompt is not among its last {walk.config.window_size}. Its window entries in the "
        "decoder and "
        "its logits are never needed, so prefill does not run the decoder for it. Later tokens read its global entry.",
    )
    return (*_encoder_stops(walk), end)


def _vector(name: str, values, real: str, kind: str = "hidden") -> Shown:
    flat = tuple(float(v) for v in np.ravel(values))
    return Shown(name, str(len(flat)), real, flat, kind)


def _encoder_stops(walk: Walk) -> tuple[Stop, ...]:
    flash, c = config_of("v41"), walk.config
    streams = walk.seen[0]["before"]
    pair = walk.position // 2
    return (
        Stop(
            NEW[0],
            "embedding",
            f"Token id {walk.token} at position {walk.position} becomes row {walk.token} of the embedding.",
            (_vector(f"Embedding row {walk.token}", walk.embedding, grouped(flash.dim)),),
        ),
        Stop(
            NEW[1],
            "embedding",
            "The row is copied to four residual streams. They are equal now and drift apart later.",
            tuple(_vector(f"Stream {s}", streams[0, s], grouped(flash.dim)) for s in range(c.hc_mult)),
        ),
        _attention_stop(walk, 0, NEW[2], "Layer 0 reads the window only: the last positions, its own included."),
        _experts_stop(walk, 0, NEW[3]),
        _engram_stop(walk, 1, NEW[4]),
        Stop(
            NEW[5],
            "layer-1",
            f"Positions {walk.position - 1} and {walk.position} complete a group of two: the compressor mixes them "
            f"to entry {pair}, "
            "stored in four-bit numbers. Later layers of the group read it.",
            (
                _vector(
                    f"Entry {pair} of layer 1, as read back",
                    walk.cache.entries[1].read(np.array([pair])),
                    grouped(flash.head_dim),
                    "global",
                ),
                _vector(
                    "Its index key", walk.cache.index_keys[1].read()[pair], grouped(flash.index_head_dim), "global"
                ),
            ),
            writes=(1,),
        ),
        _choice_stop(walk, 1, NEW[6], "The indexer of layer 1 scores the entries and chooses the best."),
        _attention_stop(walk, 1, NEW[7], "Layer 1 attends to its window and to the chosen entries together."),
        _attention_stop(
            walk, 2, NEW[8], "Layer 2 reads the entries that layer 1 chose; it has no indexer and makes no entries."
        ),
        Stop(
            NEW[9],
            "layer-3",
            f"Layer 3 begins the decoder. From the output of the encoder it makes entry {walk.position}, the only "
            "thing of this "
            "token that the decoder’s layers will read from its global memory.",
            (
                _vector(
                    f"Entry {walk.position} of layer 3, as read back",
                    walk.cache.entries[3].read(np.array([walk.position])),
                    grouped(flash.head_dim),
                    "global",
                ),
            ),
            writes=(3,),
        ),
    )


def _decoder_stops(walk: Walk, logits: np.ndarray, following: int, draft: dspark.Draft) -> tuple[Stop, ...]:
    flash, c = config_of("v41"), walk.config
    pool = np.flatnonzero(walk.published.pool[0])
    size = c.candidate_topk_blocks * c.candidate_block_size
    mean = walk.means[-1][0]
    best = np.argsort(-logits, kind="stable")[:8]
    sure = 1 / (1 + np.exp(-draft.confidence))
    return (
        Stop(
            NEW[10],
            "layer-3",
            f"Layer 3 scores all {walk.position + 1} entries, chooses {c.index_topk}, and keeps the "
            f"{c.candidate_topk_blocks} best "
            f"blocks of {c.candidate_block_size} as the pool.",
            (
                _picks("Index scores of all entries, the chosen in frames", walk, 3),
                _marked(
                    "Candidate pool",
                    walk.position + 1,
                    pool,
                    f"{size} entries",
                    f"{grouped(flash.candidate_topk_blocks * flash.candidate_block_size)} entries",
                ),
            ),
            reads=(3, 3, 3),
        ),
        _attention_stop(
            walk, 4, NEW[11], "Layer 4 reuses the choice of layer 3; its query and its output are its own."
        ),
        _choice_stop(walk, 5, NEW[12], "Layer 5 chooses anew among the same entries, but only inside the pool."),
        Stop(
            NEW[13],
            "layer-7",
            "Layers 6 and 7 reuse the choice of layer 5. The mean of the streams entering the last layers is kept "
            "for the drafter.",
            (
                _vector("Mean of the streams entering layer 7", mean, grouped(flash.dim)),
                *_streams(walk.streams, flash),
            ),
        ),
        Stop(
            NEW[14],
            "head",
            f"The streams are collapsed, normalised and multiplied with the head: {c.vocab_size} logits. The "
            "largest is "
            f"{show(float(logits.max()), 4)}, of token id {following}.",
            (
                Shown(
                    "The eight largest logits, by token id",
                    f"{c.vocab_size} logits",
                    grouped(flash.vocab_size),
                    tuple(float(v) for v in logits[best]),
                    "hidden",
                    (0,),
                    tuple(str(i) for i in best),
                ),
            ),
        ),
        Stop(
            NEW[15],
            "draft-2",
            f"From token {following} the three draft stages propose the next {c.dspark_block_size} tokens in one pass: "
            f"{', '.join(map(str, draft.ids[1:]))}. The model will verify them.",
            (
                Shown(
                    "Drafted token ids",
                    str(c.dspark_block_size),
                    grouped(flash.dspark_block_size),
                    tuple(1.0 for _ in draft.ids[1:]),
                    "hidden",
                    (),
                    tuple(str(i) for i in draft.ids[1:]),
                ),
                Shown(
                    "Confidence of each",
                    str(c.dspark_block_size),
                    grouped(flash.dspark_block_size),
                    tuple(float(v) for v in sure),
                    "hidden",
                    (),
                    tuple(show(float(v), 2) for v in sure),
                ),
            ),
        ),
    )


def _streams(streams: np.ndarray, flash) -> tuple[Shown, ...]:
    return tuple(_vector(f"Stream {s} after the last layer", streams[0, s], grouped(flash.dim)) for s in (0, 1))


def _marked(name: str, count: int, marks, tiny: str, real: str, first: int = 0) -> Shown:
    every = 1 if count <= 16 else 4
    words = tuple(str(first + i) if i % every == 0 else "" for i in range(count))
    return Shown(name, tiny, real, (1.0,) * count, "selected", tuple(int(m) for m in marks), words)


def _picks(name: str, walk: Walk, layer: int) -> Shown:
    """The entries that a layer chose, over their scores; those it may not choose are left out."""
    plan = plans_of(walk.config)[layer]
    chosen = walk.published.choices[layer][0]
    count = (walk.position + 1) // plan.ratio
    flash = config_of("v41")
    scores = tuple(float(v) for v in walk.seen[layer]["index scores"][:count])
    off = () if plan.pool != "restricted" else tuple(int(i) for i in np.flatnonzero(~walk.published.pool[0][:count]))
    return Shown(
        name,
        f"{(chosen >= 0).sum()} of {count} entries",
        f"{flash.index_topk} of up to {grouped(flash.max_positions // plan.ratio)}",
        scores,
        "global",
        tuple(int(m) for m in chosen[chosen >= 0]),
        off=off,
        columns=True,
    )


def _choice_stop(walk: Walk, layer: int, name: str, text: str) -> Stop:
    rows = (_picks("Index scores of the entries, the chosen in frames", walk, layer),)
    return Stop(name, f"layer-{layer}", text, rows, reads=(layer, plans_of(walk.config)[layer].owner, layer))


def _attention_stop(walk: Walk, layer: int, name: str, text: str) -> Stop:
    flash, c, seen = config_of("v41"), walk.config, walk.seen[layer]
    positions = window.window_positions(walk.position, c.window_size)
    rows = [
        _marked(
            "Window: positions it reads",
            len(positions),
            (),
            f"{len(positions)} positions",
            grouped(flash.window_size),
            int(positions[0]),
        )
    ]
    plan = plans_of(c)[layer]
    if plan.ratio:
        rows.append(_picks("Entries it reads, in frames over their index scores", walk, plan.chooser))
    shown = (
        _vector("Input of the attention", seen["u"], grouped(flash.dim)),
        *rows,
        _vector("Output of the attention", seen["y"], grouped(flash.dim)),
    )
    return Stop(name, f"layer-{layer}", text, shown, reads=(layer, plan.owner, plan.chooser) if plan.ratio else None)


def _experts_stop(walk: Walk, layer: int, name: str) -> Stop:
    flash, seen, k = config_of("v41"), walk.seen[layer], walk.config.n_activated_experts
    scores = tuple(float(v) for v in seen["scores"][0])
    chosen = tuple(int(e) for e in seen["experts"][0])
    parts = " + ".join(f"{show(float(v), 3)} of expert {e}" for v, e in zip(seen["weights"][0], chosen, strict=True))
    return Stop(
        name,
        f"layer-{layer}",
        f"The router scores all experts and takes the best {k} after its bias: {parts}. The shared expert always runs.",
        (
            Shown(
                "Router scores",
                f"{len(scores)} experts",
                grouped(flash.n_routed_experts),
                scores,
                "parameters",
                chosen,
                tuple(show(v, 2) for v in scores),
            ),
            _vector("Output of the experts", seen["z"], grouped(flash.dim)),
        ),
    )


def _engram_stop(walk: Walk, layer: int, name: str) -> Stop:
    flash, seen = config_of("v41"), walk.seen[layer]
    rows = tuple(int(r) for r in seen["rows"])
    real = (flash.engram_max_ngram_size - 1) * flash.engram_n_heads
    return Stop(
        name,
        f"layer-{layer}",
        "The last 2, 3 and 4 token ids are hashed to rows of a table; what they hold is added to each stream "
        "through a gate.",
        (
            Shown(
                "Rows of the table",
                f"{len(rows)} rows",
                f"{real} rows",
                (1.0,) * len(rows),
                "engram",
                (),
                tuple(map(str, rows)),
            ),
            *(_vector(f"Added to stream {s}", seen["added"][0, s], grouped(flash.dim), "engram") for s in (0, 1)),
        ),
    )


def logits_of(token: int) -> np.ndarray:
    """The logits at the end of the walk of a new token."""
    return new_token(token)[1]
