"""Rows of the comparison with transformers' DeepSeek-V4: ratios pair by pair, each condition in a fresh process.

As PyTorch comes its threads spin while they wait. Where other programs share the cores, a spinning thread keeps the
core from the one it waits for, and work of some hundred short operations pays for it at each of them. So a prompt is
read in two pieces with a thread each (model/threads.py), and a step runs on one thread.

The promise stands with idle cores, by the median of the pairs, and with shared ones (v4_peer.py says which), where
single pairs lie far apart and the lowest counts. Comparison with sleeping threads stands beside them. What one core
needs to read a step's weights once is a row of its own.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from tests.bench import busy, v4_peer
from tests.bench.rows import Row

PAIRS = 5
SETTINGS = {
    "peer: prompt": v4_peer.TOKENS,
    "peer: steps": f"{v4_peer.STEPS}, down to {v4_peer.FEWEST_STEPS} where they take over {v4_peer.LONGEST} s",
    "peer: pairs": f"{PAIRS}, or as many as begin within {v4_peer.ENOUGH} s",
    "peer: shared cores": f"so many processes of one thread multiply {busy.SIZE}² float32 matrices meanwhile",
    "peer: OMP_WAIT_POLICY": "unset, and passive in the rows with sleeping threads",
}
PARTS = (
    ("V4 prefill against transformers", "prefill", 4, "tokens/s", lambda s: v4_peer.TOKENS / s),
    ("V4 decode against transformers", "step", 8, "ms", lambda s: 1e3 * s),
)


def rows(conditions: Sequence[str] = tuple(v4_peer.CONDITIONS)) -> Iterator[Row]:
    """Speed against the peer; with all conditions also memory, and the share of the matrix-product rate of prefill."""
    found = {}
    for condition in conditions:
        found[condition] = pairs = v4_peer.compare_under(condition, PAIRS)
        yield from against(pairs, condition)
    if len(conditions) < len(v4_peer.CONDITIONS):
        return
    pairs = found["idle"]
    rate, work = v4_peer.matrix_rate(), v4_peer.prefill_operations()
    took = statistics.median(side.prefill for side, _ in pairs)
    detail = f"{work / 1e9:.0f} GFLOP in {took:.2f} s; a matrix product of 2048³ runs at {rate / 1e9:.0f} GFLOP/s"
    yield Row("V4 prefill, share of the matrix-product rate", work / took / rate, "", None, detail)
    rate, read = v4_peer.reading_rate(), v4_peer.step_bytes()
    took, other = (statistics.median(side.step for side in column) for column in zip(*pairs, strict=True))
    detail = f"{read / 1e6:.0f} MB in {1e3 * took:.1f} ms; one core reads them at {rate / 1e9:.0f} GB/s in "
    detail += f"{1e3 * read / rate:.1f} ms; an eighth of the peer's step is {1e3 * other / 8:.1f} ms"
    yield Row("V4 decode, share of the rate of reading weights", read / took / rate, "", None, detail)
    mine, other = (v4_peer.peak_memory(side) for side in ("ours", "theirs"))
    detail = f"{mine / 1e6:.0f} MB, peer {other / 1e6:.0f} MB: most held by a fresh process"
    yield Row("V4 peak memory against transformers", mine / other, "× peer", 1, detail)


def against(pairs: list, condition: str) -> Iterator[Row]:
    """Both ratios under one condition: the median, on shared cores the lowest; sleeping threads have no limit."""
    promised, shared = not v4_peer.CONDITIONS[condition].passive, v4_peer.CONDITIONS[condition].others > 0
    for name, part, least, unit, convert in PARTS:
        ours, theirs = ([getattr(side, part) for side in column] for column in zip(*pairs, strict=True))
        here, there = (convert(statistics.median(column)) for column in (ours, theirs))
        low, high = min(map(convert, theirs)), max(map(convert, theirs))
        detail = f"{here:.4g} {unit}, peer {there:.4g} ({low:.4g} to {high:.4g}), {len(pairs)} pairs"
        ratios = sorted(there / here for here, there in zip(ours, theirs, strict=True))
        detail += f"{', the lowest counts' if shared else ''}: {', '.join(f'{one:.3g}' for one in ratios)}"
        data = {"seconds": ours, "peer's seconds": theirs}
        value, limit = ratios[0] if shared else statistics.median(ratios), least if promised else None
        yield Row(f"{name}, {condition}", value, "× as fast", limit, detail, least=True, data=data)
