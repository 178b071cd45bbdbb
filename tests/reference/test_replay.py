"""Skipping the decoder in a prefill, and continuing a stored prefix (tests/oracles/replay_tiny.npz)."""

from functools import cache

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import model as models
from deepseek_edu.reference import replay

from .test_feeding import same_state
from .tiny import ORACLES, gap, recorded, tiny_model

LENGTHS = (5, 8, 9, 11, 16, 20, 27, 33, 40)


@cache
def replayed():
    with np.load(ORACLES / "replay_tiny.npz") as file:
        return {name: file[name] for name in file.files}


def divergence(logits, other):
    """Σ p log(p/q) of two rows of logits."""
    p, q = (row - row.max() - np.log(np.exp(row - row.max()).sum()) for row in (logits, other))
    return float((np.exp(p) * (p - q)).sum())


@pytest.mark.parametrize(("decoder", "recorded_as"), [("report", "paper"), ("serving", "vllm")])
@pytest.mark.parametrize("tokens", LENGTHS)
def test_bounded_replay_of_the_decoder_gives_the_recorded_logits_and_windows(decoder, recorded_as, tokens):
    model = tiny_model()
    for b in range(2):
        state = model.new_cache(quantized=False)
        output = model.prefill(recorded()["ids"][b, :tokens], state, decoder=decoder)
        assert gap(output.logits[-1], replayed()[f"{recorded_as}/T{tokens}/logits"][b]) < 1e-9
        last = state.windows[7].read(max(0, tokens - 8), tokens)
        assert gap(last, replayed()[f"{recorded_as}/T{tokens}/ring_last_layer"][b]) < 1e-9


def test_the_report_cuts_every_decoder_window():
    model, state = tiny_model(), tiny_model().new_cache(quantized=False)
    output = model.prefill(recorded()["ids"][0, :27], state, decoder="report")
    assert gap(output.logits[-1], replayed()["paper/T27/logits"][0]) < 1e-9


def test_serving_keeps_the_whole_window_in_the_first_decoder_layer():
    model, state = tiny_model(), tiny_model().new_cache(quantized=False)
    output = model.prefill(recorded()["ids"][0, :27], state, decoder="serving")
    assert gap(output.logits[-1], replayed()["vllm/T27/logits"][0]) < 1e-9


def test_the_error_of_each_variant_is_the_known_one():
    """Mean divergence from the exact last row at 40 tokens; a prompt that is merely cut to its end is far worse."""
    model, error = tiny_model(), {"report": 0, "serving": 0, "cut": 0}
    for ids in recorded()["ids"]:
        exact = model.prefill(ids, model.new_cache(quantized=False)).logits[-1]
        for decoder in ("report", "serving"):
            other = model.prefill(ids, model.new_cache(quantized=False), decoder=decoder).logits[-1]
            error[decoder] += divergence(exact, other) / 2
        error["cut"] += divergence(exact, model.prefill(ids[-8:], model.new_cache(quantized=False)).logits[-1]) / 2
    assert {name: round(value, 3) for name, value in error.items()} == {"report": 0.128, "serving": 0.047, "cut": 0.508}


@pytest.mark.parametrize("tokens", [1, 5, 9, 22, 29, 40])
@pytest.mark.parametrize("chunk", [None, 5])
def test_an_exact_skip_leaves_nothing_different(tokens, chunk):
    """The decoder layers run on fewer tokens the later they are; logits, windows and later tokens are the same."""
    model, ids = tiny_model(), recorded()["ids"][0]
    full, state = model.new_cache(quantized=False), model.new_cache(quantized=False)
    expected = model.prefill(ids[:tokens], full)
    output = model.prefill(ids[:tokens], state, decoder="exact", chunk=chunk)
    assert gap(output.logits[-1], expected.logits[-1]) < 1e-9
    same_state(state, full)
    assert gap(model.decode([3, 4, 5], state).logits, model.decode([3, 4, 5], full).logits) < 1e-9


