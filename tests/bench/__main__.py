"""Measure what the course promises about speed and size: `python -m tests.bench [site|widgets|model …] [--record]`.

`make bench` runs everything, `make bench ARGS=model` one group. The table is printed as it comes; build/bench.json
keeps the last results of every group. `--record` also writes those of the model to assets/runs/model_speed.json.
Exit status 1 if a promise is not met.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.rows import Row, machine, versions

ROOT = Path(__file__).parents[2]
GROUPS = ("site", "widgets", "model")
KEPT = ROOT / "build" / "bench.json"


# before PyTorch is loaded: on shared cores threads that spin while they wait take the core from the one waited for,
# and a step of 25 ms becomes one of 500
WAITING = os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def measure(group: str) -> tuple[list[Row], dict[str, Any]]:
    """Run a group: its rows, and where, when and how they were measured."""
    module = importlib.import_module(f"tests.bench.{group}")
    about = {"machine": machine(), "versions": versions(), "date": datetime.now(UTC).date().isoformat()}
    print(f"\n{group}: {', '.join(f'{key} {value}' for key, value in (about['machine'] | about['versions']).items())}")
    rows = []
    for row in module.rows():
        print(row.line(), flush=True)
        rows.append(row)
    return rows, about | {"settings": module.SETTINGS | {"OMP_WAIT_POLICY": WAITING}}


def keep(group: str, rows: list[Row], about: dict[str, Any]) -> None:
    """Put the results of a group into build/bench.json, beside those of others."""
    KEPT.parent.mkdir(exist_ok=True)
    results = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    results = {name: results[name] for name in GROUPS if name in results}  # a file of another layout starts anew
    results[group] = about | {"rows": [asdict(row) | {"met": row.met} for row in rows]}
    KEPT.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n")


def main() -> int:
    """Run the groups that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure speed and size.")
    parser.add_argument("groups", nargs="*", metavar="group", help=f"one or more of {', '.join(GROUPS)}; default all")
    parser.add_argument("--record", action="store_true", help="write the model's results to assets/runs as well")
    options = parser.parse_args()
    if unknown := sorted(set(options.groups) - set(GROUPS)):
        parser.error(f"group must be {' or '.join(GROUPS)}; got {', '.join(unknown)}")
    met = True
    for group in options.groups or GROUPS:
        rows, about = measure(group)
        keep(group, rows, about)
        met &= all(row.met for row in rows)
        if group == "model" and options.record:
            from tests.bench.record import write

            print(f"Written to {write(rows, about).relative_to(ROOT)}")
    print(f"\nKept in {KEPT.relative_to(ROOT)}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
