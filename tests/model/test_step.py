"""One token of one sequence on a CPU (step.py) against the layers for many tokens, and its own parts."""

import numpy as np
import pytest
import torch

from deepseek_edu.model import indexer, one_token, replay, step

from .test_speculative_state import assert_same, state
from .tiny import gap, rows, tiny_model

TOLERANCE = 1e-9


def both_ways(feed):
    """Run feed(model) with one token at a time in step.py, and in the layers for many: [result, result, steps]."""
    calls, run, fits, results = [], step.Step.layer, step.fits, []
    for usable in (fits, lambda _: False):
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(step, "fits", usable)
            monkeypatch.setattr(step.Step, "layer", lambda *given: calls.append(given) or run(*given))
            results.append(feed(tiny_model()))
    return *results, len(calls)


def same_outputs(outputs, others):
    for output, other in zip(outputs, others, strict=True):
        assert gap(output.logits, other.logits) < TOLERANCE
        assert gap(output.main_hidden, other.main_hidden) < TOLERANCE
        assert gap(output.hidden, other.hidden) < TOLERANCE
        assert output.layer_tokens == other.layer_tokens
        assert output.choices.keys() == other.choices.keys()
        for layer, choice in other.choices.items():
            assert output.choices[layer][output.choices[layer] >= 0].tolist() == choice[choice >= 0].tolist()


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize(("length", "decoder"), [(1, "all"), (2, "all"), (9, "report"), (24, "serving"), (33, "all")])
def test_a_step_gives_and_leaves_what_the_layers_for_many_do(length, decoder, quantized):
    def feed(model):
        cache = model.new_cache(1, quantized)
        model.prefill(rows(length), cache, decoder=decoder)
        return [model.decode([(7 * token + 1) % 90], cache) for token in range(14)], cache

    (outputs, cache), (others, other), calls = both_ways(feed)
    assert calls == (14 + (length == 1)) * tiny_model().config.n_layers  # a prompt of one token is a step too
    same_outputs(outputs, others)
    assert_same(state(cache), state(other), tolerance=TOLERANCE)
    assert cache.nbytes == other.nbytes


def test_a_sequence_fed_by_steps_alone_is_that_of_one_prefill():
    def feed(model):
        cache = model.new_cache(1)
        return [model.decode([token], cache) for token in rows(40)[0]], cache

    outputs, cache = feed(tiny_model())
    whole = tiny_model().new_cache(1)
    expected = tiny_model().prefill(rows(40), whole)
    assert gap(torch.cat([output.logits for output in outputs], dim=1), expected.logits) < TOLERANCE
    assert_same(state(cache), state(whole), tolerance=TOLERANCE)


def test_steps_through_a_replayed_prefix_make_no_entry_anew():
    """Replayed positions run again behind entries that are there: 40 tokens, of which 30 were found."""

    def feed(model):
        stored = model.new_cache(1)
        model.prefill(rows(39), stored)
        cache, ids, counts, _ = replay.resume(model, stored, rows(40), [30], exact=False)
        assert counts.tolist() == [ids.shape[1]]
        return [model.decode(ids[:, column], cache) for column in range(ids.shape[1])], cache

    (outputs, cache), (others, other), calls = both_ways(feed)
    assert calls == len(outputs) * tiny_model().config.n_layers
    same_outputs(outputs, others)
    assert_same(state(cache), state(other), tolerance=TOLERANCE)


def test_what_a_step_cannot_do_is_left_to_the_layers_for_many():
    """Two rows, two tokens, a token of an image, routing that is wanted, gradients."""

    def decoded(tokens, batch=1, **options):
        cache = tiny_model().new_cache(batch, quantized=False)
        tiny_model().prefill(rows(*[9] * batch), cache)
        return tiny_model().decode(tokens, cache, **options)

    def feed(_):
        return [
            decoded([3, 4], 2),
            decoded([[3, 4]]),
            decoded([3], types=[[0]]),
            decoded([3], with_routing=True),
            decoded([3], stale_index_keys=True),
            tiny_model()([[3]], tiny_model().new_cache(1)),
        ]

    outputs, others, calls = both_ways(feed)
    assert calls == 0
    same_outputs(outputs, others)
    assert len(outputs[3].routing) == tiny_model().config.n_layers
    assert outputs[5].logits.requires_grad


def test_scores_of_one_token_are_those_of_many():
    """Products of 128 keys with 8 queries of 64 numbers; the last keys are fewer."""
    assert one_token.SMALL_PRODUCT == 8 * 64 * 128
    for count in (1, 7, 128, 129, 300):
        rng = np.random.default_rng(count)
        queries, weights, keys = (rng.standard_normal(shape) for shape in ((8, 64), (8,), (count, 64)))
        scores = one_token.index_scores(queries, weights, keys)
        expected = [weights @ np.array([max(0.0, float(q @ key)) for q in queries]) for key in keys]
        assert scores.shape == (count,)
        np.testing.assert_allclose(scores, expected, atol=1e-12)


def candidates(scores, n_blocks, block_size):
    """The pool as a list; numbers behind the last entry are left out."""
    pool = step.candidates(torch.tensor(scores), n_blocks, block_size)
    return [number for number in pool.tolist() if number < len(scores)]


@pytest.mark.parametrize("count", [1, 3, 4, 21, 60])
def test_candidates_of_a_step_are_the_blocks_of_many(count):
    """Scores of few values, so that blocks tie; the newest block may be short."""
    scores = np.random.default_rng(count).integers(0, 4, count).astype(float)
    kept = indexer.candidate_blocks(torch.tensor(scores)[None, None], torch.tensor([[count]]), 3, 4)[0, 0]
    assert candidates(scores, 3, 4) == [number for number in range(count) if kept[number // 4]]


def test_the_newest_block_of_a_step_is_a_candidate():
    """Blocks of two entries, of which two are kept: the best and the newest, which is the worst."""
    assert candidates([5.0, 0.0, 9.0, 1.0, 7.0, 8.0, -1.0], 2, 2) == [2, 3, 6]
