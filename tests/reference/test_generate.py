"""Generation with and without drafts."""

from collections import Counter
from functools import partial

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import acceptance, dspark, generate, sampling, weights
from deepseek_edu.reference import model as models

from .test_feeding import same_state
from .tiny import gap, recorded, tiny_model


def prompt(tokens=24):
    return recorded()["ids"][0][:tokens]


def plain(tokens, start=24, **options):
    cache = tiny_model().new_cache()
    return tiny_model().generate(prompt(start), tokens, speculative=False, cache=cache, stop=(), **options), cache


def oracle_drafter(text, wrong):
    """A drafter that proposes the tokens of `text`, and a wrong one at the positions (in text) of `wrong`."""

    def draft(token, position, model, cache, pick=None):
        at = position - 24 + 1
        ids = [token]
        for place in range(at, at + 5):
            right = text[place] if place < len(text) else 0
            ids.append((right + 1) % 96 if place in wrong else right)
        logits = np.full((5, 96), -50.0)
        logits[np.arange(5), ids[1:]] = 50.0
        return dspark.Draft(np.array(ids), logits, np.zeros(5))

    return draft


@pytest.mark.parametrize("start", [1, 3, 24])
def test_greedy_text_is_the_same_with_and_without_drafts(start):
    expected, cache = plain(16, start)
    other = tiny_model().new_cache()
    got = tiny_model().generate(prompt(start), 16, cache=other, stop=())
    assert got.ids == expected.ids
    same_state(other, cache)


@pytest.mark.parametrize("wrong", [(), (1,), (3, 4, 9), range(0, 30, 2), range(30)])
def test_any_pattern_of_accepted_drafts_gives_the_plain_text_and_state(monkeypatch, wrong):
    """Blocks of which 0 … 5 drafts stand, over window edges and half groups; nothing of a rejected draft stays."""
    expected, cache = plain(20)
    monkeypatch.setattr(dspark, "draft", oracle_drafter(plain(30)[0].ids, set(wrong)))
    other = tiny_model().new_cache()
    got = tiny_model().generate(prompt(), 20, cache=other, stop=())
    assert got.ids == expected.ids
    assert sum(got.accepted) + len(got.accepted) + 1 >= 20
    if not wrong:
        assert got.accepted == [5, 5, 5, 5]
        assert got.passes == 4
    same_state(other, cache)


def test_a_rejected_draft_is_replaced_and_the_rest_is_taken_back():
    text = plain(30)[0].ids
    expected, _ = plain(12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dspark, "draft", oracle_drafter(text, {3}))
        got = tiny_model().generate(prompt(), 12, cache=tiny_model().new_cache(), stop=())
    assert got.accepted == [2, 5, 5]
    assert got.ids == expected.ids


def test_a_stop_token_inside_an_accepted_block_ends_the_text(monkeypatch):
    expected, _ = plain(10)
    stop = expected.ids[4]
    end = expected.ids.index(stop) + 1
    monkeypatch.setattr(dspark, "draft", oracle_drafter(expected.ids, ()))
    cache = tiny_model().new_cache()
    got = tiny_model().generate(prompt(), 10, cache=cache, stop={stop})
    assert (got.ids, got.stopped) == (expected.ids[:end], True)
    assert cache.length == 24 + end - 1
    same_state(cache, plain(end)[1])


