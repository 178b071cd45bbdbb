"""Rows of the comparison with transformers' DeepSeek-V4: ratios pair by pair, memory of fresh processes.

Both run in one process, in turn, once as PyTorch comes and once with threads that sleep while they wait
(OMP_WAIT_POLICY=passive). As it comes a thread spins while it waits; where two cores are shared with other programs it
then keeps the core from the thread it waits for, and a step takes several times as long on either side.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.bench import v4_peer
from tests.bench.rows import Row, ratio

ROOT = Path(__file__).parents[2]
PAIRS = 3
WAITING = {"threads spin": None, "threads sleep": "passive"}
SETTINGS = {"peer: prompt": v4_peer.TOKENS, "peer: steps": v4_peer.STEPS, "peer: pairs": PAIRS}


def compared(policy: str | None) -> tuple[list[list[dict[str, float]]], float]:
    """Pairs of (ours, theirs), each with its seconds, and the matrix rate; all from one fresh process."""
    surroundings = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    if policy:
        surroundings["OMP_WAIT_POLICY"] = policy
    command = [sys.executable, "-m", "tests.bench.model_peer"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=surroundings)
    return json.loads(done.stdout.splitlines()[-1])


def rows() -> Iterator[Row]:
    """Speed and memory against the peer, and the share of the matrix-product rate that prefill reaches."""
    for words, policy in WAITING.items():
        pairs, rate = compared(policy)
        for name, part, least, unit, convert in (
            ("prefill", "prefill", 4, "tokens/s", lambda s: v4_peer.TOKENS / s),
            ("decode", "step", 8, "ms", lambda s: 1e3 * s),
        ):
            ours, theirs = ([side[part] for side in column] for column in zip(*pairs, strict=True))
            here, there = (convert(statistics.median(column)) for column in (ours, theirs))
            detail = f"{here:.4g} {unit}, peer {there:.4g} {unit}, {len(pairs)} pairs"
            data = {"seconds": ours, "peer's seconds": theirs}
            gain = ratio(theirs, ours)
            yield Row(f"V4 {name} against transformers, {words}", gain, "× as fast", least, detail, True, data)
        work, took = v4_peer.prefill_operations(), statistics.median(ours["prefill"] for ours, _ in pairs)
        detail = f"{work / 1e9:.0f} GFLOP in {took:.2f} s; a matrix product of 2048³ runs at {rate / 1e9:.0f} GFLOP/s"
        yield Row(f"V4 prefill, share of the matrix rate, {words}", work / took / rate, "", None, detail)
    mine, other = (v4_peer.peak_memory(side) for side in ("ours", "theirs"))
    detail = f"{mine / 1e6:.0f} MB, peer {other / 1e6:.0f} MB: most held by a fresh process"
    yield Row("V4 peak memory against transformers", mine / other, "× peer", 1, detail)


def main() -> None:
    """Print what `compared` reads."""
    pairs = [[asdict(side) for side in pair] for pair in v4_peer.compare(PAIRS)]
    print(json.dumps([pairs, v4_peer.matrix_rate()]))


if __name__ == "__main__":
    main()
