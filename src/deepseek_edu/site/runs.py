"""The `run` fence: a recorded experiment as figures, table, command, seed and machine."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from deepseek_edu.site.errors import SourceError, one_of
from deepseek_edu.site.page import PageContext, table
from deepseek_edu.site.schema import Key, check, load
from deepseek_edu.site.source import Piece

RUN = {"id": Key("text", True), "caption": Key("text")}
RECORD = ("title", "label", "command", "seed", "machine", "versions", "date", "model", "columns", "rows")


def render_run(piece: Piece, page: PageContext) -> str:
    """Return the figures, table and facts of a record in `assets/runs/`.

    Raises:
        SourceError: the run has no record, or its record lacks something.
    """
    body = check(load(piece.body, piece.place.after(1)), RUN, "a run", piece.place)
    id, at = body["id"], body.line_of("id")
    folder = page.project.root / "assets" / "runs"
    path = folder / f"{id}.json"
    if not path.exists():
        known = one_of((record.stem for record in folder.glob("*.json")), id)
        raise SourceError(at.file, at.line, f"the run {id}, which has no record in assets/runs", known)
    record = json.loads(path.read_text(encoding="utf-8"))
    missing = [key for key in RECORD if key not in record]
    if missing:
        where = f"assets/runs/{id}.json"
        raise SourceError(where, None, f"no {', '.join(missing)}", f"a record with {', '.join(RECORD)}")
    element = page.unique(f"run-{id}", at, f"the run {id}")
    drawn = "".join(_chart(chart, f"{element}-{number}") for number, chart in enumerate(record.get("charts", []), 1))
    notes = "".join(f"<li>{escape(note)}</li>" for note in record.get("notes", []))
    caption = page.phrase(body["caption"], body.line_of("caption")) if "caption" in body else escape(record["title"])
    label = record["label"]
    noted = f'<ul class="edu-run__notes">{notes}</ul>' if notes else ""
    return (
        f'<figure class="edu-run" id="{element}" data-search-exclude>{drawn}'
        f"{table(record['columns'], record['rows'], record['title'])}"
        f"<figcaption>{caption} "
        f'<span class="edu-claim edu-claim--{label.replace(" ", "-")}">{escape(label)}</span></figcaption>'
        f"{_facts(record)}{noted}</figure>"
    )


def _facts(record: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    rows = {
        "Measured on": escape(record["model"]),
        "Command": f"<code>{escape(record['command'])}</code>",
        "Seed": escape(str(record["seed"])),
        "Machine": escape(record["machine"]),
        "Versions": escape(versions),
        "Date": escape(record["date"]),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows.items())
    return f'<details class="edu-run__facts"><summary>How it was measured</summary><dl>{listed}</dl></details>'


def _chart(chart: dict[str, Any], prefix: str) -> str:
    from deepseek_edu.drawing.chart import Axis, Chart, Series

    series = tuple(Series(**line) for line in chart["series"])
    return Chart(chart["title"], chart["description"], Axis(**chart["x"]), Axis(**chart["y"]), series).html(prefix)
