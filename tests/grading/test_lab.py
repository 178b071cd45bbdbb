"""The lab contract: what is read, what the page gets, and how a malformed lab is explained."""

import json
import re
import shutil

import pytest

from deepseek_edu.grading import LabError, load_lab
from deepseek_edu.grading.lab import find_labs, find_root
from tests.grading.conftest import LAB_FILES, write_lab


def test_a_lab_is_read_whole(toy):
    assert (toy.id, toy.title, toy.points, toy.functions) == ("toy", "Double and join", 10, ("double", "join"))
    assert (toy.limits.seconds, toy.limits.memory_mb, toy.solutions) == (1.0, 256, "none")
    assert [case.id for case in toy.visible] == ["first", "middle", "last"]


@pytest.mark.behaviour(28)
def test_the_promise_counts_visible_and_hidden_cases(toy):
    assert toy.promise() == "3 visible cases, 3 hidden cases run at grading"


@pytest.mark.behaviour(27)
def test_the_page_gets_no_solution_and_no_hidden_case(toy):
    data = toy.page_data()
    text = json.dumps(data)
    assert data["hidden"] == 3 and len(data["cases"]) == 3 and data["starter"] == toy.starter
    assert "return 2 * x" not in text and "hidden-" not in text and "seed" not in text
    assert data["cases"][1] == {
        "id": "middle",
        "function": "double",
        "args": [1.5],
        "expected": 3.0,
        "tolerance": 0.25,
        "points": 1.0,
        "note": "",
    }
    assert set(data) == {
        "id",
        "version",
        "title",
        "points",
        "chapter",
        "mechanism",
        "functions",
        "starter",
        "limits",
        "cases",
        "hidden",
    }


@pytest.mark.behaviour(9)
@pytest.mark.parametrize(
    ("name", "old", "new", "changes"),
    [
        ("statement.md", "Double a", "Double one", True),
        ("starter.py", "double", "  double", True),
        ("cases.py", "tolerance=0.25", "tolerance=0.5", True),
        ("solution.py", "2 * x", "x + x", False),
        ("lab.toml", "points = 10", "points = 12", False),
    ],
)
def test_the_version_changes_with_what_a_learner_depends_on(toy, toy_folder, name, old, new, changes):
    path = toy_folder / name
    path.write_text(path.read_text().replace(old, new))
    assert (load_lab(toy_folder).version != toy.version) == changes
    assert re.fullmatch("[0-9a-f]{12}", toy.version)


def test_hidden_cases_depend_on_the_seed_only(toy):
    assert toy.hidden("a") == toy.hidden("a")
    assert [case.args for case in toy.hidden("a")] != [case.args for case in toy.hidden("b")]
    assert [case.args for case in toy.hidden(5)] == [case.args for case in toy.hidden("5")]


@pytest.mark.behaviour(24)
def test_a_replay_token_gives_back_one_case_and_not_the_seed(toy):
    for case in toy.hidden("secret"):
        assert toy.replay(case.replay) == case and case.hidden
        assert "secret" not in case.replay
    others = {case.replay.partition("-")[2] for case in toy.hidden("secret")}
    assert len(others) == 3, "each case has a seed of its own"


@pytest.mark.parametrize(
    "token", ["", "x", "1-", "9-3f9a0c2d41b6", "0-3F9A0C2D41B6", "0-3f9a0c2d41b", "²-3f9a0c2d41b6", "-1-3f9a0c2d41b6"]
)
def test_a_malformed_replay_token_is_refused(toy, token):
    with pytest.raises(LabError, match="not the replay token"):
        toy.replay(token)


def test_an_overlay_adds_hidden_cases(toy, tmp_path):
    (tmp_path / "overlay/toy").mkdir(parents=True)
    file = tmp_path / "overlay/toy/cases.py"
    file.write_text(
        "from deepseek_edu.grading import Case\ndef hidden():\n    return [Case('extra', 'double', (4,), 8)]\n"
    )
    (case,) = toy.overlay(tmp_path / "overlay")
    assert case.hidden and case.expected == 8
    file.write_text(
        "from deepseek_edu.grading import Case\ndef hidden():\n    return [Case('first', 'double', (4,), 8)]\n"
    )
    with pytest.raises(LabError, match="two cases have the id first"):
        toy.overlay(tmp_path / "overlay")
    with pytest.raises(LabError, match="there is no such file"):
        toy.overlay(tmp_path)


TOML = LAB_FILES["lab.toml"]
CASES = LAB_FILES["cases.py"]


