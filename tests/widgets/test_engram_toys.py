"""The small parts of the engram widget in plain integers: the toy hash, the toy gate, collisions, packed tables."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.widgets import engram_collisions

from .test_engram import metrics, primes_above, raw, view

# The toy hash and the toy gate


def test_the_toy_hash_of_the_inventory():
    shown = raw(part="hash")
    assert shown["sums"][0] == [2250, 630, 129]
    assert shown["rows"] == [[28, 24, 28], [71, 60, 30]]
    assert shown["read"][0][0].tolist() == shown["read"][2][0].tolist() == [0.2, -0.5, 0.8]
    assert shown["read"][0][1].tolist() != shown["read"][2][1].tolist()
    found = metrics(part="hash")
    assert (found["Collisions of head 1"], found["Collisions of both heads"]) == (1, 0)


@settings(max_examples=60, deadline=None)
@given(
    ids=st.lists(st.integers(0, 100), min_size=4, max_size=4),
    factors=st.tuples(st.integers(1, 100), st.integers(1, 100)),
    mixed=st.sampled_from(["plus", "xor"]),
)
def test_toy_rows_of_any_words(ids, factors, mixed):
    a, b, c, d = ids
    join = {"plus": lambda x, y: x + y, "xor": lambda x, y: x ^ y}[mixed]
    shown = raw(part="hash", ids=ids, first=factors[0], second=factors[1], mixed=mixed)
    assert shown["rows"] == [[join(f * x, y) % 101 for x, y in ((a, b), (b, a), (c, d))] for f in factors]


def test_two_heads_collide_when_their_factors_are_the_same():
    assert metrics(part="hash", second=31)["Collisions of both heads"] == 1


def test_a_gate_of_eight_tenths():
    shown = raw(part="gate")
    assert shown["after"].tolist() == pytest.approx([2.1, -0.3], abs=1e-12)
    assert shown["gate"] == pytest.approx(0.8, abs=1e-12)
    assert shown["dot"] == pytest.approx(math.log(4) ** 2, abs=1e-12)
    assert "[2.1, −0.3]" in view(part="gate").summary


@pytest.mark.parametrize("step", range(1, 20))
def test_the_gate_moves_along_one_line_and_its_root_has_a_sign(step):
    aimed, value, state = step / 20, (1.5, 2.0), (-0.4, 0.3)
    shown = raw(part="gate", gate=aimed, vectors=[*value, *state])
    assert shown["after"].tolist() == pytest.approx(
        [s + aimed * v for s, v in zip(state, value, strict=True)], abs=1e-3
    )
    signed = math.copysign(math.sqrt(max(abs(shown["dot"]), 1e-6)), shown["dot"])
    assert shown["gate"] == pytest.approx(1 / (1 + math.exp(-signed)), abs=1e-12)
    assert (shown["dot"] < 0) == (aimed < 0.5)


# Collisions


def counted(rows: list[tuple]) -> int:
    return sum(math.comb(times, 2) for times in Counter(rows).values())


def pairs(draw: int) -> list[tuple[int, int]]:
    random = np.random.default_rng(draw)
    first, second = (random.choice(99_092, 16, replace=False).tolist() for _ in range(2))
    return list(itertools.product(first, second))


def factors_of(layer: int) -> list[int]:
    bound = (2**63 - 1) // 99_092 // 2
    return [2 * int(v) + 1 for v in np.random.default_rng(10007 * layer).integers(0, bound, 2)]


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
@pytest.mark.parametrize(("place", "size"), list(enumerate([17, 53, 101, 257, 1009, 4099])))
@pytest.mark.parametrize("draw", [1, 7])
def test_collisions_counted_again_and_the_birthday_formula_in_fractions(heads, place, size, draw):
    primes = list(itertools.islice(primes_above(size), heads))
    m = factors_of(draw)
    rows = [tuple(((b * m[0]) ^ (a * m[1])) % p for p in primes) for a, b in pairs(draw)]
    shown = raw(part="pairs", heads=str(heads), size=place, draw=draw)
    assert list(shown["rows"]) == primes
    assert shown["meetings"] == counted(rows)
    assert shown["alone"] == sum(times == 1 for times in Counter(rows).values())
    assert shown["expected"] == pytest.approx(float(Fraction(math.comb(256, 2), math.prod(primes))), rel=1e-12)
    some = [any(sum(r[h] == other[h] for other in rows) > 1 for h in range(heads)) for r in rows]
    assert shown["some"] == sum(some)


def test_eight_heads_tell_apart_what_one_confuses():
    one, eight = raw(part="pairs"), raw(part="pairs", heads="8")
    assert one["meetings"] > 250 and one["alone"] < 40
    assert eight["meetings"] == 0 and eight["some"] == 256


def test_the_same_memory_in_three_layouts():
    one, two, primes = raw(part="pairs", experiment="equal")
    assert [sum(sizes) * width for _, sizes, width in engram_collisions.LAYOUTS.values()] == [400, 400, 400]
    assert [layout["combinations"] for layout in (one, two, primes)] == [100, 10_000, 9_991]
    assert one["expected"] == 326.4 and two["expected"] == 3.264
    for layout, sizes in ((one, (100,)), (two, (100, 100)), (primes, (97, 103))):
        found = []
        for draw in range(1, 21):
            m = [factors_of(1000 * (table + 1) + draw) for table in range(len(sizes))]
            found.append(
                counted(
                    [
                        tuple(((b * f[0]) ^ (a * f[1])) % s for f, s in zip(m, sizes, strict=True))
                        for a, b in pairs(draw)
                    ]
                )
            )
        assert layout["meetings"] == found[0]
        assert layout["mean"] == pytest.approx(sum(found) / 20)
    assert two["mean"] > 2 * two["expected"], "two tables of 100 rows agree on even or odd"
    assert primes["mean"] < two["mean"] / 2 < one["mean"] / 20


def test_rows_of_two_tables_with_an_even_size_agree_on_even_or_odd():
    rows = engram_collisions.layout_rows("two", 3)
    assert ((rows[:, 0] - rows[:, 1]) % 2 == 0).all()
    assert 0 < ((engram_collisions.layout_rows("primes", 3) @ [1, -1]) % 2).sum() < 256


# Packed table


def test_a1_and_b1_with_and_without_offsets():
    right, none, wrong = (raw(part="packed", offsets=kind) for kind in ("right", "none", "own"))
    assert right["indices"] == [1, 4] and right["offsets"] == [0, 3]
    assert right["read"] == [[0.2, -0.5], [0.6, 0.1]]
    assert none["indices"] == [1, 1] and none["read"] == [[0.2, -0.5], [0.2, -0.5]]
    assert wrong["indices"] == [1, 5] and wrong["read"][1] != [0.6, 0.1]


@pytest.mark.parametrize("number", range(12))
def test_every_mixed_number_asks_for_another_pair_of_rows(number):
    a, b = number % 3, number % 4
    assert raw(part="packed", number=number)["indices"] == [a, 3 + b]
    assert raw(part="packed", number=number, offsets="none")["indices"] == [a, b]
    outside = raw(part="packed", number=number, offsets="own")
    assert outside["indices"] == [a, 4 + b] and (outside["read"][1] is None) == (b == 3)


def test_only_a_test_of_the_second_head_is_sure_to_notice():
    def verdicts(offsets: str) -> list[str]:
        return [row[1] for row in view(part="packed", offsets=offsets).parts[3].rows]

    assert verdicts("right") == ["passes"] * 4
    assert verdicts("none") == ["passes", "passes", "passes", "fails"]
    assert verdicts("own") == ["passes", "fails", "passes", "fails"]


def test_rows_that_a_factor_moved_have_the_colour_of_change_in_its_head_alone():
    def moved(**values) -> int:
        return view(part="hash", **values).parts[0].wide.markup.count('class="k-changed" rx="1"')

    assert moved() == 0
    assert moved(first=10) == 3, "10 · 72 + 18, 10 · 18 + 72 and 10 · 1 + 98 leave 31, 50 and 7, all other rows"
    assert moved(ids=[72, 18, 1, 97]) == 2, "another cream moves ice cream in both heads"
