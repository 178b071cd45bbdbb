"""What V4's cache has to remember, against NumPy's whole texts: pieces, single tokens, tokens taken back, drafts."""

from functools import cache

import numpy as np
import torch

from deepseek_edu.model import dspark, v4_step
from deepseek_edu.model.v4_model import V4Model
from deepseek_edu.reference import v4_dspark
from deepseek_edu.reference import v4_model as numpy_v4

from ..reference.test_v4 import random_weights
from ..reference.test_v4_dspark import drafting_v4
from .tiny import gap

PARITY = 1e-8
CONFIG = drafting_v4(head_dim=72)
"""Layers window, CSA, HCA of 8, CSA, window; windows of 8, the first two layers routed by a table, Top-2 entries."""


@cache
def models():
    """(NumPy model, PyTorch model) with draft stages and equal weights, in float64."""
    weights = random_weights(CONFIG, 12, dspark=True)
    return numpy_v4.V4Model(CONFIG, weights), V4Model(CONFIG, "dspark", torch.float64).load_weights(weights)


def ids_of(count, seed=0):
    return np.random.default_rng(seed).integers(0, 96, count).tolist()


@cache
def whole(count, seed=0, quantized=False):
    """NumPy's logits [count V]."""
    return models()[0].forward(ids_of(count, seed), quantized)


def test_rows_of_different_lengths_in_pieces_are_those_of_numpy():
    _, model = models()
    lengths = (41, 9, 22)
    state = model.new_cache(3, quantized=False)
    output = model.prefill([ids_of(length, row) for row, length in enumerate(lengths)], state, chunk=7)
    for row, length in enumerate(lengths):
        assert gap(output.logits[row, :length], whole(length, row)) < PARITY


def test_short_tiles_gather_what_each_of_their_queries_chose():
    """Three queries choose two of up to ten entries each; what one chose is a key for all, which the others hide."""
    _, model = models()
    state = model.new_cache(quantized=False)
    assert gap(model.prefill([ids_of(41)], state, chunk=3).logits[0], whole(41)) < PARITY


def test_a_quantised_text_in_one_piece_and_in_several_is_that_of_numpy():
    _, model = models()
    for chunk in (41, 9):
        logits = model.prefill([ids_of(41)], model.new_cache(), chunk=chunk).logits[0]
        assert gap(logits, whole(41, quantized=True)) < PARITY


def test_tokens_one_by_one_are_those_of_numpy():
    """Nothing is prefilled, so the short way of a step makes all that the cache holds."""
    _, model = models()
    steps, layer = [], v4_step.Step.layer
    v4_step.Step.layer = lambda *given: steps.append(given) or layer(*given)
    try:
        for quantized in (False, True):
            state = model.new_cache(quantized=quantized)
            logits = torch.cat([model.decode([token], state).logits[0] for token in ids_of(41)])
            assert gap(logits, whole(41, quantized=quantized)) < PARITY
    finally:
        v4_step.Step.layer = layer
    assert len(steps) == 2 * 41 * CONFIG.n_layers


def test_single_tokens_of_several_rows_are_those_of_numpy():
    """Rows of different lengths, then one token each, or none."""
    _, model = models()
    state, done = model.new_cache(2, quantized=False), [9, 14]
    model.prefill([ids_of(count, row) for row, count in enumerate(done)], state)
    for fed in ([1, 1], [0, 1], [1, 0], [1, 1], [1, 1]):
        ids = [[ids_of(41, row)[place]] for row, place in enumerate(done)]
        logits = model.decode(ids, state, counts=fed).logits
        for row, count in enumerate(fed):
            assert gap(logits[row, :count], whole(41, row)[done[row] : done[row] + count]) < PARITY
        done = [place + count for place, count in zip(done, fed, strict=True)]


def test_what_is_taken_back_leaves_no_trace():
    """Five tokens too many, in one tile or one by one, whose groups and windows are written anew."""
    _, model = models()
    ids, wrong = ids_of(41), ids_of(5, seed=9)
    for kept in (11, 15, 16, 20):
        for alone in (False, True):
            state = model.new_cache(quantized=False)
            model.prefill([ids[:kept]], state)
            for piece in [[token] for token in wrong] if alone else [wrong]:
                model.decode([piece], state)
            state.rollback(kept)
            assert int(state.decoded) == int(state.lengths) == kept
            logits = [model.decode([ids[kept]], state).logits[0], model.decode([ids[kept + 1 : 29]], state).logits[0]]
            assert gap(torch.cat(logits), whole(41)[kept:29]) < PARITY


def test_drafts_read_the_outputs_of_their_layers_and_the_context_of_their_windows():
    numpy_model, model = models()
    lengths, tokens = (21, 8, 3), (4, 7, 9)
    state = model.new_cache(3, quantized=False)
    model.prefill([ids_of(length, row) for row, length in enumerate(lengths)], state, chunk=5)
    with torch.no_grad():
        drafts = dspark.draft(torch.tensor(tokens), model, state)
    for row, (length, token) in enumerate(zip(lengths, tokens, strict=True)):
        expected = v4_dspark.draft(token, ids_of(length, row), numpy_model)
        assert gap(drafts.logits[row], expected.logits) < PARITY
        assert gap(drafts.confidence[row], expected.confidence) < PARITY


def test_what_is_trained_without_a_cache_is_what_is_computed_with_one():
    _, model = models()
    lengths = (33, 8)
    batch = [ids_of(length, row) for row, length in enumerate(lengths)]
    for quantized in (False, True):
        logits = model(batch, quantized=quantized).logits
        assert logits.requires_grad
        for row, length in enumerate(lengths):
            assert gap(logits[row, :length], whole(length, row, quantized)) < PARITY
