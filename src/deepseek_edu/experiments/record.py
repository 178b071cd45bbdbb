"""What the experiments have in common: their command line, where and when a record was made, and how it is written."""

import argparse
import json
import os
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import deepseek_edu


def surroundings():
    """Return machine, versions and date of a run, in words that name no host."""
    cores = os.cpu_count() or 1
    processor = f"{cores} CPU cores" if cores > 1 else "1 CPU core"
    return {
        "machine": f"{processor}, {platform.machine()}, {platform.system()}, no GPU used",
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "deepseek-edu": deepseek_edu.__version__,
        },
        "date": datetime.now(UTC).date().isoformat(),
    }


def parser(name, about, seed):
    """Return the parser of an experiment's command line, with --seed and with --out, a path fit for a record.

    Args:
        name: of its module, id and record; about: its docstring; seed: its own.
    """
    made = argparse.ArgumentParser(f"python -m deepseek_edu.experiments.{name}", description=about)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("--seed", type=int, default=seed)
    made.add_argument("--out", type=_target, default=f"assets/runs/{name}.json")
    return made


def _target(path):
    if fault := unfit(path):
        raise argparse.ArgumentTypeError(fault)
    return Path(path)


def chart(title, description, x, y, kind, series):
    """Return a chart of a record, as drawing/chart.py takes it.

    Args:
        x, y: (label, kind) of the axes; the kinds are "linear", "log" and "category".
        kind: of all series, "line" or "bar".
        series: (name, list of x, list of y) of each.
    """
    return {
        "title": title,
        "description": description,
        "x": dict(zip(("label", "kind"), x, strict=True)),
        "y": dict(zip(("label", "kind"), y, strict=True)),
        "series": [{"name": name, "x": some, "y": values, "kind": kind} for name, some, values in series],
    }


def significant(value, digits=4):
    """Return a float rounded to some significant digits: more would claim a precision that samples do not have.

    >>> significant(0.0913246), significant(20.7854)
    (0.09132, 20.79)
    """
    return float(f"{value:.{digits}g}")


def unfit(path):
    """Say why a record must not be written to a path, or return an empty text: new files and old records may be."""
    path = Path(path)
    allowed = "a new file NAME.json in a folder that exists, or a record of an experiment"
    if path.is_dir():
        return f"{path}: found a folder; allowed: {allowed}"
    if path.suffix != ".json":
        return f"{path}: found a name that does not end in .json; allowed: {allowed}"
    if not path.parent.is_dir():
        return f"{path}: found no folder {path.parent}; make it first, or name a folder that exists"
    if path.exists() and not _is_record(path):
        return f"{path}: found a file that is no record; allowed: {allowed}"
    return ""


def _is_record(path):
    try:
        return {"id", "command", "seed", "rows"} <= json.loads(path.read_text(encoding="utf-8")).keys()
    except (OSError, ValueError, AttributeError):
        return False


def write_record(record, path):
    """Write a record as indented JSON, whole or not at all.

    Raises:
        ValueError: the path is none for a record; nothing was touched.
    """
    if fault := unfit(path):
        raise ValueError(fault)
    handle, draft = tempfile.mkstemp(prefix=".record-", dir=Path(path).parent, text=True)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False, indent=1) + "\n")
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    finally:
        Path(draft).unlink(missing_ok=True)
