"""The kv-cache widget: what is new and reused, equality at every step, and a mistake that weak tests let pass."""

import json

import numpy as np
import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets import live
from tests.reference.test_toy_attention import by_hand


def metrics(**values) -> dict:
    return {m.label: m.value for m in widgets.evaluate("kv-cache", values).parts[1].items}


def verdicts(**values) -> dict:
    return {name: passed for name, _, passed in widgets.evaluate("kv-cache", values).parts[3].rows}


def edited(values: dict, *replacements: tuple[str, str]) -> dict:
    """Data of the view with an edited mechanism."""
    source = live.mechanism_source(widgets.get("kv-cache"))
    for old, new in replacements:
        assert source.count(old) == 1
        source = source.replace(old, new)
    answer = json.loads(live.evaluate_json("kv-cache", json.dumps(values), source))
    assert answer["ok"], answer
    return answer["data"]["parts"]


@pytest.mark.parametrize(
    ("step", "new", "reused", "nbytes"), [(1, [0, 1, 2], 0, 768), (2, [3], 3, 1024), (3, [4], 4, 1280)]
)
def test_prefill_of_three_then_two_tokens_one_by_one(step, new, reused, nbytes):
    got = metrics(step=step)
    assert (got["New keys and values"], got["Cache afterwards"]) == (len(new), nbytes)
    raw = widgets.evaluate("kv-cache", {"step": step}).parts[0].raw["steps"]
    assert len(raw) == step
    assert (raw[-1]["new"], raw[-1]["reused"], raw[-1]["bytes"]) == (new, reused, nbytes)


@pytest.mark.parametrize("ids", ["12 37 9 21 6", "0 255 128 7 7", "5 5 5 5 5"])
def test_cached_logits_equal_those_of_the_whole_prefix_at_every_step(ids):
    for step in (1, 2, 3):
        assert metrics(step=step, ids=ids)["Largest difference"] == 0
        assert all(verdicts(step=step, ids=ids).values())


def test_the_most_likely_token_is_that_of_loops_over_single_numbers():
    from deepseek_edu.reference import toy_attention
    from deepseek_edu.widgets.kv_cache import SEED

    logits = by_hand([12, 37, 9, 21, 6], toy_attention.random_weights(SEED, dtype=np.float64))
    assert [metrics(step=step)["Most likely next"] for step in (1, 2, 3)] == logits[2:].argmax(axis=1).tolist()


def test_an_off_by_one_position_shows_at_the_second_step_and_one_matching_output_hides_it():
    assert verdicts(step=1, positions="off") == {"First output": True, "Tokens": True, "Every step": True}
    assert metrics(step=1, positions="off")["Largest difference"] == 0
    for step in (2, 3):
        assert metrics(step=step, positions="off")["Largest difference"] > 0.1
        assert verdicts(step=step, positions="off") == {"First output": True, "Tokens": True, "Every step": False}
    said = widgets.evaluate("kv-cache", {"step": 2, "positions": "off"}).parts[2]
    assert said.role == "warn" and "position 2 instead of 3" in said.text
    with_mistake = widgets.evaluate("kv-cache", {"step": 3, "positions": "off"})
    assert "The keys of the prompt are right" in with_mistake.parts[2].text


@pytest.mark.parametrize("exponent", [2, 7, 16])
def test_a_token_takes_256_bytes_and_twice_the_context_twice_the_bytes(exponent):
    view = widgets.evaluate("kv-cache", {"part": "bytes", "context": exponent})
    tokens = 2**exponent
    assert view.parts[0].raw["bytes"] == [256 * tokens, 512 * tokens]
    got = {m.label: m.value for m in view.parts[1].items}
    assert (got["Bytes per token"], got["Bytes"]) == (256, 2)
    assert 1 < got["With the cache"] < 2 and got["With the cache"] < got["Without it"] < 4


def test_the_work_of_one_more_token_after_128():
    """Four projections of 32², 2·32 per key read, 256·32 for the logits; without a cache for all 129 tokens."""
    raw = widgets.evaluate("kv-cache", {"part": "bytes", "context": 7}).parts[0].raw["work"]
    assert raw["cached"][0] == 4096 + 64 * 129 + 8192
    assert raw["whole"][0] == 4096 * 129 + 64 * 129 * 130 // 2 + 8192


def test_five_ids_below_256_are_needed():
    for wrong in ("12 37 9 21", "12 37 9 21 256", "12 37 9 21 6 1", "a b c d e"):
        with pytest.raises(widgets.ControlError):
            widgets.evaluate("kv-cache", {"ids": wrong})


# Wrong mechanisms


def test_a_position_one_too_far_is_found_too():
    parts = edited({"step": 2}, ("return cached\n", "return cached + (cached > 0)\n"))
    assert parts[1]["values"]["Largest difference"] > 0.1
    assert [row[2] for row in parts[3]["rows"]][::2] == [True, False]


def test_a_mask_that_forgets_where_the_query_stands_differs_from_the_whole_prefix():
    """One that only sees too much differs nowhere: the last token of a step has no later token to see."""
    later = "np.arange(keys.shape[0]) > start + np.arange(len(queries))[:, None]"
    parts = edited({"step": 3}, (later, later.replace("start +", "1 + start +")))
    assert parts[0]["raw"]["steps"][0]["gap"] == 0, "both runs of the prefill see too much"
    cached, full = (parts[0]["raw"]["attention"][name] for name in ("cached", "full"))
    assert cached == pytest.approx(full), "the last token sees all keys either way"
    parts = edited({"step": 3}, (later, later.replace("start + ", "")))
    assert parts[1]["values"]["Largest difference"] > 0.1


def test_values_stored_as_keys_change_the_attention_of_both_runs_alike():
    """A fault that both runs share is not found by comparing them: the comparison tests the cache, not the model."""
    parts = edited(
        {"step": 3},
        ("cache.append(project(x, w.key), project(x, w.value))", "cache.append(project(x, w.key), project(x, w.key))"),
    )
    assert parts[1]["values"]["Largest difference"] == 0
    right = widgets.evaluate("kv-cache", {"step": 3}).data()["parts"]
    assert parts[1]["values"]["Most likely next"] >= 0 and right[0]["raw"]["attention"] == parts[0]["raw"]["attention"]


def test_work_that_forgets_the_square_is_seen():
    parts = edited({"part": "bytes"}, ("(context + 1) * (context + 2) // 2", "context + 1"))
    assert parts[0]["raw"]["work"]["whole"][0] == 4096 * 129 + 64 * 129 + 8192
