"""The model's last full results as a record of assets/runs, in the form of the recorded experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deepseek_edu.experiments.record import chart, significant, write_record
from tests.bench.model_decode import CONTEXTS
from tests.bench.rows import Row

RECORD = Path(__file__).parents[2] / "assets" / "runs" / "model_speed.json"
COLUMNS = ("what", "measured", "unit", "promised", "how")


def write(rows: list[Row], about: dict[str, Any]) -> Path:
    """Write assets/runs/model_speed.json and return its path."""
    machine = about["machine"]
    record = {
        "id": "model_speed",
        "title": "Speed and size of the model in PyTorch and NumPy",
        "label": "measured",
        "command": "python -m tests.bench model --record",
        "seed": 0,
        "model": "random weights but for the trained drafter: V4.1 and V4 in 8 layers of width 512, 114 M parameters",
        "machine": f"{machine['cores']} CPU cores, {machine['processor']}, {machine['system']}, no GPU used",
        "versions": about["versions"],
        "date": about["date"],
        "columns": list(COLUMNS),
        "rows": [[row.name, significant(row.value), row.unit, row.promise, row.detail] for row in rows],
        "settings": about["settings"] | {"load when it began": machine["load when it began"]},
        "data": {row.name: row.data for row in rows if row.data},
        "notes": [
            "Ratios are medians of the ratios pair by pair, on shared cores the lowest; both sides measured in turn.",
            "Times are those of one thread on its core, the wall time of a machine that does nothing else; against "
            "transformers it is wall time of two threads.",
            "The cores were shared with other programs: times differ from run to run, ratios less.",
        ],
        "charts": [_growth(rows)],
    }
    write_record(record, RECORD)
    return RECORD


def _growth(rows: list[Row]) -> dict[str, Any]:
    curves = {
        kind: list(row.data["median ms by context"].values())
        for row in rows
        for kind in ("float32", "quantised")
        if row.name.endswith(f"against 1K tokens, {kind}")
    }
    names = [f"{tokens // 1024}K" for tokens in CONTEXTS]
    told = (
        f"{kind}: " + ", ".join(f"{n} {ms:.1f} ms" for n, ms in zip(names, curve, strict=True))
        for kind, curve in curves.items()
    )
    description, axes = f"Median time of a decode step, 8 layers. {'. '.join(told)}.", ("tokens of context", "category")
    series = [(kind, names, [significant(ms) for ms in curve]) for kind, curve in curves.items()]
    return chart("One decoded token at growing context", description, axes, ("milliseconds", "linear"), "bar", series)
