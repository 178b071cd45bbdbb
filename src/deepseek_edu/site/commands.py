"""The site's commands: build, serve, check, pack, new, widgets, run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[Path, typer.Option("--out", "-o", help="Folder of the finished site.")]
Shell = Annotated[str, typer.Option(help="Site shell: material or zensical.")]
DEFAULT_SITE = Path("site")


def find_root(start: Path | None = None) -> Path:
    """Return the repository: the nearest folder upwards that holds mkdocs.yml and course/."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "mkdocs.yml").exists() and (folder / "course").is_dir():
            return folder
    typer.secho(f"{here}: no mkdocs.yml with course/ here or above; run this inside the repository.", err=True, fg="red")
    raise typer.Exit(2)


@contextmanager
def told_plainly() -> Iterator[None]:
    """Tell expected errors in one line and exit with code 1; anything else is a fault of ours and keeps its traceback."""
    from deepseek_edu.site.errors import SiteError

    expected: tuple[type[Exception], ...] = (SiteError,)
    try:
        from deepseek_edu.grading import LabError
        from deepseek_edu.site.bundle import BundleError
        from deepseek_edu.site.numpy_wheel import RuntimeSourceError

        expected += (LabError, BundleError, RuntimeSourceError)
    except ImportError:
        pass
    try:
        yield
    except expected as error:
        typer.secho(f"error: {error}", err=True, fg="red")
        raise typer.Exit(1) from None


def progress() -> Callable[[str], None]:
    """Return a function that prints a line with the seconds since the start."""
    import time

    started = time.perf_counter()

    def say(line: str) -> None:
        typer.secho(f"  {time.perf_counter() - started:5.1f} s  {line}", err=True, dim=True)

    return say


def _build(out: Path, shell: str, force: bool) -> Path:
    from deepseek_edu.site.build import build

    root = find_root()
    target = out if out.is_absolute() else root / out
    with told_plainly():
        built = build(root, target, shell, force=force, say=progress())
    state = "built" if built.fresh else "unchanged"
    typer.echo(f"{target} is {state} ({built.seconds:.1f} s)")
    return target


def build_command(
    out: Output = DEFAULT_SITE,
    shell: Shell = "material",
    force: Annotated[bool, typer.Option("--force", help="Build even if nothing changed.")] = False,
) -> None:
    """Build the site; a failed build leaves the previous one in place.

    Example: `deepseek-edu build --out site`
    """
    _build(out, shell, force)


def serve_command(
    port: Annotated[int, typer.Option(help="Port on this machine; 0 picks a free one.")] = 8000,
    prefix: Annotated[str, typer.Option(help="Path the site is served under, such as /course/.")] = "/",
    out: Output = DEFAULT_SITE,
    shell: Shell = "material",
) -> None:
    """Build the site if anything changed, serve it and print its address.

    Example: `deepseek-edu serve --port 8080`
    """
    from deepseek_edu.site import server

    target = _build(out, shell, False)
    server.serve(target, port=port, prefix=prefix)


def register(app: typer.Typer) -> None:
    """Add the site's commands to a command line."""
    app.command("build")(build_command)
    app.command("serve")(serve_command)
