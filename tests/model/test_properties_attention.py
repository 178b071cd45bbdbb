"""Attention and what it reads: sinks, groups of heads, windows, compressed entries, the indexer's choice."""

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import attention, compressor, indexer, rope, selection, storage, window
from deepseek_edu.model.span import Span

from ..reference.tiny import vectors
from .test_properties_recorded import decoded
from .test_properties_streams import random
from .tiny import gap, recorded, tiny_model

CONFIG = ModelConfig.tiny()
WHERE = {"dtype": torch.float64}


def span(first, counts, width, config=CONFIG):
    return Span(torch.tensor(first), torch.tensor(counts), width, config, torch.device("cpu"), torch.float64)


def attended(query, keys, sink, scale):
    """One query by hand: a softmax with one more key of score `sink` and value zero."""
    scores = np.exp(keys @ query * scale)
    return scores @ keys / (scores.sum() + np.exp(sink))


def test_attention_is_a_softmax_with_one_more_key_of_value_zero():
    """Two sets of keys, one shared by the queries and one gathered for each, some invisible; and all of them shared."""
    queries, shared, own = random(1, 2, 3, 4), random(1, 5, 4, seed=1), random(1, 2, 3, 4, seed=2)
    sinks = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    sees = torch.tensor([[[1, 0, 1, 1, 0], [0, 1, 1, 1, 1]]], dtype=torch.bool)
    sees_own = torch.tensor([[[1, 1, 0], [0, 0, 1]]], dtype=torch.bool)
    got = attention.sink_attention(queries, [(shared, sees), (own, sees_own)], sinks, 0.3)
    for t in range(2):
        keys = torch.cat([shared[0][sees[0, t]], own[0, t][sees_own[0, t]]]).numpy()
        for h in range(3):
            assert gap(got[0, t, h], attended(queries[0, t, h].numpy(), keys, float(sinks[h]), 0.3)) < 1e-12
        alone = [(shared, sees[:, t : t + 1]), (own[:, t : t + 1], sees_own[:, t : t + 1])]
        assert gap(attention.sink_attention(queries[:, t : t + 1], alone, sinks, 0.3), got[:, t : t + 1]) < 1e-12
    got = attention.sink_attention(queries, [(shared, sees), (shared * 2, ~sees)], sinks, 0.3)
    for t in range(2):
        keys = torch.cat([shared[0][sees[0, t]], 2 * shared[0][~sees[0, t]]]).numpy()
        for h in range(3):
            assert gap(got[0, t, h], attended(queries[0, t, h].numpy(), keys, float(sinks[h]), 0.3)) < 1e-12


def test_a_query_that_sees_nothing_gets_nothing():
    got = attention.sink_attention(random(1, 1, 2, 4), [(random(1, 3, 4), torch.zeros(1, 1, 3).bool())], random(2), 0.5)
    assert got.abs().max() == 0


def w(part, name):
    """A matrix or gain by its released name, wherever it lies."""
    return part.state_dict()[f"{name}.weight"]


def module():
    torch.manual_seed(0)
    made = attention.Attention(CONFIG, WHERE)
    with torch.no_grad():
        made.q_norm.weight.copy_(random(CONFIG.q_lora_rank))
    return made


def still(tokens=2):
    """A rotation by nothing: position 0 for all tokens."""
    return rope.Rotation.at(torch.zeros(1, tokens, dtype=torch.int64), CONFIG, 0, torch.float64)


def test_the_query_is_normalised_where_it_is_narrow_and_not_per_head():
    layer, u = module(), random(1, 2, CONFIG.dim)
    with torch.no_grad():
        narrow, queries = layer.queries(u, still())
        plain = u @ w(layer, "wq_a").mT
        expected = w(layer, "q_norm") * plain / torch.sqrt((plain**2).mean(dim=-1, keepdim=True))
        assert gap(narrow, expected) < 1e-12
        assert gap(queries, (expected @ w(layer, "wq_b").mT).view(1, 2, 4, 32)) < 1e-12


def test_each_group_of_heads_has_its_own_rows_of_the_first_projection():
    layer, heads = module(), random(1, 2, 4, 32)
    with torch.no_grad():
        got = layer.output(heads, still())
        narrow = [heads[:, :, 2 * g : 2 * g + 2].flatten(2) @ w(layer, "wo_a")[8 * g : 8 * g + 8].mT for g in (0, 1)]
        assert gap(got, torch.cat(narrow, dim=-1) @ w(layer, "wo_b").mT) < 1e-12


