"""The `tasks` widget: verdicts of the shop derived by hand, own tests and code of every kind, mutants, edited rules."""

import json

import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets import live
from deepseek_edu.widgets.parts import Metrics

PROGRAMS = {
    "before": lambda total: 5,
    "zero": lambda total: 0,
    "above": lambda total: 0 if total > 50 else 5,
    "from": lambda total: 0 if total >= 50 else 5,
}
SUITES = {
    "weak": {80: 0, 120: 0},
    "strong": {20: 5, 49.99: 5, 50: 0, 80: 0},
    "wrong": {20: 4.5, 49.99: 5, 50: 0, 80: 0},
}


def view(**values) -> widgets.View:
    return widgets.evaluate("tasks", values)


def raw(**values) -> dict:
    return view(**values).parts[0].raw


def numbers(shown: widgets.View) -> dict:
    metrics = next(part for part in shown.parts if isinstance(part, Metrics))
    return {item.label: item.value for item in metrics.items}


def words(shown: widgets.View) -> str:
    return " ".join(part["text"] for part in shown.data()["parts"] if part["kind"] == "prose")


@pytest.mark.parametrize("suite", SUITES)
def test_each_program_passes_the_tests_that_its_formula_passes(suite):
    got = raw(suite=suite)
    for key, rule in PROGRAMS.items():
        passed = [rule(total) == expected for total, expected in SUITES[suite].items()]
        assert [outcome == "passed" for outcome in got["verdicts"][key]] == passed
        assert got["accepted"][key] == all(passed)


def test_the_weak_suite_accepts_all_three_candidates_and_two_of_them_are_wrong():
    shown = view(suite="weak")
    assert (numbers(shown)["Accepted"], numbers(shown)["Accepted and wrong"]) == (3, 2)
    assert raw(suite="weak")["wrong_at"] == {"before": 50, "zero": 20, "above": 50, "from": None}
    assert "accepts it although at a total of 50 it gives 5" in words(shown)


def test_the_strong_suite_accepts_the_right_one_alone():
    accepted = raw(suite="strong")["accepted"]
    assert [key for key, yes in accepted.items() if yes] == ["from"]
    assert raw(suite="strong")["kinds"] == ("pass-to-pass", "pass-to-pass", "fail-to-pass", "fail-to-pass")
    assert "breaks what worked" in words(view(suite="strong", candidate="zero"))
    assert "breaks what worked" not in words(view(suite="strong", candidate="above"))


def test_a_wrong_expectation_makes_every_program_fail_and_the_suite_is_blamed():
    shown = view(suite="wrong")
    got = shown.parts[0].raw
    assert not any(got["accepted"].values())
    assert got["kinds"][0] == "broken" and "broken" not in got["kinds"][1:]
    assert all(outcomes[0] == "failed" for outcomes in got["verdicts"].values())
    assert "Every program is refused, the right one too" in words(shown)
    assert "Repair: mend test 1" in shown.summary
    assert numbers(view(suite="wrong", part="mutants"))["Mutation score"] is None


@pytest.mark.parametrize(
    ("tests", "killed"),
    [
        ("assert shipping(80) == 0\nassert shipping(120) == 0", 4),
        ("assert shipping(20) == 5\nassert shipping(50) == 0\nassert shipping(80) == 0", 9),
        ("assert shipping(20) == 5\nassert shipping(49.99) == 5\nassert shipping(50) == 0", 10),
        ("assert shipping(49.99) == 5\nassert shipping(50) == 0", 10),
        ("", 0),
        ("assert True", 0),
    ],
)
def test_the_mutation_score_of_a_suite_by_hand(tests, killed):
    shown = view(part="mutants", suite="own", tests=tests)
    assert numbers(shown)["Mutants"] == 10
    assert numbers(shown)["Killed"] == killed
    assert numbers(shown)["Mutation score"] == killed / 10


def test_the_named_suites_score_forty_and_a_hundred_percent():
    assert numbers(view(part="mutants", suite="weak"))["Mutation score"] == 0.4
    assert numbers(view(part="mutants", suite="strong"))["Mutation score"] == 1.0