@pytest.mark.parametrize("decoder", ["exact", "report", "serving"])
def test_a_prompt_whose_decoder_was_skipped_cannot_be_taken_back_but_what_follows_can(decoder):
    """The windows of the last layers hold its last tokens only; one token fewer would leave another window."""
    model, ids = tiny_model(), recorded()["ids"][0]
    state = model.new_cache(quantized=False)
    model.prefill(ids[:24], state, decoder=decoder)
    ends = [ring.end for ring in state.windows]
    for length in (23, 20):
        with pytest.raises(ValueError, match=r"length must be 24 … 24; got .* a prompt whose decoder was skipped"):
            state.rollback(length)
    assert [ring.end for ring in state.windows] == ends and len(state.entries[1]) == 12
    expected = model.decode(ids[24:26], state).logits
    model.decode([7, 8, 9], state)
    state.rollback(24 + 2)
    with pytest.raises(ValueError, match="length must be 24 … 26"):
        state.rollback(23)
    state.rollback(24)
    assert gap(model.decode(ids[24:26], state).logits, expected) < 1e-12


def test_a_replayed_prefix_cannot_be_taken_back():
    model, ids = tiny_model(), recorded()["ids"][0]
    stored = model.new_cache(quantized=False)
    model.prefill(ids[:30], stored)
    state = replay.resume(model, stored, ids, 30)
    state.rollback(22)  # nothing, and the entries of the prefix stay
    assert (state.stored, [len(state.entries[layer]) for layer in (1, 3)]) == (30, [15, 30])
    with pytest.raises(ValueError, match="length must be 22 … 22"):
        state.rollback(21)
    model.prefill(ids[22:32], state)
    with pytest.raises(ValueError, match="length must be 30 … 32"):
        state.rollback(29)
    state.rollback(30)
    assert len(state.entries[1]) == 15


def test_the_global_memory_is_the_same_in_every_variant():
    model, ids = tiny_model(), recorded()["ids"][0]
    full = model.new_cache(quantized=False)
    model.prefill(ids, full)
    for decoder in ("exact", "report", "serving"):
        state = model.new_cache(quantized=False)
        model.prefill(ids, state, decoder=decoder, chunk=9)
        for layer in (1, 3):
            assert gap(state.entries[layer].read(), full.entries[layer].read()) < 1e-12
            assert gap(state.index_keys[layer].read(), full.index_keys[layer].read()) < 1e-12


def test_a_skipping_prefill_runs_half_the_layers_on_most_tokens():
    """Released shape of the count: 20·N + 20·min(N, 128) against 40·N; here 3·N + 5·8 against 8·N."""
    model, ids = tiny_model(), recorded()["ids"][0]
    assert model.prefill(ids, model.new_cache()).layer_tokens == 8 * 40
    assert model.prefill(ids, model.new_cache(), decoder="report").layer_tokens == 3 * 40 + 5 * 8
    rows = models.decoder_rows(ModelConfig.v41_flash(), "report")
    assert 20 * 4096 + sum(asked for _, asked in rows) == 84_480


def test_a_prompt_no_longer_than_the_window_is_exact():
    model, ids = tiny_model(), recorded()["ids"][0][:8]
    full = model.prefill(ids, model.new_cache(quantized=False)).logits[-1]
    for decoder in ("report", "serving"):
        assert gap(model.prefill(ids, model.new_cache(quantized=False), decoder=decoder).logits[-1], full) < 1e-12


@pytest.mark.parametrize("hit", [0, 2, 8, 10, 30, 38])
@pytest.mark.parametrize("chunk", [None, 3])
def test_an_exact_replay_of_a_prefix_leaves_nothing_different(hit, chunk):
    model, ids = tiny_model(), recorded()["ids"][0]
    stored, full = model.new_cache(quantized=False), model.new_cache(quantized=False)
    model.prefill(ids[:hit], stored) if hit else None
    expected = model.prefill(ids, full)
    state = replay.resume(model, stored, ids, hit, exact=True)
    output = model.prefill(ids[state.length :], state, chunk=chunk)
    assert gap(output.logits[-1], expected.logits[-1]) < 1e-9
    same_state(state, full)


