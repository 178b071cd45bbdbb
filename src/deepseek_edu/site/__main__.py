"""`python -m deepseek_edu.site build`: the site's commands without the rest of the command line."""

from __future__ import annotations

import typer

from deepseek_edu.site import commands

if __name__ == "__main__":
    app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
    commands.register(app)
    app()
