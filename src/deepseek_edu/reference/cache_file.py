"""A cache on disk: a header that says whose it is, the bytes as they lie in memory, a checksum over all of it.

    8 bytes   "DSKVFILE"
    4 bytes   length of the header, little endian
    header    JSON: version, configuration, lengths, name, type and shape of every array
    body      the arrays, one after the other
    32 bytes  SHA-256 of everything before

With transient=False only the global memory is written: what a later request with the same beginning needs (replay.py).
A file is written beside its place and moved there when complete, so an interrupted save leaves the old file whole.

Source: what is kept: report, section 3.2.1; the format is our own.
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from deepseek_edu.reference import cache as caches
from deepseek_edu.reference import checks

MAGIC = b"DSKVFILE"  # first bytes of every file
VERSION = 2  # of the format; files of another are refused


class CacheFileError(ValueError):
    """A file is no cache, is damaged, or belongs to another model. Nothing was loaded."""


def _rings(cache):
    """(name, ring) of every ring of a cache."""
    yield from ((f"window.{layer}", ring) for layer, ring in enumerate(cache.windows))
    yield from ((f"draft_window.{stage}", ring) for stage, ring in enumerate(cache.draft_windows))
    yield from ((f"open_group.{layer}", ring) for layer, ring in cache.open_groups.items())
    yield "history", cache.history


def _stores(cache):
    """(name, store) of the global memory."""
    yield from ((f"entries.{layer}", entries) for layer, entries in cache.entries.items())
    yield from ((f"index_keys.{layer}", keys) for layer, keys in cache.index_keys.items())


def save(cache, path, transient=True):
    """Write a cache.

    Args:
        cache: cache.Cache.
        path: file to write; replaced if it exists.
        transient: also the windows and all other state; without it only the global memory.

    Returns:
        Bytes written.

    Raises:
        OSError: the file cannot be written; an older one stays as it is.
    """
    parts = [(name, part) for name, store in _stores(cache) for part in store.stored()]
    rings = {}
    if transient:
        for name, ring in _rings(cache):
            rings[name] = [ring.start, ring.end, ring.highest]
            parts += [(name, part) for part in ring.stored()]
    header = {
        "version": VERSION,
        "config": cache.config.to_dict(),
        "quantized": cache.quantized,
        "dtype": cache.dtype.str,
        "spare": cache.spare,
        "length": cache.length if transient else 0,
        "stored": cache.stored,
        "highest": cache.highest if transient else 0,
        "index_key_writes": cache.index_key_writes,
        "rings": rings,
        "arrays": [[name, part.dtype.str, list(part.shape)] for name, part in parts],
    }
    text = json.dumps(header, sort_keys=True).encode()
    content = b"".join([MAGIC, len(text).to_bytes(4, "little"), text, *(part.tobytes() for _, part in parts)])
    content += hashlib.sha256(content).digest()
    path = Path(path)
    beside = path.with_name(f"{path.name}.part")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return len(content)


def load(path, config):
    """Read a cache.

    Args:
        path: file that `save` wrote.
        config: ModelConfig it has to belong to.

    Returns:
        cache.Cache; if only the global memory was saved, one with length 0 to continue with `replay.resume`.

    Raises:
        CacheFileError: not a cache file, another version, truncated, damaged, or of another configuration.
        OSError: the file cannot be read.
    """
    content = Path(path).read_bytes()
    header, body = _checked(content, path)
    if header["config"] != json.loads(json.dumps(config.to_dict())):
        mine, theirs = json.loads(json.dumps(config.to_dict())), header["config"]
        names = [name for name in mine if mine[name] != theirs.get(name)]
        raise CacheFileError(f"{path} belongs to another configuration; it differs in {', '.join(names)}")
    try:
        return _filled(header, body, config)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, MemoryError) as error:
        raise CacheFileError(f"{path} is damaged: its header does not describe its content ({error!r})") from None


def _require_counts(header, names):
    """Refuse entries of a header that are no integers, 0 or more, or do not fit in 64 bits."""
    for name in names:
        if checks.count(header[name], name, 0) >= 1 << 63:
            raise ValueError(f"{name} must be below 2**63; got {header[name]}")


def _filled(header, body, config):
    """The cache that a header and a body describe."""
    _require_counts(header, ("spare", "length", "stored", "highest"))
    if not header["length"] <= min(header["stored"], header["highest"]) or type(header["quantized"]) is not bool:
        raise ValueError("length must be at most stored and highest, quantized true or false")
    if header["dtype"] not in ("<f4", "<f8"):
        raise ValueError(f"dtype must be <f4 or <f8; got {header['dtype']!r}")
    cache = caches.Cache(config, header["quantized"], np.dtype(header["dtype"]), header["spare"])
    arrays = {}
    for name, dtype, shape in header["arrays"]:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        arrays.setdefault(name, []).append(np.frombuffer(body[:size], dtype).reshape(shape))
        body = body[size:]
    if body:
        raise ValueError(f"arrays must be all of the content; {len(body)} bytes are left")
    for name, store in _stores(cache):
        store.restore(arrays[name])
        expected = header["stored"] // config.compress_ratios[int(name.split(".")[1])]
        if len(store) != expected:
            raise ValueError(f"{name} must hold {expected} entries for {header['stored']} tokens; got {len(store)}")
    if not isinstance(header["rings"], dict) or (header["length"] and not header["rings"]):
        raise ValueError(f"rings must be those of a sequence of {header['length']} tokens; got {header['rings']!r}")
    for name, ring in _rings(cache) if header["rings"] else ():
        positions = dict(zip(("start", "end", "highest"), header["rings"][name], strict=True))
        _require_counts(positions, positions)
        if not positions["start"] <= positions["end"] <= positions["highest"]:
            raise ValueError(f"{name} must have rising positions; got {positions}")
        ring.restore(arrays[name], **positions)
    cache.length, cache.stored, cache.highest = header["length"], header["stored"], header["highest"]
    for owner, first in header["index_key_writes"]:
        _require_counts({"owner": owner, "first": first}, ("owner", "first"))
        if owner not in config.kv_source_layers:
            raise ValueError(f"index_key_writes must be of owners {config.kv_source_layers}; got {owner}")
        cache.index_key_writes.append((owner, first))
    return cache


def _checked(content, path):
    """The header and the body of a file whose checksum is right."""
    if not content.startswith(MAGIC):
        raise CacheFileError(f"{path} is no cache file: it does not begin with {MAGIC.decode()}")
    if len(content) < len(MAGIC) + 4 + 32:
        raise CacheFileError(f"{path} is truncated: {len(content)} bytes hold no header; save it again")
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        raise CacheFileError(f"{path} is truncated or damaged: its checksum does not fit; save it again")
    start = len(MAGIC) + 4
    end = start + int.from_bytes(content[len(MAGIC) : start], "little")
    try:
        header = json.loads(content[start:end])
    except ValueError as error:
        raise CacheFileError(f"{path} is damaged: its header is no JSON ({error})") from None
    if not isinstance(header, dict) or not isinstance(header.get("config"), dict):
        raise CacheFileError(f"{path} is damaged: its header names no configuration")
    if header.get("version") != VERSION:
        raise CacheFileError(f"{path} has version {header.get('version')}; this program reads {VERSION}; save it again")
    return header, content[end:-32]
