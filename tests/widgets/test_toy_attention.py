"""The toy-attention widget: shapes at each line, what a later token can move, and checks of untrained scores."""

import json

import numpy as np
import pytest

from deepseek_edu import widgets
from deepseek_edu.reference import toy_attention as toy
from deepseek_edu.widgets import live
from deepseek_edu.widgets.toy_attention import SEED
from tests.reference.test_toy_attention import by_hand

STEPS = range(1, 9)


def view(**values):
    return widgets.evaluate("toy-attention", values)


def raw(**values) -> dict:
    return view(**values).parts[0].raw


def failing(data: dict) -> list[str]:
    """Names of the checks that fail in the data of a view."""
    return [name for name, _, gap in data["parts"][3]["rows"] if gap]


def edited(values: dict, *replacements: tuple[str, str]) -> dict:
    """Data of the view with an edited mechanism."""
    source = live.mechanism_source(widgets.get("toy-attention"))
    for old, new in replacements:
        assert source.count(old) == 1
        source = source.replace(old, new)
    answer = json.loads(live.evaluate_json("toy-attention", json.dumps(values), source))
    assert answer["ok"], answer
    return answer["data"]


def test_256_ids_width_32_and_three_tokens_have_these_shapes_at_the_eight_lines():
    shapes = ["[3]", "[3, 32]", "3 × [3, 32]", "[3, 3]", "[3, 3]", "[3, 3]", "[3, 32]", "[3, 256]"]
    for step in STEPS:
        assert raw(step=step)["shapes"] == shapes
        assert shapes[step - 1] in view(step=step).summary
        made = raw(step=step)["made"]
        for name, array in made.items():
            assert step == 1 or str(list(np.shape(array))) in shapes[step - 1], name
    assert raw(step=1)["made"] == {"ids": [12, 37, 9]}


def test_the_logits_are_those_of_loops_over_single_numbers():
    w = toy.random_weights(SEED, dtype=np.float64)
    for ids in ([12, 37, 9], [0, 255, 128]):
        shown = raw(step=8, ids=" ".join(map(str, ids)))["made"]["logits"]
        np.testing.assert_allclose(shown, by_hand(ids, w), atol=1e-6)


def test_scores_mask_and_weights_follow_from_the_vectors_that_are_shown():
    vectors, scores = raw(step=3)["made"], np.array(raw(step=4)["made"]["score"])
    for i, j in np.ndindex(3, 3):
        product = sum(a * b for a, b in zip(vectors["query"][i], vectors["key"][j], strict=True)) / 32**0.5
        assert scores[i, j] == pytest.approx(product, abs=1e-5)
    masked, weights = np.array(raw(step=5)["made"]["masked"]), np.array(raw(step=6)["made"]["weight"])
    for i, j in np.ndindex(3, 3):
        assert masked[i, j] == (scores[i, j] if j <= i else -np.inf)
        seen = [np.exp(scores[i, k]) for k in range(i + 1)]
        assert weights[i, j] == pytest.approx(np.exp(scores[i, j]) / sum(seen) if j <= i else 0, abs=1e-5)
    assert weights[0].tolist() == [1, 0, 0]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("step", STEPS)
def test_with_the_mask_a_changed_token_moves_no_earlier_output(step, place):
    moved = raw(step=step, run="changed", which=str(place))["moved"]
    stirred = {name: [i for i, gap in enumerate(gaps) if gap] for name, gaps in moved.items()}
    assert stirred["x"] == stirred["query"] == stirred["key"] == stirred["value"] == [place]
    assert stirred["position"] == []
    assert stirred["score"] == [0, 1, 2], "a column of the scores moves before the mask"
    if place:
        assert stirred["masked"] == list(range(place, 3))
    assert stirred["logits"] == list(range(place, 3))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_without_the_mask_it_moves_all_of_them(place):
    values = {"step": 8, "run": "changed", "which": str(place), "mask": False}
    assert all(raw(**values)["moved"]["logits"])
    said = view(**values).parts[2]
    assert (said.role == "warn") == (place > 0)


def test_the_moves_are_the_differences_of_two_runs():
    moved = raw(step=8, run="changed", other=77)["moved"]
    before, after = (np.array(raw(step=8, ids=ids)["made"]["logits"]) for ids in ("12 37 9", "12 37 77"))
    assert moved["logits"] == pytest.approx(np.abs(after - before).max(axis=1).tolist(), abs=1e-6)
    assert raw(step=8, run="changed", other=9)["moved"]["logits"] == [0, 0, 0], "the same id is no change"


@pytest.mark.parametrize("ids", ["12 37 9", "0 255 128", "5 5 5"])
def test_untrained_scores_pass_all_checks_with_the_mask_and_fail_two_without(ids):
    assert failing(view(ids=ids).data()) == []
    assert failing(view(ids=ids, mask=False).data()) == ["One by one", "Prefix"]


def test_three_ids_below_256_are_needed():
    for wrong in ("12 37", "12 37 256", "1 2 3 4", "a b c", "-1 2 3"):
        with pytest.raises(widgets.ControlError):
            view(ids=wrong)


# Wrong mechanisms


def test_a_mask_that_lets_one_later_key_through_is_found_by_the_checks_and_by_a_changed_token():
    wrong = ("np.arange(tokens) > np.arange(tokens)[:, None]", "np.arange(tokens) > np.arange(tokens)[:, None] + 1")
    data = edited({"step": 8, "run": "changed"}, wrong)
    assert failing(data) == ["One by one", "Prefix"]
    moved = data["parts"][0]["raw"]["moved"]["logits"]
    assert moved[0] == 0 and min(moved[1:]) > 0.01


def test_a_mask_turned_round_is_found():
    wrong = ("np.arange(tokens) > np.arange(tokens)[:, None]", "np.arange(tokens) < np.arange(tokens)[:, None]")
    assert "One by one" in failing(edited({"step": 6}, wrong))


def test_scores_divided_by_the_width_are_smaller_and_no_check_of_both_ways_finds_it():
    """The cached run uses the same function: what both ways share is not compared."""
    data = edited({"step": 6}, ("queries.shape[-1] ** 0.5", "queries.shape[-1]"))
    right, wrong = raw(step=6)["made"]["weight"][2], data["parts"][0]["raw"]["made"]["weight"][2]
    assert max(wrong) < max(right), "smaller scores, more even shares"
    assert failing(data) == []


def test_weights_that_do_not_sum_to_one_are_found():
    data = edited({"step": 6}, ('activations.softmax(a["masked"])', 'np.exp(a["masked"])'))
    assert "Shares" in failing(data)


def test_a_residual_that_is_left_out_is_found():
    assert failing(edited({"step": 8}, ('a["x"] + a["mixed"]', 'a["mixed"]'))) == ["One by one"]
