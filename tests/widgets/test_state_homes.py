"""The state-homes widget: what must change and what must not, by counting which positions can be reached."""

import json
from functools import cache

import numpy as np
import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets import live
from deepseek_edu.widgets import state_homes_runs as runs

LENGTH, WINDOW = 12, 4


@cache
def rows(**values) -> dict:
    """{(home, name): sizes} of the map."""
    raw = widgets.evaluate("state-homes", values).parts[0].raw
    return {(row["home"], row["name"]): row["sizes"] for row in raw["rows"]}


def metrics(view) -> dict:
    return {m.label: m.value for m in view.parts[1].items}


def edited(values: dict, *replacements: tuple[str, str]) -> dict:
    """Data of the first picture with an edited mechanism."""
    source = live.mechanism_source(widgets.get("state-homes"))
    for old, new in replacements:
        assert source.count(old) == 1
        source = source.replace(old, new)
    answer = json.loads(live.evaluate_json("state-homes", json.dumps(values), source))
    assert answer["ok"], answer
    return answer["data"]["parts"][0]["raw"]


def touched(sizes) -> list[int]:
    return [index for index, size in enumerate(sizes) if size]


@pytest.mark.parametrize("position", [0, 3, 5, 11])
def test_a_token_changes_nothing_before_it_and_no_parameter(position):
    view = widgets.evaluate("state-homes", {"position": position})
    assert metrics(view)["Parameters"] == 0
    assert view.parts[0].raw["parameters"] == {}
    for row in view.parts[0].raw["rows"]:
        ratio = LENGTH // len(row["sizes"])
        assert all((index + 1) * ratio > position for index in touched(row["sizes"])), row["name"]
    said = "nothing reads ahead" if position else "every later one may look back at it"
    assert said in view.parts[2].text


def test_windows_carry_a_change_three_positions_further_with_each_layer():
    """Layers 0 and 1 read windows only of what lies below: 5, then 5 … 8, then 5 … 11."""
    found = rows(position=5)
    assert touched(found["hidden", "into layer 0"]) == touched(found["local", "layer 0"]) == [5]
    assert touched(found["local", "layer 1"]) == [5, 6, 7, 8]
    assert touched(found["local", "layer 2"]) == list(range(5, 12))


def test_a_pair_of_tokens_shares_an_entry_in_the_encoder_and_each_token_has_its_own_in_the_decoder():
    found = rows(position=5)
    assert len(found["global", "layer 1"]) == 6
    assert touched(found["global", "layer 1"])[0] == 2  # tokens 4 and 5
    assert len(found["global", "layer 3"]) == 12
    assert touched(found["global", "layer 3"])[0] == 5


@pytest.mark.parametrize(("position", "reached"), [(0, [0, 1, 2, 3]), (5, [5, 6, 7, 8]), (11, [11])])
def test_engram_rows_change_where_an_n_gram_of_up_to_four_tokens_contains_the_token(position, reached):
    found = rows(position=position)
    assert touched(found["engram", "layer 1"]) == touched(found["engram", "layer 2"]) == reached


def test_addresses_are_counted_by_order():
    """Two modules, two heads per order. A pair reaches 2 positions, a triple 3, a quadruple 4: at most 2·2·9 = 36."""
    before, after = runs.base(), runs.changed("token", 5, False, "embed", 4)
    counts = runs.changed_addresses(before, after)
    most = [0] * 5 + [12, 12, 8, 4] + [0] * 3
    assert all(count <= limit for count, limit in zip(counts, most, strict=True))
    assert sum(counts) == metrics(widgets.evaluate("state-homes"))["Engram addresses"] > 24


def test_a_twin_changes_the_hidden_state_and_leaves_every_address():
    values = {"position": 5, "to": "twin"}
    before, after = runs.base(), runs.changed("token", 5, True, "embed", 4)
    assert before.ids[5] // 2 == after.ids[5] // 2 and before.ids[5] != after.ids[5]
    found = rows(**values)
    assert touched(found["engram", "layer 1"]) == touched(found["engram", "layer 2"]) == []
    assert touched(found["hidden", "into layer 0"]) == [5]
    assert metrics(widgets.evaluate("state-homes", values))["Engram addresses"] == 0