def test_outputs_are_turned_back_before_they_are_grouped():
    """An output that equals a turned vector counts like the vector itself: only relative positions are left."""
    layer, heads = module(), random(1, 2, 4, 32)
    rotation = rope.Rotation.at(torch.tensor([[3, 9]]), CONFIG, 1, torch.float64)
    with torch.no_grad():
        got = layer.output(rope.rotate_tail(heads, rotation), rotation)
        assert gap(got, layer.output(heads, still())) < 1e-12


# Windows


def seen(first, counts, width, start, asked=None):
    """For each row and query the positions it sees, worked out from the blocks."""
    tile = span(first, counts, width)
    queries = tile if asked is None else tile.last(asked)
    found = {}
    for block in window.query_blocks(tile, queries, torch.tensor(start), 4):
        positions = tile.line_positions(3)[:, block.line]
        for b in range(len(first)):
            for t, sees in enumerate(block.visible[b]):
                query = int(queries.first[b]) + block.queries.start + t
                found[b, query] = positions[b][sees].tolist()
    return found


def test_a_query_sees_exactly_window_positions_its_own_included():
    found = seen([0, 5], [6, 6], 6, [0, 0])
    recorded_rows = vectors()["window_idx_prefill_w4_s6"]
    for p, row in enumerate(recorded_rows):
        assert found[0, p] == [place for place in row if place >= 0]
        assert found[1, 5 + p] == list(range(max(0, 5 + p - 3), 5 + p + 1))


def test_only_the_last_queries_are_asked_and_none_sees_before_the_start():
    found = seen([0, 4], [7, 5], 7, [0, 6], asked=3)
    assert found[0, 5] == [2, 3, 4, 5]
    assert found[1, 6] == [6]
    assert found[1, 8] == [6, 7, 8]


def test_a_short_call_sees_in_the_slots_of_a_ring_what_is_in_its_windows():
    """Window 4 and two spare slots; rows of three and one tokens, one of which began late."""
    tile = span([5, 9, 6], [3, 1, 3], 3)
    block = window.slot_block(tile, tile, torch.tensor([0, 0, 6]), 4, 6)
    for b, (first, count, least) in enumerate(((5, 3, 0), (9, 1, 0), (6, 3, 6))):
        last = first + count - 1
        held = [last - (last - slot) % 6 for slot in range(6)]
        for t in range(count):
            sees = [held[slot] for slot in range(6) if block.visible[b, t, slot]]
            assert sorted(sees) == list(range(max(least, first + t - 3), first + t + 1))


def ring(slots=4, spare=2, batch=2):
    return window.Ring(storage.PlainRows(1, torch.float64), batch, slots, spare, torch.device("cpu"))


def feed(state, first, counts, width, sign=1):
    """Store rows whose values are their positions (times sign); return the line."""
    tile = span(first, counts, width)
    return state.line(tile, 3, sign * tile.positions[..., None].double())[..., 0]


def past(state, lengths, back):
    return state.past(span(lengths, [1] * len(lengths), 1), back)[..., 0].tolist()


def test_a_ring_always_holds_what_the_next_query_reads():
    """Tiles shorter and longer than the ring, rows of different lengths; each value is its position."""
    state, first = ring(), [0, 0]
    for counts in ([3, 1], [9, 2], [1, 0], [4, 11], [0, 1]):
        line = feed(state, first, counts, max(counts))
        for b in range(2):
            expected = [max(0, p) for p in range(first[b] - 3, first[b] + counts[b])]
            assert [max(0, int(x)) for x in line[b][: 3 + counts[b]]] == expected
        first = [a + b for a, b in zip(first, counts, strict=True)]
        for b in range(2):
            assert past(state, first, 4)[b][-min(4, first[b]) :] == list(range(max(0, first[b] - 4), first[b]))


def test_padding_of_a_short_row_never_enters_its_ring():
    state = ring()
    feed(state, [0, 0], [6, 6], 6)
    feed(state, [6, 6], [5, 1], 5)
    assert past(state, [11, 7], 4) == [[7, 8, 9, 10], [3, 4, 5, 6]]


def test_positions_taken_back_leave_no_trace_in_a_ring():
    """Two spare slots: two rejected positions overwrite nothing that is still read."""
    state = ring()
    feed(state, [0, 0], [7, 9], 9)
    feed(state, [7, 9], [2, 2], 2, sign=-1)
    assert past(state, [7, 9], 4) == [[3, 4, 5, 6], [5, 6, 7, 8]]