@pytest.mark.parametrize(
    ("name", "text", "found", "allowed"),
    [
        ("lab.toml", TOML.replace("title", "tilte"), "unknown key 'tilte'", "title, points"),
        ("lab.toml", TOML.replace('chapter = "00_test"', ""), "chapter is missing", "Required"),
        ("lab.toml", TOML.replace("points = 10", "points = true"), "points is True", "number"),
        ("lab.toml", TOML.replace("points = 10", "points = 0"), "points is missing or empty", "Required"),
        ("lab.toml", TOML.replace('"double", "join"', '"2x"'), "'2x'", "names of Python functions"),
        (
            "lab.toml",
            TOML.replace("[limits]", 'solutions = "some"\n[limits]'),
            "solutions = 'some'",
            "none, after_attempts, all",
        ),
        ("lab.toml", TOML.replace("seconds = 1.0", "second = 1.0"), "unknown limit 'second'", "memory_mb"),
        ("lab.toml", TOML.replace("seconds = 1.0", "seconds = -1", 1), "limits.seconds = -1", "above zero"),
        ("lab.toml", "title = ", "not valid TOML", ""),
        ("statement.md", None, "the file is missing", "lab.toml, statement.md"),
        ("cases.py", "def visible(:", "SyntaxError.*line 1", "import cleanly"),
        ("cases.py", "x = 1\ny = 1 / 0\n", "ZeroDivisionError", "import cleanly"),
        ("cases.py", CASES.replace("def visible", "def seen"), "no function visible", "list of Case"),
        ("cases.py", CASES.replace("HIDDEN = 3", "HIDDEN = 'x'"), "HIDDEN = 'x'", "how many"),
        ("cases.py", CASES.replace("def generate", "def other"), "no function generate", "rng, index"),
        ("cases.py", CASES.replace('Case("last"', 'Case("first"'), "two cases have the id first", "unique"),
        ("cases.py", CASES.replace('"double", (1.5,)', '"twice", (1.5,)'), "calls 'twice'", "double, join"),
        ("cases.py", CASES.replace("(1.5,), 3.0", "1.5, 3.0"), "args of type float", "tuple"),
        ("cases.py", CASES.replace("tolerance=0.25", "tolerance=-1"), "tolerance = -1", "zero or larger"),
        ("cases.py", CASES.replace("(1.5,), 3.0", "(1.5,), {3}"), "holds a set", "plain data"),
        ("cases.py", CASES.replace("return [\n", "return [] and [\n"), "returned no case", "at least one"),
    ],
)
def test_a_malformed_lab_names_file_found_and_allowed(tmp_path, name, text, found, allowed):
    folder = write_lab(tmp_path / "labs" / "toy", **{name: text})
    with pytest.raises(LabError, match=found) as caught:
        load_lab(folder)
    assert name in caught.value.where and allowed in str(caught.value)


def test_a_generator_that_fails_names_the_index(tmp_path):
    lab = load_lab(write_lab(tmp_path / "toy", **{"cases.py": CASES.replace("rng.randrange(1, 10**6)", "1 / index")}))
    with pytest.raises(LabError, match=r"generate\(rng, 0\) raised ZeroDivisionError"):
        lab.hidden(1)


def test_labs_are_found_from_below_and_by_the_variable(toy_folder, monkeypatch, tmp_path):
    project = toy_folder.parents[1]
    (project / "notebooks").mkdir()
    monkeypatch.chdir(project / "notebooks")
    assert find_root() == project and load_lab("toy").path == toy_folder
    with pytest.raises(LabError, match=r"no lab of this name. Labs: toy"):
        load_lab("tyo")
    with pytest.raises(LabError, match="no such lab folder"):
        load_lab("labs/tyo")
    other = tmp_path / "other"
    shutil.copytree(toy_folder, other / "labs" / "copy")
    monkeypatch.setenv("DEEPSEEK_EDU_ROOT", str(other))
    assert [path.name for path in find_labs()] == ["copy"]
    monkeypatch.setenv("DEEPSEEK_EDU_ROOT", str(tmp_path / "none"))
    with pytest.raises(LabError, match="no labs folder in it"):
        find_labs()


def test_without_any_labs_folder_the_error_says_what_to_set(monkeypatch, tmp_path):
    monkeypatch.setattr("deepseek_edu.grading.lab.__file__", str(tmp_path / "a/b/c/lab.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LabError, match="DEEPSEEK_EDU_ROOT"):
        find_root()
