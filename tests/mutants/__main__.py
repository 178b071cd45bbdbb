"""Print the table of mutants: rule, change, the test that catches it, result. Exit 1 if one survives."""

import sys
import time

import pytest

from tests.mutants.mutation import SURVIVED, outcome
from tests.mutants.rules import BEHAVIOURS, CHECKLIST, WANTED, numbers_of, uncovered
from tests.mutants.tables import GROUPS, WITH_LISTS


def place(number):
    """Return where a rule's number sorts: lines of the checklist, items of behaviours, then all others."""
    return list(WANTED).index(number) if number else len(WANTED)


def lines_of(mutants):
    """Yield the lines of one group, each with the mutant that it says was killed, or None.

    A rule, and under it what breaks it. BROKEN means that nothing can be said: the place of the change is gone, or the
    test fails on the unchanged module.
    """
    by_rule = {}
    for mutant in mutants:
        by_rule.setdefault(mutant.rule, []).append(mutant)
    rules = sorted(by_rule, key=lambda rule: place(next(iter(numbers_of(rule)), None)))
    for rule in rules:
        yield f"{' '.join(numbers_of(rule)) or '–':11} {rule}", None
        for mutant in by_rule[rule]:
            module, test = mutant.module.rpartition(".")[2], mutant.killed_by.removeprefix("tests.").replace(":", "::")
            try:
                result = outcome(mutant)
                verdict = "SURVIVED" if result == SURVIVED else "killed"
            except (Exception, pytest.fail.Exception) as error:  # the others are still run
                verdict, result = "BROKEN", f"{type(error).__name__}: {error}".split("\n")[0]
            yield f"{'':11}   {verdict:8} {module}: {mutant.change}", mutant if verdict == "killed" else None
            yield (
                f"{'':11}     by     {test}" + ("" if result in (SURVIVED, "AssertionError") else f" ({result})"),
                None,
            )


def main():
    """Run every mutant and return the exit status."""
    print("Rules with the line of section 18 (18.1 … 18.24) or the item of behaviours 29 … 34 they belong to;")
    print("under each the wrong variants, and the test that catches each of them.")
    summary, survivors, begun = [], 0, time.perf_counter()
    for name, mutants in GROUPS.items():
        print(f"\n{name}\n{'─' * len(name)}")
        killed = []
        for line, mutant in lines_of(mutants):
            print(line, flush=True)
            killed += [mutant] if mutant else []
        survivors += len(mutants) - len(killed)
        summary.append(f"{name}: {len(killed)} of {len(mutants)} killed")
        if name in WITH_LISTS:
            missing, _ = uncovered(killed)
            counts = [len(table) - len(set(missing) & set(table)) for table in (CHECKLIST, BEHAVIOURS)]
            summary[-1] += (
                f"; lines of section 18: {counts[0]} of {len(CHECKLIST)}"
                f"; items of behaviours 29 … 34: {counts[1]} of {len(BEHAVIOURS)}"
            )
    total = sum(map(len, GROUPS.values()))
    print("\n" + "\n".join(summary))
    print(f"{total - survivors} of {total} mutants killed in {time.perf_counter() - begun:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
