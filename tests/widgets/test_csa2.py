"""The numbers of the csa2 widget, derived again in plain Python; wrong mechanisms move them."""

import itertools
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu import widgets
from deepseek_edu.widgets import csa2 as widget_file
from deepseek_edu.widgets import csa2_group, live

ROOT = math.sqrt(2)
START = ("full", "reuse", "reindex", "reuse")


def view(**values) -> widgets.View:
    return widgets.evaluate("csa2", values)


def layers(**values) -> list[dict]:
    return view(**values).parts[0].raw["layers"]


def chosen(**values) -> list[list[int]]:
    return [layer["chosen"] for layer in layers(**values)]


def changed(**values) -> tuple[str, str]:
    """Names of the layers whose reading and whose output differ from the start."""
    marks = view(**values).parts[0].raw["changed"]
    return tuple("".join(itertools.compress("ABCD", marks[kind])) for kind in ("choice", "output"))


def edited(old: str, new: str, **values) -> dict:
    """Raw numbers of the picture when one place of the mechanism is written otherwise."""
    source = live.mechanism_source(widgets.get("csa2"))
    assert source.count(old) == 1, old
    answer = json.loads(live.evaluate_json("csa2", json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer["data"]["parts"][0]["raw"]


def dot(a, b) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def unit(pair) -> list[float]:
    return [x / math.hypot(*pair) for x in pair]


def by_hand(modes, queries, position) -> list[dict]:
    """A group of four layers with loops: entries, choices, softmax with a sink of score 0."""
    entries, choice, found = [], [], []
    for index, (mode, degrees) in enumerate(zip(modes, queries, strict=True)):
        rows = csa2_group.inputs(index, position + 1, degrees).tolist()
        own = [ROOT * x for x in unit(rows[-1][:2])]
        query = [ROOT * x for x in unit(rows[-1][2:4])]
        if mode == "full":
            entries = [[ROOT * x for x in unit(row[:2])] for row in rows]
        if mode != "reuse":
            scores = [max(0.0, dot(query, entry)) for entry in entries]
            choice = sorted(sorted(range(len(entries)), key=lambda j: (-scores[j], j))[:3])
        read = [own, *(entries[j] for j in choice)]
        powers = [math.exp(dot([2 * q for q in query], entry) / ROOT) for entry in read]
        total = math.fsum(powers) + 1
        output = [math.fsum(p * entry[axis] for p, entry in zip(powers, read, strict=True)) / total for axis in (0, 1)]
        found.append({"chosen": choice, "weights": [*(p / total for p in powers), 1 / total], "output": output})
    return found


def test_reindex_chooses_1_4_8_where_full_chose_2_5_7_and_reuse_keeps_what_was_chosen_last():
    assert chosen() == [[2, 5, 7], [2, 5, 7], [1, 4, 8], [1, 4, 8]]
    assert [layer["owner"] for layer in layers()] == ["A"] * 4
    assert [layer["chooser"] for layer in layers()] == ["A", "A", "C", "C"]


def test_outputs_are_never_shared():
    for values in ({}, {"b": "full", "d": "reindex"}, {"c": "reuse"}):
        outputs = [tuple(layer["output"]) for layer in layers(**values)]
        assert all(math.dist(a, b) > 0.01 for a, b in itertools.combinations(outputs, 2))


@settings(max_examples=60, deadline=None)
@given(
    modes=st.tuples(*[st.sampled_from(["full", "reindex", "reuse"])] * 3),
    who=st.integers(0, 3),
    turn=st.integers(-9, 9),
    position=st.integers(0, 11),
)
def test_every_group_computes_what_loops_compute(modes, who, turn, position):
    values = {**dict(zip("bcd", modes, strict=True)), "who": "ABCD"[who], "turn": 20 * turn, "position": position}
    queries = [q + 20 * turn * (i == who) for i, q in enumerate(csa2_group.QUERIES)]
    for layer, expected in zip(layers(**values), by_hand(("full", *modes), queries, position), strict=True):
        assert layer["chosen"] == expected["chosen"]
        assert layer["weights"] == pytest.approx(expected["weights"], abs=1e-9)
        assert list(layer["output"]) == pytest.approx(expected["output"], abs=1e-9)


def test_a_query_moves_its_own_output_and_what_reuses_its_choice():
    assert changed(who="A", turn=80) == ("AB", "AB")
    assert changed(who="B", turn=80) == ("", "B")
    assert changed(who="C", turn=80) == ("CD", "CD")
    assert changed(who="D", turn=80) == ("", "D")


def test_breaking_the_sharing_changes_the_layers_above_until_the_next_choice():
    assert changed(b="reindex") == ("B", "B")
    assert changed(b="full") == ("BCD", "BCD"), "C and D now read the entries of B"
    assert changed(c="full") == ("CD", "CD")
    assert changed(d="full") == ("D", "D")
    assert changed(c="reuse") == ("CD", "CD")


def test_entries_stored_and_keys_scored_are_counted():
    for modes in itertools.product(("full", "reindex", "reuse"), repeat=3):
        shown = view(**dict(zip("bcd", modes, strict=True)), position=7)
        numbers = {item.label: item.value for item in shown.parts[1].items}
        assert numbers["Sets of entries"] == 1 + modes.count("full")
        assert numbers["Choices made"] == 1 + len([m for m in modes if m != "reuse"])
        assert f"{8 * numbers['Sets of entries']} stored" in shown.parts[1].items[0].note


def test_no_query_reads_an_entry_ahead_of_it():
    for position in range(12):
        for row in chosen(position=position):
            assert len(row) == min(3, position + 1) and max(row) <= position


@pytest.mark.parametrize("ratio", [1, 2])
def test_an_entry_is_readable_from_its_last_token_on(ratio):
    for at in range(12):
        shown = view(part="visible", ratio=str(ratio), at=at).parts[0].raw
        complete = [j for j in range(12 // ratio) if all(token <= at for token in range(j * ratio, (j + 1) * ratio))]
        assert shown["visible"][at] == len(complete)
        assert shown["waiting"] == at + 1 - ratio * len(complete)
    assert view(part="visible", ratio="2").parts[0].raw["visible"][:4] == [0, 1, 1, 2]


def test_an_entry_of_two_tokens_is_their_softmax_mix():
    values, gates = widget_file.VALUES, widget_file.GATES
    shown = view(part="visible").parts[0].raw["entries"]
    for j, entry in enumerate(shown):
        a, b = math.exp(gates[2 * j]), math.exp(gates[2 * j + 1])
        assert entry == pytest.approx((a * values[2 * j] + b * values[2 * j + 1]) / (a + b), abs=1e-12)
    assert view(part="visible", ratio="1").parts[0].raw["entries"] == list(values)


def test_wrong_mechanisms_move_numbers_that_are_checked_here():
    anew = edited('plan.mode in ("full", "reindex")', "True")
    assert [layer["chosen"] for layer in anew["layers"]] == [[2, 5, 7], [3, 5, 7], [1, 4, 8], [1, 3, 11]]
    stuck = edited("published.choices[plan.chooser]", "published.choices[0]")
    assert stuck["layers"][3]["chosen"] == [2, 5, 7]
    early = edited("(np.asarray(positions) + 1) // ratio", "np.asarray(positions) // ratio + 1", part="visible")
    assert early["visible"][:4] == [1, 1, 2, 2]
    late = edited("(np.asarray(positions) + 1) // ratio", "np.asarray(positions) // ratio", position=2)
    assert [layer["chosen"] for layer in late["layers"]] == [[0, 1]] * 4
    no_sink = edited(" + np.exp(sinks - highest)", "")
    assert no_sink["layers"][0]["weights"][-1] == pytest.approx(0, abs=1e-12)
    assert layers()[0]["weights"][-1] > 0.01
    even = edited("activations.softmax(gates.reshape(-1, ratio, width), axis=1)", "1 / ratio", part="visible")
    assert even["entries"][1] == 5
