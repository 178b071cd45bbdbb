"""Sharing of entries, index keys and choices between layers."""

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import attention, csa2, rope, weights, window
from deepseek_edu.reference import cache as caches
from deepseek_edu.reference import model as models

from .tiny import gap, recorded, tiny_model

RNG = np.random.default_rng


def owner(layer, tokens, quantized=False):
    """An owner layer of the tiny model, its cache after some tokens, and what those tokens were."""
    model = tiny_model()
    cache = model.new_cache(quantized)
    plan = model.plans[layer]
    u = RNG(layer).standard_normal((tokens, 32))
    frequencies = rope.layer_frequencies(model.config, plan.ratio)
    csa2.store_global(u, 0, model.layer_parts[layer]["attn"], plan, cache, frequencies)
    return model, cache, u, frequencies


def turn(x, position, frequencies):
    """Turn the last eight channels of one vector, pair by pair."""
    pairs = x[-8:].reshape(4, 2)
    angle = position * frequencies
    turned = np.stack(
        [
            pairs[:, 0] * np.cos(angle) - pairs[:, 1] * np.sin(angle),
            pairs[:, 0] * np.sin(angle) + pairs[:, 1] * np.cos(angle),
        ],
        axis=-1,
    )
    return np.concatenate([x[:-8], turned.ravel()])


def unit(x, gain):
    return x / np.sqrt((x**2).mean() + 1e-20) * gain


