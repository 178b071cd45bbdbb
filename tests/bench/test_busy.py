"""The load of the benchmarks begins and ends with its block, whatever happens in it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench.busy import ROOT, busy


def computes(process):
    """Whether a process uses a core: its time on one grows."""

    def ticks():
        return sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))

    before, end = ticks(), time.monotonic() + 20
    while time.monotonic() < end:
        if ticks() > before + 2:
            return True
        time.sleep(0.05)
    return False


def test_processes_compute_during_the_block_and_end_with_it_also_on_an_error():
    with busy(2) as processes:
        assert len(processes) == 2 and all(computes(process) for process in processes)
    assert all(process.returncode for process in processes)
    with pytest.raises(KeyError), busy(1) as processes:
        raise KeyError
    assert processes[0].returncode
    with busy(0) as processes:
        assert processes == []


def test_a_load_that_ended_early_is_an_error():
    with pytest.raises(RuntimeError, match="1 of 1 busy processes ended early"), busy(1) as processes:
        processes[0].kill()
        processes[0].wait()


def test_the_load_ends_by_itself_when_its_parent_is_killed():
    code = "import os, signal\nfrom tests.bench.busy import busy\nwith busy(1) as p:\n    print(p[0].pid, flush=True)\n"
    code += "    os.kill(os.getpid(), signal.SIGKILL)\n"
    parent = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    child, end = Path(f"/proc/{int(parent.stdout)}/stat"), time.monotonic() + 20
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < end:
        time.sleep(0.05)
    assert not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z"
