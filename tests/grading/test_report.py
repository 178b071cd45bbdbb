"""What a report says: scores, the first failure, the promise of hidden cases, and text that cannot do harm."""

import json
from html.parser import HTMLParser

import pytest

from deepseek_edu.grading import LabError, grade
from deepseek_edu.grading.api import GradingError
from deepseek_edu.grading.report import show

WRONG = 'def double(x):\n    print("trace")\n    return x + 1\n\ndef join(parts):\n    return "".join(parts)\n'


def test_points_follow_the_cases_that_passed(toy):
    report = grade(toy, WRONG)
    assert (report.passed, len(report.outcomes), report.score, report.full) == (2, 3, 6.67, False)
    assert grade(toy, toy.solution).score == 10 and grade(toy, toy.starter).score == 0


def test_weights_count(toy_folder):
    cases = toy_folder / "cases.py"
    cases.write_text(cases.read_text().replace("tolerance=0.25", "tolerance=0.25, points=8.0"))
    assert grade(toy_folder, WRONG).score == 2.0


def test_a_score_is_never_rounded_up_to_full_points(toy_folder):
    cases = toy_folder / "cases.py"
    cases.write_text(cases.read_text().replace("tolerance=0.25", "tolerance=0.25, points=0.0001"))
    assert grade(toy_folder, WRONG).score == 9.99


@pytest.mark.behaviour(24)
def test_the_first_failure_names_got_expected_gap_tolerance_and_call(toy):
    text = grade(toy, WRONG).text()
    for part in ("got 2.5, expected 3.0", "gap 0.5", "tolerance 0.25", "double(1.5)", "printed: trace"):
        assert part in text


@pytest.mark.behaviour(24)
def test_a_hidden_failure_names_its_replay_token_which_replays_it(toy):
    wrong = toy.solution.replace("2 * x", "2 * x if x == 1.5 else 0")
    report = grade(toy, wrong, seed="secret")
    failed = report.first_failure
    assert failed.case.hidden and f"--replay {failed.case.replay}" in report.text()
    again = grade(toy, wrong, replay=failed.case.replay)
    assert (again.mode, len(again.outcomes)) == ("replay", 1)
    assert again.outcomes[0].comparison == failed.comparison


@pytest.mark.behaviour(28)
def test_practice_says_that_hidden_cases_run_at_grading(toy):
    report = grade(toy, toy.solution)
    assert report.mode == "practice" and report.full
    assert "3 visible, 3 hidden cases run at grading" in report.text()
    assert "3 hidden cases run at grading" in report._repr_html_()
    graded = grade(toy, toy.solution, seed="s")
    assert (graded.mode, len(graded.outcomes), graded.hidden) == ("graded", 6, 0)
    assert "hidden cases run" not in graded.text()


def test_the_report_is_plain_json(toy):
    data = json.loads(json.dumps(grade(toy, WRONG).to_json(), allow_nan=False))
    middle = data["outcomes"][1]
    assert (data["score"], data["mode"], data["hidden_not_run"]) == (6.67, "practice", 3)
    assert (middle["status"], middle["got"], middle["expected"], middle["gap"], middle["stdout"]) == (
        "failed",
        2.5,
        3.0,
        0.5,
        "trace\n",
    )


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)


@pytest.mark.behaviour(25)
def test_text_of_a_submission_is_escaped_in_the_notebook_report(toy):
    report = grade(
        toy, 'def double(x):\n    raise ValueError("<script>alert(1)</script><img src=x>")\ndef join(p): return "<b>"'
    )
    parser = _Tags()
    parser.feed(report._repr_html_())
    assert not parser.tags & {"script", "img", "b"}
    assert "&lt;script&gt;" in report._repr_html_()


def test_a_problem_is_the_headline(toy):
    report = grade(toy, "def double(x:\n    pass\n")
    assert report.headline().startswith("not graded: line 1: ") and "first" not in report.text()


def test_long_values_are_shortened_in_the_middle():
    assert len(show(list(range(1000)))) < 170 and "…" in show(list(range(1000))) and show([1]) == "[1]"


def test_misuse_is_explained(toy):
    with pytest.raises(GradingError, match="nothing to grade"):
        grade(toy)
    with pytest.raises(GradingError, match="pass the functions themselves"):
        grade(toy, 3)
    with pytest.raises(GradingError, match="lambda has no name"):
        grade(toy, lambda x: x)
    with pytest.raises(LabError, match="no lab of this name"):
        grade("unknown-lab", "x\n")
    missing = grade(toy, "missing.py")
    assert "cannot be opened: No such file" in missing.headline()
