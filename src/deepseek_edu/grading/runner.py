"""Run a submission's cases in a child process and compare its answers here.

The child gets one case at a time and never an expected value. A case counts only with a receipt: an answer that carries the case's nonce
and decodes to plain data. After a time-out, a crash or a call that left threads running, the child is replaced and
the rest of the cases still runs.
"""

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from deepseek_edu.grading import sandbox
from deepseek_edu.grading.compare import Comparison, compare
from deepseek_edu.grading.harness import decode

MAX_ANSWER = 8_000_000
START_SECONDS = 30.0
PASSED, FAILED, TIMED_OUT, CRASHED, NOT_GRADED = "passed", "failed", "timed_out", "crashed", "not_graded"


class RunnerError(RuntimeError):
    """The grader itself cannot work on this machine; says why and what helps."""


class _Timeout(Exception):
    pass


class _Crash(Exception):
    def __init__(self, message, status=CRASHED):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Outcome:
    """What became of one case.

    Attributes:
        case: the Case.
        status: passed, failed, timed_out, crashed or not_graded.
        comparison: where the answer differs, when there was one.
        error: {"type", "message", "line"} of an exception, or None.
        message: one sentence for what is neither a comparison nor an exception.
        stdout: the beginning of what the call printed.
        seconds: wall time of the call.
    """

    case: object
    status: str
    comparison: Comparison | None = None
    error: dict | None = None
    message: str = ""
    stdout: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """All outcomes of a submission.

    Attributes:
        outcomes: one Outcome per case, in order.
        problem: {"type", "message", "line"} when the submission could not be loaded, else None.
        protections: what held while it ran, as `isolation.apply` reports it; empty when no child got that far.
    """

    outcomes: tuple
    problem: dict | None
    protections: dict


def run_cases(submission, lab, cases, on_outcome=None):
    """Run cases of a submission.

    Args:
        submission: a Submission.
        lab: the Lab, for its functions and limits.
        cases: Cases to run.
        on_outcome: called with each Outcome as soon as it is known.
    """
    outcomes, problem, protections, child = [], None, {}, None
    clock = time.monotonic()
    try:
        for case in cases:
            if problem is None and child is None:
                child, problem, held = _open(submission, lab)
                protections = held or protections
            left = lab.limits.total_seconds - (time.monotonic() - clock)
            if problem is not None:
                outcome = Outcome(case, NOT_GRADED, message="the submission did not load")
            elif left <= 0:
                used_up = f"the {lab.limits.total_seconds:g} s for all cases together were used up"
                outcome = Outcome(case, NOT_GRADED, message=used_up)
            else:
                outcome, reusable = _run_case(child, case, lab.limits)
                if not reusable:
                    child.close()
                    child = None
            outcomes.append(outcome)
            if on_outcome:
                on_outcome(outcome)
    finally:
        if child:
            child.close()
    return Run(tuple(outcomes), problem, protections)


def _open(submission, lab):
    """A child with the submission loaded: (child or None, problem or None, protections)."""
    limits = lab.limits
    child = _Child(limits)
    request = {"source": submission.source, "functions": list(lab.functions), "select": bool(submission.cells)}
    try:
        answer = child.ask(request, limits.load_seconds)
    except _Timeout:
        problem = {"type": TIMED_OUT, "line": None, "message": f"the file did not finish loading within "
                   f"{limits.load_seconds:g} s: is there a loop outside the functions?"}
    except _Crash as crash:
        problem = {"type": crash.status, "line": None, "message": f"Python ended while loading the file: {crash}"}
    else:
        if answer.get("status") == "loaded":
            return child, None, child.protections
        problem = _clean_error(answer.get("error"))
    child.close()
    return None, problem, child.protections


def _run_case(child, case, limits):
    """(Outcome, whether the child can take another case)."""
    clock, seconds = time.monotonic(), limits.seconds
    request = {"function": case.function, "args": case.page_data()["args"]}
    try:
        answer = child.ask(request, seconds)
    except _Timeout:
        return Outcome(case, TIMED_OUT, message=f"no answer within {seconds:g} s", seconds=seconds), False
    except _Crash as crash:
        return Outcome(case, crash.status, message=str(crash), seconds=time.monotonic() - clock), False
    spent = time.monotonic() - clock
    stdout = _plain(answer.get("stdout"), 5000)
    if answer.get("status") == "returned":
        try:
            comparison = compare(case.expected, decode(answer.get("value")), case.tolerance)
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            return Outcome(case, CRASHED, message=f"the answer is not plain data: {_plain(error)}", seconds=spent), False
        status = PASSED if comparison.ok else FAILED
        return Outcome(case, status, comparison, stdout=stdout, seconds=spent), not answer.get("threads")
    error = _clean_error(answer.get("error"))
    if error["type"] == "MemoryError" and not error["message"]:
        error["message"] = f"more than the {limits.memory_mb} MB of memory allowed were needed"
    if error["type"] == "missing":
        return Outcome(case, NOT_GRADED, error=error, message=error["message"]), True
    outcome = Outcome(case, FAILED, error=error, stdout=stdout, seconds=spent)
    return outcome, error["type"] != "MemoryError" and not answer.get("threads")


