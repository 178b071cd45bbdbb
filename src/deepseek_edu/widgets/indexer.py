"""Widget `indexer`: small heads score entries, the best are read by address, and a pool bounds the later searches.

Mechanism: `reference.indexer` (report, section 2.3.2), called through the module. The views:
addresses and values, the score of two heads, and (in `indexer_pool`) the candidate pool, step by step on a few
positions, on 128, and counted at real sizes.
"""

import math

import numpy as np

from deepseek_edu.drawing.numbers import fixed, listed, show
from deepseek_edu.reference import indexer as mechanism

from .contract import Choice, Numbers, Slider, View, widget
from .indexer_drawing import addresses_picture, heads_picture
from .indexer_examples import HEADS, KEYS, OWN_QUERIES, SCORES, SECOND, VALUES
from .indexer_pool import CONTEXTS, STEPS, hierarchy, many, real
from .parts import Metric, Metrics, Prose, Table
from .parts import View as Answer

ADDRESSES, SCORE, BLOCKS, MANY, REAL = ({"part": name} for name in ("addresses", "score", "blocks", "many", "real"))


@widget(
    "indexer",
    title="Which entries are worth reading",
    mechanism={
        "reference.indexer": ("index_keys", "index_queries", "head_weights", "index_scores", "top_k", "candidate_pool")
    },
    source="report §2.3.2",
    chapter="05_sharing_selecting",
    grid=("part", "example", "likeness"),
)
def indexer(
    part: Choice(
        {
            "addresses": "Addresses",
            "score": "A score",
            "blocks": "Candidate pool",
            "many": "128 positions",
            "real": "Real sizes",
        },
        "Show",
        look="segments",
    ) = "addresses",
    scores: Choice(
        {"lesson": "One slider", "own": "Type all four"}, "Scores", look="segments", when=ADDRESSES
    ) = "lesson",
    zero: Slider(0, 1, 0.05, "Score of position 0", when={**ADDRESSES, "scores": "lesson"}) = SCORES[0],
    typed: Numbers(-9, 9, 0.05, "Scores by position", length=len(SCORES), when={**ADDRESSES, "scores": "own"}) = SCORES,
    k: Slider(1, len(SCORES), 1, "Read how many (k)", when=ADDRESSES) = 2,
    queries: Choice({"turn": "Turn query A", "own": "Type both"}, "Queries", look="segments", when=SCORE) = "turn",
    angle: Slider(-180, 180, 15, "Direction of query A", unit="°", when={**SCORE, "queries": "turn"}) = 30,
    own: Numbers(
        -2,
        2,
        0.1,
        "Index queries",
        length=4,
        columns=2,
        names=("x", "y"),
        rows=HEADS,
        when={**SCORE, "queries": "own"},
    ) = OWN_QUERIES,
    weight_a: Slider(-1, 1, 0.1, "Weight of head A", stops=11, when=SCORE) = 1.0,
    weight_b: Slider(-1, 1, 0.1, "Weight of head B", stops=11, when=SCORE) = -0.6,
    best: Slider(1, len(KEYS), 1, "Choose how many", when=SCORE) = 3,
    example: Choice({"24": "24 positions", "16": "16, uneven scores"}, "Example", look="segments", when=BLOCKS) = "24",
    step: Slider(1, len(STEPS), 1, "Step", look="steps", names=STEPS, when=BLOCKS) = 6,
    kept: Slider(1, 6, 1, "Blocks in the pool", when=BLOCKS) = 2,
    seen: Slider(0, 24, 1, "Positions the query may read", when={**BLOCKS, "example": "24"}) = 20,
    seen16: Slider(0, 16, 1, "Positions the query may read", when={**BLOCKS, "example": "16"}) = 14,
    pool: Slider(1, 32, 1, "Blocks in the pool", when=MANY) = 8,
    likeness: Choice(
        {"0.95": "0.95", "0.8": "0.8", "0.5": "0.5"},
        "How alike the layers’ inputs are",
        help="1 would be the same input.",
        look="segments",
        when=MANY,
    ) = "0.95",
    context: Slider(0, len(CONTEXTS) - 1, 1, "Tokens of context", names=CONTEXTS, when=REAL) = 10,
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "addresses":
        return _addresses(typed if scores == "own" else (zero, *SCORES[1:]), int(k))
    if part == "score":
        turned = (round(math.cos(math.radians(angle)), 3), round(math.sin(math.radians(angle)), 3), *SECOND)
        return _score(own if queries == "own" else turned, (weight_a, weight_b), int(best))
    if part == "blocks":
        return hierarchy(example, int(step), int(kept), int(seen if example == "24" else seen16))
    if part == "many":
        return many(int(pool), float(likeness))
    return real(int(context))


def _addresses(scores: tuple[float, ...], k: int) -> View:
    chosen = [int(j) for j in mechanism.top_k(np.array([scores]), [len(scores)], k)[0] if j >= 0]
    values = [VALUES[j] for j in chosen]
    last = min((scores[j] for j in chosen), default=math.inf)
    tied = [j for j in range(len(scores)) if scores[j] == last]
    left_out = [j for j in tied if j not in chosen]
    metrics = Metrics(
        (
            Metric("Positions", listed(chosen), note="what the indexer returns", role="result"),
            Metric("Values read", listed(values), note="what attention gets"),
            Metric("Entries still stored", len(scores), note="selecting deletes nothing"),
        ),
        "Addresses",
    )
    if left_out:
        prose = Prose(
            f"Positions {listed(tied)} have the same score. Here the lower position wins, so {listed(left_out)} "
            f"{'is' if len(left_out) == 1 else 'are'} left out. The released code does not say which one wins.",
            "warn",
        )
    else:
        prose = Prose(
            "The indexer returns addresses, no values and no weights. Attention reads the entries at these addresses "
            "and computes its own scores over them; the indexer’s scores are thrown away."
        )
    summary = (
        f"With scores {', '.join(show(s, 3) for s in scores)} and k = {k} the indexer returns positions "
        f"{listed(chosen)}; attention reads the values {listed(values)}."
    )
    return Answer((addresses_picture(scores, VALUES, chosen, k), metrics, prose), summary)


def _score(queries: tuple[float, ...], weights: tuple[float, float], best: int) -> View:
    q, keys = np.array(queries).reshape(1, 2, 2), np.array(KEYS)
    scores = mechanism.index_scores(q, np.array([weights]), keys)[0]
    counted = np.stack([mechanism.index_scores(q, one[None], keys)[0] for one in np.eye(2)])  # of each head alone
    products = (q[0] @ keys.T).round(12) + 0.0
    straight = np.array(weights) @ products
    seen = [len(keys)]
    chosen = [int(j) for j in mechanism.top_k(scores[None].round(12), seen, best)[0]]
    without = [int(j) for j in mechanism.top_k(straight[None].round(12), seen, best)[0]]
    silent = int((products < 0).sum())
    metrics = Metrics(
        (
            Metric("Chosen", listed(chosen), note=f"the {best} best of {len(keys)}", role="result"),
            Metric("Products cut to 0", silent, note=f"of {counted.size}: a head has no say there"),
            Metric("Scores below 0", int((scores < 0).sum()), note="a head with a negative weight speaks against"),
        ),
        "A score",
    )
    if without == chosen:
        words = "Without the rectification the same entries would be chosen here."
    else:
        words = f"Without the rectification {listed(without)} would be chosen."
    prose = Prose(
        f"{words} It also would leave no reason for two heads: the weighted sum of products is the product with one "
        "summed query. Cutting at 0 is what makes several heads more than one."
    )
    ties = [j for j in range(len(keys)) if j not in chosen and abs(scores[j] - min(scores[c] for c in chosen)) < 1e-12]
    notes = (Prose(f"Entry {listed(ties)} ties with the last one chosen; the lower position wins here.", "warn"),)
    table = Table(
        "Every product",
        ("Entry", "q·k of A", "counted", "q·k of B", "counted", "Score", "Without cutting"),
        rows := tuple(
            (j, *map(float, (products[0, j], counted[0, j], products[1, j], counted[1, j], scores[j], straight[j])))
            for j in range(len(keys))
        ),
        tuple((str(row[0]), *(fixed(value, 2) for value in row[1:])) for row in rows),
        tuple(chosen),
        folded=True,
    )
    picture = heads_picture(q[0], weights, keys, products, counted, scores, chosen)
    summary = (
        f"With head weights {fixed(weights[0], 1)} and {fixed(weights[1], 1)} entries {listed(chosen)} have the best "
        f"scores; {silent} of {counted.size} products were negative and count as 0. {words}"
    )
    return Answer((picture, metrics, prose, *(notes if ties else ()), table), summary)
