"""What a submission can reach: each protection that the report claims is tried, and what is missing is said."""

import os
import platform
import socket
import sys
from pathlib import Path

import numpy
import pytest

import deepseek_edu
from deepseek_edu.grading import Case, landlock, sandbox, seccomp

ROOT = Path(__file__).resolve().parents[2]


def answer(run, expression, setup="import os"):
    """What `double` gets for an expression: its text, or the name of the exception."""
    source = (
        f"def double(x):\n    try:\n        {setup}\n        return repr({expression})\n"
        "    except BaseException as error:\n        return type(error).__name__"
    )
    result = run(source, [Case("only", "double", (1,), None)])
    return result.outcomes[0].comparison.got, result.protections


@pytest.mark.behaviour(25)
@pytest.mark.parametrize(
    "path",
    [
        ROOT / "labs/fp4-codes/solution.py",
        ROOT / "labs/fp4-codes/cases.py",
        Path(deepseek_edu.__file__),
        Path("/etc/passwd"),
        Path(__file__),
        Path(numpy.__file__).parents[1],
    ],
    ids=["solution", "cases", "package", "passwd", "test", "other packages"],
)
def test_files_of_the_course_and_the_machine_cannot_be_read(run, path):
    assert path.exists()
    call = f"os.listdir({str(path)!r})" if path.is_dir() else f"open({str(path)!r}).read()"
    got, held = answer(run, call)
    assert (got == "PermissionError") == (held["files"] is not None)


@pytest.mark.behaviour(25)
def test_nothing_can_be_written_outside(run, tmp_path):
    target = tmp_path / "written"
    got, held = answer(run, f"open({str(target)!r}, 'w').write('x')")
    assert (got == "PermissionError") == (held["files"] is not None)
    assert target.exists() == (held["files"] is None)


def test_the_sandbox_folder_can_be_written_and_read(run):
    got, _ = answer(run, "open('a.txt', 'w').write('x') and open('a.txt').read()")
    assert got == "'x'"


def test_a_file_cannot_grow_without_end(run):
    got, held = answer(
        run, "sum(open(f'{i}', 'wb').write(bytes(10**6)) for i in range(5)) and open('b', 'wb').write(bytes(9 * 10**6))"
    )
    assert got == "OSError"
    assert held["time"] == "CPU limit"


@pytest.mark.behaviour(25)
def test_no_connection_can_be_opened(run):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        got, held = answer(run, f"socket.create_connection(('127.0.0.1', {port}), 1)", "import socket")
    assert got.endswith("Error") == (held["network"] is not None)


@pytest.mark.behaviour(25)
@pytest.mark.parametrize("call", ["os.fork()", "os.spawnv(os.P_WAIT, '/bin/true', ['true'])", "os.system('true')"])
def test_no_process_can_be_started(run, call):
    got, held = answer(run, call)
    if held["processes"]:
        assert got in ("PermissionError", "BlockingIOError", "-1", "32512"), "32512: the shell could not be started"


def test_threads_work(run):
    got, _ = answer(run, "[t.start() or t.join() for t in [threading.Thread(target=print)]]", "import threading")
    assert got == "[None]"


@pytest.mark.parametrize(
    "call",
    [
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "os.sched_setaffinity(os.getppid(), [0])",
        "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0))",
    ],
)
def test_the_grader_itself_cannot_be_slowed_down(run, call):
    if sys.platform == "linux":
        got, held = answer(run, call, "import os, resource")
        assert (got == "PermissionError") == (held["signals"] is not None)
    assert os.getpriority(os.PRIO_PROCESS, 0) < 19


def test_the_environment_holds_nothing_of_the_grader(run, monkeypatch):
    monkeypatch.setenv("DEEPSEEK_EDU_SEED", "secret-seed")
    monkeypatch.setenv("SOME_TOKEN", "secret-token")
    got, _ = answer(run, "dict(os.environ)")
    assert "secret" not in got and "TOKEN" not in got


def test_numpy_works_and_other_packages_do_not(run):
    got, _ = answer(run, "numpy.linalg.inv(numpy.eye(3)).sum()", "import numpy")
    assert "3.0" in got
    for package in ("yaml", "typer", "deepseek_edu"):
        got, _ = answer(run, "0", f"__import__({package!r})")
        assert got == "ModuleNotFoundError"


def test_memory_is_limited_where_the_report_says_so(run):
    got, held = answer(run, "len(bytearray(400 * 2**20))")
    assert (got == "MemoryError") == (held["memory"] is not None)


def test_on_current_linux_every_protection_holds(run):
    """The machines that grade classes are Linux; there nothing may be missing without notice."""
    _, held = answer(run, "1")
    assert set(held) == {"time", "memory", "files", "network", "processes", "signals"}
    if sys.platform == "linux" and landlock.abi() and platform.machine() in ("x86_64", "aarch64"):
        assert None not in held.values()


def test_the_filter_covers_the_same_calls_on_both_machines():
    assert seccomp.program("riscv64", 1) is None
    intel, arm = seccomp.program("x86_64", 1), seccomp.program("aarch64", 1)
    for column in (0, 1):
        numbers = {pair[column] for pair in seccomp._CALLS.values()}
        assert len(numbers) == len(seccomp._CALLS) and all(0 <= number < 512 for number in numbers)
    assert len(intel) == len(arm) + 2 * 2 + 2, "fork, vfork and the x32 numbers exist on x86-64 only"


def test_an_excluded_folder_inside_a_readable_one_stays_closed(tmp_path):
    (tmp_path / "lib/python/site-packages/secret").mkdir(parents=True)
    (tmp_path / "lib/python/json").mkdir()
    (tmp_path / "lib/other").mkdir()
    allowed = set(landlock._without([str(tmp_path / "lib")], [str(tmp_path / "lib/python/site-packages")]))
    assert allowed == {str(tmp_path / "lib/python/json"), str(tmp_path / "lib/other")}


def test_packages_and_the_course_are_never_on_the_list_of_readable_files():
    closed = [Path(folder) for folder in sandbox._closed_folders()]
    assert Path(deepseek_edu.__file__).resolve().parent in closed
    assert any(Path(numpy.__file__).resolve().is_relative_to(folder) for folder in closed)