class _Child:
    """One child process with its sandbox folder."""

    def __init__(self, limits):
        if os.name != "posix":
            raise RunnerError("grading runs on Linux and macOS; on Windows use it inside WSL")
        self.protections = {}
        self._rest = b""
        self._folder = Path(tempfile.mkdtemp(prefix="deepseek-edu-grading-"))
        self._process = None
        self._handles = []
        try:
            self._start(limits)
        except BaseException:
            self.close()
            raise

    def _start(self, limits):
        request_read, self._requests = os.pipe()
        self._answers, answer_write = os.pipe()
        self._handles = [self._requests, self._answers]
        settings = sandbox.prepare(self._folder, limits)
        try:
            with open(self._folder / "start.log", "wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(sandbox.CHILD), str(request_read), str(answer_write)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, cwd=settings["work"],
                    env=sandbox.environment(settings["work"]), pass_fds=(request_read, answer_write), start_new_session=True)
        finally:
            os.close(request_read)
            os.close(answer_write)
        os.set_blocking(self._requests, False)
        try:
            ready = self.ask({"isolation": settings, "packages": settings["packages"]}, START_SECONDS)
        except (_Timeout, _Crash) as error:
            log = (self._folder / "start.log").read_text(errors="replace").strip()[-800:]
            raise RunnerError(f"the grader's child process did not start: {error} {log}".strip()) from None
        self.protections = {str(name): value and str(value) for name, value in ready["protections"].items()}

    def ask(self, request, seconds):
        """Send one request and return its answer, a dictionary with the right nonce."""
        deadline = time.monotonic() + seconds
        nonce = secrets.token_hex(16)
        data = json.dumps({**request, "nonce": nonce}).encode() + b"\n"
        while data:
            if not select.select([], [self._requests], [], max(0.0, deadline - time.monotonic()))[1]:
                raise _Timeout
            try:
                data = data[os.write(self._requests, data):]
            except BrokenPipeError:
                raise self._ended() from None
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise _Timeout
            chunk = os.read(self._answers, 1 << 16)
            if not chunk:
                raise self._ended()
            self._rest += chunk
            if len(self._rest) > MAX_ANSWER:
                raise _Crash(f"the answer is longer than {MAX_ANSWER} bytes")
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            answer = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise _Crash("something else was written to the answer channel") from None
        if not isinstance(answer, dict) or answer.get("nonce") != nonce:
            raise _Crash("the answer has no valid receipt")
        return answer

    def _ended(self):
        try:
            code = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return _Crash("the submission closed the answer channel")
        if code >= 0:
            return _Crash(f"Python exited with status {code} in the middle of the call")
        if -code == getattr(signal, "SIGXCPU", None):
            return _Crash("the processor time of the submission was used up", TIMED_OUT)
        with contextlib.suppress(ValueError):
            return _Crash(f"Python was ended by {signal.Signals(-code).name} ({signal.strsignal(-code)})")
        return _Crash(f"Python was ended by signal {-code}")

    def close(self):
        """End the child with everything it started and remove its folder."""
        if self._process:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        for handle in self._handles:
            os.close(handle)
        self._handles = []
        _remove(self._folder)


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def _remove(folder):
    """Delete a folder, also one whose parts were made read-only."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            inside = os.path.join(path, name)
            if not os.path.islink(inside):
                with contextlib.suppress(OSError):
                    os.chmod(inside, stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def _plain(text, limit=500):
    """Text of the child for a terminal or a page: bounded, no control characters but newline and tab."""
    text = text if isinstance(text, str) else str(text or "")
    return "".join(c if c in "\n\t" or (c.isprintable() and c not in "\u202e\u202d") else "\ufffd" for c in text[:limit])


def _clean_error(error):
    error = error if isinstance(error, dict) else {}
    line = error.get("line")
    good = isinstance(line, int) and not isinstance(line, bool) and 0 < line < 10_000_000
    return {"type": _plain(error.get("type") or "error", 80), "message": _plain(error.get("message")),
            "line": line if good else None}
