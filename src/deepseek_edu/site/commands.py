"""The site's commands: build, serve, check, pack, new, widgets, run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[
    Path, typer.Option("--out", "-o", help="Folder of the finished site: absent, empty, or built before.")
]
Shell = Annotated[str, typer.Option(help="Site shell: material or zensical.")]
DEFAULT_SITE = Path("site")
DEFAULT_ARCHIVE = Path("dist/deepseek-edu.zip")


def find_root(start: Path | None = None) -> Path:
    """Return the repository: the nearest folder upwards that holds mkdocs.yml and course/."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "mkdocs.yml").exists() and (folder / "course").is_dir():
            return folder
    typer.secho(
        f"{here}: no mkdocs.yml with course/ here or above; run this inside the repository.", err=True, fg="red"
    )
    raise typer.Exit(2)


@contextmanager
def told_plainly() -> Iterator[None]:
    """Tell expected errors in one line and exit with code 1, or 2 for a path that may not be written.

    Any other error is a fault of ours and keeps its traceback.
    """
    from deepseek_edu.site.errors import PlaceError, SiteError

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
        raise typer.Exit(2 if isinstance(error, PlaceError) else 1) from None


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
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0 picks a free one.")] = 8000,
    prefix: Annotated[str, typer.Option(help="Path the site is served under, such as /course/.")] = "/",
    out: Output = DEFAULT_SITE,
    shell: Shell = "material",
) -> None:
    """Build the site if anything changed, serve it and print its address.

    Example: `deepseek-edu serve --port 8080`
    """
    from deepseek_edu.site import server

    target = _build(out, shell, False)
    try:
        server.serve(target, port=port, prefix=prefix)
    except OSError as error:
        typer.secho(f"error: {error.strerror or error}; name another --port", err=True, fg="red")
        raise typer.Exit(2) from None


def check_command(
    site: Annotated[Path, typer.Argument(help="Folder of the finished site.")] = DEFAULT_SITE,
) -> None:
    """Look for what must not be published: foreign addresses, dead links, leaked solutions, pages that are too heavy.

    Example: `deepseek-edu check site/`
    """
    from deepseek_edu.site.check import check, report

    with told_plainly():
        problems = check(_existing(site), find_root())
    if problems:
        typer.echo(report(problems))
        typer.secho(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} in {site}", err=True, fg="red")
        raise typer.Exit(1)
    typer.echo(f"{site}: no problem found")


def pack_command(
    archive: Annotated[
        Path, typer.Argument(help="Archive to write: NAME.zip, new or packed before.")
    ] = DEFAULT_ARCHIVE,
    site: Annotated[
        Path, typer.Option(help="Finished site to pack; built first if it is the default one.")
    ] = DEFAULT_SITE,
) -> None:
    """Pack the site, a small server and start scripts into one archive that runs from a USB stick.

    Example: `deepseek-edu pack course.zip`
    """
    from deepseek_edu.site.pack import pack, settled

    if archive == DEFAULT_ARCHIVE and not archive.parent.exists():
        find_root()
        archive.parent.mkdir()
    with told_plainly():
        settled(archive, site)
    folder = _build(site, "material", False) if site == DEFAULT_SITE else _existing(site)
    with told_plainly():
        size = pack(folder, archive)
    typer.echo(f"{archive}: {size / 1e6:.1f} MB; unpack it, then: sh start.sh")


def new_command(
    kind: Annotated[str, typer.Argument(help="chapter, lab or widget")],
    id: Annotated[str, typer.Argument(help="Its id, such as 05_sharing or select-values.")],
) -> None:
    """Write the files of a new chapter, lab or widget; they build and pass their checks as they are.

    Example: `deepseek-edu new lab select-values`
    """
    from deepseek_edu.site.new import new

    root = find_root()
    with told_plainly():
        for path in new(root, kind, id):
            typer.echo(path.relative_to(root))


def widgets_command(
    live: Annotated[bool, typer.Option(help="Also time them in Pyodide, the reader's Python.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the widgets: controls, mechanism, chapter, native and live time, bytes of the states computed in advance.

    Example: `deepseek-edu widgets --no-live`
    """
    from deepseek_edu.site import widget_list

    with told_plainly():
        rows = widget_list.listed(find_root(), live, progress())
    typer.echo(widget_list.as_json(rows) if as_json else widget_list.as_text(rows))


def run_command(
    id: Annotated[str, typer.Argument(help="Id of an experiment; without one, the experiments are listed.")] = "",
    seed: Annotated[int | None, typer.Option(min=0, help="Seed instead of the experiment's own.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Record to write: NAME.json, new or a record; default assets/runs/ID.json.")
    ] = None,
) -> None:
    """Run a recorded experiment anew and write its record.

    Example: `deepseek-edu run fp4_error --seed 8`
    """
    import importlib
    import pkgutil

    from deepseek_edu import experiments
    from deepseek_edu.experiments.record import unfit

    known = sorted(module.name for module in pkgutil.iter_modules(experiments.__path__) if module.name != "record")
    if not id:
        typer.echo("\n".join(known))
        return
    if id not in known:
        typer.secho(f"error: found the experiment {id!r}; allowed: {', '.join(known)}", err=True, fg="red")
        raise typer.Exit(2)
    target = out or find_root() / "assets" / "runs" / f"{id}.json"
    if fault := unfit(target):
        typer.secho(f"error: {fault}", err=True, fg="red")
        raise typer.Exit(2)
    arguments = ["--out", str(target), *(["--seed", str(seed)] if seed is not None else [])]
    importlib.import_module(f"{experiments.__name__}.{id}").main(arguments)


def _existing(site: Path) -> Path:
    if not site.is_dir():
        typer.secho(f"error: {site} is not a folder; build the site first: deepseek-edu build", err=True, fg="red")
        raise typer.Exit(2)
    return site


def register(app: typer.Typer) -> None:
    """Add the site's commands to a command line."""
    app.command("build")(build_command)
    app.command("serve")(serve_command)
    app.command("check")(check_command)
    app.command("pack")(pack_command)
    app.command("new")(new_command)
    app.command("widgets")(widgets_command)
    app.command("run")(run_command)
