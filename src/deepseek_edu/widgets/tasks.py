"""Widget `tasks`: a small task with tests, programs that try it, and what the tests let through.

Mechanism: `reference.verification` runs every test, `reference.mutation` tests the tests (report, section 5.1.1). The
shop, its programs and its suites are invented; every verdict is the outcome of a run.
"""

from deepseek_edu.drawing.numbers import counted, percent, show
from deepseek_edu.reference import mutation, verification

from .contract import Choice, Text, View, widget
from .parts import Metric, Metrics, Prose, Table
from .tasks_drawing import mutants_picture, run_picture
from .tasks_runs import BEFORE, CANDIDATES, OWN, SOLUTION, SUITES, Run, attempt

OWN_TESTS = "assert shipping(20) == 5\nassert shipping(50) == 0\nassert shipping(80) == 0\n"
OWN_CODE = "def shipping(total):\n    if round(total) >= 50:\n        return 0\n    return 5\n"
TEST_SAMPLES = (
    "",
    "assert shipping(50) == 0\nassert shipping(49.99) == 5\n",
    "limit = 50\nassert shipping(limit) == 0\nassert shipping(limit - 1) > 0\n",
    "assert shipping(50 == 0\n",
    "assert cost(50) == 0\n",
    "while True:\n    pass\nassert shipping(50) == 0\n",
)
CODE_SAMPLES = (
    "def shipping(total):\n    return 5 * (total < 50)\n",
    "def shipping(total)\n    return 0\n",
    "def shipping(total):\n    while total < 50:\n        pass\n    return 0\n",
    "def shipping(total):\n    return price\n",
    "def shipping(total):\n    try:\n        raise ValueError('no')\n    finally:\n        import os\n",
    "",
)


@widget(
    "tasks",
    title="A task is as good as its tests",
    mechanism={
        "reference.verification": ("load", "tests_of", "run_test", "run_suite", "accepts", "kind_of_test"),
        "reference.mutation": ("small_changes", "mutants", "killers", "mutation_score"),
    },
    source="report §5.1.1",
    chapter="07c_tasks",
    grid=("part", "suite", "candidate"),
)
def tasks(
    part: Choice({"run": "Run the suite", "mutants": "Test the tests"}, "Show", look="segments") = "run",
    suite: Choice(
        {"weak": "Weak", "strong": "Strong", "wrong": "Wrong expectation", "own": "Your own"}, "Suite", look="segments"
    ) = "weak",
    tests: Text(
        600,
        "Your tests",
        lines=6,
        code=True,
        samples=TEST_SAMPLES,
        help="Each assert that is not indented is a test, up to 12. Lines above it are run first.",
        when={"suite": "own"},
    ) = OWN_TESTS,
    candidate: Choice(
        {**{key: title for key, (title, _) in CANDIDATES.items()}, OWN: "Your own"},
        "Candidate",
        look="segments",
        when={"part": "run"},
    ) = "above",
    code: Text(
        800,
        "Your candidate",
        lines=6,
        code=True,
        samples=CODE_SAMPLES,
        help="Plain Python; only math can be imported. A run is stopped after 500 steps.",
        when={"part": "run", "candidate": "own"},
    ) = OWN_CODE,
) -> View:
    """Evaluate the widget for checked control values."""
    text = tests if suite == "own" else SUITES[suite]
    run = attempt(text, code if candidate == OWN else None)
    if isinstance(run, verification.Verdict):
        return _unreadable(run, text)
    return _mutants(run) if part == "mutants" else _verdicts(run, candidate)


def _unreadable(fault: verification.Verdict, text: str) -> View:
    """The suite cannot be read: nothing was run."""
    lines = Table("Your tests", ("Line", "Text"), tuple(enumerate(text.splitlines() or [""], 1)))
    words = f"The suite cannot be used: {fault.reason}. No program was run."
    return View((Prose(words, "warn"), lines), words)


def _verdicts(run: Run, key: str) -> View:
    chosen = run.attempts[key]
    tries = [one for name, one in run.attempts.items() if name != BEFORE]
    accepted = [one for one in tries if one.accepted]
    wrong = [one for one in accepted if one.wrong_at]
    metrics = Metrics(
        (
            Metric("Fail to pass", run.kinds.count("fail-to-pass"), note="ask for what is new"),
            Metric("Pass to pass", run.kinds.count("pass-to-pass"), note="guard what was right"),
            Metric("Accepted", len(accepted), unit=f"of {len(tries)} candidates", role="result"),
            Metric("Accepted and wrong", len(wrong), role="error" if wrong else ""),
        ),
        "The suite",
    )
    rows = tuple(
        (number, test.text, ": ".join(filter(None, (verdict.outcome, verdict.reason))))
        for number, (test, verdict) in enumerate(zip(run.tests, chosen.verdicts, strict=True), 1)
    )
    shown = tuple(
        (
            "",
            test.text.replace(" ", "\u00a0") if len(test.text) < 30 else test.text,
            verdict.reason if verdict.reason.startswith(verdict.outcome) else "",  # "stopped after …" says both
        )
        for test, verdict in zip(run.tests, chosen.verdicts, strict=True)
    )
    table = Table(f"Every test of {chosen.name}", ("Test", "It asserts", "Verdict and reason"), rows, shown)
    stage = run.stages
    said = "accepts" if chosen.accepted else "refuses"
    summary = (
        f"{counted(len(run.tests), 'test')}, {len(accepted)} of {len(tries)} candidates accepted, {len(wrong)} of "
        "them wrong. "
        f"The suite {said} {chosen.name}. Inspection: {stage[2][1]}. Repair: {stage[3][1]}."
    )
    words = (*_candidate_words(run, key), *_suite_words(run))
    return View((run_picture(run, key), metrics, *words, *((table,) if rows else ())), summary)


