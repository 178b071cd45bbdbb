"""Checking a program by its tests: a verdict with its reason for each, fail-to-pass and pass-to-pass.

A suite is Python text; each `assert` at its top level is one test, what stands before it is set-up. Every test gets a
fresh copy of the program, a few harmless built-in names, and a bounded number of steps. How good a suite is, is
measured in mutation.py.

Left out: isolation. A step is a turn of a loop or a call, counted by the program itself; one enormous operation is no
loop, so whoever runs this has to be able to end it (the page restarts its Python, `grading` ends a process).

Source: report, section 5.1.1 (tasks as problem, environment and verification; fail-to-pass and pass-to-pass points).
"""

import ast
import builtins
import copy
import math
from dataclasses import dataclass
from types import SimpleNamespace

STEPS = 500  # turns of loops and calls that a test may take
MOST_TESTS = 12  # in a suite
PROGRAM = "<program>"  # the name of its file in tracebacks
TESTS = "<tests>"  # the same, of a suite
_PLACES = {PROGRAM: "program", TESTS: "tests"}

_NAMES = """abs all any bool dict divmod enumerate filter float frozenset int isinstance iter len list map max min next
pow range repr reversed round set slice sorted str sum tuple zip __build_class__ Exception
ArithmeticError AssertionError AttributeError IndexError KeyError LookupError NameError NotImplementedError
RuntimeError StopIteration TypeError ValueError ZeroDivisionError"""


class StepLimit(BaseException):
    """The program took more steps than it may; no `except Exception` of its own catches this."""


@dataclass(frozen=True)
class Verdict:
    """What came of one test.

    Attributes:
        outcome: "passed", "failed", "error" or "stopped" (too many steps).
        reason: why, in words; "" when it passed.
        got: what stood on the left of the comparison, in words; "" if nothing came.
    """

    outcome: str
    reason: str = ""
    got: str = ""

    @property
    def passed(self):
        """Whether the test passed."""
        return self.outcome == "passed"


@dataclass(frozen=True)
class Test:
    """One test: its line in the suite, its text, and its code with the set-up before it."""

    __test__ = False  # for pytest, which would collect the name
    line: int
    text: str
    code: object


def load(source):
    """Return the code of a program from its `source`, or the Verdict that says where it cannot be read."""
    return _readable(source, PROGRAM, lambda tree: _compiled(tree, PROGRAM))


def tests_of(suite):
    """Return the tests of a suite as a list of Test, or the Verdict that says where it cannot be read.

    >>> [test.text for test in tests_of("limit = 50\\nassert shipping(limit) == 0")]
    ['shipping(limit) == 0']
    """

    def split(tree):
        setup = [node for node in tree.body if not isinstance(node, ast.Assert)]
        asserts = [node for node in tree.body if isinstance(node, ast.Assert)]
        if len(asserts) > MOST_TESTS:
            return Verdict("error", f"the suite has {len(asserts)} tests, expected at most {MOST_TESTS}")
        return [Test(node.lineno, ast.unparse(node.test), _test_code(node, setup)) for node in asserts]

    return _readable(suite, TESTS, split)


def run_test(program, test, steps=STEPS):
    """Run one test on a fresh copy of a program.

    Args:
        program: as `load` returns it.
        test: a Test.
        steps: how many turns of loops and calls it may take.

    Returns:
        Verdict.
    """
    if isinstance(program, Verdict):
        return program
    names = {"__builtins__": _allowed(), "__name__": "program", "__step__": _counter(steps)}
    try:
        exec(program, names)
        exec(test.code, names)
    except KeyboardInterrupt:
        raise
    except StepLimit:
        return Verdict("stopped", f"stopped after {steps} steps: it may never end")
    except BaseException as error:
        return _fault(error, names)
    return Verdict("passed", got=_words(names["__left__"]) if "__left__" in names else "")


def run_suite(program, tests):
    """Run all `tests` (as `tests_of` returns them) on a program (as `load` returns it): a list of Verdict."""
    return [run_test(program, test) for test in tests]


