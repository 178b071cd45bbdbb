"""One child process with its sandbox: started, asked, replaced. This is the parent side of the protocol of `child.py`.

An answer counts as a receipt only when it carries the nonce of its request, which nobody could know before.
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
from pathlib import Path

from deepseek_edu.grading import sandbox

MAX_ANSWER = 8_000_000
START_SECONDS = 30.0
MAX_EXTENSIONS = 4


class RunnerError(RuntimeError):
    """The grader itself cannot work on this machine; says why and what helps."""


class NoAnswer(Exception):
    """The time for one answer is over."""


class ChildEnded(Exception):
    """The child is gone or broke the protocol; `status` is the outcome of the case it was working on."""

    def __init__(self, message, status="crashed"):
        super().__init__(message)
        self.status = status


class Child:
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
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    cwd=settings["work"],
                    env=sandbox.environment(settings["work"]),
                    pass_fds=(request_read, answer_write),
                    start_new_session=True,
                )
        finally:
            os.close(request_read)
            os.close(answer_write)
        os.set_blocking(self._requests, False)
        try:
            ready = self.ask({"isolation": settings, "packages": settings["packages"]}, START_SECONDS)
        except (NoAnswer, ChildEnded) as error:
            log = (self._folder / "start.log").read_text(errors="replace").strip()[-800:]
            raise RunnerError(f"the grader's child process did not start: {error} {log}".strip()) from None
        self.protections = {str(name): value and str(value) for name, value in ready["protections"].items()}

    def ask(self, request, seconds):
        """Send one request and return its answer, a dictionary with the right nonce."""
        deadline, used, extensions = time.monotonic() + seconds, self._processor_time(), MAX_EXTENSIONS
        nonce = secrets.token_hex(16)
        data = json.dumps({**request, "nonce": nonce}).encode() + b"\n"
        while data:
            if not select.select([], [self._requests], [], max(0.0, deadline - time.monotonic()))[1]:
                raise NoAnswer
            try:
                data = data[os.write(self._requests, data) :]
            except BrokenPipeError:
                raise self._ended() from None
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                if extensions == 0 or not self._is_starved(used, seconds):
                    raise NoAnswer
                deadline, extensions = time.monotonic() + seconds, extensions - 1
                continue
            chunk = os.read(self._answers, 1 << 16)
            if not chunk:
                raise self._ended()
            self._rest += chunk
            if len(self._rest) > MAX_ANSWER:
                raise ChildEnded(f"the answer is longer than {MAX_ANSWER} bytes")
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            answer = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise ChildEnded("something else was written to the answer channel") from None
        if not isinstance(answer, dict) or answer.get("nonce") != nonce:
            raise ChildEnded("the answer has no valid receipt")
        return answer

    def _is_starved(self, used, seconds):
        """Whether the child wants to run and got less than half of its time, as on an overloaded machine."""
        now = self._processor_time()
        return now is not None and used is not None and now[0] == "R" and now[1] - used[1] < seconds / 2

    def _processor_time(self):
        """(state, seconds of processor time) of the child, None where the system has no /proc."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _ended(self):
        try:
            code = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return ChildEnded("the submission closed the answer channel")
        if code >= 0:
            return ChildEnded(f"Python exited with status {code} in the middle of the call")
        if -code == getattr(signal, "SIGXCPU", None):
            return ChildEnded("the processor time of the submission was used up", "timed_out")
        with contextlib.suppress(ValueError):
            return ChildEnded(f"Python was ended by {signal.Signals(-code).name} ({signal.strsignal(-code)})")
        return ChildEnded(f"Python was ended by signal {-code}")

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
