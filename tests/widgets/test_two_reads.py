"""The numbers of the two-reads widget, derived again in plain Python; wrong mechanisms move them."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu import widgets
from deepseek_edu.widgets import live

SECOND = [[2, 0], [0, 2], [1, 1]], [[1, 0], [0, 1], [0.5, 0.5]]


def raw(**values) -> dict:
    return widgets.evaluate("two-reads", values).parts[0].raw


def edited(old: str, new: str, **values) -> dict:
    """Raw numbers of the picture when one place of the mechanism is written otherwise."""
    source = live.mechanism_source(widgets.get("two-reads"))
    assert source.count(old) == 1, old
    answer = json.loads(live.evaluate_json("two-reads", json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer["data"]["parts"][0]["raw"]


def by_hand(query, keys, values) -> list[float]:
    """softmax(q Kᵀ / √2) V."""
    powers = [math.exp((query[0] * x + query[1] * y) / math.sqrt(2)) for x, y in keys]
    return [math.fsum(p * v[axis] for p, v in zip(powers, values, strict=True)) / math.fsum(powers) for axis in (0, 1)]


def test_query_a_reads_twice_e_over_e_plus_one_from_the_two_entries():
    shown = raw()
    assert list(shown["A"]["query"]) == [pytest.approx(math.sqrt(2), abs=1e-15), 0]
    assert list(shown["A"]["scores"]) == pytest.approx([1, 0], abs=1e-15)
    assert list(shown["A"]["shares"]) == pytest.approx([math.e / (math.e + 1), 1 / (math.e + 1)], abs=1e-12)
    assert list(shown["A"]["output"]) == pytest.approx([2 * math.e / (math.e + 1), 2 / (math.e + 1)], abs=1e-12)
    assert list(shown["B"]["output"]) == pytest.approx([2 / (math.e + 1), 2 * math.e / (math.e + 1)], abs=1e-12)


def test_the_second_example_has_two_queries_over_three_entries():
    shown = raw(memory="three")
    assert [list(shown[name]["query"]) for name in "AB"] == [[0, 1], [1, 0]]
    for name, query in (("A", (0, 1)), ("B", (1, 0))):
        assert list(shown[name]["output"]) == pytest.approx(by_hand(query, *SECOND), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(numbers=st.lists(st.floats(-9, 9), min_size=4, max_size=4))
def test_any_two_queries(numbers):
    shown = raw(memory="three", queries="own", typed=numbers)
    for name, query in (("A", numbers[:2]), ("B", numbers[2:])):
        assert list(shown[name]["output"]) == pytest.approx(by_hand(query, *SECOND), abs=1e-9)
        assert math.fsum(shown[name]["shares"]) == pytest.approx(1, abs=1e-12)


def test_turning_one_query_leaves_the_other_read_alone():
    reads = [raw(queries="turn", angle=angle) for angle in (-60, 0, 45, 90, 150)]
    assert len({tuple(shown["A"]["output"]) for shown in reads}) == 1
    assert len({tuple(shown["B"]["output"]) for shown in reads}) == 5
    assert list(reads[1]["B"]["output"]) == pytest.approx(list(reads[1]["A"]["output"]), abs=1e-6)


def test_the_words_tell_equal_queries_from_equal_shares():
    words = {
        angle: widgets.evaluate("two-reads", {"queries": "turn", "angle": angle}).parts[2].text
        for angle in (-90, 0, 45)
    }
    assert "queries are the same" in words[0]
    assert "agree although the queries differ" in words[-90], "only x − y of a query matters to these two keys"
    assert "so the outputs differ" in words[45]


def test_wrong_mechanisms_move_numbers_that_are_checked_here():
    unscaled = edited(" / queries.dtype.type(queries.shape[-1] ** 0.5)", "")
    assert unscaled["A"]["shares"][0] > 0.8 > raw()["A"]["shares"][0]
    early = edited("> start + np", "> start - 2 + np")
    assert early["A"]["shares"] == [1, 0]
    turned = edited("x @ weight", "x @ weight[::-1]")
    assert turned["A"]["output"] == pytest.approx(list(raw()["B"]["output"]), abs=1e-12)
