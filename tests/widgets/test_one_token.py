"""The walk of one token: printed numbers, what follows from a change, what cannot, mutants."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu import widgets
from deepseek_edu.widgets import live
from deepseek_edu.widgets.one_token_data import PRINTED
from deepseek_edu.widgets.one_token_stops import LABELS, STOPS
from deepseek_edu.widgets.one_token_walk import INPUTS, START, tolerance, walk
from tests.reference.test_v4_trace import GIVEN, RECOMPUTED

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "one_token_trace.json").read_text())
CONSTANT = {"ids", "csa.entry_tokens", "hca.entry_tokens"}  # spelling and groups, which no rule of the model makes


def of(name: str):
    part, _, rest = name.partition(".")
    return ORACLE[part][rest] if rest else ORACLE[part]


def view(**values) -> widgets.View:
    return widgets.evaluate("one-token", values)


def edited(old: str, new: str, **values) -> dict:
    source = live.mechanism_source(widgets.get("one-token"))
    assert source.count(old) == 1, old
    answer = json.loads(live.evaluate_json("one-token", json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer["data"]["parts"][0]["raw"]


def stop(name: str) -> int:
    return 1 + [s.name for s in STOPS].index(name)


def test_the_numbers_in_the_package_are_those_of_the_oracle():
    assert {name: value for name, value in ORACLE.items() if name not in ("about", "caveats")} == PRINTED


def test_every_number_that_can_be_recomputed_is():
    _, found = walk()
    assert set(found) == (set(RECOMPUTED) - CONSTANT) | {"hash_moe.gates"}
    for name, values in found.items():
        assert np.abs(np.ravel(values) - np.ravel(of(name))).max(initial=0) <= tolerance(name), name
    assert sum(np.size(values) for values in found.values()) == 119


def test_every_given_number_that_something_reads_can_be_changed():
    read_by_nothing = {"about", "caveats", "swa.v_head1", "csa.context", "csa.F_csa", "csa.entries", "csa.index_scores"}
    sizes = {"swa.window", "csa.m", "hca.m", "csa.weights_a", "csa.weight_b"}
    assert set(GIVEN) - read_by_nothing - sizes | {"ids", "swa.scores"} == set(INPUTS)


def test_every_number_stands_at_a_stop():
    shown = {name for s in STOPS for name in (*s.given, *s.made)}
    _, found = walk()
    assert shown == set(found) | set(INPUTS)
    only = {name for s in STOPS for name in s.only}
    assert shown | only <= set(LABELS)
    sizes = {"swa.window", "csa.m", "hca.m"}  # and groups and index scores stand in the picture of what p may read
    drawn = {"csa.entry_tokens", "hca.entry_tokens", "csa.index_scores"}
    names = {f"{part}.{name}" if isinstance(of(part), dict) else part for part in PRINTED for name in of(part)
             if isinstance(of(part), dict)} | {part for part in PRINTED if not isinstance(of(part), dict)}  # fmt: skip
    assert shown | only | sizes | drawn == names, "all that is printed is shown"


def test_the_view_says_that_all_agree():
    items = {item.label: item for item in view().parts[1].items}
    assert items["As printed"].value == 119 and items["As printed"].text == "119 of 119"
    assert items["Largest difference"].value < 1.5e-4


def test_an_entry_is_visible_when_its_last_token_has_come():
    shown = view(stop=stop("What p may read")).parts[1]
    ends = {kind: [tokens[-1] for tokens in of(f"{kind.lower()}.entry_tokens")] for kind in ("CSA", "HCA")}
    assert ends == {"CSA": [2, 4, 6, 7], "HCA": [3, 7]}
    assert shown.raw["visible"] == {kind: [j for j, end in enumerate(e) if end <= 3] for kind, e in ends.items()}
    assert max(range(4), key=lambda j: shown.raw["scores"][j]) == 1, "the best score is that of a hidden entry"
    assert shown.wide.markup.count("k-box--off") == 4 + 4, "four tokens and four entries are still to come"


def test_whose_numbers_they_are_stands_beside_them():
    def count(markup: str) -> dict[str, int]:
        return {word: markup.count(f">{word}</text>") for word in ("here", "yours", "printed", "✓", "≠")}

    asis = count(view(stop=stop("Collapse")).parts[0].wide.markup)
    assert asis == {"here": 3, "yours": 0, "printed": 4, "✓": 3, "≠": 0}
    mine = count(view(stop=stop("Collapse"), edit="mhc.A", collapse=[1, 0]).parts[0].wide.markup)
    assert mine == {"here": 3, "yours": 1, "printed": 4, "✓": 2, "≠": 2}
    moved = {item.label: item.value for item in view(edit="mhc.A", collapse=[1, 0]).parts[1].items}
    assert moved["Stops that differ"] == 3, "collapsed for attention, for the experts, and for layer 1"


@given(st.lists(st.floats(-2, 2), min_size=4, max_size=4))
@settings(max_examples=25, deadline=None)
def test_a_changed_embedding_moves_streams_and_what_reads_them(embedding):
    _, found = walk({"embedding_p": tuple(embedding)})
    a, b = of("mhc.A")
    np.testing.assert_allclose(found["mhc.collapsed_H"], [(a + 0.4 * b) * e for e in embedding], atol=1e-12)
    assert found["mhc.X"][1].tolist() == pytest.approx([0.4 * e for e in embedding])
    _, before = walk()
    for name in ("mhc.B", "swa.weights", "router.gates", "hash_moe.F_moe", "csa.core_weights"):
        np.testing.assert_array_equal(found[name], before[name])
    assert (found["csa.H_p"] != before["csa.H_p"]).any() or tuple(embedding) == START["embedding_p"]


def test_changed_numbers_follow_the_rules_by_hand():
    _, found = walk({"swa.sink_logit": (1.0,)})
    scores = found["swa.scores"].tolist()
    total = sum(map(math.exp, [*scores, 1.0]))
    assert found["swa.sink_mass"][0] == pytest.approx(math.e / total)
    _, found = walk({"router.bias": (0.0, 0.3, 0.0, 0.0)})
    assert found["router.selected"].tolist() == [3, 1]
    root = [math.sqrt(math.log1p(math.exp(x))) for x in of("router.logits")]
    assert found["router.gates"].tolist() == pytest.approx(
        [root[3] / (root[3] + root[1]), root[1] / (root[3] + root[1])]
    )
    _, found = walk({"hash_moe.gates": (1.0, 1.0)})
    middle = [(x + y) / 2 for x, y in zip(of("hash_moe.expert0"), of("hash_moe.expert1"), strict=True)]
    assert found["hash_moe.routed"].tolist() == pytest.approx(middle)
    _, found = walk({"ids": (0.0,) * 8})
    assert found["hash_moe.occupancy"].tolist() == [8, 0, 0, 0]


def test_the_mixing_matrix_is_doubly_stochastic_whatever_it_was():
    _, found = walk({"mhc.exp_B_raw": (10.0, 0.1, 3.0, 0.7)})
    np.testing.assert_allclose(found["mhc.B"].sum(axis=0), 1, atol=1e-5)
    np.testing.assert_allclose(found["mhc.B"].sum(axis=1), 1, atol=1e-3)


def test_a_change_is_marked_where_it_arrives_and_stays_while_stepping():
    values = {"edit": "embedding_p", "embedding": [1, 0, 0, 0.5]}
    for number in (stop("Collapse"), stop("End of layer 0")):
        shown = view(stop=number, **values)
        assert "k-changed k-box--selected" in shown.parts[0].wide.markup
        assert next(p for p in shown.parts if isinstance(p, widgets.Table)).selected
    items = {item.label: item.value for item in view(**values).parts[1].items}
    assert items["As printed"] < 119 and items["Stops that differ"] > 3


def test_entries_at_a_million_tokens():
    shown = view(stop=stop("At a million tokens"))
    assert shown.parts[1].raw == {"Window only": 128, "CSA": 640, "HCA": 8320, "Dense": 1_048_576}


def test_both_generations_stand_side_by_side():
    rows = {row[0]: row[1:] for row in view(stop=stop("V4 and V4.1")).parts[1].rows}
    assert rows["Layers"] == (43, 40)
    assert rows["Layers that keep compressed entries"] == (41, 4)
    assert rows["Global KV, bytes per token"] == (3514.25, 890)
    assert rows["Experts, chosen of routed"] == ("6 of 256", "6 of 384")
    assert rows["Kinds of layers"] == ("2 window, 21 CSA, 20 HCA", "2 window, 4 full, 30 reuse, 4 reindex")


def test_wrong_mechanisms_leave_the_print():
    router = edited("experts = np.argsort(-(scores + bias)", "experts = np.argsort(-scores", stop=stop("Router"))
    assert router["router.selected"] == [3, 0]  # this bias changes nothing: only another one shows the fault
    bias = {"edit": "router.bias", "bias": [0, 0.3, 0, 0]}
    router = edited(
        "experts = np.argsort(-(scores + bias)", "experts = np.argsort(-scores", stop=stop("Router"), **bias
    )
    assert router["router.selected"] == [3, 0]
    assert walk({"router.bias": (0.0, 0.3, 0.0, 0.0)})[1]["router.selected"].tolist() == [3, 1]
    sink = edited("total = weights.sum(axis=-1) + np.exp(sinks - highest)", "total = weights.sum(axis=-1)", stop=5)
    assert sink["swa.sink_mass"][0] == pytest.approx(0, abs=1e-12)
    mixing = edited("for _ in range(iterations - 1):", "for _ in range(0):", stop=stop("Mixing matrix"))
    assert np.abs(np.array(mixing["mhc.B"]) - of("mhc.B")).max() > 1e-2
