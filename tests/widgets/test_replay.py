"""The replay widget: what is exact follows from counting, how far off the rest is was recorded elsewhere."""

import json

import numpy as np
import pytest

from deepseek_edu import widgets
from deepseek_edu.reference import replay
from deepseek_edu.widgets import live
from deepseek_edu.widgets import replay_runs as runs
from deepseek_edu.widgets.parts import kind_of
from deepseek_edu.widgets.tiny_models import toy_model
from tests.reference.tiny import recorded, tiny_model

EXACT = 1e-9


def needed(setting) -> int:
    return runs.needed(setting, runs.replayed(setting, runs.probe(setting)))


def numbers(**values) -> dict:
    return metrics(widgets.evaluate("replay", values))


def metrics(view) -> dict:
    return {m.label: m.value for m in part(view, "metrics").items}


def part(view, kind: str):
    """The only part of a kind, or the first."""
    return next(part for part in view.parts if kind_of(part) == kind)


def edited(values: dict, *replacements: tuple[str, str]) -> dict:
    """Metrics of the view with an edited mechanism."""
    source = live.mechanism_source(widgets.get("replay"))
    for old, new in replacements:
        assert source.count(old) == 1
        source = source.replace(old, new)
    answer = json.loads(live.evaluate_json("replay", json.dumps(values), source))
    assert answer["ok"], answer
    return next(part["values"] for part in answer["data"]["parts"] if part["kind"] == "metrics")


def divergence(p_logits, q_logits) -> float:
    """Σ p log(p/q), written out."""
    p, q = (np.exp(row) / np.exp(row).sum() for row in (p_logits, q_logits))
    return float(sum(a * np.log(a / b) for a, b in zip(p, q, strict=True)))


# Runs one after the other, by Model.prefill and Model.forward: what the widget's runs side by side have to equal


def exact_run(model, ids):
    cache = model.new_cache(quantized=False, spare=len(ids))
    return model.forward(ids, cache).logits, cache


def hit_run(model, ids, hit, tokens):
    """Logits of all tokens that are fed, and the cache."""
    stored = model.new_cache(quantized=False, spare=len(ids))
    model.forward(ids[:hit], stored)
    cache = replay.resume(model, stored, ids, hit, tokens=tokens)
    return model.forward(ids[cache.length :], cache).logits, cache


def decoder_run(model, ids, hit, tokens, decoder):
    """Logits of the last token of the prompt and of those that follow it, and the cache."""
    cache = model.new_cache(quantized=False, spare=len(ids))
    logits = [model.prefill(ids[:hit], cache, decoder=decoder, tokens=tokens).logits[-1:]]
    if len(ids) > hit:
        logits.append(model.forward(ids[hit:], cache).logits)
    return np.concatenate(logits), cache


def test_the_known_errors_of_the_recorded_model_at_forty_tokens():
    """Recorded beside the oracle: 0.128 in the report's wording, 0.047 as served, 0.51 for a prompt that is cut."""
    model, error = tiny_model(), {"report": 0.0, "serving": 0.0, "cut": 0.0}
    for ids in recorded()["ids"]:
        exact = exact_run(model, ids)[0][-1]
        for decoder in ("report", "serving"):
            logits, _ = decoder_run(model, ids, len(ids), model.config.window_size, decoder)
            assert runs.divergence(exact, logits[-1]) == pytest.approx(divergence(exact, logits[-1]), rel=1e-9)
            error[decoder] += divergence(exact, logits[-1]) / 2
        error["cut"] += divergence(exact, exact_run(model, ids[-8:])[0][-1]) / 2
    assert {name: round(value, 3) for name, value in error.items()} == {"report": 0.128, "serving": 0.047, "cut": 0.508}


