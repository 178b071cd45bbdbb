"""The `deepseek-edu` command: build, serve, check and pack the course; verify and grade labs; verify the model.

Each area registers its own commands (`site/commands.py`, `grading/commands.py`, `commands.py`), so that this file only
names them.
"""

from __future__ import annotations

import sys

import typer

from deepseek_edu import __version__
from deepseek_edu import commands as model_commands
from deepseek_edu.grading import commands as grading_commands
from deepseek_edu.site import commands as site_commands

app = typer.Typer(
    name="deepseek-edu",
    help="Build, serve, check and grade the course.\n\nExample: deepseek-edu serve",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deepseek-edu {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    """Build, serve, check and grade the course.

    Example: `deepseek-edu serve`
    """


site_commands.register(app)
grading_commands.register(app)
model_commands.register(app)


def main() -> None:
    """Run the command line; a Ctrl-C ends it quietly with exit code 130."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
