"""Odd files: read when they can be, else one reason with the line."""

import json
import os

import pytest

from deepseek_edu.grading.api import grade
from deepseek_edu.grading.submission import Unreadable, read_submission

GOOD = "def double(x):\n    return 2 * x\n\ndef join(parts):\n    return ''.join(parts)\n"


def notebook(*cells):
    return json.dumps({"cells": [{"cell_type": kind, "source": source} for kind, source in cells], "nbformat": 4})


@pytest.mark.behaviour(26)
@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"\xef\xbb\xbf" + GOOD.encode(), "byte order mark"),
        (GOOD.replace("\n", "\r\n").encode(), "line ends"),
        (GOOD.replace("\n", "\r").encode(), "line ends"),
        (b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + GOOD.encode(), None),
        (("# é 日本\n" + GOOD).encode(), None),
        (GOOD.rstrip().encode(), None),
    ],
    ids=["BOM", "CRLF", "CR", "declared latin-1", "UTF-8", "no last newline"],
)
def test_an_odd_but_readable_script_is_graded(toy, tmp_path, data, note):
    path = tmp_path / "mine.py"
    path.write_bytes(data)
    report = grade(toy, path)
    assert report.full and report.problem is None
    assert (note is None and not report.notes) or note in report.notes[0]


@pytest.mark.behaviour(26)
@pytest.mark.parametrize(
    ("name", "data", "line", "words"),
    [
        ("a.py", b"x = 1\n# caf\xe9\n", 2, "byte 0xE9 is not UTF-8"),
        ("a.py", GOOD.encode("utf-16"), 1, "saved as UTF-16"),
        ("a.py", GOOD.encode("utf-32"), 1, "saved as UTF-32"),
        ("a.py", b"x = 1\ny = 2\n\0\n", 3, "zero byte"),
        ("a.py", b"# coding: klingon\n", 1, "klingon"),
        ("a.py", b"#" * 10_000_000, 1, "10.0 MB"),
        ("a.txt", GOOD.encode(), None, "does not end in .py or .ipynb"),
        ("a.ipynb", b"{\n not json", 2, "not a notebook"),
        ("a.ipynb", b"[1]", 1, "no list of cells"),
        ("a.ipynb", b"[" * 100_000, 1, "not a notebook"),
        ("a.ipynb", notebook(("markdown", "hi")).encode(), 1, "no code"),
        ("a.ipynb", b'{"cells": [{"cell_type": "code", "source": [1]}]}', 1, "cell 1"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else str(value),
)
def test_an_unreadable_file_names_the_line(tmp_path, name, data, line, words):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(Unreadable) as caught:
        read_submission(path)
    assert words in caught.value.message and caught.value.line == line


@pytest.mark.behaviour(26)
@pytest.mark.parametrize(
    ("source", "place", "words"),
    [
        ("", "line 1", "empty"),
        ("\n\n", "line 1", "empty"),
        ("def double(x):\n    return 2 * x\n  return 1\n", "line 3", "unindent"),
        (GOOD + "\ndef double(x):\n    return 0\n", "line 7", "defined 2 times, on lines 1, 7"),
        ("def Double(x): return 1\n", "line 1", "Double (line 1)"),
        ("import nothing_like_this\n" + GOOD, "line 1", "no module nothing_like_this"),
    ],
)
def test_a_script_that_cannot_load_names_the_line(toy, tmp_path, source, place, words):
    path = tmp_path / "mine.py"
    path.write_text(source)
    report = grade(toy, path)
    assert report.score == 0 and not report.full
    assert report.problem["place"] == place and words in report.problem["message"]
    assert place in report.text() and words in report.text()


@pytest.mark.behaviour(26)
def test_a_notebook_is_graded_by_what_its_functions_need(toy, tmp_path):
    path = tmp_path / "mine.ipynb"
    path.write_text(
        notebook(
            ("markdown", "# Title"),
            ("code", ["%matplotlib inline\n", "import math\n", "FACTOR = 2"]),
            ("code", "def double(x):\n    return math.prod([FACTOR, x])\n\nprint(double(1))"),
            ("code", "%%bash\nls"),
            ("code", "def join(parts):\n    return glue(parts)\n\ndef glue(p):\n    return ''.join(p)"),
            ("code", "from deepseek_edu.grading import grade\ngrade('toy', double, join)\nraise SystemExit"),
        )
    )
    report = grade(toy, path)
    assert report.full, report.text()
    assert "only what the graded functions need" in report.notes[-1]


@pytest.mark.behaviour(26)
def test_a_line_of_a_notebook_is_named_by_cell(toy, tmp_path):
    path = tmp_path / "mine.ipynb"
    path.write_text(
        notebook(("code", "x = 1\ny = 2"), ("markdown", "text"), ("code", GOOD + "\ndef double(x):\n    return 1"))
    )
    assert grade(toy, path).problem["place"] == "cell 3, line 7"
    path.write_text(
        notebook(("code", "x = 1"), ("code", "join = ''.join"), ("code", "def double(x):\n    return x / 0\n"))
    )
    assert "ZeroDivisionError: float division by zero (cell 3, line 2)" in grade(toy, path).text()


@pytest.mark.behaviour(26)
def test_folders_links_and_pipes(tmp_path):
    folder = tmp_path / "learner"
    folder.mkdir()
    with pytest.raises(Unreadable, match=r"0 files ending in .py or .ipynb \(none\)"):
        read_submission(folder)
    (folder / "a.py").write_text(GOOD)
    assert read_submission(folder).source == GOOD
    (folder / "b.ipynb").write_text("{}")
    with pytest.raises(Unreadable, match=r"2 files .*a.py, b.ipynb"):
        read_submission(folder)
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(Unreadable, match="not a regular file"):
        read_submission(tmp_path / "pipe.py")
    (tmp_path / "broken.py").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Unreadable, match="cannot be opened"):
        read_submission(tmp_path / "broken.py")


@pytest.mark.behaviour(26)
def test_a_file_without_permission_says_so(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(GOOD)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("deepseek_edu.grading.submission.os.open", refuse)
    with pytest.raises(Unreadable, match="cannot be opened: Permission denied"):
        read_submission(path)