def test_a_replay_feeds_the_last_window_again_and_writes_no_entry_twice():
    model, ids = tiny_model(), recorded()["ids"][0]
    stored = model.new_cache()
    model.prefill(ids[:30], stored)
    state = replay.resume(model, stored.prefix(30), ids, 30)
    assert (state.length, state.stored) == (22, 30)
    before = {layer: entries.read() for layer, entries in state.entries.items()}
    model.prefill(ids[22:], state, decoder="report")
    for layer, ratio in ((1, 2), (3, 1)):
        assert len(state.entries[layer]) == 40 // ratio
        assert gap(state.entries[layer].read()[: 30 // ratio], before[layer]) == 0


def test_the_first_replayed_token_sees_only_itself_in_its_window():
    model, ids = tiny_model(), recorded()["ids"][0]
    stored = model.new_cache()
    model.prefill(ids[:30], stored)
    state = replay.resume(model, stored, ids, 30)
    assert [(first, len(rows)) for first, rows in (ring.latest() for ring in state.windows)] == [(22, 0)] * 8
    model.forward(ids[22:25], state)
    assert [(first, len(rows)) for first, rows in (ring.latest() for ring in state.windows)] == [(22, 3)] * 8


def test_the_replayed_tokens_hash_the_real_ids_before_them():
    model, ids = tiny_model(), recorded()["ids"][0]
    stored = model.new_cache()
    model.prefill(ids[:30], stored)
    state = replay.resume(model, stored, ids, 30)
    np.testing.assert_array_equal(model.forward(ids[22:], state).hashes, recorded()["engram_hashes40"][0, 22:])


def test_a_bounded_replay_is_close_and_its_error_depends_on_the_hit():
    model, ids = tiny_model(), recorded()["ids"][0]
    stored = model.new_cache(quantized=False)
    exact = model.prefill(ids, stored).logits[-1]
    errors, without = [], []
    for hit in (10, 16, 22, 26, 30):
        state = replay.resume(model, stored, ids, hit)
        errors.append(divergence(exact, model.prefill(ids[state.length :], state).logits[-1]))
        cut = model.prefill(ids[hit - 8 :], model.new_cache(quantized=False))  # without the global memory
        without.append(divergence(exact, cut.logits[-1]))
    assert len({round(error, 6) for error in errors}) == 5
    assert min(errors) > 1e-3
    assert np.mean(errors) < np.mean(without) / 5


def test_a_hit_that_leaves_a_group_half_filled_is_refused_and_can_be_shortened():
    model, ids = tiny_model(), recorded()["ids"][0]
    stored = model.new_cache()
    model.prefill(ids[:31], stored)
    assert replay.usable_hit(31, model.config) == 30
    with pytest.raises(ValueError, match="multiple of"):
        replay.resume(model, stored, ids, 31)
    for hit in (None, "8", 4.5):
        with pytest.raises(ValueError, match="hit must be 0 or more, an integer"):
            replay.resume(model, stored, ids, hit)
    with pytest.raises(ValueError, match="left to feed"):
        replay.resume(model, stored, ids[:30], 30)
    with pytest.raises(ValueError, match="ids must be 0 … 95"):
        replay.resume(model, stored, [96, *ids[1:]], 30)
    with pytest.raises(ValueError, match="types must have the shape of ids"):
        replay.resume(model, stored, ids, 30, types=[-1] * 30)


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="decoder must be one of all, exact, report, serving"):
        tiny_model().prefill([1], tiny_model().new_cache(), decoder="paper")


def test_any_number_of_tokens_can_be_replayed():
    """Windows are exact once the replay reaches (layers)·(W − 1) tokens back, whatever its length is given as."""
    model, ids = tiny_model(), recorded()["ids"][0]
    config = model.config
    assert [replay.replay_start(30, config, tokens=count) for count in (0, 3, 50)] == [30, 27, 0]
    assert models.decoder_rows(config, "report", 3) == [(3, 3)] * 5
    assert models.decoder_rows(config, "serving", 3) == [(10, 3), *[(3, 3)] * 4]
    full = model.prefill(ids, model.new_cache(quantized=False)).logits[-1]
    for decoder, enough in (("report", 36), ("serving", 29)):  # 7 positions fewer with each layer above
        output = model.prefill(ids, model.new_cache(quantized=False), decoder=decoder, tokens=enough)
        assert gap(output.logits[-1], full) < 1e-9
        output = model.prefill(ids, model.new_cache(quantized=False), decoder=decoder, tokens=enough - 1)
        assert gap(output.logits[-1], full) > 1e-9
    with pytest.raises(ValueError, match="tokens must be 1 or more"):
        models.decoder_rows(config, "report", 0)


@pytest.mark.parametrize("tokens", [0, 1.5, "3"])
def test_a_number_of_tokens_that_is_none_is_refused_before_the_cache_is_touched(tokens):
    model = tiny_model()
    cache = model.new_cache(quantized=False)
    with pytest.raises(ValueError, match="tokens must be 1 or more"):
        model.prefill([1, 2, 3], cache, decoder="report", tokens=tokens)
    assert cache.length == 0
