"""Chunks, ragged batches, skipped decoders and replays: small cases, each for one way of going wrong."""

import numpy as np
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import replay
from deepseek_edu.model.tiles import Tail
from deepseek_edu.reference import replay as numpy_replay

from ..reference.tiny import tiny_model as numpy_tiny_model
from .test_speculative import small
from .test_speculative_state import assert_same, state
from .tiny import ORACLES, gap, recorded, rows, tiny_model


def fed(batch, quantized=False, **options):
    """(Output, Cache) of a prefill."""
    model = tiny_model()
    cache = model.new_cache(len(batch), quantized)
    return model.prefill(batch, cache, **options), cache


def same_next(cache, other):
    """Both caches give the same logits for a next token."""
    tokens = torch.arange(cache.batch) + 3
    return gap(tiny_model().decode(tokens, cache).logits, tiny_model().decode(tokens, other).logits) < 1e-9


def test_chunks_leave_the_state_of_one_piece():
    """Chunks of three end inside groups; the rows end in different chunks."""
    whole, cache = fed(rows(20, 7), quantized=True)
    pieces, other = fed(rows(20, 7), quantized=True, chunk=3)
    assert gap(pieces.last, whole.last) < 1e-9
    assert_same(state(other), state(cache), tolerance=1e-9)


def test_chunks_with_logits_of_the_last_token_only_find_each_rows_last():
    whole, _ = fed(rows(20, 7))
    pieces, _ = fed(rows(20, 7), chunk=6, logits="last")
    assert gap(pieces.last, whole.last) < 1e-9


def test_padding_leaves_no_trace_in_any_state():
    """A short row beside a long one, padded with a token that would be seen; alone it leaves the same bytes."""
    model, batch = tiny_model(), rows(3, 17)
    ids = torch.full((2, 17), 77)
    ids[0, :3], ids[1] = torch.tensor(batch[0]), torch.tensor(batch[1])
    cache = model.new_cache(2)
    model.prefill(ids, cache, counts=[3, 17])
    _, alone = fed([batch[0]], quantized=True)
    both, one = state(cache), state(alone)
    assert {name for name in both if name[2:3] == (0,)} == {name for name in one if isinstance(name, tuple)}
    for name, value in one.items():
        if isinstance(name, tuple):
            assert gap(both[name], value) < 1e-9, name


def test_hashes_of_a_row_do_not_feel_the_rows_beside_it():
    """Rows of different lengths go on by different numbers of tokens; the n-grams stay their own."""
    model, ids = tiny_model(), torch.tensor(recorded()["ids"])
    cache, expected = model.new_cache(2), recorded()["engram_hashes40"]
    model.prefill(ids[:, :9], cache, counts=[9, 4])
    second = torch.stack([ids[0, 9:12], ids[1, 4:7]])
    output = model.decode(second, cache, counts=[1, 3])
    np.testing.assert_array_equal(output.hashes[0, :1], expected[0, 9:10])
    np.testing.assert_array_equal(output.hashes[1], expected[1, 4:7])


def test_a_row_fed_nothing_stays_as_it_is():
    _, cache = fed(rows(9, 12))
    before = state(cache)
    tiny_model().decode([[1, 2], [3, 4]], cache, counts=[0, 2])
    after = state(cache)
    for name, value in before.items():
        if isinstance(name, tuple) and name[2] == 0:
            assert torch.equal(after[name], value), name
    assert cache.lengths.tolist() == [9, 14]