def test_the_last_tokens_of_a_row_end_where_the_row_ends():
    tile = span([0, 5, 9], [4, 2, 0], 4)
    x = torch.tensor([[1, 2, 3, 4], [11, 12, 0, 0], [0, 0, 0, 0]])
    last, kept = tile.last(3), tile.take_last(x, 3)
    assert (last.first.tolist(), last.counts.tolist()) == ([1, 5, 9], [3, 2, 0])
    assert kept[0].tolist() == [2, 3, 4]
    assert kept[1, :2].tolist() == [11, 12]


# Compressed entries


def test_visible_entries_are_the_complete_groups():
    positions = torch.arange(6)
    assert compressor.visible_entries(positions, 2).tolist() == [0, 1, 1, 2, 2, 3]
    assert compressor.visible_entries(positions, 1).tolist() == [1, 2, 3, 4, 5, 6]
    assert compressor.visible_entries(positions, 3).tolist() == [0, 0, 1, 1, 1, 2]


def pairs(u, made):
    """Latents of whole groups of two of one row, channel by channel."""
    values, gates = u @ w(made, "wkv").mT, u @ w(made, "wgate").mT
    mixed = []
    for j in range(len(u) // 2):
        e = torch.exp(gates[2 * j : 2 * j + 2])
        mixed.append((values[2 * j : 2 * j + 2] * e).sum(dim=0) / e.sum(dim=0))
    x = torch.stack(mixed)
    return w(made, "norm") * x / torch.sqrt((x**2).mean(dim=-1, keepdim=True))


def test_a_group_is_mixed_channel_by_channel_by_its_gates():
    torch.manual_seed(0)
    made = compressor.Compressor(CONFIG, 2, WHERE)
    u = random(1, 6, CONFIG.dim)
    waiting = window.Ring(storage.PlainRows(64, torch.float64), 1, 1, 2, torch.device("cpu"))
    with torch.no_grad():
        assert gap(made(u, span([0], [6], 6), waiting)[0], pairs(u[0], made)) < 1e-12


def test_a_half_filled_group_waits_and_is_completed_by_the_next_token():
    """Rows that stand at different places inside a group; entries do not depend on where calls begin."""
    torch.manual_seed(0)
    made = compressor.Compressor(CONFIG, 2, WHERE)
    u = random(2, 8, CONFIG.dim)
    waiting = window.Ring(storage.PlainRows(64, torch.float64), 2, 1, 2, torch.device("cpu"))
    with torch.no_grad():
        expected = [pairs(row, made) for row in u]
        made(torch.stack([u[0, :3], u[1, :3]]), span([0, 0], [3, 2], 3), waiting)
        second = span([3, 2], [1, 4], 4)
        got = made(torch.stack([u[0, 3:7], u[1, 2:6]]), second, waiting)
        assert [part.tolist() for part in second.groups(2)] == [[1, 1], [1, 2]]
        assert gap(got[0, :1], expected[0][1:2]) < 1e-12
        assert gap(got[1, :2], expected[1][1:3]) < 1e-12


# The indexer


def test_scores_weigh_rectified_products_with_signed_weights():
    queries, weights, keys = random(1, 3, 2, 4), random(1, 3, 2, seed=1), random(1, 5, 4, seed=2)
    got = indexer.index_scores(queries, weights, keys)
    assert (weights < 0).any()
    for t in range(3):
        for j in range(5):
            products = [max(0.0, float(queries[0, t, h] @ keys[0, j])) for h in range(2)]
            assert abs(float(got[0, t, j]) - sum(float(weights[0, t, h]) * products[h] for h in range(2))) < 1e-12


def test_scores_of_gathered_keys_are_those_of_shared_ones():
    queries, weights, keys = random(1, 3, 2, 4), random(1, 3, 2, seed=1), random(1, 5, 4, seed=2)
    got = indexer.index_scores(queries, weights, keys[:, None].expand(1, 3, 5, 4))
    assert gap(got, indexer.index_scores(queries, weights, keys)) < 1e-12


def test_head_weights_are_scaled_by_width_and_number_of_heads():
    torch.manual_seed(0)
    made, u = indexer.Indexer(CONFIG, False, WHERE), random(1, 2, CONFIG.dim)
    with torch.no_grad():
        expected = u @ w(made, "weights_proj").mT / (CONFIG.index_head_dim * CONFIG.index_n_heads) ** 0.5
        assert gap(made.weights(u), expected) < 1e-12


def test_the_choice_is_the_set_of_the_best_readable_entries_in_rising_order():
    scores = torch.tensor([[[3.0, 9.0, 5.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0, 5.0], [9.0, 8.0, 7.0, 6.0, 5.0]]])
    visible = torch.tensor([4, 2, 0])
    readable = torch.arange(5) < visible[None, :, None]
    assert indexer.top_k(scores, readable, 3).tolist() == [[[1, 2, 3], [0, 1, -1], [-1, -1, -1]]]


def test_ties_go_to_the_earlier_place():
    """Several rows on a CPU, a narrow type, and one row at a time take three ways."""
    scores = torch.tensor([[0.0, 5.0, 0.0, 0.0, 5.0], [1.0, 1.0, 1.0, 1.0, 1.0], [3.0, 2.0, 1.0, 4.0, -torch.inf]])
    expected = [[0, 1, 4], [0, 1, 2], [0, 1, 3]]
    assert selection.top_k(scores, 3).tolist() == expected
    assert selection.top_k(scores.bfloat16(), 3).tolist() == expected
    assert [selection.top_k(row, 3).tolist() for row in scores] == expected
    assert selection.top_k(scores[:, None], 3).tolist() == [[places] for places in expected]
    assert selection.top_k(scores, 0).shape == (3, 0)


def test_the_largest_of_many_rows_are_those_of_each():
    scores = random(4, 3, 50).mul(4).round()  # with ties
    for k in (1, 7, 49):
        expected = [[sorted(range(50), key=lambda n, row=row: (-row[n], n))[:k] for row in some] for some in scores]
        assert selection.top_k(scores, k).tolist() == [[sorted(row) for row in some] for some in expected]


def blocks_of(scores, visible, kept, size):
    found = indexer.candidate_blocks(torch.tensor([[scores]]), torch.tensor([[visible]]), kept, size)
    return found[0, 0].nonzero()[:, 0].tolist()


def test_candidate_blocks_of_the_specified_example():
    """Section 5: blocks of four, 14 visible; the newest block first, then those with the largest scores."""
    scores = [0.9, -1, 0.3, 0.2, 5, 4, 0.1, 0, 0.8, 0.7, -2, -3, 1, 1.5]
    assert blocks_of(scores, 14, 1, 4) == [3]
    assert blocks_of(scores, 14, 2, 4) == [1, 3]
    assert blocks_of(scores, 14, 3, 4) == [0, 1, 3]
    assert blocks_of([9.0, 0, 0, 0, 7, 0, 0, 0], 5, 1, 4) == [1]


def test_a_query_that_sees_nothing_has_no_candidates():
    assert blocks_of([1.0] * 8, 0, 2, 4) == []
    assert blocks_of([1.0] * 8, 3, 2, 4) == [0]


# One layer's parts, in place


def test_an_entry_of_a_pair_turns_at_the_position_of_its_first_token():
    """Layer 1 (pairs): a stored entry, turned back by its first token's angle, is the latent that makes the key."""
    model = tiny_model()
    layer, cache = model.layers[1].attn, model.new_cache(1, quantized=False)
    u = random(1, 6, CONFIG.dim)
    with torch.no_grad():
        layer.store_global(u, span([0], [6], 6), cache)
        latents = pairs(u[0], layer.compressor)
        rotation = rope.Rotation.at(torch.tensor([[0, 2, 4]]), CONFIG, 2, torch.float64)
        stored = cache.entries[1].read()
        assert gap(rope.rotate_tail(stored, rotation, inverse=True)[0], latents) < 1e-12
        keys = latents @ w(layer.indexer, "wk").mT
        keys = w(layer.indexer, "k_norm") * keys / torch.sqrt((keys**2).mean(dim=-1, keepdim=True))
        assert gap(rope.rotate_tail(cache.index_keys[1].read(), rotation, inverse=True)[0], keys) < 1e-12


def test_reading_under_a_mask_and_gathering_give_the_same():
    """A decode of one token gathers; two tokens of which the second is padding read everything under a mask."""
    model, ids = tiny_model(), torch.tensor(recorded()["ids"])
    outputs = []
    for width in (1, 2):
        cache = model.new_cache(2, quantized=False)
        model.prefill(ids[:, :30], cache)
        outputs.append(model.decode(ids[:, 30 : 30 + width], cache, counts=[1, 1]).logits[:, 0])
    assert gap(*outputs) < 1e-9


def test_a_decode_scores_all_pieces_of_a_long_memory():
    """With pieces of two rows instead of thousands, a decode still is the recorded one."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(storage, "SCANNED", 2 * CONFIG.index_head_dim * 2)
        decoded(steps=2)
