"""Programs checked by tests, and tests by mutants: verdicts with reasons, bounded runs, kinds of tests, scores."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.reference import mutation, verification

RIGHT = "def shipping(total):\n    if total >= 50:\n        return 0\n    return 5\n"
FIVE = "def shipping(total):\n    return 5\n"


def verdicts(program: str, *asserts: str) -> list[verification.Verdict]:
    return verification.run_suite(verification.load(program), verification.tests_of("\n".join(asserts)))


def test_a_failing_equation_says_what_was_got_and_what_was_expected():
    passed, failed, other = verdicts(
        RIGHT, "assert shipping(50) == 0", "assert shipping(20) == 4", "assert shipping(20) > 5"
    )
    assert passed.passed and passed.got == "0" and passed.reason == ""
    assert (failed.outcome, failed.reason, failed.got) == ("failed", "got 5, expected 4", "5")
    assert (other.outcome, other.reason) == ("failed", "it does not hold")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("def shipping(total):\n    return price\n", "NameError in line 2 of the program: name 'price' is not defined"),
        ("x = 1\n\n\nraise ValueError\n", "ValueError in line 4 of the program"),
        ("def shipping(total)\n    return 0\n", "line 1 of the program cannot be read: expected ':'"),
        ("import os\n", "ImportError in line 1 of the program: os cannot be imported here, only math"),
        ("", "NameError in line 2 of the tests: name 'shipping' is not defined"),
        ("shipping = 5\n", "TypeError in line 2 of the tests: 'int' object is not callable"),
        ("def shipping(t):\n    return open('x')\n", "NameError in line 2 of the program: name 'open' is not defined"),
        ("def shipping(t):\n    assert t < 50\n", "AssertionError in line 2 of the program"),
        ("class A:\n  def __eq__(self, o):\n    raise KeyError\ndef shipping(t): return A()\n",
         "KeyError in line 3 of the program"),
    ],
)  # fmt: skip
def test_errors_are_told_with_their_line(program, reason):
    (verdict,) = verdicts(program, "# one test", "assert shipping(50) == 0")
    assert (verdict.outcome, verdict.reason) == ("error", reason)


@pytest.mark.parametrize(
    "program",
    [
        "def shipping(t):\n    while True:\n        pass\n",
        "while True:\n    pass\n",
        "def shipping(t):\n    for _ in range(10**9):\n        pass\n",
        "def shipping(t):\n    return shipping(t)\n",
        "def shipping(t):\n    return [1 for _ in iter(int, 1)]\n",
        "def shipping(t):\n    return sum(1 for _ in iter(int, 1))\n",
        "def shipping(t):\n    while True:\n        try:\n            while True:\n                pass\n"
        "        except:\n            pass\n",
    ],
)
def test_a_program_that_does_not_end_is_stopped_even_if_it_catches_everything(program):
    (verdict,) = verdicts(program, "assert shipping(50) == 0")
    assert verdict.outcome == "stopped"
    assert "500 steps" in verdict.reason


@pytest.mark.parametrize(("turns", "outcome"), [(498, "passed"), (499, "passed"), (500, "stopped")])
def test_a_call_and_each_turn_of_a_loop_are_one_step(turns, outcome):
    program = f"def shipping(t):\n    for _ in range({turns}):\n        pass\n    return 0\n"
    assert verdicts(program, "assert shipping(1) == 0")[0].outcome == outcome


def test_every_test_gets_a_fresh_program_and_a_fresh_math():
    counting = (
        "import math\ncalls = []\ndef shipping(t):\n    calls.append(t)\n    math.pi = 3\n    return len(calls)\n"
    )
    pi = math.pi
    try:
        assert all(v.passed for v in verdicts(counting, *["assert shipping(1) == 1"] * 3))
        assert math.pi == pi
    finally:
        math.pi = pi  # a wrong mechanism may have changed it for all that follows


def test_set_up_belongs_to_the_tests_below_it_and_keeps_its_lines():
    first, second = verdicts(RIGHT, "assert shipping(edge) == 0", "edge = 50", "assert shipping(edge) == 0")
    assert first.reason == "NameError in line 1 of the tests: name 'edge' is not defined"
    assert second.passed
    helper = "def at(total):\n    return nothing\nassert at(1) == 5"
    assert verdicts(RIGHT, helper)[0].reason.startswith("NameError in line 2 of the tests")


def test_a_suite_that_cannot_be_read_says_so():
    assert verification.tests_of("x = 1\nassert (").reason.startswith("line 2 of the tests cannot be read")
    assert "13 tests, expected at most 12" in verification.tests_of("assert 1\n" * 13).reason
    assert verification.tests_of("") == []
    assert verification.accepts([])


def test_values_that_are_no_plain_text_are_named_by_their_type():
    assert verdicts("def shipping(t):\n    return [t]\n", "assert shipping(1) == 0")[0].got == "a list"
    assert verdicts("def shipping(t):\n    return 10**9999\n", "assert shipping(1) == 0")[0].got == "a very long int"


def test_what_is_asked_for_fails_before_and_what_is_guarded_passes_before():
    suite = verification.tests_of(
        "assert shipping(50) == 0\nassert shipping(20) == 5\nassert shipping(20) == 4.5\nassert shipping(80) == 5"
    )
    before, after = (verification.run_suite(verification.load(text), suite) for text in (FIVE, RIGHT))
    kinds = [verification.kind_of_test(b, a) for b, a in zip(before, after, strict=True)]
    assert kinds == ["fail-to-pass", "pass-to-pass", "broken", "broken"]


def test_the_mutants_of_the_shop_are_these_ten():
    found = {(m.line, m.after) for m in mutation.mutants(RIGHT)}
    conditions = ("if total > 50:", "if total < 50:", "if total >= 49:", "if total >= 51:")
    assert found == {
        *((2, text) for text in conditions),
        *((3, text) for text in ("return 5", "return -1", "return 1")),
        *((4, text) for text in ("return 0", "return 4", "return 6")),
    }


@settings(max_examples=60, deadline=None)
@given(totals=st.lists(st.sampled_from([0, 20, 48.5, 49, 49.5, 49.99, 50, 50.5, 51, 80]), max_size=6))
def test_killers_and_score_agree_with_the_same_mutants_written_by_hand(totals):
    def after(free, at, pay):
        return lambda total: free if at(total) else pay

    by_hand = {
        "if total > 50:": after(0, lambda t: t > 50, 5),
        "if total < 50:": after(0, lambda t: t < 50, 5),
        "if total >= 49:": after(0, lambda t: t >= 49, 5),
        "if total >= 51:": after(0, lambda t: t >= 51, 5),
        "return 5": lambda t: 5,
        "return -1": after(-1, lambda t: t >= 50, 5),
        "return 1": after(1, lambda t: t >= 50, 5),
        "return 0": lambda t: 0,
        "return 4": after(0, lambda t: t >= 50, 4),
        "return 6": after(0, lambda t: t >= 50, 6),
    }
    rule = {total: 0 if total >= 50 else 5 for total in totals}
    suite = verification.tests_of("".join(f"assert shipping({t}) == {rule[t]}\n" for t in totals))
    killed = []
    for mutant in mutation.mutants(RIGHT):
        expected = [index for index, total in enumerate(totals) if by_hand[mutant.after](total) != rule[total]]
        assert mutation.killers(mutant, suite) == expected
        killed.append(expected)
    assert mutation.mutation_score(killed) == sum(map(bool, killed)) / 10
