"""All ways of feeding the same tokens give the same logits and leave the same state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import model as models
from deepseek_edu.reference import weights

from .strategies import configurations, prompts
from .tiny import gap, recorded, tiny_model


def whole(ids, quantized=False):
    model = tiny_model()
    cache = model.new_cache(quantized)
    return model.prefill(ids, cache), cache


def same_state(cache, other, tolerance=1e-9):
    """Everything that the next token could read is the same in both caches."""
    assert (cache.length, cache.stored) == (other.length, other.stored)
    for layer in cache.entries:
        assert gap(cache.entries[layer].read(), other.entries[layer].read()) < tolerance
        assert gap(cache.index_keys[layer].read(), other.index_keys[layer].read()) < tolerance
    rings = [(cache.windows, other.windows), (cache.draft_windows, other.draft_windows)]
    for mine, theirs in rings:
        for ring, second in zip(mine, theirs, strict=True):
            assert ring.latest()[0] == second.latest()[0]
            assert gap(ring.latest()[1], second.latest()[1]) < tolerance
    np.testing.assert_array_equal(cache.previous_ids(), other.previous_ids())
    for layer, ring in cache.open_groups.items():
        open_from = cache.length - cache.length % cache.config.compress_ratios[layer]
        second = other.open_groups[layer]
        assert gap(ring.read(open_from, cache.length), second.read(open_from, cache.length)) < tolerance


@given(st.lists(st.integers(1, 19), min_size=1, max_size=8), st.booleans(), st.integers(0, 1))
@settings(max_examples=12)
def test_pieces_of_any_sizes_give_the_logits_of_one_piece(sizes, quantized, b):
    model, ids = tiny_model(), recorded()["ids"][b]
    ids = ids[: min(sum(sizes), 40)]
    output, cache = whole(ids, quantized)
    other, first, rows = model.new_cache(quantized), 0, []
    for size in sizes:
        if first < len(ids):
            rows.append(model.forward(ids[first : first + size], other).logits)
            first += size
    assert gap(np.concatenate(rows), output.logits) < 1e-9
    same_state(cache, other)


def test_two_pieces_give_the_logits_of_one_piece():
    model, ids = tiny_model(), recorded()["ids"][1][:19]
    output, cache = whole(ids)
    other = model.new_cache(quantized=False)
    rows = [model.forward(piece, other).logits for piece in (ids[:11], ids[11:])]
    assert gap(np.concatenate(rows), output.logits) < 1e-9
    same_state(cache, other)


def test_four_rejected_tokens_leave_no_trace():
    """After 15 tokens a group of two is half filled; five more are fed and four of them taken back."""
    model, ids = tiny_model(), recorded()["ids"][0]
    for start in (15, 16):
        cache = model.new_cache(quantized=False)
        model.prefill(ids[:start], cache)
        model.forward(np.concatenate([ids[start : start + 1], (ids[start + 1 : start + 5] + 11) % 96]), cache)
        cache.rollback(start + 1)
        _, other = whole(ids[: start + 1])
        same_state(cache, other)
        for rest in (ids[start + 1 : start + 3], ids[start + 3 : start + 5]):
            assert gap(model.forward(rest, cache).logits, model.forward(rest, other).logits) < 1e-9


@pytest.mark.parametrize("tokens", [1, 2, 7, 8, 9, 15, 16, 17, 24])
def test_window_edges_one_token_at_a_time(tokens):
    """Window 8: lengths just below, at and above it and twice it; odd lengths leave a group half filled."""
    model, ids = tiny_model(), recorded()["ids"][0]
    output, cache = whole(ids[:tokens])
    other = model.new_cache(quantized=False)
    rows = [model.decode(token, other).logits[0] for token in ids[:tokens]]
    assert gap(rows, output.logits) < 1e-9
    same_state(cache, other)


@pytest.mark.parametrize("decoder", ["exact", "report", "serving"])
@pytest.mark.parametrize("new", [1, 5, 8])
def test_a_second_turn_no_longer_than_the_window_keeps_the_windows_of_the_first(decoder, new):
    model, ids = tiny_model(), recorded()["ids"][0]
    cache = model.new_cache(quantized=False)
    model.prefill(ids[:20], cache)
    got = model.prefill(ids[20 : 20 + new], cache, decoder=decoder)
    expected, other = whole(ids[: 20 + new])
    assert gap(got.logits[-1], expected.logits[-1]) < 1e-9
    same_state(cache, other)


def test_a_later_token_changes_no_earlier_row():
    ids = recorded()["ids"][0][:30].copy()
    before = whole(ids)[0].logits
    ids[20] = (ids[20] + 7) % 90
    after = whole(ids)[0].logits
    assert gap(after[:20], before[:20]) < 1e-12
    assert gap(after[20:], before[20:]) > 0.1


def test_chunks_of_a_prompt_with_an_image_give_the_recorded_logits():
    model, data = tiny_model(), recorded()
    ids, types = data["noquant/image20/ids"][0], data["noquant/image20/types"][0]
    cache = model.new_cache(quantized=False)
    output = model.prefill(ids, cache, types, chunk=7)
    assert gap(output.logits, data["noquant/image20/logits"][0][14:]) < 5e-5


def test_features_take_the_place_of_image_embeddings():
    model, data = tiny_model(), recorded()
    ids, types = data["noquant/image20/ids"][0], data["noquant/image20/types"][0]
    features = model.embed[ids[types >= 0]]
    same = model.prefill(ids, model.new_cache(quantized=False), types, features, chunk=6)
    assert gap(same.logits, data["noquant/image20/logits"][0][18:]) < 5e-5
    other = model.prefill(ids, model.new_cache(quantized=False), types, features + 1)
    assert gap(other.logits[-1:], same.logits[-1:]) > 0.1


@given(st.integers(1, 30), st.integers(1, 6), st.data())
@settings(max_examples=15)
def test_rejected_tokens_leave_no_trace(start, tried, data):
    """Feed some tokens, feed others, take back all but a few, go on: as if they had never been there."""
    model, ids = tiny_model(), recorded()["ids"][0]
    kept = data.draw(st.integers(max(0, tried - 5), tried), label="kept")
    quantized = data.draw(st.booleans(), label="quantized")
    cache = model.new_cache(quantized)
    model.prefill(ids[:start], cache)
    junk = np.concatenate([ids[start : start + kept], (ids[start + kept : start + tried] + 11) % 96])
    model.forward(junk, cache)
    cache.rollback(start + kept)
    reference, other = whole(ids[: start + kept], quantized)
    same_state(cache, other)
    rest = ids[start + kept : start + kept + 3]
    assert gap(model.forward(rest, cache).logits, model.forward(rest, other).logits) < 1e-9
    assert reference.logits.shape[0] == start + kept


def test_taking_back_more_than_the_spare_positions_is_refused():
    model, ids = tiny_model(), recorded()["ids"][0]
    cache = model.new_cache()
    model.prefill(ids[:20], cache)
    cache.rollback(17)
    with pytest.raises(ValueError, match=r"length must be 15 … 17; got 14"):
        cache.rollback(14)
    assert cache.length == 17
    same = model.forward(ids[17:20], cache).logits
    assert gap(same, whole(ids[:20], quantized=True)[0].logits[17:]) < 1e-9


@given(st.data())
@settings(max_examples=40)
def test_random_models_give_the_same_logits_and_state_in_pieces(data):
    """Any layers, owners, ratios, windows, pools, modules, stages, prompts with and without an image span."""
    quantized = data.draw(st.booleans(), label="quantized")
    config = data.draw(configurations(quantizable=quantized), label="config")
    ids, types = data.draw(prompts(config), label="prompt")
    chunk = data.draw(st.integers(1, 9), label="chunk")
    model = models.Model(config, weights.random_weights(config, 0), np.arange(config.vocab_size) // 2)
    whole, pieces = model.new_cache(quantized), model.new_cache(quantized)
    output = model.prefill(ids, whole, types)
    assert np.isfinite(output.logits).all()
    rows = [
        model.forward(ids[i : i + chunk], pieces, None if types is None else types[i : i + chunk]).logits
        for i in range(0, len(ids), chunk)
    ]
    if not quantized:  # a number next to a rounding boundary may fall to either side when sums are taken otherwise
        assert gap(np.concatenate(rows), output.logits) < 1e-8
        same_state(pieces, whole, 1e-8)
    if config.skips_decoder:
        skipped = model.new_cache(quantized)
        last = model.prefill(ids, skipped, types, chunk=chunk, decoder="exact").logits[-1]
        if not quantized:
            assert gap(last, output.logits[-1]) < 1e-8
            same_state(skipped, whole, 1e-8)


def test_float32_gives_float32_within_its_precision():
    model = models.Model(
        ModelConfig.tiny(), weights.random_weights(ModelConfig.tiny(), 0), np.arange(96) // 2, np.float32
    )
    exact = models.Model(ModelConfig.tiny(), model.weights, np.arange(96) // 2)
    ids = recorded()["ids"][0][:9]
    got = model.prefill(ids, model.new_cache(quantized=False)).logits
    assert got.dtype == np.float32
    assert gap(got, exact.prefill(ids, exact.new_cache(quantized=False)).logits) < 1e-3


def test_a_model_without_global_memory_has_no_decoder_to_skip():
    config = ModelConfig.tiny(
        compress_ratios=(0,) * 11, kv_source_layers=(), index_source_layers=(), candidate_source_layer=-1
    )
    model = models.Model(config, weights.random_weights(config, 0), np.arange(96) // 2)
    assert model.prefill([1, 2, 3], model.new_cache()).logits.shape == (3, 96)
    with pytest.raises(ValueError, match="it has no decoder"):
        model.prefill([1, 2, 3], model.new_cache(), decoder="report")


def test_a_decoder_that_chooses_inside_a_pool_of_the_encoder_cannot_be_skipped():
    config = ModelConfig.tiny(
        compress_ratios=(0, *(1,) * 7, 0, 0, 0), kv_source_layers=(1, 3), candidate_source_layer=1
    )
    assert not config.skips_decoder
    model = models.Model(config, weights.random_weights(config, 0), np.arange(96) // 2)
    with pytest.raises(ValueError, match="chooses inside a pool made by its encoder"):
        model.prefill([1, 2, 3], model.new_cache(), decoder="report")
    assert ModelConfig.tiny().skips_decoder


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "one or more integers"),
        ([1.5], "one or more integers"),
        ([[1]], "one or more"),
        ([96], "0 … 95"),
        ([-1], "0 … 95"),
    ],
)
def test_ids_that_no_vocabulary_has_are_refused(ids, message):
    model = tiny_model()
    with pytest.raises(ValueError, match=message):
        model.forward(ids, model.new_cache())


def test_a_cache_of_another_configuration_is_refused():
    from deepseek_edu.reference.cache import Cache

    with pytest.raises(ValueError, match="another configuration"):
        tiny_model().forward([1], Cache(ModelConfig.tiny(window_size=9)))


def test_missing_unknown_and_misshapen_weights_are_listed_together():
    config = ModelConfig.tiny()
    some = weights.random_weights(config, 0)
    del some["head.weight"]
    some["extra"] = np.zeros(1)
    some["norm.weight"] = np.zeros(3)
    with pytest.raises(ValueError, match=r"1 missing: head.weight; 1 unknown: extra; 1 of another shape: norm.weight"):
        models.Model(config, some, np.arange(96) // 2)


def test_the_released_shapes_are_those_of_the_recorded_weights():
    shapes = weights.weight_shapes(ModelConfig.tiny())
    assert shapes == {name[2:]: array.shape for name, array in recorded().items() if name.startswith("w/")}


def test_a_cache_costs_the_bytes_of_the_released_formats():
    """890 B per token of global memory, 2 703 360 B for 40 windows and 202 752 B for three draft windows."""
    from deepseek_edu.reference.cache import Cache

    config = ModelConfig.v41_flash()
    cache = Cache(config)
    rows = np.random.default_rng(0).standard_normal((64, 512))
    for layer, ratio in ((2, 2), (8, 2), (14, 2), (20, 1)):
        cache.entries[layer].append(rows[: 64 // ratio])
        cache.index_keys[layer].append(rows[: 64 // ratio, :128])
    parts = cache.nbytes
    assert parts["persistent"] == 890 * 64
    assert parts["entries"] == 288 * 64 * 5 // 2
    assert (parts["windows"], parts["draft_windows"]) == (2_703_360, 3 * 128 * 528)
    assert parts["windows"] + parts["draft_windows"] == 2_906_112
    assert parts["persistent"] + parts["transient"] == sum(
        parts[name] for name in ("entries", "index_keys", "windows", "draft_windows", "open_groups", "history", "spare")
    )


def contents(cache):
    """Everything a cache holds, as bytes and numbers."""
    stores = [*cache.entries.values(), *cache.index_keys.values()]
    rings = [*cache.windows, *cache.draft_windows, *cache.open_groups.values(), cache.history]
    parts = [part.tobytes() for store in (*stores, *rings) for part in store.stored()]
    return parts, [(r.start, r.end, r.highest) for r in rings], (cache.length, cache.stored, cache.highest)


IMAGE = [1] * 6  # types of six tokens inside an image


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, c: m.prefill([1, 2, 3, 96], c, chunk=2), "ids must be 0 … 95; got 1 … 96"),
        (lambda m, c: m.prefill([1, 2, 3, 96], c, chunk=2, decoder="report"), "ids must be 0 … 95"),
        (lambda m, c: m.prefill("abc", c), "ids must be one or more integers"),
        (lambda m, c: m.prefill(None, c), "ids must be one or more integers"),
        (lambda m, c: m.prefill([1, 2, 3], c, chunk=1.5), "chunk must be 1 or more"),
        (lambda m, c: m.prefill([1, 2, 3], c, chunk=0), "chunk must be 1 or more"),
        (lambda m, c: m.prefill([1] * 6, c, types=[-1] * 5, chunk=2), r"types must have the shape of ids, \(6,\)"),
        (lambda m, c: m.prefill([1] * 6, c, types=[3, 4, 5, 6, 7, 8]), "types must be integers, -1 .* got 3 … 8"),
        (lambda m, c: m.prefill([1] * 6, c, features=np.ones((6, 32))), "features need types"),
        (lambda m, c: m.prefill([95] * 6, c, IMAGE, np.ones((5, 32)), chunk=2), r"features must be \(6, 32\)"),
        (lambda m, c: m.prefill([95] * 6, c, IMAGE, np.ones((8, 32)), chunk=2), r"features must be \(6, 32\)"),
        (lambda m, c: m.prefill([95] * 6, c, IMAGE, np.full((6, 32), np.nan)), "features must be finite"),
        (lambda m, c: m.generate([1], 3, temperature=float("nan"), cache=c), "temperature must be 0 or more"),
        (lambda m, c: m.generate([1], 3, temperature="1", cache=c), "temperature must be 0 or more"),
        (lambda m, c: m.generate([1], 2.5, cache=c), "max_new_tokens must be 1 or more"),
        (lambda m, c: m.generate([1], 8, draft_length=1.5, cache=c), "draft_length must be 0 or more"),
        (lambda m, c: m.generate([1], 3, seed=-1, cache=c), "seed must be 0 or more"),
        (lambda m, c: m.generate([1], 3, stop=5, cache=c), "stop must be a list"),
        (lambda m, c: m.generate([1], 3, stop=["a"], cache=c), "stop must be 0 or more"),
        (lambda _, c: c.rollback(16.5), "length must be"),
        (lambda _, c: c.prefix(4.0), "length must be"),
    ],
)
def test_a_refused_call_leaves_the_cache_as_it_was(call, message):
    model = tiny_model()
    cache = model.new_cache()
    model.prefill(recorded()["ids"][0][:17], cache)
    before = contents(cache)
    with pytest.raises(ValueError, match=message):
        call(model, cache)
    assert contents(cache) == before


@pytest.mark.parametrize("cache", [None, object()])
def test_what_is_no_cache_is_refused(cache):
    with pytest.raises(ValueError, match=r"cache must come from new_cache\(\)"):
        tiny_model().forward([1], cache)


def test_a_quantised_cache_needs_whole_blocks():
    config = ModelConfig.tiny(head_dim=40, index_head_dim=24)
    model = models.Model(config, weights.random_weights(config, 0), np.arange(96) // 2)
    with pytest.raises(ValueError, match=r"head_dim must be a multiple of 32 in a quantised cache.* got 40"):
        model.new_cache()
    assert model.prefill([1, 2, 3], model.new_cache(quantized=False)).logits.shape == (3, 96)
    with pytest.raises(ValueError, match="spare must be 0 or more"):
        model.new_cache(quantized=False, spare=-1)