@pytest.mark.parametrize(("layer", "ratio"), [(1, 2), (3, 1)])
def test_entries_and_index_keys_are_what_the_definition_says(layer, ratio):
    """Latent; index key from it before it turns; both turned at the position of the group's first token."""
    model, cache, u, frequencies = owner(layer, 7)
    w = model.layer_parts[layer]["attn"]
    assert len(cache.entries[layer]) == len(cache.index_keys[layer]) == 7 // ratio
    for j in range(7 // ratio):
        tokens = u[j * ratio : (j + 1) * ratio]
        values = tokens @ w["compressor.wkv.weight"].T
        if ratio == 2:
            gates = np.exp(tokens @ w["compressor.wgate.weight"].T)
            values = (gates / gates.sum(axis=0) * values).sum(axis=0)
        latent = unit(values.ravel(), w["compressor.norm.weight"])
        key = unit(w["indexer.wk.weight"] @ latent, w["indexer.k_norm.weight"])
        assert gap(cache.entries[layer].read([j])[0], turn(latent, j * ratio, frequencies)) < 1e-12
        assert gap(cache.index_keys[layer].read([j])[0], turn(key, j * ratio, frequencies)) < 1e-12


def test_an_entry_of_a_pair_turns_at_the_position_of_its_first_token():
    _, cache, u, frequencies = owner(1, 6)
    w = tiny_model().layer_parts[1]["attn"]
    values, gates = u[4:] @ w["compressor.wkv.weight"].T, np.exp(u[4:] @ w["compressor.wgate.weight"].T)
    latent = unit((gates / gates.sum(axis=0) * values).sum(axis=0), w["compressor.norm.weight"])
    assert gap(cache.entries[1].read([2])[0], turn(latent, 4, frequencies)) < 1e-12


def test_a_half_filled_group_waits_and_is_completed_by_the_next_token():
    model, cache, u, frequencies = owner(1, 5)
    assert len(cache.entries[1]) == 2
    _, whole, longer, _ = owner(1, 6)
    assert gap(u, longer[:5]) == 0
    csa2.store_global(longer[5:], 5, model.layer_parts[1]["attn"], model.plans[1], cache, frequencies)
    assert gap(cache.entries[1].read(), whole.entries[1].read()) < 1e-12
    assert gap(cache.index_keys[1].read(), whole.index_keys[1].read()) < 1e-12


def test_stored_entries_are_quantised_after_they_turn():
    from deepseek_edu.reference import quant

    _, plain, _, _ = owner(3, 4)
    _, packed, _, _ = owner(3, 4, quantized=True)
    np.testing.assert_array_equal(packed.entries[3].read(), quant.quantize_fp4(plain.entries[3].read(), 16).values)
    keys = quant.quantize_fp4(plain.index_keys[3].read(), 32, "e8m0").values
    np.testing.assert_array_equal(packed.index_keys[3].read(), keys)


def test_a_layer_is_attention_over_its_window_and_the_chosen_entries():
    """The reindexing layer 5 with a made-up memory: every query against an explicit softmax over its own key set."""
    model, cache, _, _ = owner(3, 12)
    layer, w = 5, model.layer_parts[5]["attn"]
    frequencies = rope.layer_frequencies(model.config, 1)
    u = RNG(9).standard_normal((12, 32))
    published = csa2.Published(pool=np.ones((12, 12), bool))
    got = csa2.attend(u, 0, w, model.plans[layer], cache, frequencies, published)
    choices = published.choices[layer]
    own = [turn(unit(w["wkv.weight"] @ x, w["kv_norm.weight"]), t, frequencies) for t, x in enumerate(u)]
    for t in range(12):
        keys = own[max(0, t - 7) : t + 1] + [cache.entries[3].read([j])[0] for j in choices[t] if j >= 0]
        assert all(j <= t for j in choices[t])
        narrow = unit(w["wq_a.weight"] @ u[t], w["q_norm.weight"])
        heads = []
        for h, q in enumerate((w["wq_b.weight"] @ narrow).reshape(4, 32)):
            scores = np.exp([turn(q, t, frequencies) @ k / np.sqrt(32) for k in keys])
            mixed = (scores[:, None] * keys).sum(axis=0) / (scores.sum() + np.exp(w["attn_sink"][h]))
            heads.append(turn(mixed, -t, frequencies))
        expected = attention.grouped_output(np.array(heads)[None], w["wo_a.weight"], w["wo_b.weight"], 2)[0]
        assert gap(got[t], expected) < 1e-11


def test_the_reusing_layers_take_the_choice_made_last():
    output = tiny_model().prefill(recorded()["ids"][0], tiny_model().new_cache(quantized=False))
    assert sorted(output.choices) == [1, 3, 5]
    assert not np.array_equal(output.choices[3], output.choices[5])
    plans = tiny_model().plans
    assert [plans[layer].chooser for layer in (2, 4, 6, 7)] == [1, 3, 5, 5]


def test_the_restricted_layer_chooses_from_the_pool_and_the_source_from_everything():
    """Pool: 3 blocks of 4 out of up to 40 entries; the source's own choices leave it at least once."""
    model, ids = tiny_model(), recorded()["ids"][0]
    cache, run = model.new_cache(quantized=False), csa2.Published()
    original = models.Published
    models.Published = lambda **_: run
    try:
        model.forward(ids, cache)
    finally:
        models.Published = original
    inside = [run.pool[t, [j for j in run.choices[5][t] if j >= 0]].all() for t in range(40)]
    assert all(inside)
    assert run.pool[39].sum() == 12
    assert len(np.unique(run.choices[3][39])) == 4


def test_decode_reads_the_owners_own_index_keys():
    """At an even position layer 1 completes no group and stores nothing; the keys it reads are still its own."""
    model, ids = tiny_model(), recorded()["ids"][0]
    cache = model.new_cache(quantized=False)
    model.prefill(ids[:24], cache)
    assert cache.newest_index_keys == 3
    whole = model.prefill(ids[:25], model.new_cache(quantized=False))
    got = model.decode(ids[24], cache)
    np.testing.assert_array_equal(got.choices[1][0], whole.choices[1][24])


def test_targets_are_read_at_the_layers_input_after_its_engram():
    """With a draft target that has an Engram: its table changes what the drafter reads, later layers do not."""
    config = ModelConfig.tiny(dspark_target_layer_ids=(1, 2))
    w = weights.random_weights(config, 0)
    ids = np.arange(10)

    def main_hidden(changes):
        model = models.Model(config, {**w, **changes}, np.arange(96) // 2)
        return model.prefill(ids, model.new_cache(quantized=False)).main_hidden

    table = {"layers.2.engram.embed.weight": w["layers.2.engram.embed.weight"] * 2}
    attention_out = {"layers.2.attn.wo_b.weight": w["layers.2.attn.wo_b.weight"] * 2}
    assert gap(main_hidden(table)[:, 32:], main_hidden({})[:, 32:]) > 1e-3
    assert gap(main_hidden(table)[:, :32], main_hidden({})[:, :32]) == 0
    assert gap(main_hidden(attention_out), main_hidden({})) == 0
    embedded = np.repeat(w["embed.weight"][ids][:, None], 4, axis=1)
    assert main_hidden({}).shape == (10, 64)
    assert embedded.shape == (10, 4, 32)


def test_attention_sees_eight_window_positions():
    """Position t − 8 is out of the window of 8; t − 7 is in it. Layer 0 alone, so that nothing else carries it."""
    model = tiny_model()
    w, plan = model.layer_parts[0]["attn"], model.plans[0]
    u = RNG(3).standard_normal((20, 32))

    def last(values):
        cache = caches.Cache(model.config, quantized=False)
        return csa2.attend(values, 0, w, plan, cache, model.frequencies[0], csa2.Published())[-1]

    for distance, seen in ((7, True), (8, False)):
        changed = u.copy()
        changed[19 - distance] += 1
        assert (gap(last(changed), last(u)) > 1e-6) is seen
    assert window.window_positions(19, 8).tolist() == list(range(12, 20))


# The owner that stored index keys last, which only the variant `stale_index_keys` reads


def alternating(first, second):
    """A model whose owners, in layers 1 and 3, have ratios of which none is 1 in the last."""
    config = ModelConfig.tiny(compress_ratios=(0, first, first, *[second] * 5, 0, 0, 0))
    return models.Model(config, weights.random_weights(config, 0), np.arange(96) // 2)


def stores_last(ratios, length):
    """Layer of the owner that stored last when `length` tokens came one by one, by counting; None for none."""
    found = None
    for position in range(length):
        for layer, ratio in zip((1, 3), ratios, strict=True):
            found = layer if (position + 1) % ratio == 0 else found
    return found


@pytest.mark.parametrize("ratios", [(1, 2), (4, 2), (2, 4)])
def test_the_owner_that_stored_last_is_the_one_before_the_rejected_tokens(ratios):
    model = alternating(*ratios)
    cache = model.new_cache(quantized=False)
    for length in range(1, 12):
        model.decode(length, cache)
        assert cache.newest_index_keys == stores_last(ratios, length)
        for taken in (1, 2, 5):
            model.forward(np.arange(60, 60 + taken), cache)
            cache.rollback(length)
            assert cache.newest_index_keys == stores_last(ratios, length)
    assert len(cache.index_key_writes) <= 2 * cache.spare + 2


@pytest.mark.parametrize("ratios", [(1, 2), (4, 2), (2, 4)])
def test_the_owner_that_stored_last_is_found_as_far_back_as_tokens_can_be_taken(ratios):
    model = alternating(*ratios)
    cache = model.new_cache(quantized=False)
    for token in range(13):
        model.decode(token, cache)
    for length in range(12, 7, -1):
        cache.rollback(length)
        assert cache.newest_index_keys == stores_last(ratios, length)


def test_the_stale_decode_reads_what_it_would_without_the_rejected_tokens():
    """Pairs in layer 1, fours in layer 3: after ten tokens layer 1 stored last, and the eleventh stores nothing."""
    model, outputs = alternating(2, 4), []
    for rejected in ([], [50, 51, 52, 53]):
        cache = model.new_cache(quantized=False)
        model.prefill(np.arange(8), cache)
        model.forward(np.array([8, 9]), cache)
        if rejected:
            model.forward(np.array(rejected), cache)
            cache.rollback(10)
        outputs.append(model.decode(10, cache, stale_index_keys=True).logits)
    assert np.array_equal(*outputs)