def test_a_weight_of_layer_two_changes_all_positions_above_and_none_below():
    found = rows(change="weight", weight="window")
    everywhere = list(range(LENGTH))
    assert touched(found["local", "layer 2"]) == everywhere
    for layer in (3, 4):
        assert (
            touched(found["hidden", f"into layer {layer}"]) == touched(found["local", f"layer {layer}"]) == everywhere
        )
    for untouched in (("local", "layer 0"), ("local", "layer 1"), ("hidden", "into layer 2"), ("global", "layer 1")):
        assert touched(found[untouched]) == []
    view = widgets.evaluate("state-homes", {"change": "weight", "weight": "window"})
    assert view.parts[0].raw["parameters"] == {"layers.2.attn.wkv.weight": 1}


def test_the_output_matrix_makes_no_state():
    view = widgets.evaluate("state-homes", {"change": "weight", "weight": "head"})
    got = metrics(view)
    assert (got["Window KV"], got["Global KV"], got["Engram rows read"]) == (0, 0, 0)
    assert got["Hidden states"] == LENGTH  # the logits alone


def test_a_row_of_the_n_gram_table_is_a_parameter_that_one_place_of_the_prompt_reads():
    view = widgets.evaluate("state-homes", {"change": "weight", "weight": "engram"})
    found = rows(change="weight", weight="engram")
    assert touched(found["engram", "layer 1"]) == [7]
    assert metrics(view)["Engram addresses"] == 0
    assert list(view.parts[0].raw["parameters"]) == ["layers.1.engram.embed.weight"]


@pytest.mark.parametrize(("window", "first"), [("2", 2), ("8", 4)])
def test_another_window_shows_at_the_first_query_that_sees_more_or_less(window, first):
    """Windows of 4 and 2 differ from the third token on, 4 and 8 from the fifth."""
    found = rows(change="window", window=window)
    assert touched(found["local", "layer 0"]) == []
    assert touched(found["local", "layer 1"])[0] == first
    assert touched(found["engram", "layer 1"]) == []


@pytest.mark.parametrize(
    ("hidden", "key", "value"), [((2, 3), 8, 1), ((3, 3), 9, 0), ((0, 0), 0, 0), ((-1, 0.5), 0, 1.5)]
)
def test_one_key_and_one_value_by_hand(hidden, key, value):
    view = widgets.evaluate("state-homes", {"part": "product", "hidden": list(hidden)})
    assert metrics(view) == {"Key": key, "Value": value}
    assert view.parts[0].raw["results"] == {"Key": key, "Value": value}


def test_the_walk_has_six_steps_from_ids_to_the_memory_of_the_decoder():
    views = [widgets.evaluate("state-homes", {"part": "walk", "step": step}) for step in range(1, 7)]
    raws = [view.parts[0].raw["rows"] for view in views]
    assert [list(raw) for raw in raws] == [["The", "tide", "rose"]] * 6
    assert raws[0] == {"The": [10], "tide": [42], "rose": [67]}
    assert all("Fixed: " in view.summary and "Follows the prompt: " in view.summary for view in views)
    run = runs.run(runs.watched(runs.toy_model(5, 4)), (10, 42, 67))
    table = run.parameters["embed.weight"]
    np.testing.assert_allclose([raws[1][word] for word in raws[1]], table[[10, 42, 67]], rtol=1e-12)
    assert raws[3]["The"] == run.addresses[0, 0].tolist()
    assert len(raws[5]["rose"]) == 32


# Wrong mechanisms


def test_a_window_that_looks_ahead_is_found_by_changing_one_token():
    raw = edited(
        {"position": 5},
        ("np.arange(1 - window, 1)", "np.arange(2 - window, 2)"),
        ("table >= start", "(table >= start) & (table < 12)"),
    )
    early = [row["name"] for row in raw["rows"] if row["home"] == "hidden" and any(row["sizes"][:5])]
    assert early, "a difference before the changed token"


def test_a_hash_that_forgets_the_token_itself_reads_other_rows_one_position_later():
    raw = edited({"position": 5}, ("mixed = history[:, 0] * multipliers[0]", "mixed = 0 * history[:, 0]"))
    sizes = next(row["sizes"] for row in raw["rows"] if (row["home"], row["name"]) == ("engram", "layer 1"))
    assert touched(sizes)[0] == 6


def test_a_wrong_product_shows():
    raw = edited({"part": "product"}, ("return x @ weight", "return x @ (weight * weight)"))
    assert raw["results"] == {"Key": 14, "Value": 5}
