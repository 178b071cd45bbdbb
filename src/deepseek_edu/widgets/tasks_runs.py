"""Runs of the `tasks` widget: the shop, its programs, its suites, and who passes what. All of it is invented."""

from dataclasses import dataclass

from deepseek_edu.drawing.numbers import counted, show
from deepseek_edu.reference import verification

BEFORE, OWN = "before", "own"
PROBLEM = "Every order pays 5 for shipping. From a total of 50 it shall be free."
OLD = "def shipping(total):\n    return 5\n"
SOLUTION = "def shipping(total):\n    if total >= 50:\n        return 0\n    return 5\n"
CANDIDATES = {
    "zero": ("return 0", "def shipping(total):\n    return 0\n"),
    "above": ("> 50", "def shipping(total):\n    if total > 50:\n        return 0\n    return 5\n"),
    "from": ("≥ 50", SOLUTION),
}
SUITES = {
    "weak": "assert shipping(80) == 0\nassert shipping(120) == 0\n",
    "strong": (
        "assert shipping(20) == 5\nassert shipping(49.99) == 5\nassert shipping(50) == 0\nassert shipping(80) == 0\n"
    ),
    "wrong": (
        "assert shipping(20) == 4.5\nassert shipping(49.99) == 5\nassert shipping(50) == 0\nassert shipping(80) == 0\n"
    ),
}
TOTALS = (50, 20, 80, 49.99, 49, 49.5, 51, 50.01, 0, 1, 30, 1000)
INSPECTION = "".join(f"assert shipping({total}) == {0 if total >= 50 else 5}\n" for total in TOTALS)


@dataclass(frozen=True)
class Attempt:
    """A program and what came of it.

    Attributes:
        title: its name.
        program: its code, or the verdict that it cannot be read.
        verdicts: one for each test of the suite.
        accepted: whether the suite accepts it.
        wrong_at: a total at which it breaks the rule of the shop, and what it does there; `None` if it is right on all
            of TOTALS.
    """

    title: str
    program: object
    verdicts: tuple[verification.Verdict, ...]
    accepted: bool
    wrong_at: tuple[float, str] | None

    @property
    def name(self) -> str:
        """Its name in a sentence."""
        return self.title if self.title.startswith("your") else f"“{self.title}”"


@dataclass(frozen=True)
class Run:
    """A suite run on all programs: its tests, the kind of each, the attempts by key (the old program is the first)."""

    tests: tuple[verification.Test, ...]
    kinds: tuple[str, ...]
    attempts: dict[str, Attempt]

    @property
    def accepts_solution(self) -> bool:
        """Whether the suite accepts the reference solution."""
        return "broken" not in self.kinds

    @property
    def stages(self) -> tuple[tuple[str, str], ...]:
        """Construct, attempt, inspect, repair: what each found."""
        tries = [one for key, one in self.attempts.items() if key != BEFORE]
        accepted = sum(one.accepted for one in tries)
        tests = counted(len(self.tests), "test")
        return (
            ("Construct", tests),
            ("Attempt", f"{accepted} of {len(tries)} accepted"),
            *self._inspected(),
        )

    def _inspected(self) -> tuple[tuple[str, str], tuple[str, str]]:
        broken = [number for number, kind in enumerate(self.kinds, 1) if kind == "broken"]
        wrong = [one for key, one in self.attempts.items() if key != BEFORE and one.accepted and one.wrong_at]
        if broken:
            return ("Inspect", "solution refused"), ("Repair", f"mend test {broken[0]}")
        if wrong:
            found = f"{len(wrong)} wrong accepted"
            return ("Inspect", found), ("Repair", f"add a test at {show(wrong[0].wrong_at[0])}")
        return ("Inspect", "no fault found"), ("Repair", "nothing to do")


def attempt(suite: str, own: str | None) -> Run | verification.Verdict:
    """Run a suite on the old program, the candidates and the reader's own (if there is one).

    Returns the verdict that the suite cannot be read instead, where that is so.
    """
    tests = verification.tests_of(suite)
    if isinstance(tests, verification.Verdict):
        return tests
    inspection = verification.tests_of(INSPECTION)
    programs = {BEFORE: ("before", OLD), **CANDIDATES}
    if own is not None:
        programs[OWN] = ("your candidate", own)
    attempts = {key: _one(title, source, tests, inspection) for key, (title, source) in programs.items()}
    solved = attempts["from"].verdicts
    kinds = tuple(map(verification.kind_of_test, attempts[BEFORE].verdicts, solved))
    return Run(tuple(tests), kinds, attempts)


def _one(title: str, source: str, tests, inspection) -> Attempt:
    program = verification.load(source)
    verdicts = verification.run_suite(program, tests)
    for total, test in zip(TOTALS, inspection, strict=True):
        verdict = verification.run_test(program, test)
        if not verdict.passed:
            did = f"gives {verdict.got}" if verdict.outcome == "failed" else f"ends with “{verdict.reason}”"
            wrong = (total, did)
            break
    else:
        wrong = None
    return Attempt(title, program, tuple(verdicts), verification.accepts(verdicts), wrong)
