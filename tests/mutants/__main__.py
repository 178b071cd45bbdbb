"""Print the table of mutants: rule, change, the test that catches it, result. Exit 1 if one survives."""

import sys

from tests.mutants.mutation import SURVIVED, outcome
from tests.mutants.tables import MUTANTS


def main():
    """Run every mutant and return the exit status."""
    results = [(mutant, outcome(mutant)) for mutant in MUTANTS]
    rows = [
        (m.rule, m.change, m.killed_by.rpartition(":")[2], SURVIVED if result == SURVIVED else f"killed ({result})")
        for m, result in results
    ]
    head = ("rule", "mutant", "killed by", "result")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(3)]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3], sep="  ")
    survivors = [row for row in rows if row[3] == SURVIVED]
    print(f"\n{len(rows) - len(survivors)} of {len(rows)} mutants killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
