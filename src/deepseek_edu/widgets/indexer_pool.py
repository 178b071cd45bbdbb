"""The `indexer` widget with a candidate pool: step by step on a few positions, on 128, and counted at real sizes.

One layer scores all it may see and keeps the best blocks as a pool; layers above score again, with queries of their
own, only inside the pool. Scores are invented or drawn at random; sizes of the model come from its configuration.
"""

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing.numbers import counted, grouped, listed, percent
from deepseek_edu.reference import compressor, indexer

from .indexer_examples import BLOCK, HIERARCHIES, LATER, POSITIONS, QUERIES, TOP, many_scores, recall_curves
from .indexer_pool_drawing import Found, hierarchy_picture, many_picture, recall_picture, work_picture
from .parts import Metric, Metrics, Prose, Table, View

STEPS = (
    "1 Score all",
    "2 Best of each block",
    "3 Keep blocks",
    "4 First layer chooses",
    "5 Second layer",
    "6 Third layer",
)
FIRST_EXPONENT = 10
CONTEXTS = tuple(grouped(2**k) for k in range(FIRST_EXPONENT, 21))
ORDER = ("first", "second", "third")


def _found(scores, seen: int, k: int, pool=None) -> Found:
    """What one layer chooses, and what it would choose without the pool."""
    scores = np.asarray(scores, float)

    def best(allowed) -> list[int]:
        return [int(j) for j in indexer.top_k(scores[None], [seen], k, allowed)[0] if j >= 0]

    true = best(None)
    return Found(scores, true if pool is None else best(pool[None]), true)