def accepts(verdicts):
    """Whether a suite accepts a program, from its `verdicts`: all passed. A suite without tests accepts everything."""
    return all(verdict.passed for verdict in verdicts)


def kind_of_test(before, after):
    """What a test is for, from its Verdict before the task is done and after it is done rightly.

    Returns:
        str: "fail-to-pass" asks for what is new, "pass-to-pass" guards what was right already, "broken" refuses the
        right program.
    """
    if not after.passed:
        return "broken"
    return "pass-to-pass" if before.passed else "fail-to-pass"


# How a program is held


class _Steps(ast.NodeTransformer):
    """Counts: a call of `__step__` at the start of every loop's turn, every function, every turn of a comprehension."""

    def _counted(self, node):
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(self._call(node)), node.body[0]))
        return node

    def _call(self, node):
        return ast.copy_location(ast.Call(ast.Name("__step__", ast.Load()), [], []), node)

    visit_While = visit_For = visit_FunctionDef = _counted

    def visit_comprehension(self, node):
        self.generic_visit(node)
        node.ifs.insert(0, self._call(node.target))
        return node


def _counter(steps):
    """A function that returns True, until it was called more than `steps` times: then it raises every time."""
    taken = 0

    def step():
        nonlocal taken
        taken += 1
        if taken > steps:
            raise StepLimit
        return True

    return step


def _allowed():
    """Built-in names for a program: no files, no printing, and `math` as the one module, each time a fresh copy."""

    def find(name, *_):
        if name != "math":
            raise ImportError(f"{name} cannot be imported here, only math")
        return SimpleNamespace(**vars(math))

    return {name: getattr(builtins, name) for name in _NAMES.split()} | {
        "__import__": find,
        "print": lambda *_, **__: None,
    }


def _compiled(tree, file):
    return compile(ast.fix_missing_locations(_Steps().visit(tree)), file, "exec", dont_inherit=True)


def _test_code(node, setup):
    """Code of one test and what stands before it. An equation keeps its two sides, so that a verdict can name them."""
    before = [copy.deepcopy(part) for part in setup if part.lineno < node.lineno]
    test, sides = copy.deepcopy(node.test), []
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        values = {"__left__": test.left, "__right__": test.comparators[0]}
        sides = [ast.Assign([ast.Name(name, ast.Store())], value) for name, value in values.items()]
        left, right = (ast.Name(name, ast.Load()) for name in values)
        test = ast.Compare(left, test.ops, [right])
    last = [ast.copy_location(part, node) for part in (*sides, ast.Assert(test, None))]
    return _compiled(ast.Module([*before, *last], []), TESTS)


def _readable(source, file, use):
    """What `use` makes of the syntax tree, or a Verdict with the line where Python cannot read the text."""
    try:
        return use(ast.parse(source, file))
    except SyntaxError as error:
        return Verdict("error", f"line {error.lineno} of the {_PLACES[file]} cannot be read: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return Verdict("error", f"Python cannot read it: {type(error).__name__}")


def _fault(error, names):
    """The Verdict of an exception: a test that does not hold, or an error with its line."""
    file, line, trace = "", None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in (PROGRAM, TESTS):
            file, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, AssertionError) and file == TESTS:
        if "__left__" not in names:
            return Verdict("failed", "it does not hold")
        got = _words(names["__left__"])
        return Verdict("failed", f"got {got}, expected {_words(names['__right__'])}", got)
    try:
        message = f": {error}"[:120] if str(error) else ""
    except Exception:
        message = ""
    return Verdict("error", f"{type(error).__name__} in line {line} of the {_PLACES.get(file, 'code')}{message}")


def _words(value):
    """A value in words: plain ones as Python writes them, others by their type."""
    try:
        if value is None or type(value) in (bool, int, float, str):
            text = repr(value)
            return text if len(text) <= 40 else text[:39] + "…"
        return f"a {type(value).__name__}"
    except Exception:
        return f"a very long {type(value).__name__}"
