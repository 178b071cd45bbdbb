"""The invented numbers of the `indexer` widget: hand-made scores, and random queries and keys for 128 positions."""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import indexer

from .memo import remembered

BLOCK = 4  # entries in a block of the toys; the model has 8
SCORES = (0.2, 0.9, 0.1, 0.8)
VALUES = (10, 20, 30, 40)

HEADS = ("A", "B")
KEYS = ((1.0, 0.2), (0.6, 0.8), (-0.2, 1.0), (-0.9, 0.4), (-0.7, -0.7), (0.1, -1.0), (0.8, -0.6), (0.4, 0.3))
SECOND = (0.8, -0.6)  # query of head B
OWN_QUERIES = (0.9, 0.5, *SECOND)


@dataclass(frozen=True)
class Hierarchy:
    """Scores of three layers over the same entries: the first one makes the pool, the others search in it."""

    first: tuple[float, ...]
    later: tuple[tuple[float, ...], ...]
    chosen: int  # entries that each layer reads


HIERARCHIES = {
    "24": Hierarchy(
        (.1, .3, .2, .1,  .4, .9, .2, .7,  .3, .4, .6, .1,  .2, .1, .4, .3,  .2, .5, .3, .1,  .8, .1, .2, .4),
        (
            (.2, .1, .3, .1,  .8, .2, .7, .3,  .4, .2, .5, .1,  .1, .3, .2, .2,  .1, .9, .4, .3,  .2, .6, .1, .3),
            (.1, .2, .1, .3,  .2, .6, .1, .4,  .3, .1, .9, .2,  .2, .3, .1, .2,  .5, .3, .8, .7,  .4, .1, .3, .2),
        ),
        3,
    ),
    "16": Hierarchy(
        (.9, -1, .3, .2,  5, 4, .1, 0,  .8, .7, -2, -3,  1, 1.5, 2, .5),
        (
            (.3, 2, .1, -1,  1.2, .4, 3, .2,  2.5, .6, .1, -2,  .8, .5, 1, .3),
            (1.8, .2, -1, .6,  .3, 2.2, .1, .9,  .4, 1.1, -.5, .2,  1.4, .7, .1, 2),
        ),
        3,
    ),
}  # fmt: skip

POSITIONS = 128
TOP = 8
LATER = 2
LIKENESS = (0.95, 0.8, 0.5)
QUERIES = 48
INDEX_HEADS, INDEX_WIDTH = 4, 8
_LATENT, _NARROW, _STREAM = 16, 12, 12
_SEED = 7


@remembered(2)
def many_scores() -> dict:
    """Scores of QUERIES queries at 128 entries: "first" [Q N], and for each likeness one array [Q N] per later layer.

    Neighbouring entries are alike, as neighbouring tokens are. A later layer has its own input, which shares as much
    with the first layer's as the likeness says (1: the same, 0: nothing).
    """
    rng = np.random.default_rng(_SEED)
    latents = rng.normal(size=(POSITIONS, _LATENT))
    for j in range(1, POSITIONS):
        latents[j] = 0.7 * latents[j - 1] + (1 - 0.7**2) ** 0.5 * latents[j]
    wk = rng.normal(size=(INDEX_WIDTH, _LATENT))
    keys = indexer.index_keys(latents, wk, np.ones(INDEX_WIDTH), 1e-20)
    wq = rng.normal(size=(INDEX_HEADS * INDEX_WIDTH, _NARROW)) / _NARROW**0.5
    wp = rng.normal(size=(INDEX_HEADS, _STREAM))
    inputs = rng.normal(size=(1 + LATER, QUERIES, _NARROW + _STREAM))

    def scores(own: np.ndarray) -> np.ndarray:
        queries = indexer.index_queries(own[:, :_NARROW], wq, INDEX_HEADS)
        weights = indexer.head_weights(own[:, _NARROW:], wp, INDEX_WIDTH)
        return indexer.index_scores(queries, weights, keys)

    mixed = {a: [a * inputs[0] + (1 - a * a) ** 0.5 * own for own in inputs[1:]] for a in LIKENESS}
    return {"first": scores(inputs[0]), **{a: [scores(own) for own in layers] for a, layers in mixed.items()}}


@remembered(2)
def recall_curves() -> dict:
    """Mean recall of the true Top-k for each likeness, over all queries and later layers, from one block up."""
    scores = many_scores()
    seen = np.full(QUERIES, POSITIONS)
    rows = np.arange(QUERIES)[:, None]
    wanted = {}
    for a in LIKENESS:
        wanted[a] = []
        for layer in scores[a]:
            true = np.zeros((QUERIES, POSITIONS), bool)
            true[rows, indexer.top_k(layer, seen, TOP)] = True
            wanted[a].append(true)
    curves: dict[float, list[float]] = {a: [] for a in LIKENESS}
    for blocks in range(1, POSITIONS // BLOCK + 1):
        pool = indexer.candidate_pool(scores["first"], seen, blocks, BLOCK)
        for a in LIKENESS:
            found = sum(int((true & pool).sum()) for true in wanted[a])
            curves[a].append(found / (LATER * QUERIES * TOP))
    return curves
