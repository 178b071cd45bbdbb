"""Scaffolds build as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepseek_edu.site.build import build
from deepseek_edu.site.errors import SiteError
from deepseek_edu.site.new import new
from tests.site.project import CLAIMS, make_project

BITS = """
[fp4-bits-per-value]
text = "{value:g} bits."
label = "report"
source = "Technical report, section 2.4.4"
value = 4.5
check = "deepseek_edu.claims.fp4.bits_per_value"
"""


@pytest.fixture
def project(tmp_path: Path, small_site: Path) -> Path:
    return make_project(tmp_path / "root", claims=CLAIMS + BITS, notebook=None)


def test_a_new_chapter_with_a_new_lab_builds(project: Path) -> None:
    new(project, "lab", "double-it")
    new(project, "chapter", "05_sharing")
    page = project / "course" / "05_sharing.md"
    page.write_text(page.read_text(encoding="utf-8") + "\n```lab\nid: double-it\n```\n", encoding="utf-8")
    site = build(project, project / "site").site
    text = (site / "05_sharing.html").read_text(encoding="utf-8")
    assert 'id="lab-double-it"' in text
    assert "05_sharing.html" in (site / "index.html").read_text(encoding="utf-8")


def test_a_new_lab_passes_labs_verify(project: Path) -> None:
    new(project, "lab", "double-it")
    command = [sys.executable, "-m", "deepseek_edu.cli", "labs", "verify", "double-it"]
    environment = {**os.environ, "DEEPSEEK_EDU_ROOT": str(project)}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 hold" in done.stdout  # starter, solution, two wrong answers


def test_a_new_widget_evaluates(project: Path) -> None:
    new(project, "widget", "round-one")
    code = (
        "from deepseek_edu import widgets; from deepseek_edu.widgets.render import render_widget;"
        "assert 'round-one' in widgets.names(); view = widgets.evaluate('round-one', {'value': 2.5});"
        "assert 'stored as 2' in view.summary, view.summary; assert 'edu-widget' in render_widget('round-one')"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(project / "src")}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("kind", "id", "told"),
    [
        ("chaptre", "05", "did you mean chapter?"),
        ("lab", "Double It", "lower-case"),
        ("lab", "../outside", "lower-case"),
        ("lab", "fp4-codes", "already there"),
        ("chapter", "chapter", "already there"),
        ("widget", "fp4", "already there"),
    ],
)
def test_what_cannot_be_made_is_refused_without_a_trace(project: Path, kind: str, id: str, told: str) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*.yml")}
    with pytest.raises(SiteError) as error:
        new(project, kind, id)
    assert told in str(error.value)
    assert {path: path.read_bytes() for path in project.rglob("*.yml")} == before
