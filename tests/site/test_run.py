"""`deepseek-edu run`: another seed gives other numbers; only records are written over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepseek_edu.cli import app
from tests.site_build import ROOT


def test_another_seed_changes_the_record(tmp_path: Path) -> None:
    kept = json.loads((ROOT / "assets" / "runs" / "fp4_error.json").read_text(encoding="utf-8"))
    rows = {}
    for seed in (kept["seed"], kept["seed"] + 1):
        out = tmp_path / f"{seed}.json"
        done = CliRunner().invoke(app, ["run", "fp4_error", "--seed", str(seed), "--out", str(out)])
        assert done.exit_code == 0, done.output
        record = json.loads(out.read_text(encoding="utf-8"))
        assert record["seed"] == seed
        assert record["command"].endswith(f"--seed {seed}")
        rows[seed] = record["rows"]
    assert rows[kept["seed"]] == kept["rows"]
    assert rows[kept["seed"] + 1] != kept["rows"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a/b/record.json", "make it first"),
        ("notes.txt", "does not end in .json"),
        ("package.json", "a file that is no record"),
        ("folder.json", "found a folder"),
    ],
)
def test_a_path_that_is_none_for_a_record_is_refused_in_one_sentence(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "package.json").write_text('{"name": "mine"}', encoding="utf-8")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = CliRunner().invoke(app, ["run", "fp4_error", "--out", str(tmp_path / name)])
    assert done.exit_code == 2, done.output
    assert told in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "a").exists()


def test_a_negative_seed_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "fp4_error", "--seed", "-1", "--out", str(tmp_path / "a.json")])
    assert done.exit_code == 2
    assert list(tmp_path.iterdir()) == []
