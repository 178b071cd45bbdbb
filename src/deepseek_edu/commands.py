"""The model's command of `deepseek-edu`: verify.

Exit codes: 0 every recorded output was reproduced, 1 one was not, 2 misuse.
"""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Implementation(StrEnum):
    """What can be verified."""

    numpy = "numpy"
    torch = "torch"


class InputError(ValueError):
    """A file is missing or of another kind; the message is one sentence for the reader."""


def register(app: typer.Typer) -> None:
    """Add the model's command to the main application."""
    app.command("verify")(verify)


def verify(
    outputs: Annotated[Path, typer.Argument(metavar="ORACLE.npz", help="Weights, inputs and recorded outputs.")],
    config: Annotated[Path, typer.Argument(metavar="CONFIG.json", help="Configuration, with the released names.")],
    only: Annotated[Implementation | None, typer.Option(help="Run one implementation; default: both.")] = None,
) -> None:
    """Compare the NumPy and the PyTorch model with recorded outputs of the reference code.

    One row per output: the largest absolute difference (for ids the number of wrong ones), the tolerance, pass or fail.

    Example: `deepseek-edu verify v41_tiny.npz v41_tiny_config.json --only numpy`
    """
    from deepseek_edu import verify as verification

    chosen = [only] if only else list(Implementation)
    with _misuse():
        recorded, settings = _read(outputs), _read_config(config)
        if Implementation.torch in chosen and importlib.util.find_spec("torch") is None:
            raise InputError(
                "PyTorch is not installed: run `pip install torch` (2.13 or newer), or verify the NumPy model alone "
                "with `--only numpy`"
            )
        reports = []
        for implementation in chosen:
            typer.echo(implementation.value)
            with _told(config):
                reports.append(verification.verify(recorded, settings, implementation.value))
            typer.echo(reports[-1].text() + "\n")
    raise typer.Exit(0 if all(report.passed for report in reports) else 1)


def _read(path: Path) -> dict:
    """Every array of an .npz file by name."""
    import numpy as np

    _require_file(path)
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not a whole .npz file (a zip archive of arrays, as numpy.savez writes it)")
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: np.asarray(file[name]) for name in file.files}
    except Exception as error:  # whatever a damaged archive makes of its reader
        raise InputError(f"{path} cannot be read as arrays: {error}") from None


def _read_config(path: Path) -> Any:
    """The ModelConfig that a JSON file describes."""
    from deepseek_edu.config import ModelConfig

    _require_file(path)
    try:
        released = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise InputError(f"{path} is not JSON: {error}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    try:
        config = ModelConfig.from_released(released)
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} describes no model: {error}") from None
    if config.generation != "v4.1":
        raise InputError(f"{path} describes a model of generation {config.generation}; recorded outputs are of V4.1")
    return config


def _require_file(path: Path) -> None:
    if not path.exists():
        raise InputError(f"there is no file {path}")
    if not path.is_file():
        raise InputError(f"{path} is not a file")


@contextmanager
def _told(config: Path) -> Iterator[None]:
    """What a comparison refuses (weights of another model, missing inputs) is the files' fault, not ours."""
    try:
        yield
    except (ValueError, MemoryError) as error:
        short = "there is not enough memory for its sizes; " * isinstance(error, MemoryError)
        raise InputError(f"the outputs cannot be computed with {config}: {short}{error}") from error


@contextmanager
def _misuse() -> Iterator[None]:
    """Turn wrong use into one line on standard error and exit code 2."""
    try:
        yield
    except InputError as error:
        typer.echo("Error: " + " ".join(str(error).split()), err=True)
        raise typer.Exit(2) from None