def _candidate_words(run: Run, key: str) -> tuple[Prose, ...]:
    """What the tests say of one candidate."""
    chosen = run.attempts[key]
    if isinstance(chosen.program, verification.Verdict):
        return (Prose(f"Your candidate was not run: {chosen.program.reason}.", "warn"),)
    if not run.tests:
        return ()
    passed = {
        kind: [v.passed for k, v in zip(run.kinds, chosen.verdicts, strict=True) if k == kind]
        for kind in ("fail-to-pass", "pass-to-pass")
    }
    (new, every_new), (kept, every_kept) = ((sum(of), len(of)) for of in passed.values())
    guards = f"and {kept} of {every_kept} pass-to-pass tests" if every_kept else "and there is no pass-to-pass test"
    words = f"{chosen.name} passes {new} of {every_new} fail-to-pass tests, {guards}."
    if every_new and new == every_new and kept < every_kept:
        words += " It does what was asked and breaks what worked: only a pass-to-pass test sees that."
    wrong = chosen.wrong_at
    if chosen.accepted and wrong:
        total, got = wrong
        words += f" The suite accepts it although at a total of {show(total)} it {got}."
        return (Prose(words[0].upper() + words[1:], "warn"),)
    if wrong and key == OWN:
        words += f" By the rule of the shop it is wrong at a total of {show(wrong[0])}: it {wrong[1]}."
    stopped = next((v for v in chosen.verdicts if v.outcome == "stopped"), None)
    if stopped:
        words += f" A run was {stopped.reason}."
    return (Prose(words[0].upper() + words[1:]),)


def _suite_words(run: Run) -> tuple[Prose, ...]:
    """What to think of the suite."""
    if not run.tests:
        return (Prose("A suite without tests accepts every program, the old one too.", "warn"),)
    broken = [number for number, kind in enumerate(run.kinds, 1) if kind == "broken"]
    if broken:
        names = "test " + " and ".join(map(str, broken)) if len(broken) < 3 else f"{len(broken)} tests"
        refused = all(not one.accepted for one in run.attempts.values())
        words = (
            f"The reference solution fails {names}. The expectation or the set-up is wrong, not the programs. "
            "If every agent fails the same test, look at the environment before you look at the agents."
        )
        return (Prose(("Every program is refused, the right one too. " if refused else "") + words, "warn"),)
    if run.attempts[BEFORE].accepted:
        return (Prose("The old program passes too: no test asks for anything new.", "warn"),)
    return ()


def _mutants(run: Run) -> View:
    """The suite against small mistakes in the reference solution."""
    made = mutation.mutants(SOLUTION)
    killed_by = [mutation.killers(one, run.tests) for one in made]
    survivors = [one for one, tests in zip(made, killed_by, strict=True) if not tests]
    valid = run.accepts_solution
    score = mutation.mutation_score(killed_by)
    killed = percent(score)
    metrics = Metrics(
        (
            Metric("Mutants", len(made), note="one small mistake each"),
            Metric("Killed", len(made) - len(survivors), note="some test fails"),
            Metric("Survive", len(survivors), note="no test notices", role="error" if survivors else ""),
            Metric(
                "Mutation score",
                score if valid else None,
                killed if valid else "none",
                note="killed ÷ all" if valid else "the suite refuses the solution itself",
                role="result",
            ),
        ),
        "Mutation",
    )
    if not valid:
        words = (
            "The suite refuses the program without a mistake, so a failing test says nothing about a mutant. Mend the "
            "suite first."
        )
        summary = f"The suite refuses the reference solution: its {len(made)} mutants give no mutation score."
    elif survivors:
        first = survivors[0]
        words = (
            f"“{first.after}” in place of “{first.before}” passes every test. Add a test on which the two differ; "
            f"{len(survivors)} of {len(made)} mutants survive."
        )
        summary = f"{len(made) - len(survivors)} of {len(made)} mutants are killed, score {killed}. {words}"
    else:
        words = f"All {len(made)} mutants are killed. The score says that these mistakes are noticed, not that all are."
        summary = f"{words} Mutation score {killed}."
    table = Table(
        "The mutants, and the tests that kill each",
        ("Line", "Was", "Becomes", "Killed by tests"),
        tuple(
            (one.line, one.before, one.after, ", ".join(str(index + 1) for index in tests) or "none")
            for one, tests in zip(made, killed_by, strict=True)
        ),
        folded=True,
    )
    picture = mutants_picture(run, SOLUTION, made, killed_by, valid)
    return View((picture, metrics, Prose(words, "" if valid and not survivors else "warn"), table), summary)