@pytest.mark.parametrize(
    ("variant", "window", "hit"), [("hit", 4, 20), ("hit", 2, 8), ("report", 4, 20), ("serving", 4, 20)]
)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_runs_side_by_side_equal_runs_one_after_the_other(variant, window, hit, depth):
    """In a model that ends with the last replayed layer; the widget runs the deepest one for all depths."""
    setting = runs.Setting(variant, depth, window, hit)
    ids, model = setting.ids, toy_model(setting.first + depth, window)
    exact, true = exact_run(model, ids)
    lengths = [1, 3, 5, window]
    for tokens, got in zip(lengths, runs.replays(setting, lengths), strict=True):
        if variant == "hit":
            logits, cache = hit_run(model, ids, hit, tokens)
        else:
            logits, cache = decoder_run(model, ids, hit, tokens, variant)
        each = [divergence(p, q) for p, q in zip(exact[-len(logits) :], logits, strict=True)]
        assert got.divergences[-len(logits) :] == pytest.approx(each, abs=2e-12)
        for layer, (first, errors) in zip(setting.layers, got.errors, strict=True):
            ring = cache.windows[layer]
            rows, right = ring.read(hit - tokens, len(ids)), true.windows[layer].read(hit - tokens, len(ids))
            expected = np.linalg.norm(rows - right, axis=1) / np.linalg.norm(right, axis=1)
            assert errors[hit - tokens - first :] == pytest.approx(expected, abs=2e-9)
        for layer, errors in got.entry_errors.items():
            rows, right = cache.entries[layer].read(), true.entries[layer].read()
            expected = np.linalg.norm(rows - right, axis=1) / np.linalg.norm(right, axis=1)
            assert errors == pytest.approx(expected[-len(errors) :], abs=2e-9)
    cut = exact_run(model, ids[hit - window :])[0]
    each = [divergence(p, q) for p, q in zip(exact[-len(cut) :], cut, strict=True)]
    assert runs.cut(setting) == pytest.approx(each, abs=2e-12)


@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_the_toy_of_prefix_eight_and_four_layers(window):
    """Layers × window tokens, at most the prefix, are always enough; a layer really costs window − 1."""
    setting = runs.Setting("hit", 4, window, 8)
    assert runs.replayed(setting, min(8, 4 * window)).exact(8, window)
    assert needed(setting) == min(8, 4 * (window - 1))


@pytest.mark.parametrize(
    ("variant", "depth", "window", "needed"),
    [
        ("hit", 1, 4, 3),
        ("hit", 2, 4, 6),
        ("hit", 3, 2, 3),
        ("hit", 4, 4, 12),
        ("report", 1, 4, 3),
        ("report", 3, 4, 9),
        ("report", 4, 2, 4),
        ("serving", 2, 4, 3),
        ("serving", 3, 4, 6),
        ("serving", 4, 2, 3),
    ],
)
def test_a_window_is_exact_from_depth_times_window_minus_one_on_and_one_layer_less_as_served(
    variant, depth, window, needed
):
    got = numbers(variant=variant, depth=depth, window=str(window), tokens=needed)
    assert got["All windows exact from"] == needed
    assert got["Error after replay"] == 0
    before = numbers(variant=variant, depth=depth, window=str(window), tokens=needed - 1)
    assert before["Error after replay"] > 0


@pytest.mark.parametrize("variant", ["hit", "report", "serving"])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_one_run_tells_the_shortest_exact_replay_which_trying_them_all_finds(variant, depth):
    for window, hit in ((2, 8), (4, 8), (2, 20), (4, 20)):
        setting = runs.Setting(variant, depth, window, hit)
        exact = [runs.replayed(setting, tokens).exact(hit, window) for tokens in range(setting.longest + 1)]
        assert exact == sorted(exact) and needed(setting) == exact.index(True)


@pytest.mark.parametrize("window", [2, 4])
@pytest.mark.parametrize("tokens", [0, 1, 4, 7])
def test_the_error_reaches_window_minus_one_positions_further_with_each_layer(window, tokens):
    """Cell by cell: layer l at position p is exact if the replay begins l·(W − 1) positions before it."""
    view = widgets.evaluate("replay", {"window": str(window), "tokens": tokens})
    raw = view.parts[0].raw
    start = 20 - min(tokens, 4 * window)
    assert raw["start"] == start
    for layer, row in zip(raw["layers"], raw["errors"], strict=True):
        assert row["first"] == start
        assert len(row["relative"]) == 24 - start
        for position, error in list(enumerate(row["relative"], start))[: 20 - start]:
            assert (error < EXACT) == (position - layer * (window - 1) >= start), (layer, position)


def test_new_global_entries_keep_the_error_of_an_encoder_replay_and_nothing_of_a_decoder_replay():
    """Four tokens, window 4: layer 1 is exact again at 16 + 3 = 19, layer 3 only at 16 + 9 = 25, behind the end."""
    new = widgets.evaluate("replay", {"tokens": 4}).parts[0].raw["new_entries"]
    assert (len(new["1"]), len(new["3"])) == (2, 4)
    assert max(new["1"]) < EXACT < min(new["3"])
    assert "are kept" in widgets.evaluate("replay", {"tokens": 4}).parts[2].text
    for variant in ("report", "serving"):
        new = widgets.evaluate("replay", {"tokens": 4, "variant": variant}).parts[0].raw["new_entries"]
        assert max(map(max, new.values())) < EXACT


