"""A machine whose cores other programs use, as a condition that can be repeated: processes that multiply matrices.

`with busy(2): …` runs two processes beside the block. Each multiplies two float32 matrices of 512² in NumPy, on one
thread, again and again; that is what another program that computes does, and it needs little but the core, since its
three megabytes stay in the processor's cache. With as many of them as there are cores, the system gives a single thread
of the block about half of a core.

They end with the block, also when it raises, and by themselves if the process that started them dies: after every
product, some milliseconds, each looks whether its parent is still the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
SIZE = 512
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM")}


@contextmanager
def busy(processes: int) -> Iterator[list[subprocess.Popen]]:
    """Keep so many cores busy during the block; all processes compute when it begins.

    Raises:
        RuntimeError: one of them has ended before the block did, so the load was not what it should be.
    """
    command = [sys.executable, "-m", "tests.bench.busy", str(os.getpid())]
    started: list[subprocess.Popen] = []
    try:
        for _ in range(processes):
            environment = os.environ | ONE_THREAD
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment))
        for process in started:
            process.stdout.readline()  # "computing", or nothing from one that has died
        yield started
        if ended := [process.poll() for process in started if process.poll() is not None]:
            raise RuntimeError(f"{len(ended)} of {processes} busy processes ended early, with exit status {ended}")
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.communicate()


def multiply(parent: int) -> None:
    """Multiply matrices until the parent is another process."""
    a, b = np.random.default_rng(0).standard_normal((2, SIZE, SIZE), dtype=np.float32)
    print("computing", flush=True)
    while os.getppid() == parent:
        a @ b


if __name__ == "__main__":
    multiply(int(sys.argv[1]))