def hierarchy(example: str, step: int, kept: int, seen: int) -> View:
    """The steps of the pool on 24 or 16 positions, which are counted from 1 in all words."""
    toy = HIERARCHIES[example]
    count = len(toy.first)
    pool = indexer.candidate_pool(np.array([toy.first]), [seen], kept, BLOCK)[0]
    layers = [_found(toy.first, seen, toy.chosen), *(_found(later, seen, toy.chosen, pool) for later in toy.later)]
    candidates = [j for j in range(seen) if pool[j]]
    blocks = sorted({j // BLOCK for j in range(count) if pool[j]})
    newest = (seen - 1) // BLOCK if seen else None
    lost = sum(len(layer.lost) for layer in layers[1 : max(1, step - 3)])
    words = _hierarchy_words(toy.first, layers, step, blocks, newest, candidates, seen)
    metrics = Metrics(
        (
            Metric("Positions scored first", seen, note=f"of {count}; the others lie ahead of the query"),
            Metric("Blocks kept", len(blocks), note=f"of {-(-seen // BLOCK)} with a readable position"),
            Metric("Candidates", len(candidates), note="all that later layers score", role="result"),
            Metric("Lost so far", lost, role="error" if lost else ""),
        ),
        "Candidate pool",
    )
    table = Table(
        "What each layer reads (positions counted from 1)",
        ("Layer", "Reads", "Without the pool", "Lost"),
        tuple(
            (name, *(listed([j + 1 for j in row]) for row in (layer.chosen, layer.true, layer.lost)))
            for name, layer in zip(ORDER, layers, strict=True)
        ),
        folded=True,
    )  # fmt: skip
    summary = (
        f"{STEPS[step - 1][2:]}, {seen} of {count} positions readable, {counted(kept, 'block')} in the pool. "
        f"{' '.join(words)}"
    )
    picture = hierarchy_picture(layers, step, pool, seen, newest, toy.chosen)
    return View((picture, metrics, *(Prose(text, "warn" if i else "") for i, text in enumerate(words)), table), summary)


def _hierarchy_words(first, layers, step, blocks, newest, candidates, seen) -> list[str]:
    if not seen:
        return ["The query may read no position: nothing is scored, no block is kept, the pool is empty."]
    ranges = [f"{b * BLOCK + 1}–{b * BLOCK + BLOCK}" for b in blocks]
    if step == 1:
        return [f"The first layer scores all {seen} positions that the query may read. This scan has no shortcut."]
    if step == 2:
        return ["A block is as good as its best readable position. Positions ahead of the query do not count."]
    if step == 3:
        words = f"Blocks {listed(ranges)} stay: {len(candidates)} candidates."
        rest = sorted(
            (max(first[4 * b : min(4 * b + 4, seen)]) for b in range(newest + 1) if b not in blocks), reverse=True
        )
        own = max(first[4 * newest : seen])
        pinned = f" The newest block, {newest * BLOCK + 1}–{newest * BLOCK + BLOCK}, is always kept"
        return [words + pinned + (", though another block has a better score." if rest and rest[0] > own else ".")]
    layer = layers[max(0, step - 4)]
    reads = f"The {ORDER[max(0, step - 4)]} layer reads {listed([j + 1 for j in layer.chosen])}"
    if step == 4:
        outside = [j + 1 for j in layer.chosen if j not in candidates]
        words = f"{reads}, chosen among all {seen} positions."
        if outside:
            lie = "lies" if len(outside) == 1 else "lie"
            words += f" Outside the pool {lie} {listed(outside)}: the pool binds later layers only."
        return [words]
    words = [
        f"{reads}: the same keys and the same pool, a query of its own, {len(candidates)} products instead of {seen}."
    ]
    if layer.lost:
        instead = [j + 1 for j in layer.chosen if j not in layer.true]
        swap = f" {listed(instead)} {'is' if len(instead) == 1 else 'are'} read instead." if instead else ""
        words.append(
            f"Lost: {listed([j + 1 for j in layer.lost])}. The score is better, but the block is not in the pool.{swap}"
        )
    return words  # fmt: skip


def many(blocks: int, likeness: float) -> View:
    """128 positions, three layers, the recall of the later ones."""
    scores = many_scores()
    first = scores["first"][0]
    pool = indexer.candidate_pool(first[None], [POSITIONS], blocks, BLOCK)[0]
    layers = [_found(first, POSITIONS, TOP), *(_found(s[0], POSITIONS, TOP, pool) for s in scores[likeness])]
    size = int(pool.sum())
    curves = recall_curves()
    mean = curves[likeness][blocks - 1]
    found = [TOP - len(layer.lost) for layer in layers[1:]]
    with_pool, without = POSITIONS + LATER * size, (1 + LATER) * POSITIONS
    metrics = Metrics(
        (
            Metric("Candidates", size, note=f"{counted(blocks, 'block')} of {BLOCK}", role="result"),
            Metric("Found by later layers", " and ".join(map(str, found)), note=f"of their true Top-{TOP}, this query"),
            Metric("Mean recall", mean, percent(mean, 1), note=f"{QUERIES} queries, both later layers"),
            Metric("Keys scored", with_pool, note=f"{POSITIONS} + {LATER} × {size}; without a pool {without}"),
        ),
        "128 positions",
    )
    lost = sum(len(layer.lost) for layer in layers[1:])
    prose = Prose(
        f"The later layers lose {lost} of {LATER * TOP} entries here: their blocks had no good score in the first "
        "layer. An entry outside the pool cannot be chosen, however well it scores later."
        if lost
        else "Nothing is lost for this query: every entry that the later layers would choose lies in a kept block.",
        "warn" if lost else "",
    )
    note = Prose(
        "How much is lost depends on how alike the layers’ queries are. Keys and queries are drawn at random here: "
        "illustrative. The recall of the trained model is not known from this."
    )
    summary = (
        f"{blocks} of {POSITIONS // BLOCK} blocks make a pool of {size} of {POSITIONS} positions. The two later layers "
        f"find {found[0]} and {found[1]} of their true {TOP}; mean recall over {QUERIES} queries is {percent(mean, 1)}."
    )
    return View((many_picture(layers, pool), recall_picture(curves, likeness, blocks), metrics, prose, note), summary)


def real(index: int) -> View:
    """Products of queries with index keys for one new token, at the model's sizes."""
    config, context = ModelConfig.v41_flash(), 2 ** (FIRST_EXPONENT + index)
    plans = [plan for plan in config.schedule() if plan.mode in ("full", "reindex")]
    blocks, size = config.candidate_topk_blocks, config.candidate_block_size
    most = blocks * size
    rows = []
    for plan in plans:
        visible = int(compressor.visible_entries(context - 1, plan.ratio))
        scored = min(visible, most) if plan.pool == "restricted" else visible
        rows.append((plan.index, plan.mode, plan.ratio, visible, scored, min(scored, config.index_topk)))
    total, free = sum(row[4] for row in rows), sum(row[3] for row in rows)
    later = [row for row, plan in zip(rows, plans, strict=True) if plan.pool == "restricted"]
    source = next(row for row, plan in zip(rows, plans, strict=True) if plan.pool == "source")
    saved = 1 - total / free
    metrics = Metrics(
        (
            Metric("Pool at most", most, grouped(most), note=f"{grouped(blocks)} blocks × {size} entries"),
            Metric(
                "All choosing layers",
                total,
                grouped(total),
                unit="keys",
                note=f"without a pool {grouped(free)}",
                role="result",
            ),
            Metric("Saved by the pool", saved, percent(saved, 1)),
            Metric("Then read", min(source[4], config.index_topk), note=f"Top-{config.index_topk}, in every layer"),
        ),
        "Real sizes",
    )  # fmt: skip
    prose = Prose(
        f"Up to {grouped(most)} entries the pool is everything, and the result is exact. Beyond that the work of later "
        f"layers stays constant, while layer {source[0]} still scans the full range, and so do the "
        f"{len(rows) - len(later) - 1} encoder layers that choose, over half as many entries. Each key meets "
        f"{config.index_n_heads} heads. These are counts, not times."
    )
    table = Table(
        "Keys scored for one new token",
        ("Layer", "Mode", "Ratio", "Readable", "Scored", "Read"),
        tuple(rows),
        tuple(tuple(grouped(v) if isinstance(v, int) else v for v in row) for row in rows),
        folded=True,
    )
    summary = (
        f"At {CONTEXTS[index]} tokens layer {source[0]} scores {grouped(source[4])} keys and each of {len(later)} "
        f"later layers {grouped(later[0][4])}; all choosing layers together score "
        f"{grouped(total)}, without a pool {grouped(free)}."
    )
    return View((work_picture(rows, most), metrics, prose, table), summary)
