"""Testing a suite of tests: small mistakes are made in a program that is right, and each should make some test fail.

A mistake that no test notices is a mistake the suite rewards when a model is trained on it. Tried are: the other
comparisons, numbers one smaller and one larger, and the value of another `return`.

Left out: mistakes of more than one change, and telling a mutant that behaves like the original from one that is missed.

Source: mutation analysis, DeMillo, Lipton and Sayward, 1978; the report, section 5.1.1, asks of a task that its
verification has no critical flaw, and does not say how that is measured.
"""

import ast
from dataclasses import dataclass

from deepseek_edu.reference import verification

FLIPS = {  # comparison → those tried in its place
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}


@dataclass(frozen=True)
class Mutant:
    """The program with one small mistake.

    Attributes:
        line: where it is.
        before: the line without it.
        after: the line with it.
        source: the whole program with it.
    """

    line: int
    before: str
    after: str
    source: str


def small_changes(tree):
    """Yield (node, name of a field, another value for it) for every mistake that is tried in a syntax tree."""
    returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None]
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for place, operator in enumerate(node.ops):
                for other in FLIPS.get(type(operator), ()):
                    yield node, "ops", [*node.ops[:place], other(), *node.ops[place + 1 :]]
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, "value", node.value - 1
            yield node, "value", node.value + 1
        elif node in returns:
            for other in returns:
                yield node, "value", other.value


def mutants(source):
    """Return every program that differs from `source` by one small mistake, by line: a list of Mutant.

    >>> [m.after for m in mutants("def f(x):\\n    return x > 1")]
    ['return x >= 1', 'return x <= 1', 'return x > 0', 'return x > 2']
    """
    tree = ast.parse(source)
    original = ast.unparse(tree)
    found = {}
    for node, name, value in small_changes(tree):
        kept = getattr(node, name)
        setattr(node, name, value)
        text = ast.unparse(tree)
        setattr(node, name, kept)
        if text != original:
            found.setdefault(text, (node.lineno, text))
    made = []
    for line, text in sorted(found.values(), key=lambda item: item[0]):
        pairs = zip(original.splitlines(), text.splitlines(), strict=True)
        was, now = next((a.strip(), b.strip()) for a, b in pairs if a != b)
        made.append(Mutant(line, was, now, text))
    return made


def killers(mutant, tests):
    """Return the indices of the `tests` that fail on `mutant`, a Mutant; if there are none, it survives the suite."""
    verdicts = verification.run_suite(verification.load(mutant.source), tests)
    return [index for index, verdict in enumerate(verdicts) if not verdict.passed]


def mutation_score(killed_by):
    """Return the share of mutants with a killer (0.0 … 1.0), from the lists of `killers`.

    >>> mutation_score([[0, 2], [], [1], [1]])
    0.75
    """
    return sum(1 for tests in killed_by if tests) / max(1, len(killed_by))
