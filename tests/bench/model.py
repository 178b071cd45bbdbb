"""What the course promises about the model: every line of the speed section, from one run on one machine.

tests/bench/v4_peer.py           V4 against the transformers library: prefill, decode, memory, share of the peak
tests/bench/model_decode.py      decode from 1K to 64K tokens of context, and the skipping prefill
tests/bench/model_speculative.py drafting and verifying against plain decoding
tests/bench/model_small.py       FP4 packing, imports in the browser's Python, the oracle model, the meta device
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tests.bench import model_decode, model_peer, model_small, model_speculative, v4_peer
from tests.bench.rows import Row

THREADS = 1  # on shared cores two threads wait for each other, and a ratio says how busy the cores were
SETTINGS = {
    "threads": THREADS,
    "clock": "time on the core of one thread; against the peer wall time",
    "threads against the peer": v4_peer.THREADS,
    "type": "float32",
    **model_peer.SETTINGS,
    **model_decode.SETTINGS,
    **model_speculative.SETTINGS,
    **model_small.SETTINGS,
}


def rows() -> Iterator[Row]:
    """Measure everything."""
    torch.set_num_threads(THREADS)
    for part in (model_small, model_decode, model_speculative, model_peer):
        yield from part.rows()
