"""The part of a record that does not come from the measurement: where and when it was made, and how it is written."""

import json
import os
import platform
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


def significant(value, digits=4):
    """Return a float rounded to some significant digits: more would claim a precision that samples do not have.

    >>> significant(0.0913246), significant(20.7854)
    (0.09132, 20.79)
    """
    return float(f"{value:.{digits}g}")


def write_record(record, path):
    """Write a record as indented JSON, whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".json.new")
    draft.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