def test_a_prefix_continues_the_bytes_that_were_stored():
    _, cache = fed(rows(20, 13), quantized=True)
    prefix = cache.prefix(torch.tensor([12, 8]))
    assert prefix.stored.tolist() == [12, 8]
    for layer, ratio in ((1, 2), (3, 1)):
        for row, length in enumerate((12, 8)):
            for part, whole in zip(prefix.entries[layer].stored(row), cache.entries[layer].stored(row), strict=True):
                assert torch.equal(part, whole[: length // ratio])


# Skipping the decoder


def replayed(variant, tokens):
    with np.load(ORACLES / "replay_tiny.npz") as file:
        return file[f"{variant}/T{tokens}/logits"]


def skipped(decoder, tokens, **options):
    return fed([ids.tolist() for ids in recorded()["ids"][:, :tokens]], decoder=decoder, **options)


def test_a_decoder_cut_as_the_report_says_gives_the_recorded_logits():
    assert gap(skipped("report", 27)[0].last, replayed("paper", 27)) < 1e-9


def test_a_decoder_cut_as_it_is_served_gives_the_recorded_logits():
    assert gap(skipped("serving", 27)[0].last, replayed("vllm", 27)) < 1e-9


def test_chunks_of_a_skipping_prefill_give_the_recorded_logits():
    assert gap(skipped("serving", 27, chunk=5)[0].last, replayed("vllm", 27)) < 1e-9


def test_a_prompt_no_longer_than_the_window_loses_nothing():
    for decoder in ("report", "serving", "exact"):
        assert gap(skipped(decoder, 8)[0].last, fed([i.tolist() for i in recorded()["ids"][:, :8]])[0].last) < 1e-9


def test_an_exact_skip_leaves_the_future_of_a_whole_prefill():
    whole, cache = fed(rows(40, 11))
    output, other = fed(rows(40, 11), decoder="exact", chunk=9)
    assert gap(output.last, whole.last) < 1e-9
    assert output.layer_tokens < whole.layer_tokens
    assert same_next(cache, other)


def test_the_memory_of_the_first_decoder_layer_is_whole_after_any_skip():
    """Its entries are made for all tokens, and they are those of a whole prefill."""
    _, cache = fed(rows(40, 11))
    for decoder in ("report", "serving", "exact"):
        _, other = fed(rows(40, 11), decoder=decoder)
        for row in range(2):
            assert gap(other.entries[3].stored(row)[0], cache.entries[3].stored(row)[0]) < 1e-9


def test_a_skipping_prefill_runs_the_decoder_on_the_last_window_only():
    """Three encoder layers on 40 tokens, five decoder layers on eight; serving asks no more of them."""
    for decoder in ("report", "serving"):
        assert fed(rows(40), decoder=decoder)[0].layer_tokens == 3 * 40 + 5 * 8


def test_the_tail_of_chunks_is_the_last_tokens_of_each_row():
    tail = Tail(4)
    for tile, counts in (([[1, 2, 3], [11, 0, 0]], [3, 1]), ([[4, 0], [12, 13]], [1, 2]), ([[5, 6], [0, 0]], [2, 0])):
        tail.add(torch.tensor(counts), {"pre": torch.tensor(tile)})
    kept = [tail.tiles["pre"][row, : tail.counts[row]].tolist() for row in range(2)]
    assert kept == [[3, 4, 5, 6], [11, 12, 13]]


# Replaying a stored prefix


def resumed(hits, exact=False, lengths=(30, 30)):
    """Logits and state of prompts whose prefixes were stored, replayed and continued."""
    _, stored = fed(rows(*(29 for _ in lengths)))
    cache, ids, counts, _ = replay.resume(tiny_model(), stored, rows(*lengths), torch.tensor(hits), exact=exact)
    return tiny_model().prefill(ids, cache, counts), cache


def test_an_exact_replay_gives_the_logits_of_feeding_everything():
    output, cache = resumed([20, 6], exact=True)
    whole, other = fed(rows(30, 30))
    assert gap(output.last, whole.last) < 1e-9
    assert same_next(cache, other)


def test_a_bounded_replay_gives_what_the_reference_gives():
    """Rows with hits of different lengths; windows begin at the replay, entries are read as they were stored."""
    output, _ = resumed([20, 12])
    model = numpy_tiny_model()
    for row, hit in enumerate((20, 12)):
        ids, past = rows(30, 30)[row], model.new_cache(quantized=False)
        model.prefill(ids[:29], past)
        state = numpy_replay.resume(model, past, ids, hit)
        assert gap(output.last[row], model.prefill(ids[state.length :], state).logits[-1]) < 1e-9
    whole, _ = fed(rows(30, 30))
    assert gap(output.last, whole.last) > 1e-3


def test_a_replay_writes_no_entry_again():
    """The stored entries of the prefix keep their bytes, though the replayed tokens compute others."""
    _, stored = fed(rows(29))
    cache, ids, counts, _ = replay.resume(tiny_model(), stored, rows(30), 20)
    tiny_model().prefill(ids, cache, counts)
    for layer, ratio in ((1, 2), (3, 1)):
        assert torch.equal(
            cache.entries[layer].stored(0)[0][: 20 // ratio], stored.entries[layer].stored(0)[0][: 20 // ratio]
        )
        assert len(cache.entries[layer].stored(0)[0]) == 30 // ratio


def test_replayed_tokens_hash_the_real_ids_before_them():
    _, stored = fed(rows(29))
    cache, ids, counts, _ = replay.resume(tiny_model(), stored, rows(30), 20)
    output = tiny_model().prefill(ids, cache, counts)
    np.testing.assert_array_equal(output.hashes[0], recorded()["engram_hashes40"][0, 12:30])


def test_a_hit_that_leaves_a_half_group_is_shortened():
    assert [replay.usable_hit(length, ModelConfig.tiny()) for length in (0, 1, 2, 7)] == [0, 0, 2, 6]


def test_targets_are_read_after_the_n_gram_memory_of_their_layer():
    """The only memory is that of layer 1, a target: another memory there changes what the drafter reads of layer 1."""
    read = []
    for factor in (1.0, 3.0):
        model = small(1)
        with torch.no_grad():
            model.layers[1].engram.wkv.weight.mul_(factor)
            read.append(model(torch.tensor([[1, 2, 3, 4]])).main_hidden[..., : model.config.dim])
    assert gap(*read) > 0.1
