"""The collision experiments of the `engram` widget: 256 pairs of words, counted under the mechanism's own hash.

Sixteen first words and sixteen second words, ids drawn from the released range, every pair of them once. The draws are
seeded, so that a count can be repeated. Beside each count stands what evenly spread, independent rows would give.
"""

import math
from types import SimpleNamespace

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing.numbers import counted, fixed, grouped, show
from deepseek_edu.reference import engram

from .engram_collisions_drawing import equal_picture, grid_picture
from .memo import remembered
from .parts import Metric, Metrics, Prose, Table, View

SIDE = 16
PAIRS = SIDE * SIDE
SIZES = (17, 53, 101, 257, 1009, 4099)
DRAWS = 20
LAYOUTS = {
    "one": ("One table, 100 × 4", (100,), 4),
    "two": ("Two tables, 100 × 2", (100, 100), 2),
    "primes": ("Two tables, 97 × 2 and 103 × 2", (97, 103), 2),
}


def _settings(size: int, heads: int) -> SimpleNamespace:
    """What `prime_moduli` and `hash_multipliers` need: groups of two, and heads whose first table has this size."""
    return SimpleNamespace(
        engram_layer_ids=(0,),
        engram_max_ngram_size=2,
        engram_vocab_size=size,
        engram_n_heads=heads,
        engram_compressed_vocab_size=ModelConfig.v41_flash().engram_compressed_vocab_size,
    )


def _history(draw: int) -> np.ndarray:
    """All pairs of one draw: [256 2], newest first; row by row of the grid the first word changes."""
    random = np.random.default_rng(draw)
    limit = _settings(1, 1).engram_compressed_vocab_size
    first, second = (random.choice(limit, SIDE, replace=False) for _ in range(2))
    return np.stack([np.tile(second, SIDE), np.repeat(first, SIDE)], axis=1)


@remembered(32)
def rows_of(size: int, heads: int, draw: int) -> tuple[np.ndarray, list[int]]:
    """Rows of all pairs [256 heads], and the sizes of the tables."""
    settings = _settings(size, heads)
    primes = engram.prime_moduli(settings)[0]
    return engram.hash_rows(_history(draw), engram.hash_multipliers(draw, settings), primes), primes[0]


def layout_rows(layout: str, draw: int) -> np.ndarray:
    """The same pairs in tables of fixed sizes, each with multipliers of its own: [256 tables]."""
    settings, history = _settings(1, 1), _history(draw)
    columns = [
        engram.hash_rows(history, engram.hash_multipliers(1000 * (table + 1) + draw, settings), [[size]])[:, 0]
        for table, size in enumerate(LAYOUTS[layout][1])
    ]
    return np.stack(columns, axis=1)


def groups_alike(rows: np.ndarray) -> np.ndarray:
    """For each pair of words, how many others read exactly the same rows."""
    _, place, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return count[place.reshape(-1)] - 1


def shares_some(rows: np.ndarray) -> np.ndarray:
    """For each pair of words, whether another reads one of its rows at least."""
    return np.stack([groups_alike(column[:, None]) > 0 for column in rows.T]).any(axis=0)


def meetings(rows: np.ndarray) -> int:
    """How many pairs of groups read exactly the same rows."""
    return int(groups_alike(rows).sum()) // 2


def expected(places: float) -> float:
    """Meetings of 256 groups if each takes one of so many places at random: the birthday formula."""
    return math.comb(PAIRS, 2) / places


@remembered(4)
def usual(layout: str) -> float:
    """Meetings in a layout, mean of all draws."""
    return sum(meetings(layout_rows(layout, draw)) for draw in range(1, DRAWS + 1)) / DRAWS


def heads_view(heads: int, size: int, draw: int) -> View:
    """One draw under some heads."""
    rows, primes = rows_of(size, heads, draw)
    alike, some = groups_alike(rows), shares_some(rows)
    met, by_chance = meetings(rows), expected(math.prod(map(float, primes)))
    alone = int((alike == 0).sum())
    some_expected = PAIRS * (1 - math.prod((1 - 1 / p) ** (PAIRS - 1) for p in primes))
    picture = grid_picture(alike, some, met, by_chance, primes)
    metrics = Metrics(
        (
            Metric(
                "Meetings, counted",
                met,
                note="pairs of groups that read the same rows",
                role="error" if met else "result",
            ),
            Metric("Meetings, by the birthday formula", by_chance, _small(by_chance)),
            Metric("Groups that no other equals", alone, note=f"of {PAIRS}"),
            Metric("Groups that share some row", int(some.sum()), note=f"expected {show(some_expected, 3)}"),
        ),
        "Collisions",
    )
    places = math.prod(primes)
    known = (
        f"{places} places for {PAIRS} groups: some have to meet."
        if places < PAIRS
        else f"{_many(places)} combinations of rows: meetings become rare. They stay possible."
    )
    prose = Prose(
        f"{known} With one head, a shared row is a full collision. With {heads if heads > 1 else 8} heads a group is "
        "confused with another only where all rows agree; single rows are still shared, but the others tell the groups "
        "apart. More heads of the same size cost more memory; the other view holds the memory fixed."
    )
    table = Table("Tables", ("Head", "Rows"), tuple((i + 1, int(p)) for i, p in enumerate(primes)), folded=True)
    return View(
        (picture, metrics, prose, table),
        f"256 pairs, {counted(heads, 'head')}, about {grouped(size)} rows each: {counted(met, 'meeting')} "
        f"counted, {_small(by_chance)} expected; {int(some.sum())} groups share some row.",
    )


def equal_view(draw: int) -> View:
    """The same memory, 400 numbers, laid out in three ways."""
    found = []
    for layout, (name, sizes, _) in LAYOUTS.items():
        rows = layout_rows(layout, draw)
        by_chance = expected(math.prod(sizes))
        found.append((name, groups_alike(rows), meetings(rows), usual(layout), by_chance, math.prod(sizes)))
    metrics = Metrics(
        tuple(
            Metric(name, mean, show(mean, 3), note=f"meetings, mean of {DRAWS} draws; expected {show(chance, 3)}")
            for name, _, _, mean, chance, _ in found
        ),
        "Equal memory",
    )
    one, two, _ = found
    prose = Prose(
        f"All three hold 400 numbers. Two small tables have {grouped(two[5])} combinations instead of {one[5]}, so far "
        "fewer groups are confused, for the price of shorter rows. That is no guarantee that a combination is unique. "
        f"Two tables of 100 rows do worse than the formula ({show(two[3], 3)} instead of {show(two[4], 3)}): with odd "
        "multipliers the last bit of a product is that of the id, so both rows are even or both are odd, and at most "
        "half of the combinations can occur. Different primes have no such factor in common."
    )
    summary = f"Meetings of 256 groups at equal memory, mean of {DRAWS} draws: " + "; ".join(
        f"{name}: {show(mean, 3)}, expected {show(chance, 3)}" for name, _, _, mean, chance, _ in found
    )
    return View((equal_picture(found), metrics, prose), f"{summary}.")


def _small(value: float) -> str:
    return fixed(value, 1) if value >= 0.95 else show(value, 2)


def _many(places: int) -> str:
    return grouped(places) if places < 10**9 else show(float(places), 2)