def test_the_end_of_text_is_the_configured_token():
    config = ModelConfig.tiny(eos_token_id=7)
    w = weights.random_weights(config, 0)
    w["head.weight"][:] = 0
    model = models.Model(config, w, np.arange(96) // 2)
    assert model.generate([1], 5).ids == [0] * 5  # all logits are equal: id 0, which is no stop token here
    assert model.generate([1], 5, stop={0}).ids == [0]


def test_the_same_seed_gives_the_same_text():
    model = tiny_model()
    texts = [model.generate(prompt(9), 8, temperature=1.0, seed=seed, stop=()).ids for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_the_distributions_reported_are_those_the_drafts_are_drawn_from():
    """Both distributions that acceptance gets are softmaxes at the temperature of the draws."""
    seen = []

    def accept(drafts, proposed, wanted, rng):
        seen.append((drafts, proposed, wanted))
        return 0, 1

    drawn = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acceptance, "accept", accept)
        original = sampling.sample
        patch.setattr(sampling, "sample", lambda row, t, rng: drawn.append((row, t)) or original(row, t, rng))
        tiny_model().generate(prompt(9), 2, temperature=0.7, seed=1, stop=())
    (drafts, proposed, wanted), rows = seen[0], drawn[1:]
    assert (len(drafts), wanted.shape) == (5, (6, 96))
    for distribution, (row, temperature) in zip(proposed, rows, strict=True):
        weights_of_row = np.exp((row - row.max()) / 0.7)
        assert temperature == 0.7
        assert gap(distribution, weights_of_row / weights_of_row.sum()) < 1e-12


@pytest.mark.slow
def test_sampled_text_has_the_same_frequencies_with_drafts():
    """Two-token continuations of a model of 5 tokens, 600 seeds each way: a chi-square test of two samples."""
    config = ModelConfig.tiny(
        vocab_size=5, n_layers=2, n_mtp_layers=1, compress_ratios=(1, 1, 0), kv_source_layers=(0,),
        index_source_layers=(0,), candidate_source_layer=-1, engram_layer_ids=(), engram_num_embeddings=(),
        dspark_target_layer_ids=(1,), dspark_block_size=2, dspark_noise_token_id=4, n_routed_experts=2,
        n_activated_experts=1, hc_sinkhorn_iters=2, eos_token_id=4, vision_n_layers=0, image_token_id=-1,
        dspark_n_routed_experts=2, dspark_n_activated_experts=1, hc_mult=2, n_heads=2,
    )  # fmt: skip
    model = models.Model(config, weights.random_weights(config, 5, scale=0.5))
    counts = []
    for speculative in (True, False):
        cache = partial(model.new_cache, False)
        texts = [
            tuple(generate.generate(model, [1, 2], 3, 1.0, seed, speculative, (), cache()).ids[1:])
            for seed in range(600 * speculative, 600 * speculative + 600)
        ]
        counts.append(Counter(texts))
    texts = sorted(set(counts[0]) | set(counts[1]))
    a, b = (np.array([count[text] for text in texts]) for count in counts)
    assert np.sum((a - b) ** 2 / (a + b)) < 51.2  # 24 degrees of freedom, 99.9 %


def test_a_draft_reads_the_window_and_all_five_rows():
    """Changing the noise token changes every row's logits, also the first: rows see those to their right."""
    model, cache = tiny_model(), tiny_model().new_cache(quantized=False)
    model.prefill(prompt(), cache)
    before = dspark.draft(3, 24, model, cache).logits
    config = ModelConfig.tiny(dspark_noise_token_id=33)
    other = models.Model(config, model.weights, np.arange(96) // 2)
    state = other.new_cache(quantized=False)
    other.prefill(prompt(), state)
    after = dspark.draft(3, 24, other, state).logits
    assert np.all(np.abs(after - before).max(axis=-1) > 1e-3)


def test_a_draft_without_context_is_refused():
    model, cache = tiny_model(), tiny_model().new_cache()
    with pytest.raises(ValueError, match="must end at position 5"):
        dspark.draft(3, 5, model, cache)
    model.prefill([1, 2], cache)
    for token in (-1, 96, 2.5):
        with pytest.raises(ValueError, match="ids must be"):
            dspark.draft(token, 2, model, cache)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"max_new_tokens": 0}, "max_new_tokens"), ({"max_new_tokens": 1, "draft_length": 6}, "draft")],
)
def test_arguments_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tiny_model().generate([1], **options)


def test_a_cache_without_room_for_drafts_is_refused_before_anything_is_fed():
    model = tiny_model()
    cache = model.new_cache(spare=2)
    with pytest.raises(ValueError, match="5 spare positions"):
        model.generate([1, 2], 3, cache=cache)
    assert cache.length == 0
    assert len(model.generate([1, 2], 3, cache=cache, draft_length=2, stop=()).ids) == 3


def test_a_prompt_with_an_image_is_continued():
    model, data = tiny_model(), recorded()
    ids, types = data["noquant/image20/ids"][0], data["noquant/image20/types"][0]
    cache = model.new_cache(quantized=False)
    got = model.generate(ids, 4, types=types, cache=cache, stop=())
    assert got.ids[0] == int(data["noquant/image20/logits"][0, -1].argmax())
    plain_text = model.generate(ids, 4, types=types, cache=model.new_cache(quantized=False), stop=(), speculative=False)
    assert got.ids == plain_text.ids


def test_a_shorter_draft_length_gives_the_same_text():
    expected, _ = plain(10)
    for length in (0, 1, 3):
        assert tiny_model().generate(prompt(), 10, draft_length=length, stop=()).ids == expected.ids
    assert gap([1], [1]) == 0
