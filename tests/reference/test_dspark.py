"""The drafter: context, block attention, left-to-right bias, confidence."""

import numpy as np

from deepseek_edu.reference import dspark, rope, storage, window

from .tiny import gap, recorded, tiny_model, vectors


def prepared(tokens=24):
    model = tiny_model()
    cache = model.new_cache(quantized=False)
    output = model.prefill(recorded()["ids"][0][:tokens], cache)
    return model, cache, output


def test_context_entries_come_from_the_projected_streams_without_the_attention_norm():
    model, cache, output = prepared()
    w0 = model.stages[0]
    raw = output.main_hidden @ w0["main_proj.weight"].T
    m = raw / np.sqrt((raw**2).mean(axis=-1, keepdims=True) + 1e-20) * w0["main_norm.weight"]
    frequencies = rope.rope_frequencies(8, 10000.0)
    for w, ring in zip(model.stages, cache.draft_windows, strict=True):
        entry = m @ w["attn.wkv.weight"].T
        entry = entry / np.sqrt((entry**2).mean(axis=-1, keepdims=True) + 1e-20) * w["attn.kv_norm.weight"]
        expected = rope.rotate_tail(entry, np.arange(24), frequencies)
        assert gap(ring.read(17, 24), expected[17:]) < 1e-12


def test_rows_see_the_recorded_slots_and_every_row_of_the_block():
    """Window 4, block 5: the filled ring slots, then 4 … 8 for the five rows."""
    for position, expected in vectors()["dspark_idx_w4_b5"].items():
        seen = window.window_positions(int(position), 4)
        slots = sorted(p % 4 for p in seen.tolist())
        assert slots + [4 + row for row in range(5)] == expected


def test_every_row_attends_to_every_row():
    """Attention of a block against an explicit softmax over context and all five rows."""
    model = tiny_model()
    w, config = model.stage_parts[0]["attn"], model.config
    frequencies = rope.rope_frequencies(8, 10000.0)
    ring = window.Ring(storage.PlainRows(32), 8)
    ring.write(ring.row_format.encode(np.random.default_rng(0).standard_normal((3, 32))))
    u = np.random.default_rng(1).standard_normal((5, 32))
    got = dspark.attend_block(u, 3, w, ring, config, frequencies)
    later = u.copy()
    later[4] += 1  # the last row changes what the first one reads
    assert gap(dspark.attend_block(later, 3, w, ring, config, frequencies)[:1], got[:1]) > 1e-6
    alone = dspark.attend_block(u[:1], 3, w, ring, config, frequencies)
    assert gap(alone, got[:1]) > 1e-6


def test_the_bias_of_a_row_comes_from_the_drafted_token_to_its_left():
    model, cache, _ = prepared()
    w = model.stages[-1]
    embed, head = w["markov_head.embed.weight"], w["markov_head.head.weight"]
    first = dspark.draft(3, 24, model, cache)
    forced = dspark.draft(3, 24, model, cache, pick=lambda logits, row: 40 + row)
    assert forced.ids.tolist() == [3, 40, 41, 42, 43, 44]
    for row in range(5):
        bias = head @ embed[first.ids[row]]
        other = head @ embed[forced.ids[row]]
        assert gap(first.logits[row] - bias, forced.logits[row] - other) < 1e-12
        left = w["confidence_head.proj.weight"][0, 32:]
        difference = left @ (embed[first.ids[row]] - embed[forced.ids[row]])
        assert abs(first.confidence[row] - forced.confidence[row] - difference) < 1e-12


def test_a_draft_changes_nothing_in_the_cache():
    model, cache, _ = prepared()
    before = [ring.latest()[1].copy() for ring in cache.draft_windows]
    once, again = (dspark.draft(3, 24, model, cache) for _ in range(2))
    np.testing.assert_array_equal(once.logits, again.logits)
    assert cache.length == 24
    for ring, rows in zip(cache.draft_windows, before, strict=True):
        np.testing.assert_array_equal(ring.latest()[1], rows)
