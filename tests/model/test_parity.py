"""NumPy and PyTorch agree on random configurations, prompts and batches; both in float64, so closely."""

import numpy as np
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import dspark
from deepseek_edu.reference import dspark as numpy_dspark

from ..reference.strategies import configurations, prompts
from .tiny import gap, pair

TOLERANCE = 1e-8  # float64 with sums in another order; logits of scale 5


def feed_both(numpy_model, torch_model, batch, types, pieces):
    """Feed rows to both models in pieces of so many tokens; return caches and the logits of every row's tokens."""
    caches = [numpy_model.new_cache(quantized=False) for _ in batch]
    cache = torch_model.new_cache(len(batch), quantized=False)
    width = max(map(len, batch))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in batch])
    kinds = None if types is None else torch.tensor([row + [-1] * (width - len(row)) for row in types])
    begin = 0
    for piece in [*pieces, width]:
        columns = slice(begin, begin + piece)
        counts = [len(row[columns]) for row in batch]
        if not any(counts):
            break
        output = torch_model.decode(
            ids[:, columns], cache, counts=counts, types=None if kinds is None else kinds[:, columns]
        )
        for b, row in enumerate(batch):
            if counts[b]:
                kind = None if types is None else types[b][columns]
                expected = numpy_model.forward(row[columns], caches[b], kind)
                assert gap(output.logits[b, : counts[b]], expected.logits) < TOLERANCE
                assert gap(output.main_hidden[b, : counts[b]], expected.main_hidden) < TOLERANCE
                for layer, choice in expected.choices.items():
                    got = output.choices[layer][b, : counts[b]].numpy()
                    np.testing.assert_array_equal(got[:, : choice.shape[1]], choice)
                    assert (got[:, choice.shape[1] :] == -1).all()
        begin += piece
    return caches, cache


@given(st.data())
@settings(max_examples=60)
def test_random_models_agree_row_by_row(data):
    """Any layers, owners, ratios, windows, pools, modules; rows of different lengths, in pieces of any sizes."""
    config = data.draw(configurations(), label="config")
    drawn = data.draw(st.lists(prompts(config), min_size=1, max_size=3), label="prompts")
    batch = [ids for ids, _ in drawn]
    pieces = data.draw(st.lists(st.integers(1, 9), max_size=4), label="pieces")
    numpy_model, torch_model = pair(config)
    caches, cache = feed_both(numpy_model, torch_model, batch, None, pieces)
    if config.n_mtp_layers:
        tokens = [row[0] for row in batch]
        with torch.no_grad():
            draft = dspark.draft(torch.tensor(tokens), torch_model, cache)
        for b, state in enumerate(caches):
            expected = numpy_dspark.draft(tokens[b], len(batch[b]), numpy_model, state)
            assert gap(draft.logits[b, 0], expected.logits[0]) < TOLERANCE
            assert gap(draft.confidence[b, 0], expected.confidence[0]) < TOLERANCE
            np.testing.assert_array_equal(draft.ids[b], expected.ids)


@given(st.data())
@settings(max_examples=20)
def test_random_models_agree_on_images(data):
    config = data.draw(configurations(), label="config")
    drawn = data.draw(st.lists(prompts(config), min_size=1, max_size=2), label="prompts")
    batch = [ids for ids, _ in drawn]
    types = [kinds or [-1] * len(ids) for ids, kinds in drawn]
    numpy_model, torch_model = pair(config)
    feed_both(numpy_model, torch_model, batch, types, [])


@given(st.data())
@settings(max_examples=30)
def test_skipping_the_decoder_agrees_row_by_row(data):
    """Any configuration with a decoder, any variant, chunks; also two tokens afterwards, which read what was left."""
    config = data.draw(configurations(), label="config")
    assume(config.skips_decoder)
    drawn = data.draw(st.lists(prompts(config), min_size=1, max_size=3), label="prompts")
    decoder = data.draw(st.sampled_from(["exact", "report", "serving"]), label="decoder")
    chunk = data.draw(st.sampled_from([None, 1, 4]), label="chunk")
    numpy_model, torch_model = pair(config)
    cache = torch_model.new_cache(len(drawn), quantized=False)
    width = max(len(ids) for ids, _ in drawn)
    types = [[*(kinds or [-1] * len(ids)), *[-1] * (width - len(ids))] for ids, kinds in drawn]
    output = torch_model.prefill([ids for ids, _ in drawn], cache, types=types, decoder=decoder, chunk=chunk)
    after = torch_model.decode(torch.tensor([[1, 2]] * len(drawn)), cache)
    for b, (ids, _) in enumerate(drawn):
        state = numpy_model.new_cache(quantized=False)
        expected = numpy_model.prefill(ids, state, types[b][: len(ids)], decoder=decoder)
        assert gap(output.last[b], expected.logits[-1]) < TOLERANCE
        assert gap(after.logits[b], numpy_model.decode([1, 2], state).logits) < TOLERANCE


@given(st.sampled_from([1, 2, 3]), st.sampled_from([7, 8, 9, 15, 16, 17]), st.integers(1, 3))
@settings(max_examples=12)
def test_lengths_at_the_edges_of_windows_and_groups(ratio, tokens, more):
    """Window 8: one below, at and above it and twice it; then one to three tokens, which complete groups or do not."""
    config = ModelConfig.tiny(compress_ratios=(0, ratio, ratio, 1, 1, 1, 1, 1, 0, 0, 0))
    numpy_model, torch_model = pair(config, 3)
    ids = np.random.default_rng(tokens).integers(0, 96, (2, tokens + more)).tolist()
    feed_both(numpy_model, torch_model, ids, None, [tokens])
