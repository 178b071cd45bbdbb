"""Pictures of the `tasks` widget: tests against programs, and tests against mutants."""

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import counted, show
from deepseek_edu.reference import verification

from .tasks_runs import BEFORE, OWN, PROBLEM, Run

_KIND = {"fail-to-pass": "fail → pass", "pass-to-pass": "pass → pass", "broken": "broken"}
_HEADS = {BEFORE: "before", OWN: "yours"}
_STEP = 30


def run_picture(run: Run, chosen: str) -> Picture:
    """Tests as rows, programs as columns, a verdict in each cell; what the suite says below, and what is true."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        y = _stages(canvas, run)
        narrow = canvas.narrow
        left = 0.0 if narrow else 330.0
        column = (width - left) / len(run.attempts)
        with canvas.group(0, y):
            for index, (key, one) in enumerate(run.attempts.items()):
                style = "k-muted" if key == BEFORE else "k-text--mono k-text--strong"
                canvas.text(left + (index + 0.5) * column, 14, _HEADS.get(key, one.title), style)
            if not narrow:
                canvas.text(0, 14, "test", "k-muted", "start", SMALL)
                canvas.text(232, 14, "kind", "k-muted", "start", SMALL)
        top, y = y, y + 24
        for number, (test, kind) in enumerate(zip(run.tests, run.kinds, strict=True)):
            y = _test_row(canvas, y, number, test, kind)
            for index, (key, one) in enumerate(run.attempts.items()):
                _verdict(canvas, key, left + index * column, y, column, one.verdicts[number])
            y += _STEP
        y += 8
        canvas.line(0, y - 4, width, y - 4, "k-grid")
        y = _totals(canvas, y, run, left, column)
        index = list(run.attempts).index(chosen)
        with canvas.group(left + index * column, top - 4):
            kit.ring(canvas, 0.5, 0, column - 1, 26 if narrow else y - top + 3, "k-selected")
        canvas.height = y + 4
        return canvas

    words = "; ".join(f"{one.title}: {', '.join(v.outcome for v in one.verdicts)}" for one in run.attempts.values())
    description = f"{PROBLEM} Verdicts of {counted(len(run.tests), 'test')}. {words}."
    raw = {
        "tests": [test.text for test in run.tests],
        "kinds": run.kinds,
        "verdicts": {key: [v.outcome for v in one.verdicts] for key, one in run.attempts.items()},
        "reasons": {key: [v.reason for v in one.verdicts] for key, one in run.attempts.items()},
        "accepted": {key: one.accepted for key, one in run.attempts.items()},
        "wrong_at": {key: one.wrong_at and one.wrong_at[0] for key, one in run.attempts.items()},
    }
    return draw(paint, "Tests against programs", description, raw)


def _stages(canvas: Canvas, run: Run) -> float:
    """Construct, attempt, inspect, repair, with what each found; problem and rule above them."""
    narrow = canvas.narrow
    with canvas.group():
        canvas.text(0, 14, "Problem", "k-text--strong", "start")
        first, second = PROBLEM.split(". ", 1)
        if narrow:
            canvas.text(0, 32, f"{first}.", "k-label", "start")
            canvas.text(0, 49, second, "k-label", "start")
        else:
            canvas.text(62, 14, PROBLEM, "k-label", "start")
    y = 60 if narrow else 26
    columns = 2 if narrow else 4
    width = (canvas.width - 22 * (columns - 1)) / columns
    for index, (name, found) in enumerate(run.stages):
        row, column = divmod(index, columns)
        x, top = column * (width + 22), y + row * 54
        amiss = index >= 2 and found not in ("no fault found", "nothing to do")
        with canvas.group(x, top):
            kit.box(canvas, 0, 0, width, 42, name, found, ("error" if index == 2 else "changed") if amiss else "")
            if column:
                canvas.arrow(-19, 21, -3, 21)
    return y + (108 if narrow else 54) + 8


def _test_row(canvas: Canvas, y: float, number: int, test, kind: str) -> float:
    style = "k-error" if kind == "broken" else "k-label"
    with canvas.group(0, y):
        canvas.text(0, 17, number + 1, "k-muted", "start", SMALL)
        if canvas.narrow:
            canvas.text(16, 17, kit.fit(test.text, 214, 12), "k-text--mono", "start", 12)
            canvas.text(canvas.width, 17, _KIND[kind], style, "end", SMALL)
        else:
            canvas.text(16, 18, kit.fit(test.text, 206, 12), "k-text--mono", "start", 12)
            canvas.text(232, 18, _KIND[kind], style, "start", SMALL)
    return y + 24 if canvas.narrow else y


def _verdict(canvas: Canvas, key: str, x: float, y: float, width: float, verdict: verification.Verdict) -> None:
    with canvas.group(x, y):
        words, style, ink = "passes", "k-box", "k-muted"
        if not verdict.passed:
            got = f"got {verdict.got}" if verdict.got else "fails"
            words = {"failed": got, "error": "error", "stopped": "stopped"}[verdict.outcome]
            style, ink = "k-box k-error", "k-error k-text--strong"
        canvas.rect(4, 1, width - 8, _STEP - 6, style, 4)
        canvas.text(width / 2, 17, kit.fit(words, width - 10, SMALL), ink, size=SMALL)
        if key != BEFORE:
            kit.hit(canvas, "candidate", key, 0, 0, width, _STEP)


def _totals(canvas: Canvas, y: float, run: Run, left: float, column: float) -> float:
    """What the suite says of each program, and whether the program keeps to the rule of the shop."""
    for title, of in (("The suite says", _said), ("It breaks the rule at", _true)):
        with canvas.group(0, y):
            canvas.text(0, 18, title, "k-text--strong", "start")
        y += 24 if canvas.narrow else 0
        for index, (key, one) in enumerate(run.attempts.items()):
            words, kind = of(key, one)
            with canvas.group(left + index * column, y):
                if kind:
                    canvas.rect(4, 1, column - 8, _STEP - 6, f"k-box k-{kind}", 4)
                ink = "k-muted" if not kind else "k-error k-text--strong" if kind == "error" else "k-text--strong"
                canvas.text(column / 2, 17, kit.fit(words, column - 6, SMALL), ink, size=SMALL)
        y += _STEP
    return y


def _said(key: str, one) -> tuple[str, str]:
    return ("accepted", "selected") if one.accepted else ("refused", "")


def _true(key: str, one) -> tuple[str, str]:
    """Marked where the suite is mistaken."""
    words = show(one.wrong_at[0]) if one.wrong_at else "no total"
    mistaken = one.accepted == bool(one.wrong_at)
    return words, "error" if mistaken else ""


def mutants_picture(run: Run, solution: str, made, killed_by, valid: bool) -> Picture:
    """The reference solution, and each mutant with the tests that fail on it.

    Args:
        run: the suite.
        solution: text of the program without a mistake.
        made: the mutants; `killed_by` has the tests that kill each.
        valid: whether the suite accepts the solution.
    """
    count = len(run.tests)

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        with canvas.group():
            y = kit.heading(canvas, 0, 0, "Reference solution", "one small mistake at a time")
            for number, line in enumerate(solution.splitlines()):
                canvas.text(0, y + 13 + number * 18, number + 1, "k-muted", "start", SMALL)
                shown = line.replace("    ", "\u00a0" * 4)
                canvas.text(16, y + 13 + number * 18, shown, "k-text--mono", "start", 12)
        y += 18 * len(solution.splitlines()) + 10
        cell = 26.0 if count <= 8 or not narrow else 22.0
        room = cell * max(count, 1)
        left = 0.0 if narrow else 340.0
        with canvas.group(0, y):
            canvas.text(0, 14, "line", "k-muted", "start", SMALL)
            canvas.text(34, 14, "what it becomes", "k-muted", "start", SMALL)
            if not narrow:
                canvas.text(
                    left, 14, f"fails test 1 … {count}" if count > 1 else "fails test", "k-muted", "start", SMALL
                )
        y += 20
        before = None
        for mutant, tests in zip(made, killed_by, strict=True):
            with canvas.group(0, y):
                if mutant.line != before:
                    canvas.line(0, -1, width, -1, "k-grid")
                    canvas.text(6, 18, mutant.line, "k-label", "start")
                canvas.text(34, 18, mutant.after, "k-text--mono", "start", 12)
            before = mutant.line
            y += 25 if narrow else 0
            with canvas.group(left, y):
                for index in range(count):
                    killed = index in tests
                    canvas.rect(index * cell + 1, 3, cell - 3, 20, "k-box k-selected" if killed else "k-ground", 3)
                    ink = "k-text--strong" if killed else "k-muted"
                    canvas.text(index * cell + cell / 2, 17, index + 1, ink, size=SMALL)
            with canvas.group(0, y):
                words, style = ("killed", "k-muted") if tests else ("survives", "k-error k-text--strong")
                if valid and narrow:
                    canvas.text(width, 17, words, style, "end")
                elif valid:
                    canvas.text(left + room + 12, 17, words, style, "start")
            y += 28
        with canvas.group(0, y):
            canvas.line(0, -1, width, -1, "k-grid")
            y = (
                kit.legend(
                    canvas, [("k-box k-selected", "the test fails: mistake noticed"), ("k-ground", "passes")], 0, 4
                )
                + y
            )
        canvas.height = y + 4
        return canvas

    killed = sum(bool(tests) for tests in killed_by)
    description = (
        f"{len(made)} mutants of the reference solution; {killed} make at least one of {counted(count, 'test')} fail."
    )
    raw = {
        "mutants": [(one.line, one.before, one.after) for one in made],
        "killed_by": [[index + 1 for index in tests] for tests in killed_by],
        "accepts_solution": valid,
    }
    return draw(paint, "Mutants against tests", description, raw)
