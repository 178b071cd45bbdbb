"""Prove that a lab grades rightly: starters fail, right answers pass, every wrong answer fails where it says.

The expected values come from the reference; the solution and the alternatives do not call it. So a pass is also a
cross-check of the two. Several seeds are used for right answers, since one may miss a rare mistake.
"""

import ast
import re
from dataclasses import dataclass

from deepseek_edu.grading.lab import load_lab
from deepseek_edu.grading.report import Report
from deepseek_edu.grading.runner import FAILED, NOT_GRADED, PASSED, run_cases
from deepseek_edu.grading.submission import Submission

_NAMES_CASE = re.compile(r"\bFails ([A-Za-z0-9_-]+)\.\s*$")
SEEDS_FOR_RIGHT_ANSWERS = 5


@dataclass(frozen=True)
class Row:
    """One checked file: its name, what is demanded, whether it holds, and what was seen."""

    file: str
    demand: str
    ok: bool
    seen: str


def verify_lab(lab, seed="verify", say=print):
    """Check one lab and print a table. Returns whether everything holds; raises LabError for a malformed lab."""
    lab = load_lab(lab)
    rows = list(check_lab(lab, seed))
    width = max(len(row.file) for row in rows)
    say(f"{lab.id}: {lab.promise()}")
    for row in rows:
        say(f"  {'ok ' if row.ok else 'NO '} {row.file:<{width}}  {row.demand:<30} {row.seen}")
    wrong = [row for row in rows if not row.ok]
    say(f"  {len(rows) - len(wrong)} of {len(rows)} hold")
    return not wrong


def check_lab(lab, seed="verify"):
    """Yield a Row for each file of the lab."""
    cases = [*lab.visible, *lab.hidden(seed)]
    yield _check_starter(lab, cases)
    many = [
        *lab.visible,
        *(case for number in range(SEEDS_FOR_RIGHT_ANSWERS) for case in lab.hidden(f"{seed}/{number}")),
    ]
    yield _check_right(lab, "solution.py", many)
    for path in sorted((lab.path / "alternative").glob("*.py")):
        yield _check_right(lab, f"alternative/{path.name}", many)
    answers = sorted((lab.path / "wrong").glob("*.py"))
    if not answers:
        yield Row(
            "wrong/", "holds wrong answers", False, "there is none: without one nothing shows that a case can fail"
        )
    for path in answers:
        yield _check_wrong(lab, path, cases)


def _run(lab, file, cases):
    source = (lab.path / file).read_text(encoding="utf-8")
    return run_cases(Submission(file, source), lab, cases)


def _explain(lab, outcome):
    report = Report(lab.id, lab.version, lab.title, lab.points, "", "graded", (outcome,))
    return f"{outcome.case.id} {outcome.status}: {report.explain(outcome)}"[:200]


def _check_starter(lab, cases):
    run = _run(lab, "starter.py", cases)
    demand = "loads and fails every case"
    if run.problem:
        return Row("starter.py", demand, False, run.problem["message"])
    for outcome in run.outcomes:
        error = outcome.error or {}
        if outcome.status != FAILED or error.get("type") != "NotImplementedError":
            seen = f"{_explain(lab, outcome)}; a starter raises NotImplementedError"
            return Row("starter.py", demand, False, seen)
    return Row("starter.py", demand, True, f"{len(cases)} cases, NotImplementedError each")


def _check_right(lab, file, cases):
    demand = "passes every case"
    run = _run(lab, file, cases)
    if run.problem:
        return Row(file, demand, False, run.problem["message"])
    bad = next((outcome for outcome in run.outcomes if outcome.status != PASSED), None)
    slow = max(outcome.seconds for outcome in run.outcomes)
    return Row(
        file, demand, bad is None, _explain(lab, bad) if bad else f"{len(cases)} cases, slowest {slow * 1000:.0f} ms"
    )


def _check_wrong(lab, path, cases):
    file = f"wrong/{path.name}"
    try:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    except SyntaxError as error:
        return Row(file, "is Python", False, f"line {error.lineno}: {error.msg}")
    match = _NAMES_CASE.search(docstring.partition("\n")[0])
    if not match:
        return Row(
            file, "says what is wrong", False, "its first line has to be a docstring that ends in: Fails CASE-ID."
        )
    named = match[1]
    demand = f"fails {named}"
    if named not in {case.id for case in lab.visible}:
        return Row(file, demand, False, f"{named} is no visible case of this lab")
    run = _run(lab, file, cases)
    if run.problem:
        return Row(file, demand, False, run.problem["message"])
    outcome = next(outcome for outcome in run.outcomes if outcome.case.id == named)
    if outcome.status in (PASSED, NOT_GRADED):
        failed = [other.case.id for other in run.outcomes if other.status != PASSED]
        return Row(file, demand, False, f"{named} {outcome.status}; fails {', '.join(failed) or 'nothing'}")
    count = sum(other.status != PASSED for other in run.outcomes)
    return Row(file, demand, True, f"and {count - 1} more of {len(cases)}" if count > 1 else "and nothing else")
