"""Run a submission's cases in a child process and compare its answers here.

The child gets one case at a time and never an expected value. A case counts only with a receipt: an answer that
carries the case's nonce and decodes to plain data. After a time-out, a crash or a call that left threads running, the
child is replaced and the rest of the cases still runs.
"""

import time
from dataclasses import dataclass

from deepseek_edu.grading.compare import Comparison, compare
from deepseek_edu.grading.harness import decode
from deepseek_edu.grading.process import Child, ChildEnded, NoAnswer

PASSED, FAILED, TIMED_OUT, CRASHED, NOT_GRADED = "passed", "failed", "timed_out", "crashed", "not_graded"


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
    child = Child(limits)
    request = {"source": submission.source, "functions": list(lab.functions), "select": bool(submission.cells)}
    try:
        answer = child.ask(request, limits.load_seconds)
    except NoAnswer:
        problem = {
            "type": TIMED_OUT,
            "line": None,
            "message": f"the file did not finish loading within "
            f"{limits.load_seconds:g} s: is there a loop outside the functions?",
        }
    except ChildEnded as crash:
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
    except NoAnswer:
        return Outcome(case, TIMED_OUT, message=f"no answer within {seconds:g} s", seconds=seconds), False
    except ChildEnded as crash:
        return Outcome(case, crash.status, message=str(crash), seconds=time.monotonic() - clock), False
    spent = time.monotonic() - clock
    stdout = _plain(answer.get("stdout"), 5000)
    if answer.get("status") == "returned":
        try:
            comparison = compare(case.expected, decode(answer.get("value")), case.tolerance)
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            return Outcome(
                case, CRASHED, message=f"the answer is not plain data: {_plain(error)}", seconds=spent
            ), False
        status = PASSED if comparison.ok else FAILED
        return Outcome(case, status, comparison, stdout=stdout, seconds=spent), not answer.get("threads")
    error = _clean_error(answer.get("error"))
    if error["type"] == "MemoryError" and not error["message"]:
        error["message"] = f"more than the {limits.memory_mb} MB of memory allowed were needed"
    if error["type"] == "missing":
        return Outcome(case, NOT_GRADED, error=error, message=error["message"]), True
    outcome = Outcome(case, FAILED, error=error, stdout=stdout, seconds=spent)
    return outcome, error["type"] != "MemoryError" and not answer.get("threads")


def _plain(text, limit=500):
    """Text of the child for a terminal or a page: bounded, no control characters but newline and tab."""
    text = text if isinstance(text, str) else str(text or "")
    return "".join(
        c if c in "\n\t" or (c.isprintable() and c not in "\u202e\u202d") else "\ufffd" for c in text[:limit]
    )


def _clean_error(error):
    error = error if isinstance(error, dict) else {}
    line = error.get("line")
    good = isinstance(line, int) and not isinstance(line, bool) and 0 < line < 10_000_000
    return {
        "type": _plain(error.get("type") or "error", 80),
        "message": _plain(error.get("message")),
        "line": line if good else None,
    }
