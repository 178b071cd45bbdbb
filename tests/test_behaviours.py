"""Every user behaviour that concerns this chapter is shown by a test that names its number."""

import ast
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent


def marked_numbers(source: str) -> set[int]:
    """The numbers in all `behaviour(...)` marks of a test file that are put on a function, class or module."""
    return {
        argument.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "behaviour"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    }


def test_every_behaviour_is_shown_by_a_test():
    wanted = {
        int(number) for group in tomllib.loads((TESTS / "behaviours.toml").read_text()).values() for number in group
    }
    shown = set().union(*(marked_numbers(path.read_text()) for path in TESTS.rglob("test_*.py")))
    assert wanted == set(range(1, 20)) | set(range(21, 35))
    assert wanted - shown == set(), "behaviours that no test shows"
    assert shown - wanted == set(), "marks with a number that tests/behaviours.toml does not list"
