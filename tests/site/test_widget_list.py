"""`deepseek-edu widgets`: what it lists, and that the live times come from Pyodide."""

import json

import pytest
from typer.testing import CliRunner

from deepseek_edu import widgets
from deepseek_edu.cli import app
from deepseek_edu.site import widget_list
from deepseek_edu.site.bundle import BundleError
from tests.site_build import ROOT


@pytest.fixture(autouse=True)
def few_settings(monkeypatch):
    monkeypatch.setattr(widget_list, "SETTINGS", 2)


def test_every_widget_is_listed_with_what_the_registry_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, ["widgets", "--no-live", "--json"])
    assert done.exit_code == 0, done.output
    rows = {row["id"]: row for row in json.loads(done.stdout)}
    assert tuple(rows) == widgets.names()
    for id, row in rows.items():
        widget = widgets.get(id)
        assert row["controls"] == list(widget.controls)
        assert row["chapter"] == widget.chapter
        assert sum(line.count(",") + 1 for line in row["mechanism"]) == len(widget.names)
        assert row["native_ms"] > 0 and row["live_ms"] is None
        assert 0 < row["states_bytes"] < 60_000 and row["states"] > 1
    rows = [widget_list.Listed(**row) for row in json.loads(done.stdout)]
    monkeypatch.setattr(widget_list, "listed", lambda *arguments: rows)  # measured once is enough
    text = CliRunner().invoke(app, ["widgets", "--no-live"]).stdout
    assert "fp4: Store numbers in four bits" in text
    assert "not measured in Pyodide" in text


def test_live_times_come_from_pyodide():
    assert widget_list.live_times(ROOT, ["fp4"])["fp4"] > 0


def test_without_pyodide_the_cure_is_named(tmp_path):
    with pytest.raises(BundleError, match="run `npm ci`"):
        widget_list.live_times(tmp_path, ["fp4"])
