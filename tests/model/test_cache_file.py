"""Caches on disk: saved by either implementation, continued by either."""

import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import cache_file, replay
from deepseek_edu.reference import cache_file as numpy_cache_file

from ..reference.tiny import tiny_model as numpy_tiny_model
from .tiny import gap, rows, tiny_model


@pytest.mark.parametrize("quantized", [False, True])
def test_a_saved_batch_continues_as_if_it_had_never_been_saved(tmp_path, quantized):
    model = tiny_model()
    cache = model.new_cache(2, quantized)
    model.prefill(rows(23, 9), cache)
    model.decode([[1, 2, 3], [4, 5, 6]], cache)
    cache.rollback(cache.lengths - 2)
    paths = [tmp_path / f"row{row}" for row in range(2)]
    for row, path in enumerate(paths):
        assert cache_file.save(cache, path, row) == path.stat().st_size
    loaded = cache_file.load(paths, model.config, torch.float64)
    assert loaded.nbytes == cache.nbytes
    expected = model.generate([[7], [8]], 9, stop=(), cache=cache)
    got = model.generate([[7], [8]], 9, stop=(), cache=loaded)
    assert [g.ids for g in got] == [g.ids for g in expected]
    assert [g.accepted for g in got] == [g.accepted for g in expected]


def test_numpy_continues_what_pytorch_saved_and_the_other_way_round(tmp_path):
    model, numpy_model = tiny_model(), numpy_tiny_model()
    cache = model.new_cache(2, quantized=True)
    model.prefill(rows(11, 24), cache)
    cache_file.save(cache, tmp_path / "one", row=1)
    state = numpy_cache_file.load(tmp_path / "one", model.config)
    after = numpy_model.decode([5, 6], state)
    assert gap(model.decode([[0, 0], [5, 6]], cache).logits[1], after.logits) < 1e-9
    numpy_cache_file.save(state, tmp_path / "two")
    back = cache_file.load([tmp_path / "two"], model.config, torch.float64)
    assert gap(model.decode([[7]], back).logits[0], numpy_model.decode([7], state).logits) < 1e-9


def test_the_global_memory_alone_is_continued_by_a_replay(tmp_path):
    model, ids = tiny_model(), rows(40)
    cache = model.new_cache(1, quantized=False)
    model.prefill([ids[0][:30]], cache)
    whole = cache_file.save(cache, tmp_path / "whole")
    assert cache_file.save(cache, tmp_path / "memory", transient=False) < whole
    stored = cache_file.load([tmp_path / "memory"], model.config, torch.float64)
    assert (int(stored.lengths), int(stored.stored)) == (0, 30)
    state, left, counts, _ = replay.resume(model, stored, ids, 30, exact=True)
    got = model.prefill(left, state, counts).last
    assert gap(got, model.prefill(ids, model.new_cache(1, quantized=False)).last) < 1e-9


def test_files_that_are_damaged_or_of_another_model_are_refused(tmp_path):
    model = tiny_model()
    cache = model.new_cache()
    model.prefill(rows(9), cache)
    path = tmp_path / "cache"
    cache_file.save(cache, path)
    with pytest.raises(cache_file.CacheFileError, match="another configuration; it differs in window_size"):
        cache_file.load(path, ModelConfig.tiny(window_size=9))
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(cache_file.CacheFileError, match="damaged"):
        cache_file.load([path], model.config)
    with pytest.raises(ValueError, match="row must be 0 … 0; got 1"):
        cache_file.save(cache, path, row=1)
