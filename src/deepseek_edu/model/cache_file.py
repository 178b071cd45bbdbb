"""Caches on disk, in the files of reference/cache_file.py: what one implementation saves the other continues.

A file holds one sequence; a batch is saved row by row and put together again when loaded. Header, checksum and refusals
are those of the reference.

Source: reference/cache_file.py.
"""

from os import PathLike

import numpy as np
import torch

from deepseek_edu.model.cache import Cache
from deepseek_edu.reference import cache as numpy_cache
from deepseek_edu.reference import cache_file

CacheFileError = cache_file.CacheFileError


def _stores(cache):
    """The stores of the global memory and the rings, in the same order for both implementations."""
    stores = [*cache.entries.values(), *cache.index_keys.values()]
    return stores, [*cache.windows, *cache.draft_windows, *cache.open_groups.values(), cache.history]


def to_reference(cache, row=0):
    """Return one row as a reference.cache.Cache with copies of its bytes; 16-bit numbers become float32.

    Raises:
        ValueError: there is no such row, or it is a cache of V4, for which there is no format.
    """
    if cache.config.generation == "v4":
        raise ValueError(
            "cache must be one of V4.1; got one of V4, which no file format holds; keep it in memory, or prefill again"
        )
    if not 0 <= row < cache.batch:
        raise ValueError(f"row must be 0 … {cache.batch - 1}; got {row}")
    dtype = np.float64 if cache.dtype == torch.float64 else np.float32
    other = numpy_cache.Cache(cache.config, cache.quantized, dtype, cache.spare)
    (stores, rings), (their_stores, their_rings) = _stores(cache), _stores(other)
    for mine, theirs in zip(stores, their_stores, strict=True):
        theirs.restore([_array(part) for part in mine.stored(row)])
    length, highest = int(cache.lengths[row]), int(cache.highest[row])
    for mine, theirs in zip(rings, their_rings, strict=True):
        theirs.restore([_array(part) for part in mine.stored(row)], int(mine.start[row]), length, highest)
    other.length, other.stored, other.highest = length, int(cache.stored[row]), highest
    other.index_key_writes = list(cache.index_key_writes[row])
    return other


def from_reference(rows, dtype=torch.float32, device="cpu"):
    """Return a Cache whose rows are given reference caches.

    Args:
        rows: list of reference.cache.Cache of one configuration, kind and number of spare positions.
        dtype, device: of the Cache.

    Raises:
        ValueError: none, or they do not belong together.
    """
    kinds = {(other.config, other.quantized, other.spare) for other in rows}
    if len(kinds) != 1:
        raise ValueError(f"rows must be caches of one configuration, kind and spare; got {len(kinds)} kinds")
    first = rows[0]
    cache = Cache(first.config, len(rows), first.quantized, dtype, device, first.spare)
    stores, rings = _stores(cache)
    for row, other in enumerate(rows):
        their_stores, their_rings = _stores(other)
        for mine, theirs in zip(stores, their_stores, strict=True):
            mine.restore(row, [torch.tensor(part) for part in theirs.stored()])
        for mine, theirs in zip(rings, their_rings, strict=True):
            mine.restore(row, [torch.tensor(part) for part in theirs.stored()], theirs.start)
        for mine, theirs in ((cache.lengths, other.length), (cache.stored, other.stored)):
            mine[row] = theirs
        cache.highest[row] = other.highest
        cache.decoded[row] = other.length
        cache.index_key_writes[row] = list(other.index_key_writes)
    return cache


def save(cache, path, row=0, transient=True):
    """Write one row of a cache. Returns the bytes written.

    Args:
        path: of the file; an old one is replaced when the new one is complete.
        row: number of the row.
        transient: also write windows, open groups and the last token ids.
    """
    return cache_file.save(to_reference(cache, row), path, transient)


def load(paths, config, dtype=torch.float32, device="cpu"):
    """Read a cache, one file for each row.

    Args:
        paths: list of files, or one file.
        config, dtype, device: of the Cache.

    Raises:
        CacheFileError: a file is no cache, damaged, or of another configuration; nothing was loaded.
    """
    paths = [paths] if isinstance(paths, (str, PathLike)) else paths
    return from_reference([cache_file.load(path, config) for path in paths], dtype, device)


def _array(part):
    return (part.float() if part.dtype in (torch.bfloat16, torch.float16) else part).cpu().numpy()
