"""`grade`: one submission, one report. Used by notebooks, the command line and the class run."""

import os
from pathlib import Path

from deepseek_edu.grading.lab import Lab, LabError, find_root, load_lab
from deepseek_edu.grading.live import source_of
from deepseek_edu.grading.report import Report
from deepseek_edu.grading.runner import run_cases
from deepseek_edu.grading.submission import Submission, Unreadable, read_submission

SEED_VARIABLE = "DEEPSEEK_EDU_SEED"
OVERLAY_VARIABLE = "DEEPSEEK_EDU_OVERLAY"


class GradingError(ValueError):
    """`grade` was called in a way it cannot work; says what is expected."""


def grade(lab, *submission, seed=None, overlay=None, replay=None, on_outcome=None):
    """Grade a submission of a lab.

    Args:
        lab: id of a lab, path of its folder, or a Lab.
        submission: the functions themselves, or one path, or one text with the source.
        seed: secret seed of the hidden cases; without it only the visible cases run (practice).
        overlay: folder with extra hidden cases in ``<lab id>/cases.py``.
        replay: token of one hidden case, from a report: only this case runs.
        on_outcome: called with each case's Outcome as soon as it is known.

    Returns:
        Report; in a notebook it shows itself.

    Raises:
        LabError: the lab is wrong or unknown.
        GradingError: nothing gradable was passed.
        RunnerError: this machine cannot start the child process.
    """
    lab = load_lab(lab)
    cases, mode, not_run = choose_cases(lab, seed, overlay, replay)
    fields = {"lab": lab.id, "version": lab.version, "title": lab.title, "total": lab.points, "mode": mode}
    try:
        handed_in = _submission(submission)
    except Unreadable as error:
        place = f"line {error.line}" if error.line else ""
        problem = {"type": "unreadable", "message": error.message, "line": error.line, "place": place}
        return Report(**fields, submission=Path(str(submission[0])).name, problem=problem, hidden=not_run)
    run = run_cases(handed_in, lab, cases, on_outcome)
    problem = run.problem and {**run.problem, "place": handed_in.place(run.problem["line"])}
    return Report(
        **fields,
        submission=handed_in.name,
        outcomes=run.outcomes,
        problem=problem,
        notes=handed_in.notes,
        hidden=not_run,
        protections=run.protections,
        place=handed_in.place,
    )


def choose_cases(lab: Lab, seed=None, overlay=None, replay=None):
    """The cases to run: (cases, mode, how many hidden cases are left out)."""
    if replay is not None:
        return [lab.replay(replay)], "replay", lab.hidden_count - 1
    cases = list(lab.visible)
    if seed is None and overlay is None:
        return cases, "practice", lab.hidden_count
    if seed is not None:
        cases += lab.hidden(seed)
    if overlay is not None:
        cases += lab.overlay(overlay)
    return cases, "graded", 0 if seed is not None else lab.hidden_count


def _submission(parts):
    if not parts:
        raise GradingError(
            "nothing to grade: pass the functions, a path or the source, as in grade('fp4-codes', 'mine.py')"
        )
    if len(parts) == 1 and isinstance(parts[0], os.PathLike):
        return read_submission(parts[0])
    if len(parts) == 1 and isinstance(parts[0], str):
        text = parts[0]
        return Submission("source", text) if "\n" in text else read_submission(text)
    try:
        return Submission("functions of this notebook", source_of(parts))
    except ValueError as error:
        raise GradingError(str(error)) from None


def read_seed(variable=SEED_VARIABLE):
    """The secret seed from the file that an environment variable names, or None when the variable is not set.

    Raises:
        GradingError: the file is missing, empty, or lies inside the repository.
    """
    named = os.environ.get(variable)
    if not named:
        return None
    path = Path(named)
    if not path.is_file():
        raise GradingError(
            f"{variable}={named}: there is no such file. It names a text file that holds the secret seed"
        )
    try:
        root = find_root(path.resolve().parent) if _inside_project(path) else None
    except LabError:
        root = None
    if root:
        raise GradingError(
            f"{variable}={named}: the file lies inside the repository {root}; keep the seed outside of it"
        )
    seed = path.read_text(encoding="utf-8").strip()
    if not seed:
        raise GradingError(f"{variable}={named}: the file is empty. Write a long random text into it")
    return seed


def _inside_project(path):
    try:
        root = find_root()
    except LabError:
        return False
    return root in path.resolve().parents
