"""V4's cache, its bytes, feeding and rollback, drafting and generation in PyTorch."""

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import cache_file, dspark, v4_step
from deepseek_edu.model.cache import Cache
from deepseek_edu.model.v4_cache import V4Cache, V4Rows
from deepseek_edu.model.v4_model import V4Model
from deepseek_edu.reference import v4_attention, v4_dspark
from deepseek_edu.reference import v4_model as numpy_v4

from ..reference.test_v4 import random_weights, tiny_v4
from ..reference.test_v4_dspark import drafting_v4
from .tiny import gap

PARITY = 1e-8


def packable(**changes):
    """Widths that V4's rows can store: 64 channels in FP8, 8 in bfloat16."""
    return drafting_v4(head_dim=72, **changes)


def pair(config, seed=0):
    """(NumPy model, PyTorch model) with draft stages and equal weights, in float64."""
    weights = random_weights(config, seed, dspark=True)
    return numpy_v4.V4Model(config, weights), V4Model(config, "dspark", torch.float64).load_weights(weights)


def batch_of(*lengths, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 96, length).tolist() for length in lengths]


# bytes


def test_a_token_of_the_released_model_costs_3514_bytes_and_a_quarter():
    """4096 tokens of room in a cache of the released configuration, allocated."""
    cache = V4Cache(ModelConfig.v4_flash_0731(), quantized=True)
    for layer, entries in cache.entries.items():
        ratio = cache.config.compress_ratios[layer]
        entries.reserve(4096 // ratio)
        entries.counts[:] = 4096 // ratio
        if ratio == 4:
            cache.index_keys[layer].reserve(4096 // ratio)
            cache.index_keys[layer].counts[:] = 4096 // ratio
    sizes = cache.nbytes
    assert sizes["entries"] == 4096 * 584 * (21 / 4 + 20 / 128)
    assert sizes["index_keys"] == 4096 * 68 * 21 / 4
    assert sizes["persistent"] / 4096 == 3514.25
    assert sizes["windows"] == 43 * 128 * 584
    assert sizes["transient"] == sum(sizes[name] for name in ("windows", "draft_windows", "open_groups", "spare"))


def test_the_copy_of_index_keys_that_decoding_keeps_is_counted():
    """Index keys of every fourth token in layers 1 and 3, unpacked once a step has more entries than it chooses."""
    model = V4Model(drafting_v4(head_dim=72), "dspark", torch.float64)
    cache = model.new_cache()
    model.prefill([list(range(1, 23))], cache)
    assert cache.nbytes["unpacked"] == 0
    model.decode([5], cache)
    after = cache.nbytes
    parts = ("windows", "draft_windows", "open_groups", "spare", "unpacked")
    assert after["unpacked"] == 2 * (23 // 4) * model.config.index_head_dim * 2
    assert after["transient"] == sum(after[name] for name in parts)


def test_what_is_read_back_is_what_numpy_reads_back():
    entry = np.random.default_rng(0).standard_normal((5, 136)) * 3
    rows = V4Rows(136, 8, torch.float64)
    parts = rows.encode(torch.tensor(entry))
    assert [part.shape[-1] for part in parts] == [128, 8, 8]
    assert gap(rows.decode(parts), v4_attention.read_back_entry(entry, 8, True)) == 0


def test_unfit_widths_are_refused():
    with pytest.raises(ValueError, match="multiple of 64 to be stored in FP8; got 32 − 8"):
        V4Cache(tiny_v4())


# feeding


@pytest.mark.parametrize("quantized", [False, True])
def test_pieces_rows_and_steps_give_what_the_whole_sequence_gives(quantized):
    """Ragged rows in chunks, then steps of one and of three tokens, of which a row takes part or not."""
    numpy_model, model = pair(packable(), 5)
    batch = batch_of(34, 9, 21)
    expected = [numpy_model.forward(row, quantized) for row in batch]
    cache, done = model.new_cache(3, quantized), [20, 5, 6]
    output = model.prefill([row[:n] for row, n in zip(batch, done, strict=True)], cache, chunk=7)
    for row, end in enumerate(done):
        assert gap(output.last[row], expected[row][end - 1]) < PARITY
    for fed in ([1, 0, 3], [3, 3, 2], [1, 1, 1], [0, 0, 3], [3, 0, 1]):
        tile = [row[n : n + count] + [0] * (max(fed) - count) for row, n, count in zip(batch, done, fed, strict=True)]
        logits = model.decode(tile, cache, counts=fed).logits
        for row, count in enumerate(fed):
            assert gap(logits[row, :count], expected[row][done[row] : done[row] + count]) < PARITY
        done = [n + count for n, count in zip(done, fed, strict=True)]
    assert cache.lengths.tolist() == done


def test_many_entries_are_gathered_and_few_are_read_under_a_mask():
    """Top-2 of up to 40 entries: a long tile, short tiles and single tokens choose different ways to read."""
    config = drafting_v4(index_topk=2)
    numpy_model, model = pair(config, 6)
    ids = batch_of(161, seed=3)[0]
    expected = numpy_model.forward(ids)
    for chunk in (161, 40, 5, 1):
        cache = model.new_cache(quantized=False)
        assert gap(model.prefill([ids], cache, chunk=chunk).logits[0], expected) < PARITY


@pytest.mark.parametrize("quantized", [False, True])
def test_rejected_tokens_leave_no_trace(quantized):
    _, model = pair(packable(), 7)
    batch = batch_of(25, 10, seed=4)
    for kept in ([1, 5], [3, 2], [4, 4]):
        cache = model.new_cache(2, quantized)
        model.prefill(batch, cache)
        wrong = batch_of(6, 6, seed=5)
        right = batch_of(6, 6, seed=6)
        fed = [r[:k] + w[k:] for r, w, k in zip(right, wrong, kept, strict=True)]
        model.decode(fed, cache)
        cache.rollback(torch.tensor([25 + kept[0], 10 + kept[1]]))
        other = model.new_cache(2, quantized)
        model.prefill([row + new[:k] for row, new, k in zip(batch, right, kept, strict=True)], other)
        assert cache.nbytes == other.nbytes
        for step in range(9):
            tokens = torch.tensor([step + 1, 2 * step])
            mine, theirs = (model.decode(tokens, some).last for some in (cache, other))
            assert gap(mine, theirs) < PARITY
            drafts = [dspark.draft(tokens, model, some).logits for some in (cache, other)]
            assert gap(*drafts) < PARITY


def test_a_cache_of_another_model_and_other_arguments_are_refused():
    _, model = pair(drafting_v4())
    cache = model.new_cache(quantized=False)
    with pytest.raises(ValueError, match="2 rows; it has 1 rows"):
        model.prefill([[1], [2]], cache)
    with pytest.raises(ValueError, match="0 … 95; got 96"):
        model.prefill([[96]], cache)
    narrow = V4Model(drafting_v4(), "dspark")
    with pytest.raises(ValueError, match=r"of torch\.float32 on cpu, as the model is; got torch\.float64"):
        narrow.decode([1], cache)
    with pytest.raises(ValueError, match="V4 reads no images"):
        model.generate([[1]], 1, types=[[-1]])
    with pytest.raises(ValueError, match="new_cache"):
        model.prefill([[1]], Cache(ModelConfig.tiny(), dtype=torch.float64))
    with pytest.raises(ValueError, match="decoder must be 'all'"):
        model.prefill([[1]], cache, decoder="report")
    with pytest.raises(ValueError, match="chunk must be 1"):
        model.prefill([[1]], cache, chunk=0)
    with pytest.raises(ValueError, match="logits must be"):
        model.prefill([[1]], cache, logits="some")
    with pytest.raises(ValueError, match="no prefix without windows"):
        cache.prefix(4)
    with pytest.raises(ValueError, match="drafter must be None, 'mtp' or 'dspark'; got 'some'"):
        V4Model(drafting_v4(), "some")
    with pytest.raises(ValueError, match="drafter='mtp'"):
        model.predict_after_next([[1]], [[2]])
    with pytest.raises(ValueError, match="must be 'v4'"):
        V4Model(ModelConfig.tiny())


def test_a_cache_of_v4_is_not_written_to_a_file(tmp_path):
    _, model = pair(drafting_v4())
    cache = model.new_cache(quantized=False)
    model.prefill([[1, 2, 3]], cache)
    with pytest.raises(
        ValueError, match=r"must be one of V4\.1; got one of V4, .* keep it in memory, or prefill again"
    ):
        cache_file.save(cache, tmp_path / "v4.cache")
    assert not list(tmp_path.iterdir())
    assert cache.lengths.tolist() == [3]


def test_a_step_of_one_token_leaves_the_number_of_threads_as_it_was():
    _, model = pair(drafting_v4())
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        cache = model.new_cache(quantized=False)
        model.prefill([[1, 2, 3]], cache)
        model.decode([4], cache)
        with pytest.raises(ValueError, match="got 96"):
            model.decode([96], cache)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("length", [2, 9, 30])
def test_a_step_of_one_token_gives_what_the_layers_for_many_give(length, monkeypatch):
    config = drafting_v4()
    assert config.hc_mult == 4  # else one_token.py would not be in use
    _, model = pair(config, 4)
    calls, run = [], v4_step.Step.layer
    monkeypatch.setattr(v4_step.Step, "layer", lambda *given: calls.append(given) or run(*given))
    outputs = []
    for fits in (v4_step.fits, lambda *_: False):
        monkeypatch.setattr(v4_step, "fits", fits)
        cache = model.new_cache(quantized=False)
        model.prefill(batch_of(length), cache)
        cache_outputs = [model.decode([token], cache) for token in range(20)]
        outputs.append([torch.cat([output.logits, output.main_hidden], dim=-1) for output in cache_outputs])
    assert gap(torch.cat(outputs[0]), torch.cat(outputs[1])) < PARITY
    assert len(calls) == 20 * config.n_layers


# drafting and generation


@pytest.mark.parametrize("quantized", [False, True])
def test_drafts_are_those_of_numpy(quantized):
    numpy_model, model = pair(packable(), 8)
    batch = batch_of(21, 8, 3, seed=1)
    cache = model.new_cache(3, quantized)
    model.prefill(batch, cache, chunk=5)
    with torch.no_grad():
        draft = dspark.draft(torch.tensor([4, 7, 9]), model, cache)
    for row, (ids, token) in enumerate(zip(batch, (4, 7, 9), strict=True)):
        expected = v4_dspark.draft(token, ids, numpy_model, quantized)
        assert draft.ids[row].tolist() == expected.ids.tolist()
        assert gap(draft.logits[row], expected.logits) < PARITY
        assert gap(draft.confidence[row], expected.confidence) < PARITY


def test_the_previews_layer_is_that_of_numpy_whole_and_cached():
    config = tiny_v4()
    weights = random_weights(config, 9)
    numpy_model, model = numpy_v4.V4Model(config, weights), V4Model(config, "mtp", torch.float64).load_weights(weights)
    ids, following = batch_of(25, 25, seed=2)
    expected = numpy_model.predict_after_next(np.array(ids), np.array(following))
    with torch.no_grad():
        assert gap(model.predict_after_next([ids], [following])[0], expected) < PARITY
        cache = model.new_cache(quantized=False)
        for begin in range(0, 25, 5):
            part = slice(begin, begin + 5)
            assert gap(model.predict_after_next([ids[part]], [following[part]], cache)[0], expected[part]) < PARITY


def test_a_cache_whose_tokens_the_next_token_layer_has_not_seen_is_refused():
    config = tiny_v4()
    model = V4Model(config, "mtp", torch.float64).load_weights(random_weights(config, 9))
    ids, following = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[2, 3, 4, 5]])
    cache = model.new_cache(quantized=False)
    model.prefill(ids[:, :3], cache)
    with pytest.raises(ValueError, match=r"fed by predict_after_next alone; it has \[3\] tokens, .* has seen \[0\]"):
        model.predict_after_next(ids[:, 3:], following[:, 3:], cache)
    assert cache.lengths.tolist() == [3]
    whole = model.predict_after_next(ids, following)
    cache = model.new_cache(quantized=False)
    for column in range(4):
        step = slice(column, column + 1)
        assert gap(model.predict_after_next(ids[:, step], following[:, step], cache), whole[:, step]) < PARITY


@pytest.mark.parametrize("drafter", ["mtp", "dspark"])
def test_a_drafter_needs_a_draft_layer(drafter):
    config = tiny_v4(n_mtp_layers=0, compress_ratios=(0, 4, 8, 4, 0))
    with pytest.raises(ValueError, match=f"n_mtp_layers must be 1 or more for drafter='{drafter}'; got 0"):
        V4Model(config, drafter)


def test_entries_of_single_tokens_need_no_spare_positions():
    config = tiny_v4(n_mtp_layers=0, compress_ratios=(0, 1, 8, 4, 0), index_source_layers=(3,), dspark_block_size=0)
    model = V4Model(config, None, torch.float64)
    ids = batch_of(7)
    cache = model.new_cache(quantized=False, spare=0)
    model.prefill([ids[0][:3]], cache)
    steps = torch.cat([model.decode([token], cache).last for token in ids[0][3:]])
    assert gap(steps, model.prefill(ids, model.new_cache(quantized=False)).logits[0, 3:]) < PARITY


def test_greedy_text_is_that_of_numpy_with_and_without_drafts():
    numpy_model, model = pair(drafting_v4(), 10)
    batch = batch_of(9, 17, 1, seed=7)
    expected = []
    for row in batch:
        ids = list(row)
        for _ in range(12):
            ids.append(int(numpy_model.forward(ids)[-1].argmax()))
        expected.append(ids[len(row) :])
    for speculative in (False, True):
        cache = model.new_cache(3, quantized=False)
        got = model.generate(batch, 12, speculative=speculative, stop=(), cache=cache)
        assert [row.ids for row in got] == expected
        assert cache.lengths.tolist() == [len(row) + 11 for row in batch]


def test_a_drafter_that_agrees_with_the_backbone_saves_passes():
    """Zero output matrix: backbone and drafter both say 0 everywhere."""
    model = V4Model(packable(), "dspark", torch.float64)
    with torch.no_grad():
        model.head.weight.zero_()
        model.mtp[-1].markov_head.head.weight.zero_()
    got = model.generate([[5, 6, 7]], 13, stop=())[0]
    assert got.accepted == [5, 5]
    assert got.ids == [0] * 13


def test_seed_and_stop_are_those_of_generate():
    model = V4Model(packable(), dtype=torch.float64)
    first, again, other = (model.generate([[1, 2]], 8, temperature=1.0, seed=s, stop=())[0].ids for s in (1, 1, 2))
    assert first == again != other
    assert (
        model.generate([[1, 2]], 8, temperature=1.0, seed=1, stop=[first[3]])[0].ids
        == first[: first.index(first[3]) + 1]
    )


# training


def test_gradients_reach_all_parameters_but_the_indexers():
    model = V4Model(drafting_v4(), dtype=torch.float64)
    model(batch_of(40, 40)).logits.square().mean().backward()
    without = {name for name, p in model.named_parameters() if p.requires_grad and p.grad is None}
    assert without == {name for name, _ in model.named_parameters() if ".indexer." in name}


def test_a_gradient_is_the_slope():
    """Central differences along one random direction of all parameters that have a gradient."""
    torch.manual_seed(0)  # with some weights a choice of experts or entries changes between the two sides
    model = V4Model(drafting_v4(), dtype=torch.float64)
    ids = batch_of(23)

    def loss():
        return model(ids).logits.square().mean()

    loss().backward()
    generator = torch.Generator().manual_seed(0)
    moved = [p for p in model.parameters() if p.grad is not None]
    direction = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in moved]
    slope = sum((p.grad * d).sum() for p, d in zip(moved, direction, strict=True))
    with torch.no_grad():
        sides = []
        for sign in (1, -2):
            for p, d in zip(moved, direction, strict=True):
                p += sign * 1e-6 * d
            sides.append(loss())
    assert abs((sides[0] - sides[1]) / 2e-6 - slope) < 1e-4 * max(1, abs(slope))
