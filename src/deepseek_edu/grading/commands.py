"""The grading commands of `deepseek-edu`: grade, grade-class, labs list, labs verify.

Exit codes: 0 all is well (full points), 1 not, 2 misuse.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

labs = typer.Typer(help="List and verify the labs.\n\nExample: `deepseek-edu labs verify`", no_args_is_help=True)

_Lab = Annotated[str, typer.Argument(help="Id of a lab, or the path of its folder.")]
_Seed = Annotated[
    str | None,
    typer.Option(help="Secret seed of the hidden cases. Default: the text of the file that $DEEPSEEK_EDU_SEED names."),
]
_Overlay = Annotated[
    Path | None,
    typer.Option(help="Folder with extra hidden cases in LAB/cases.py. Default: $DEEPSEEK_EDU_OVERLAY."),
]


def register(app: typer.Typer) -> None:
    """Add the grading commands to the main application."""
    app.command("grade")(grade)
    app.command("grade-class")(grade_class)
    app.add_typer(labs, name="labs")


def grade(
    lab: _Lab,
    file: Annotated[Path, typer.Argument(help="The submission: a .py or .ipynb file.")],
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    seed: _Seed = None,
    overlay: _Overlay = None,
    replay: Annotated[str | None, typer.Option(help="Run only this hidden case; the token is in a report.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every failure in full and the protections.")
    ] = False,
) -> None:
    """Grade one submission. Without a seed only the visible cases run: practice.

    Example: `deepseek-edu grade fp4-codes mine.py`
    """
    from deepseek_edu.grading import api
    from deepseek_edu.grading.report import to_json_text

    with _misuse():
        if not file.exists() and not file.is_symlink():
            raise api.GradingError(f"there is no file {file}")
        secret, extra = (None, None) if replay else _secrets(seed, overlay)
        report = api.grade(lab, file, seed=secret, overlay=extra, replay=replay)
    typer.echo(to_json_text(report) if json else report.text(verbose))
    raise typer.Exit(0 if report.full else 1)


def grade_class(
    lab: _Lab,
    folder: Annotated[Path, typer.Argument(help="Folder with one file or folder per learner.")],
    out: Annotated[Path, typer.Option(help="Folder for the reports (CSV, JSON, HTML); a second run continues there.")],
    seed: _Seed = None,
    overlay: _Overlay = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many submissions run at the same time.")] = 2,
    again: Annotated[
        bool, typer.Option("--again", help="Grade everything anew, also what is already in the report.")
    ] = False,
) -> None:
    """Grade a folder of submissions. Reports are written as it goes; a second run continues.

    Example: `deepseek-edu grade-class fp4-codes handed-in/ --out reports/`
    """
    from deepseek_edu.grading import classroom

    with _misuse():
        secret, extra = _secrets(seed, overlay)
        result = classroom.grade_class(lab, folder, out, secret, extra, workers, again, say=typer.echo)
    raise typer.Exit(0 if result.complete else 1)


@labs.command("list")
def list_labs() -> None:
    """List the labs with their points and cases.

    Example: `deepseek-edu labs list`
    """
    from deepseek_edu.grading.lab import find_labs, load_lab

    with _misuse():
        for path in find_labs():
            lab = load_lab(path)
            typer.echo(f"{lab.id:<20} {lab.points:g} points  {lab.promise()}  {lab.title}")


@labs.command("verify")
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Ids of labs; default: all.")] = None,
    seed: Annotated[str, typer.Option(help="Seed of the hidden cases used here.")] = "verify",
) -> None:
    """Prove that starters fail, solutions and alternatives pass, and each wrong answer fails where it says.

    Example: `deepseek-edu labs verify fp4-codes`
    """
    from deepseek_edu.grading import verify as verification
    from deepseek_edu.grading.lab import find_labs

    with _misuse():
        chosen = names or find_labs()
        good = all([verification.verify_lab(name, seed, say=typer.echo) for name in chosen])
    raise typer.Exit(0 if good else 1)


def _secrets(seed, overlay):
    """Seed and overlay from the options, else from the environment."""
    import os

    from deepseek_edu.grading import api

    if overlay is None and os.environ.get(api.OVERLAY_VARIABLE):
        overlay = Path(os.environ[api.OVERLAY_VARIABLE])
    if seed is not None and not seed.strip():
        raise api.GradingError("--seed is empty: give a long random text")
    return (seed.strip() if seed is not None else api.read_seed()), overlay


class _misuse:
    """Turns the errors of wrong use into one line on standard error and exit code 2."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        from deepseek_edu.grading.api import GradingError
        from deepseek_edu.grading.case import LabError
        from deepseek_edu.grading.process import RunnerError

        if isinstance(error, GradingError | LabError | RunnerError):
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(2) from None
        return False
