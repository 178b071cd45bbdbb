"""Rows of the comparison with transformers' DeepSeek-V4: ratios pair by pair, memory of fresh processes.

The threads of both sleep while they wait (OMP_WAIT_POLICY=passive, set by tests/bench/__main__.py). As PyTorch comes
they spin; where two cores are shared with other programs, a spinning thread keeps the core from the one it waits for.
The peer's decode step of 26 to 30 ms then takes 130 to 280 ms, and the comparison measures the waiting.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.bench import v4_peer
from tests.bench.rows import Row, ratio

PAIRS = 3
SETTINGS = {"peer: prompt": v4_peer.TOKENS, "peer: steps": v4_peer.STEPS, "peer: pairs": PAIRS}


def rows() -> Iterator[Row]:
    """Speed and memory against the peer, and the share of the matrix-product rate that prefill reaches."""
    pairs = v4_peer.compare(PAIRS)
    rate = v4_peer.matrix_rate()
    for name, part, least, unit, convert in (
        ("V4 prefill against transformers", "prefill", 4, "tokens/s", lambda s: v4_peer.TOKENS / s),
        ("V4 decode against transformers", "step", 8, "ms", lambda s: 1e3 * s),
    ):
        ours, theirs = ([getattr(side, part) for side in column] for column in zip(*pairs, strict=True))
        here, there = (convert(statistics.median(column)) for column in (ours, theirs))
        detail = f"{here:.4g} {unit}, peer {there:.4g} {unit}, {len(pairs)} pairs"
        data = {"seconds": ours, "peer's seconds": theirs}
        yield Row(name, ratio(theirs, ours), "× as fast", least, detail, least=True, data=data)
    work, took = v4_peer.prefill_operations(), statistics.median(side.prefill for side, _ in pairs)
    detail = f"{work / 1e9:.0f} GFLOP in {took:.2f} s; a matrix product of 2048³ runs at {rate / 1e9:.0f} GFLOP/s"
    yield Row("V4 prefill, share of the matrix-product rate", work / took / rate, "", None, detail)
    mine, other = (v4_peer.peak_memory(side) for side in ("ours", "theirs"))
    detail = f"{mine / 1e6:.0f} MB, peer {other / 1e6:.0f} MB: most held by a fresh process"
    yield Row("V4 peak memory against transformers", mine / other, "× peer", 1, detail)
