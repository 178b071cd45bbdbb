"""The commands as a person types them, with right and wrong input."""

import json
import os

import pytest
import typer
from typer.testing import CliRunner

from deepseek_edu.grading import commands

WRONG = "def double(x):\n    return x\n\ndef join(parts):\n    return ''.join(parts)\n"


@pytest.fixture
def call(toy_folder, monkeypatch):
    """Runs `deepseek-edu` with arguments inside the test's project: (exit code, output, error output)."""
    app = typer.Typer(pretty_exceptions_enable=False)
    commands.register(app)
    monkeypatch.chdir(toy_folder.parents[1])
    for name in ("DEEPSEEK_EDU_SEED", "DEEPSEEK_EDU_OVERLAY", "DEEPSEEK_EDU_ROOT"):
        monkeypatch.delenv(name, raising=False)

    def run_command(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return run_command


@pytest.fixture
def files(toy, tmp_path):
    (tmp_path / "right.py").write_text(toy.solution)
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path


def test_full_points_exit_with_zero_and_less_with_one(call, files):
    code, out, _ = call("grade", "toy", files / "right.py")
    assert code == 0 and "3 of 3 cases passed, 10 of 10 points (practice)" in out
    code, out, _ = call("grade", "labs/toy", files / "wrong.py")
    assert code == 1 and "got 1.5, expected 3.0" in out


@pytest.mark.behaviour(19)
def test_a_seed_runs_the_hidden_cases_the_same_way_each_time(call, files):
    outputs = {call("grade", "toy", files / "wrong.py", "--seed", "7", "-v")[1] for _ in range(2)}
    assert len(outputs) == 1 and "2 of 6 cases passed" in outputs.pop()


def test_the_report_as_json(call, files):
    code, out, _ = call("grade", "toy", files / "wrong.py", "--json", "--seed", "7")
    report = json.loads(out)
    assert code == 1 and report["passed"] == 2 and report["mode"] == "graded"
    token = next(item["replay"] for item in report["outcomes"] if item["hidden"])
    code, out, _ = call("grade", "toy", files / "wrong.py", "--replay", token)
    assert code == 1 and "0 of 1 cases passed" in out


@pytest.mark.behaviour(28)
def test_the_seed_file_is_kept_outside_the_repository(call, files, monkeypatch):
    monkeypatch.setenv("DEEPSEEK_EDU_SEED", str(files / "seed.txt"))
    code, _, err = call("grade", "toy", files / "right.py")
    assert code == 2 and "there is no such file" in err
    (files / "seed.txt").write_text("\n")
    assert "the file is empty" in call("grade", "toy", files / "right.py")[2]
    (files / "seed.txt").write_text("a long random text\n")
    assert "6 of 6 cases passed" in call("grade", "toy", files / "right.py")[1]
    monkeypatch.setenv("DEEPSEEK_EDU_SEED", os.path.join("labs", "toy", "statement.md"))
    assert "keep the seed outside" in call("grade", "toy", files / "right.py")[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("grade", "tyo", "RIGHT"), "there is no lab of this name. Labs: toy"),
        (("grade", "toy", "missing.py"), "there is no file missing.py"),
        (("grade", "toy"), "Missing argument"),
        (("grade", "toy", "RIGHT", "--seed", " "), "--seed is empty"),
        (("grade", "toy", "RIGHT", "--replay", "1"), "not the replay token"),
        (("grade", "toy", "RIGHT", "--overlay", "nowhere"), "there is no such file"),
        (("grade-class", "toy", "nowhere", "--out", "out"), "there is no folder nowhere"),
        (("grade-class", "toy", "labs"), "Missing option"),
        (("labs", "verify", "tyo"), "no lab of this name"),
    ],
)
def test_misuse_exits_with_two_and_one_line(call, files, arguments, words):
    code, out, err = call(*[files / "right.py" if item == "RIGHT" else item for item in arguments])
    assert code == 2 and words in err and "Traceback" not in out + err


def test_a_submission_that_cannot_load_is_not_misuse(call, files):
    (files / "bad.py").write_text("x = 1\ndef double(:\n")
    code, out, _ = call("grade", "toy", files / "bad.py")
    assert code == 1 and "line 2: " in out and "hidden cases" not in out


@pytest.mark.behaviour(28)
def test_labs_are_listed_with_their_cases(call):
    code, out, _ = call("labs", "list")
    assert code == 0 and "3 visible cases, 3 hidden cases run at grading" in out


def test_verify_passes_and_names_what_does_not_hold(call, toy_folder):
    code, out, _ = call("labs", "verify")
    assert code == 0 and "3 of 3 hold" in out
    for name, text, words in (
        (
            "wrong/right.py",
            '"""Is right. Fails middle."""\n' + (toy_folder / "solution.py").read_text(),
            "middle passed; fails nothing",
        ),
        ("wrong/right.py", '"""Names no case."""\n' + WRONG, "ends in: Fails CASE-ID."),
        ("wrong/right.py", '"""Fails nowhere."""\n' + WRONG, "nowhere is no visible case"),
        ("alternative/bad.py", WRONG, "middle failed: got 1.5, expected 3.0"),
        ("starter.py", (toy_folder / "solution.py").read_text(), "a starter raises NotImplementedError"),
        ("solution.py", WRONG, "got 1.5, expected 3.0"),
    ):
        before = (toy_folder / name).read_text() if (toy_folder / name).exists() else None
        (toy_folder / name).parent.mkdir(exist_ok=True)
        (toy_folder / name).write_text(text)
        code, out, _ = call("labs", "verify", "toy")
        assert code == 1 and words in out, (name, out)
        (toy_folder / name).unlink() if before is None else (toy_folder / name).write_text(before)
    (toy_folder / "wrong/adds_one.py").unlink()
    code, out, _ = call("labs", "verify")
    assert code == 1 and "there is none" in out


def test_a_class_is_graded(call, files, tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "a.py").write_text(WRONG)
    code, out, _ = call("grade-class", "toy", folder, "--out", tmp_path / "out", "--workers", "1")
    assert code == 0 and "[1/1] a.py: 2 of 3 cases passed" in out and "No seed" in out
    assert (tmp_path / "out/report.html").is_file()


@pytest.mark.parametrize("command", [["grade"], ["grade-class"], ["labs", "list"], ["labs", "verify"]])
def test_each_command_explains_itself_with_an_example(call, command):
    code, out, _ = call(*command, "--help")
    assert code == 0 and f"Example: deepseek-edu {' '.join(command)}" in out.replace("`", "")
