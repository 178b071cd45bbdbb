"""A cache on disk is the cache in memory, or an error that says what is wrong."""

import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import cache_file, replay

from .test_feeding import same_state
from .tiny import gap, recorded, tiny_model


def filled(tokens, quantized=True):
    model = tiny_model()
    cache = model.new_cache(quantized)
    model.prefill(recorded()["ids"][0][:tokens], cache)
    return model, cache


@pytest.mark.parametrize("quantized", [True, False])
@pytest.mark.parametrize("tokens", [1, 7, 31])
def test_a_loaded_cache_goes_on_like_the_one_saved(tmp_path, quantized, tokens):
    model, cache = filled(tokens, quantized)
    size = cache_file.save(cache, tmp_path / "c")
    assert size == (tmp_path / "c").stat().st_size
    loaded = cache_file.load(tmp_path / "c", model.config)
    same_state(loaded, cache, 1e-15)
    assert loaded.nbytes == cache.nbytes
    for ids in ([5], [6, 7, 8]):
        np.testing.assert_array_equal(model.forward(ids, loaded).logits, model.forward(ids, cache).logits)
    loaded.rollback(tokens + 1)


def test_the_global_memory_alone_continues_by_replay(tmp_path):
    model, cache = filled(30)
    small = cache_file.save(cache, tmp_path / "global", transient=False)
    assert small < cache_file.save(cache, tmp_path / "all")
    loaded = cache_file.load(tmp_path / "global", model.config)
    assert (loaded.length, loaded.stored) == (0, 30)
    ids = recorded()["ids"][0]
    state, other = (replay.resume(model, stored, ids, 30) for stored in (loaded, cache))
    got, expected = (model.prefill(ids[22:], s, decoder="report").logits for s in (state, other))
    assert gap(got, expected) == 0


def test_the_file_holds_the_packed_bytes(tmp_path):
    """Global memory of the tiny model: entries 16 + 2 bytes, index keys 16 + 1 bytes, 1.5 of each for a token."""
    _, cache = filled(32)
    size = cache_file.save(cache, tmp_path / "c", transient=False)
    header = int.from_bytes((tmp_path / "c").read_bytes()[8:12], "little")
    assert size - header - 8 - 4 - 32 == 32 * 3 * (16 + 2 + 16 + 1) // 2 == cache.nbytes["persistent"]


