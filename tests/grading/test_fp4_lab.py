"""The lab fp4-codes: right and wrong answers, and expected values checked against fractions, not the reference."""

import math
import random
from fractions import Fraction
from pathlib import Path

import pytest

from deepseek_edu.grading import harness, load_lab, verify
from deepseek_edu.grading.runner import run_cases
from deepseek_edu.grading.submission import Submission

LAB = Path(__file__).resolve().parents[2] / "labs" / "fp4-codes"
LEVELS = [Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12)]
E4M3 = [Fraction(m, 512) for m in range(8)] + [
    Fraction(8 + m) * Fraction(2) ** (e - 10) for e in range(1, 16) for m in range(8)
][:-1]


@pytest.fixture(scope="module")
def lab():
    return load_lab(LAB)


def nearest(x, levels):
    """Position of the nearest level of an exact fraction, a tie to the even position, by trying all."""
    best = min(abs(level - x) for level in levels)
    return min((i for i, level in enumerate(levels) if abs(level - x) == best), key=lambda i: i % 2)


def derive(case):
    """The expected value of a case in exact arithmetic."""
    if case.function == "choose_scale":
        amax = max(abs(Fraction(value)) for value in case.args[0])
        return float(E4M3[max(1, nearest(amax / 6, E4M3))])
    if case.function == "encode":
        values, scale = case.args
        return [
            nearest(abs(Fraction(v)) / Fraction(scale), LEVELS) + (8 if math.copysign(1, v) < 0 else 0) for v in values
        ]
    if case.function == "decode":
        codes, scale = case.args
        return [math.copysign(float(LEVELS[code % 8] * Fraction(scale)), 1 if code < 8 else -1) for code in codes]
    return [int(f"{case.args[0][i + 1]:x}{case.args[0][i]:x}", 16) for i in range(0, len(case.args[0]), 2)]


def test_expected_values_agree_with_exact_fractions(lab):
    cases = [*lab.visible, *(case for seed in range(40) for case in lab.hidden(seed))]
    assert len(cases) == 16 + 40 * 24
    for case in cases:
        assert repr(case.expected) == repr(derive(case)), case


@pytest.mark.behaviour(24, 25)
def test_every_file_of_the_lab_holds_what_it_promises(lab):
    rows = list(verify.check_lab(lab, "tests"))
    assert [row for row in rows if not row.ok] == []
    assert sum(row.file.startswith("wrong/") for row in rows) >= 8
    assert sum(row.file.startswith("alternative/") for row in rows) >= 2


@pytest.mark.behaviour(24)
@pytest.mark.parametrize("path", sorted((LAB / "wrong").glob("*.py")), ids=lambda path: path.stem)
def test_hidden_cases_alone_catch_each_wrong_answer_on_every_seed(lab, path):
    for seed in random.Random(path.stem).sample(range(10**6), 6):
        run = run_cases(Submission(path.name, path.read_text()), lab, lab.hidden(seed))
        assert any(outcome.status != "passed" for outcome in run.outcomes), f"seed {seed}"


def test_an_answer_that_only_knows_the_visible_cases_fails_the_hidden_ones(lab):
    table = {(case.function, repr(case.args)): case.expected for case in lab.visible}
    source = f"from math import inf, nan\nTABLE = {table!r}\n" + "".join(
        f"def {name}(*args):\n    return TABLE.get(({name!r}, repr(args)))\n" for name in lab.functions
    )
    assert all(outcome.status == "passed" for outcome in run_cases(Submission("x", source), lab, lab.visible).outcomes)
    assert not any(
        outcome.status == "passed" for outcome in run_cases(Submission("x", source), lab, lab.hidden("s")).outcomes
    )


def test_right_answers_do_not_use_the_package(lab):
    for path in [LAB / "solution.py", *(LAB / "alternative").glob("*.py")]:
        assert "deepseek_edu" not in path.read_text()
        harness.check_source(path.read_text(), lab.functions)


def test_the_statement_agrees_with_the_solution(lab):
    names = harness.load_submission(lab.solution, lab.functions)
    group = [7.0, 1.0, -3.5, 0.0] + [0.0] * 12
    scale = names["choose_scale"](group)
    codes = names["encode"](group, scale)
    assert (scale, codes[:4], names["decode"](codes[:4], scale), names["pack"](codes[:4])) == (
        1.125,
        [7, 2, 13, 0],
        [6.75, 1.125, -3.375, 0.0],
        [0x27, 0x0D],
    )
    for shown in ("1.125", "0x27 = 39", "0x0D = 13", "6.75, 1.125, −3.375, 0"):
        assert shown in lab.statement