def test_the_first_own_suite_leaves_the_mutant_that_only_a_total_between_49_and_50_kills():
    shown = view(part="mutants", suite="own")
    assert "“if total >= 49:” in place of “if total >= 50:” passes every test" in words(shown)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def shipping(total):\n    while True:\n        pass\n", "stopped after 500 steps"),
        ("def shipping(total)\n    return 0\n", "line 1 of the program cannot be read: expected ':'"),
        ("def shipping(total):\n    return price\n", "NameError in line 2 of the program"),
        ("import sys\nsys.exit()\n", "ImportError in line 1 of the program"),
        ("raise ().__class__.__base__.__subclasses__\n", "TypeError in line 1 of the program"),
        ("", "name 'shipping' is not defined"),
        ("print('a' * 10)\nprint = None\nlen = None\n", "name 'shipping' is not defined"),
    ],
)
@pytest.mark.parametrize("suite", ["weak", "strong"])
def test_no_code_breaks_the_widget_and_every_test_has_a_reason(code, said, suite):
    values = {"suite": suite, "candidate": "own", "code": code}
    answer = json.loads(live.evaluate_json("tasks", json.dumps(values)))
    assert answer["ok"] and "stdout" not in answer
    reasons = answer["data"]["parts"][0]["raw"]["reasons"]["own"]
    assert len(reasons) == len(SUITES[suite]) and any(said in reason for reason in reasons)
    assert answer["data"]["parts"][0]["raw"]["accepted"]["own"] is False
    table = next(part for part in answer["data"]["parts"] if part["kind"] == "table")
    assert [row[2].partition(": ")[2] for row in table["rows"]] == reasons


def test_own_code_is_judged_by_the_suite_and_by_the_rule():
    shown = view(suite="own", candidate="own")  # rounds, and is tested at 20, 50, 80
    assert shown.parts[0].raw["accepted"]["own"] is True
    assert shown.parts[0].raw["wrong_at"]["own"] == 49.99
    good = view(suite="strong", candidate="own", code="def shipping(total):\n    return 5 * (total < 50)\n")
    assert good.parts[0].raw["accepted"]["own"] is True
    assert good.parts[0].raw["wrong_at"]["own"] is None


@pytest.mark.parametrize("part", ["run", "mutants"])
def test_a_suite_that_cannot_be_read_is_told_with_its_line(part):
    shown = view(part=part, suite="own", tests="assert shipping(50) == 0\nassert shipping(\n")
    assert "line 2 of the tests cannot be read" in words(shown)


def test_an_empty_suite_accepts_everything_and_a_suite_without_a_new_demand_accepts_the_old_program():
    empty = view(suite="own", tests="")
    assert all(empty.parts[0].raw["accepted"].values())
    assert "accepts every program" in words(empty)
    guards = view(suite="own", tests="assert shipping(20) == 5")
    assert guards.parts[0].raw["accepted"]["before"] is True
    assert "no test asks for anything new" in words(guards)


def edited(old: str, new: str, **values) -> dict:
    source = live.mechanism_source(widgets.get("tasks"))
    assert source.count(old) == 1, old
    answer = json.loads(live.evaluate_json("tasks", json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer["data"]["parts"]


def test_wrong_mechanisms_move_numbers_that_are_checked_here():
    any_test = edited("all(verdict.passed for", "any(verdict.passed for", suite="strong")
    assert any_test[0]["raw"]["accepted"]["above"] is True
    swapped = edited("if before.passed else", "if not before.passed else", suite="strong")
    assert swapped[0]["raw"]["kinds"][0] == "fail-to-pass"
    no_boundary = edited("[*node.ops[:place], other(), *node.ops[place + 1 :]]", "node.ops", part="mutants")
    assert len(no_boundary[0]["raw"]["mutants"]) == 8
    blind = edited("if not verdict.passed", "if verdict.passed", part="mutants", suite="strong")
    assert blind[0]["raw"]["killed_by"] != raw(part="mutants", suite="strong")["killed_by"]
