"""A class: many submissions, some of them bad; reports written as it goes, resumed, and safe to open."""

import csv
import io
import json
import os
import re
from html.parser import HTMLParser

import pytest

from deepseek_edu.grading import classroom
from deepseek_edu.grading.api import GradingError
from deepseek_edu.grading.classroom import grade_class

WRONG = "def double(x):\n    return x\n\ndef join(parts):\n    return ''.join(parts)\n"


@pytest.fixture
def handed_in(tmp_path, toy):
    folder = tmp_path / "in"
    (folder / "dora").mkdir(parents=True)
    (folder / "anna.py").write_text(toy.solution)
    (folder / "ben.py").write_text(WRONG)
    (folder / "carl.py").write_text("def double(x\n")
    (folder / "dora" / "work.py").write_text(toy.solution)
    (folder / "eve.py").write_text("import os\nos._exit(0)\n")
    (folder / "finn.txt").write_text("hello")
    (folder / "=1+1.py").write_text(
        "def double(x):\n    raise ValueError('<img src=x onerror=alert(1)>')\ndef join(p): return ''"
    )
    (folder / ".hidden").write_text("x")
    (folder / "loop.py").write_text(WRONG.replace("return x\n", "while True: pass\n"))
    (folder / "link.py").symlink_to("/etc/hostname")
    os.mkfifo(folder / "pipe.py")
    return folder


def by_name(result):
    return {entry["name"]: entry for entry in result.entries}


@pytest.mark.behaviour(22)
def test_bad_submissions_do_not_stop_the_others(toy, handed_in, tmp_path):
    said = []
    result = grade_class(toy, handed_in, tmp_path / "out", seed="s", say=said.append)
    entries = by_name(result)
    assert (
        result.complete
        and result.graded == 10
        and set(entries)
        == {"anna.py", "ben.py", "carl.py", "dora", "eve.py", "finn.txt", "=1+1.py", "loop.py", "link.py", "pipe.py"}
    )
    assert entries["anna.py"]["full"] and entries["dora"]["full"]
    assert (entries["ben.py"]["passed"], entries["loop.py"]["passed"], entries["ben.py"]["score"]) == (2, 2, 3.33)
    for name in ("carl.py", "eve.py", "finn.txt", "link.py", "pipe.py"):
        assert entries[name]["score"] == 0 and entries[name]["problem"]["message"], name
    assert any(line.startswith("[10/10]") for line in said)


@pytest.mark.behaviour(22)
def test_a_second_run_continues_where_the_first_was_stopped(toy, handed_in, tmp_path):
    out = tmp_path / "out"

    def stop_after_three(line):
        if line.startswith("[3/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade_class(toy, handed_in, out, seed="s", workers=1, say=stop_after_three)
    stored = (out / "results.jsonl").read_text().splitlines()
    assert len(stored) >= 3
    (out / "results.jsonl").write_text("\n".join([*stored, '{"name": "cut o']))
    result = grade_class(toy, handed_in, out, seed="s", say=lambda line: None)
    assert result.reused == len(stored) and result.graded == 10 - len(stored)
    assert grade_class(toy, handed_in, out, seed="s", say=lambda line: None).graded == 0


@pytest.mark.behaviour(22)
def test_reports_exist_while_the_run_goes_on(toy, handed_in, tmp_path, monkeypatch):
    monkeypatch.setattr(classroom, "_REPORTS_EVERY", -1.0)
    seen = []

    def look(line):
        if line.startswith("[3/") or line.startswith("[4/"):
            seen.append(len(json.loads((tmp_path / "out/report.json").read_text())["submissions"]))

    grade_class(toy, handed_in, tmp_path / "out", say=look)
    assert seen == [2, 3]


def test_what_changed_is_graded_again(toy, handed_in, tmp_path):
    out, quiet = tmp_path / "out", (lambda line: None)
    for path in handed_in.iterdir():
        if path.name not in ("anna.py", "ben.py", "dora"):
            path.unlink()
    grade_class(toy, handed_in, out, seed="s", say=quiet)
    (handed_in / "ben.py").write_text(toy.solution)
    result = grade_class(toy, handed_in, out, seed="s", say=quiet)
    assert result.graded == 1 and by_name(result)["ben.py"]["full"]
    (handed_in / "dora/work.py").write_text(WRONG)
    assert grade_class(toy, handed_in, out, seed="s", say=quiet).graded == 1
    assert grade_class(toy, handed_in, out, seed="other", say=quiet).graded == 3
    assert grade_class(toy, handed_in, out, seed="other", again=True, say=quiet).graded == 3


@pytest.mark.behaviour(22)
def test_an_error_of_the_grader_itself_is_recorded_and_not_reused(toy, handed_in, tmp_path, monkeypatch):
    real = classroom.grade

    def breaks_for_ben(lab, path, **options):
        if path.name == "ben.py":
            raise RuntimeError("disk on fire")
        return real(lab, path, **options)

    monkeypatch.setattr(classroom, "grade", breaks_for_ben)
    result = grade_class(toy, handed_in, tmp_path / "out", say=lambda line: None)
    assert not result.complete and "disk on fire" in by_name(result)["ben.py"]["headline"]
    assert by_name(result)["anna.py"]["full"]
    monkeypatch.setattr(classroom, "grade", real)
    again = grade_class(toy, handed_in, tmp_path / "out", say=lambda line: None)
    assert again.complete and again.graded == 1


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.addresses = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action", "srcset")]


@pytest.mark.behaviour(1, 22)
def test_the_page_asks_nothing_of_the_network_and_escapes_what_learners_wrote(toy, handed_in, tmp_path):
    grade_class(toy, handed_in, tmp_path / "out", seed="top secret", say=lambda line: None)
    text = (tmp_path / "out/report.html").read_text()
    page = _Page()
    page.feed(text)
    assert page.addresses == ["data:,"] and not page.tags & {"script", "img", "iframe", "object", "form"}
    assert "&lt;img src=x" in text and "default-src 'none'" in text
    assert "url(" not in text and "@import" not in text
    for file in (tmp_path / "out").iterdir():
        assert "top secret" not in file.read_text()
    assert re.search(r"replay token <code>\d-[0-9a-f]{12}</code>", text)


def test_the_table_is_safe_for_a_spreadsheet(toy, handed_in, tmp_path):
    grade_class(toy, handed_in, tmp_path / "out", say=lambda line: None)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out/report.csv").read_text())))
    assert "'=1+1.py" in {row["submission"] for row in rows} and len(rows) == 10
    anna = next(row for row in rows if row["submission"] == "anna.py")
    assert (anna["score"], anna["passed"], anna["cases"], anna["middle"]) == ("10.0", "3", "3", "passed")
    carl = next(row for row in rows if row["submission"] == "carl.py")
    assert carl["problem"].startswith("line 1: ") and carl["middle"] == "not_graded"


def test_misuse_is_explained(toy, handed_in, tmp_path):
    with pytest.raises(GradingError, match="there is no folder"):
        grade_class(toy, tmp_path / "none", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(GradingError, match="holds no submission"):
        grade_class(toy, tmp_path / "empty", tmp_path / "out")
    with pytest.raises(GradingError, match="inside the folder of submissions"):
        grade_class(toy, handed_in, handed_in / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(GradingError, match="cannot be written"):
        grade_class(toy, handed_in, tmp_path / "file" / "out")
