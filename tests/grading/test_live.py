"""Functions handed over as objects: from a session of IPython, with what they use from other cells."""

import math

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from deepseek_edu.grading.live import NoSource, source_of

FACTOR = 2
TABLE = np.array([0.5, -0.0])


def helper(x):
    return math.prod([FACTOR, x])


def double(x):
    return helper(x)


def uses_table(i):
    return float(TABLE[i]) + np.float64(0)


def recursive(n):
    return n if n < 2 else recursive(n - 1) + 1


def test_helpers_constants_and_imports_come_along():
    namespace = {}
    exec(source_of([double, uses_table, recursive]), namespace)
    assert namespace["double"](3) == 6 and math.copysign(1, namespace["uses_table"](1)) in (1, -1)
    assert namespace["uses_table"](0) == 0.5 and namespace["recursive"](5) == 5


def test_what_has_no_source_is_explained():
    def inner(x):
        return x + offset

    offset = 1
    with pytest.raises(NoSource, match="variables of the function around it"):
        source_of([inner])
    scope = {}
    exec("def made(x):\n    return x", scope)
    with pytest.raises(NoSource, match="does not know the source of made"):
        source_of([scope["made"]])


@pytest.fixture
def cells(toy_folder, monkeypatch):
    """Runs cells of a notebook in IPython and gives the value of the last expression."""
    monkeypatch.chdir(toy_folder)
    shell = InteractiveShell()

    def run_cells(*sources):
        for source in sources:
            outcome = shell.run_cell(source, store_history=True)
            outcome.raise_error()
        return outcome.result

    yield run_cells
    InteractiveShell.clear_instance()


def test_functions_of_notebook_cells_are_graded(cells):
    report = cells(
        "from deepseek_edu.grading import grade\nimport math\nfrom functools import reduce\nFACTOR = 2",
        "def scale(x):\n    return math.prod([FACTOR, x])",
        "def double(x):\n    return scale(x)",
        "def join(parts):\n    return reduce(lambda a, b: a + b, parts)",
        "grade('toy', double, join)",
    )
    assert report.full, report.text()


def test_a_redefined_function_is_graded_as_it_is_now(cells):
    report = cells(
        "from deepseek_edu.grading import grade",
        "def double(x):\n    return 0",
        "def double(x):\n    return 2 * x",
        "grade('toy', double)",
    )
    assert [outcome.status for outcome in report.outcomes] == ["not_graded", "passed", "not_graded"]


def test_a_constant_that_is_no_plain_data_is_explained(cells):
    with pytest.raises(Exception, match="use THING, a object: make it inside"):
        cells(
            "from deepseek_edu.grading import grade",
            "THING = object()\ndef double(x):\n    return THING",
            "grade('toy', double)",
        )