def test_global_entries_of_the_prefix_are_never_written_again():
    for variant in ("hit", "report", "serving"):
        setting = runs.Setting(variant, 4, 4, 20)
        assert all(runs.replayed(setting, tokens).same_entries for tokens in range(17))


def test_one_window_of_replay_is_far_better_than_a_cut_prompt():
    for variant in ("hit", "report", "serving"):
        got = numbers(variant=variant, tokens=4)
        assert 0 < got["Error after replay"] < got["Prompt cut instead"] / 5
    assert (
        numbers(variant="serving", tokens=4)["Error after replay"]
        < numbers(variant="report", tokens=4)["Error after replay"]
    )


def test_the_curve_is_the_mean_divergence_of_the_next_tokens():
    setting = runs.Setting("hit", 4, 4, 20)
    ids, model = setting.ids, setting.model
    exact = model.prefill(ids, model.new_cache(quantized=False)).logits[20:]
    raw = widgets.evaluate("replay", {"step": 5, "tokens": 6}).parts[1].raw
    assert raw["tokens"] == [0, 4, 6, 8, 11, 12, 16]
    logits, _ = hit_run(model, ids, 20, 4)
    expected = np.mean([divergence(a, b) for a, b in zip(exact, logits[-4:], strict=True)])
    assert raw["divergence"][1] == pytest.approx(expected, rel=1e-9)
    cut = model.prefill(ids[16:], model.new_cache(quantized=False)).logits[-4:]
    expected = np.mean([divergence(a, b) for a, b in zip(exact, cut, strict=True)])
    assert raw["cut"] == pytest.approx(expected, rel=1e-9)


def test_bars_below_the_grid_are_the_divergences_of_the_tokens_that_ran():
    raw = widgets.evaluate("replay").parts[0].raw
    assert raw["divergence"]["first"] == 16 and len(raw["divergence"]["each"]) == 8
    assert np.mean(raw["divergence"]["each"][-4:]) == pytest.approx(numbers()["Error after replay"], abs=1e-12)
    assert np.mean(raw["cut"][-4:]) == pytest.approx(numbers()["Prompt cut instead"], abs=1e-12)


def test_bytes_kept_and_not_kept():
    """Width 32: an entry takes 16 + 2 bytes, its index key 16 + 1, a window entry 32 + 1."""
    got = numbers(step=1)
    assert got["Kept"] == (20 // 2 + 20) * (18 + 17)
    assert got["Not kept"] == 4 * 4 * 33
    got = numbers(step=1, depth=1, prefix="8", window="2")
    assert (got["Kept"], got["Not kept"]) == (0, 2 * 33)
    got = numbers(step=2, variant="report", depth=3)
    assert (got["Kept"], got["Not kept"]) == ((10 + 20) * 35, 3 * 4 * 33)


def test_the_counts_of_the_released_model():
    table = widgets.evaluate("replay").parts[-1]
    assert [row[1] for row in table.rows] == [890, 2_703_360, 1_351_680, 128, 5_120, 5_080]


def test_the_first_steps_show_the_windows_before_and_after_their_loss():
    save, lose = (widgets.evaluate("replay", {"step": step}) for step in (1, 2))
    assert "Only the global entries are written to storage" in part(save, "prose").text
    assert part(lose, "prose").role == "warn"
    assert lose.summary == "The windows of 4 layers are missing; the global KV of 20 tokens is there."


# Wrong mechanisms move these numbers


def test_a_replay_that_starts_one_token_late_is_no_longer_exact():
    wrong = edited({"tokens": 12}, ("max(0, hit - tokens)", "min(hit, max(0, hit - tokens) + 1)"))
    assert wrong["All windows exact from"] == 13
    assert wrong["Error after replay"] > 0


def test_a_replay_that_hashes_padding_instead_of_the_real_ids_is_not_exact_where_it_should_be():
    source = "cache.history.write(cache.history.row_format.encode(model.hash.compress(ids[first:start], mask)))"
    assert numbers(tokens=4, window="2")["Error after replay"] == 0
    wrong = edited({"tokens": 4, "window": "2"}, (source, "cache.history.restart(start)"))
    assert wrong["Error after replay"] > 1e-9


def test_a_served_decoder_without_its_whole_first_window_needs_one_layer_more():
    wrong = edited({"variant": "serving"}, ('if decoder == "serving":', "if False:"))
    assert wrong["All windows exact from"] == 12
    assert numbers(variant="serving")["All windows exact from"] == 9


def test_a_window_that_is_one_position_short_moves_every_count():
    wrong = edited({}, ("np.arange(1 - window, 1)", "np.arange(2 - window, 1)"))
    assert wrong["All windows exact from"] != 12