def test_a_damaged_truncated_or_foreign_file_is_refused_and_nothing_is_lost(tmp_path):
    model, cache = filled(9)
    path = tmp_path / "c"
    cache_file.save(cache, path)
    whole = path.read_bytes()
    for cut in (0, 7, 8, 20, 100, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(cache_file.CacheFileError, match="no cache file" if cut < 8 else "truncated"):
            cache_file.load(path, model.config)
    for place in (9, 40, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(cache_file.CacheFileError, match="damaged"):
            cache_file.load(path, model.config)
    path.write_bytes(whole)
    with pytest.raises(cache_file.CacheFileError, match="differs in index_topk, swiglu_limit"):
        cache_file.load(path, ModelConfig.tiny(index_topk=5, swiglu_limit=2.0))
    newer = whole[:-32].replace(b'"version": 2', b'"version": 3')
    path.write_bytes(newer + hashlib.sha256(newer).digest())
    with pytest.raises(cache_file.CacheFileError, match="has version 3; this program reads 2"):
        cache_file.load(path, model.config)
    for part, other in (
        (b'"quantized": true', b'"quantized": null'),
        (b'"arrays"', b'"ARRAYS"'),
        (b'"rings"', b'"RINGS"'),
    ):
        changed = whole[:-32].replace(part, other)
        assert changed != whole[:-32]
        path.write_bytes(changed + hashlib.sha256(changed).digest())
        with pytest.raises(cache_file.CacheFileError, match="header does not describe its content"):
            cache_file.load(path, model.config)
    path.write_bytes(whole)
    same_state(cache_file.load(path, model.config), cache, 1e-15)


def with_header(whole, change):
    """The file with another header, and the checksum of what it then is. change: header dict -> dict or bytes."""
    end = 12 + int.from_bytes(whole[8:12], "little")
    changed = change(json.loads(whole[12:end]))
    text = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
    content = whole[:8] + len(text).to_bytes(4, "little") + text + whole[end:-32]
    return content + hashlib.sha256(content).digest()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: b"no json", "header is no JSON"),
        (lambda _: b"\xff\xfe", "header is no JSON"),
        (lambda _: b"[]", "names no configuration"),
        (lambda h: {**h, "config": None}, "names no configuration"),
        (lambda h: {k: v for k, v in h.items() if k != "version"}, "has version None"),
        (lambda h: {k: v for k, v in h.items() if k != "length"}, "'length'"),
        (lambda h: {**h, "length": None}, "length must be 0 or more"),
        (lambda h: {**h, "length": 10}, "length must be at most stored"),
        (lambda h: {**h, "stored": 12}, r"entries\.1 must hold 6 entries for 12 tokens; got 4"),
        (lambda h: {**h, "highest": -1}, "highest must be 0 or more"),
        (lambda h: {**h, "spare": 4}, "layout of this ring"),
        (lambda h: {**h, "spare": 10**12}, "is damaged"),
        (lambda h: {**h, "dtype": None}, "dtype must be"),
        (lambda h: {**h, "quantized": 1}, "quantized true or false"),
        (lambda h: {**h, "rings": {}}, "rings must be those of a sequence of 9 tokens"),
        (lambda h: {**h, "rings": {**h["rings"], "window.0": [5, 4, 9]}}, "rising positions"),
        (lambda h: {**h, "rings": {**h["rings"], "window.0": [0, 9]}}, "shorter"),
        (lambda h: {**h, "arrays": h["arrays"][:-1]}, "bytes are left"),
        (lambda h: {**h, "arrays": h["arrays"][1:]}, "damaged"),
        (lambda h: {**h, "index_key_writes": [[1]]}, "not enough values"),
        (lambda h: {**h, "index_key_writes": [[0, 0]]}, r"index_key_writes must be of owners \(1, 3\); got 0"),
        (lambda h: {**h, "index_key_writes": [["1", 0]]}, "owner must be 0 or more, an integer; got '1'"),
        (lambda h: {**h, "index_key_writes": [[True, 0]]}, "owner must be 0 or more, an integer; got True"),
        (lambda h: {**h, "index_key_writes": [[1, -1]]}, "first must be 0 or more; got -1"),
        (lambda h: {**h, "index_key_writes": [[1, 2.0]]}, r"first must be 0 or more, an integer; got 2\.0"),
        (lambda h: {**h, "highest": 10**30}, r"highest must be below 2\*\*63"),
        (lambda h: {**h, "spare": 10**30}, r"spare must be below 2\*\*63"),
        (lambda h: {**h, "stored": 10**30}, r"stored must be below 2\*\*63"),
    ],
)
def test_a_header_that_contradicts_the_content_is_refused(tmp_path, change, message):
    model, cache = filled(9)
    path = tmp_path / "c"
    cache_file.save(cache, path)
    path.write_bytes(with_header(path.read_bytes(), lambda header: header))
    same_state(cache_file.load(path, model.config), cache, 1e-15)
    path.write_bytes(with_header(path.read_bytes(), change))
    with pytest.raises(cache_file.CacheFileError, match=message):
        cache_file.load(path, model.config)


def test_a_damaged_file_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        model, cache = filled(4)
        path = Path(folder) / "c"
        cache_file.save(cache, path)
        content = bytearray(path.read_bytes())
        content[-100] ^= 1
        path.write_bytes(content)
        with pytest.raises(cache_file.CacheFileError, match="damaged"):
            cache_file.load(path, model.config)


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    model, cache = filled(9)
    path = tmp_path / "c"
    cache_file.save(cache, path)
    model.forward([1], cache)

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(cache_file.os, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            cache_file.save(cache, path)
    assert cache_file.load(path, model.config).length == 9
    assert [file.name for file in tmp_path.iterdir()] == ["c"]
