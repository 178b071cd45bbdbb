"""Checks of the claims about tasks: what the suites of the invented shop accept, and which mutants they kill.

Source: this course; the idea of the two kinds of tests is from section 5.1.1 of the technical report.
"""

from deepseek_edu.reference import mutation, verification
from deepseek_edu.widgets import tasks_runs


def wrong_candidates_that_the_weak_suite_accepts() -> int:
    """How many wrong candidates pass the weak suite, if the strong suite accepts the right one alone; else −1."""
    weak, strong = (tasks_runs.attempt(tasks_runs.SUITES[name], None).attempts for name in ("weak", "strong"))
    right_alone = [key for key, one in strong.items() if one.accepted] == ["from"]
    return sum(1 for one in weak.values() if one.accepted and one.wrong_at) if right_alone else -1


def mutants_that_the_weak_suite_kills() -> int:
    """How many mutants fail a test of the weak suite, if there are ten and the strong suite kills all; else −1."""
    made = mutation.mutants(tasks_runs.SOLUTION)
    weak, strong = (verification.tests_of(tasks_runs.SUITES[name]) for name in ("weak", "strong"))
    complete = len(made) == 10 and all(mutation.killers(one, strong) for one in made)
    return sum(1 for one in made if mutation.killers(one, weak)) if complete else -1
