"""Run a test against a module whose source was changed in one place, inside this process."""

import importlib
import inspect
from dataclasses import dataclass
from unittest import SkipTest

import numpy as np
import pytest

from tests.reference import conftest as _profile  # noqa: F401  sets how property tests draw, outside pytest too

SURVIVED = "survived"


@dataclass(frozen=True)
class Mutant:
    """One wrong variant.

    Attributes:
        rule: what the module has to do, in words.
        change: what the variant does instead, in words.
        module: dotted name of the module.
        old, new: the substitution; old occurs exactly once in the source.
        killed_by: "package.test_module:test_function", a test without parameters.
    """

    rule: str
    change: str
    module: str
    old: str
    new: str
    killed_by: str


def mutated_source(mutant):
    """Return the changed source, or raise ValueError if the place is not there exactly once."""
    source = inspect.getsource(importlib.import_module(mutant.module))
    found = source.count(mutant.old)
    if found != 1:
        raise ValueError(
            f"{mutant.module} must contain the text of the mutant {mutant.change!r} once; got {found} times: "
            f"{mutant.old!r}; change the mutant with the source"
        )
    return source.replace(mutant.old, mutant.new)


def test_of(mutant):
    """Return the test function that has to catch the mutant."""
    module, _, function = mutant.killed_by.partition(":")
    return getattr(importlib.import_module(module), function)


test_of.__test__ = False  # not a test itself


def outcome(mutant):
    """Return how the named test ends on the changed module: SURVIVED, or the error that killed the mutant.

    The module object stays the same and only its contents change, so every test that has imported it sees the change;
    they are put back afterwards. The test runs on the unchanged module first, where it has to pass.
    """
    module = importlib.import_module(mutant.module)
    source = mutated_source(mutant)
    test = test_of(mutant)
    test()
    before = dict(vars(module))
    try:
        exec(compile(source, f"<mutant of {mutant.module}>", "exec"), vars(module))
        with np.errstate(all="ignore"):
            test()
    except SkipTest:
        return SURVIVED
    except (Exception, pytest.fail.Exception) as error:
        return type(error).__name__
    finally:
        vars(module).clear()
        vars(module).update(before)
    return SURVIVED
