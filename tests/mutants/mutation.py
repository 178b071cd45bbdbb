"""Run a test against a module whose source was changed in one place, inside this process.

The changed source is executed beside the module. Then every function of the module, methods included, is given the
changed code, and constants take their changed values. Functions and classes stay the same objects: whoever imported
them by name, and every model built before, runs the changed code too. Afterwards all is put back.
"""

import functools
import importlib
import inspect
import types
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
        rule: what the module has to do, in words; rules.py says which line of the specification it belongs to.
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
    name, _, function = mutant.killed_by.partition(":")
    if name.startswith("tests.model."):
        importlib.import_module("tests.model.conftest")  # one thread
    return getattr(importlib.import_module(name), function)


test_of.__test__ = False  # not a test itself


@functools.cache
def _passes_unchanged(test):
    """Run a test on what is there, once in this process."""
    test()


def outcome(mutant):
    """Return how the named test ends on the changed module: SURVIVED, or the error that killed the mutant.

    The test runs on the unchanged module first, where it has to pass.
    """
    module, source, test = importlib.import_module(mutant.module), mutated_source(mutant), test_of(mutant)
    _passes_unchanged(test)
    with changed(module, source), np.errstate(all="ignore"):
        try:
            test()
        except SkipTest:
            return SURVIVED
        except (Exception, pytest.fail.Exception) as error:
            return type(error).__name__
    return SURVIVED


class changed:
    """Context in which a module does what another source says.

    Args:
        module: a module that has been imported.
        source: text of a module with the same functions and classes.

    Raises:
        ValueError: a changed function would need other surroundings.
    """

    def __init__(self, module, source):
        self.module, self.undo = module, []
        self.scratch = types.ModuleType(module.__name__)
        self.scratch.__dict__.update(__file__=module.__file__, __package__=module.__package__)
        self.code = compile(source, f"<mutant of {module.__name__}>", "exec")

    def __enter__(self):
        exec(self.code, vars(self.scratch))
        try:
            self._take_over(vars(self.module), vars(self.scratch), self.module)
        except ValueError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for put_back in reversed(self.undo):
            put_back()
        self.undo.clear()

    def _take_over(self, old, new, owner):
        """Change the namespace of a module or a class."""
        for name, value in new.items():
            if name in SURROUNDINGS:
                continue
            before = old.get(name)
            if isinstance(value, type) and value.__module__ == self.module.__name__ and isinstance(before, type):
                self._take_over(vars(before), vars(value), before)
            elif functions := _functions(value):
                for function, other in zip(_functions(before), functions, strict=False):
                    if other.__globals__ is vars(self.scratch) or other.__globals__ is vars(
                        self.module
                    ):  # not imported from elsewhere
                        self._exchange(function, other)
                if hasattr(before, "cache_clear"):
                    before.cache_clear()
                    self.undo.append(before.cache_clear)
            elif isinstance(owner, type):
                if isinstance(value, (int, float, tuple)) and value != before:
                    self.undo.append(functools.partial(setattr, owner, name, before))
                    setattr(owner, name, value)
            elif not isinstance(value, types.ModuleType):
                self._assign(old, name, value)

    def _exchange(self, function, other):
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            before = getattr(function, part)
            self.undo.append(functools.partial(setattr, function, part, before))
            try:
                setattr(function, part, getattr(other, part))
            except ValueError:
                raise ValueError(
                    f"{function.__qualname__} of {self.module.__name__} cannot take over the changed code, which uses "
                    "other variables of its surroundings; change something inside the function"
                ) from None

    def _assign(self, namespace, name, value):
        if name in namespace:
            self.undo.append(functools.partial(namespace.__setitem__, name, namespace[name]))
        else:
            self.undo.append(functools.partial(namespace.pop, name))
        namespace[name] = value


SURROUNDINGS = {f"__{name}__" for name in ("name", "file", "package", "loader", "spec", "builtins", "doc", "cached")}


def _functions(value):
    """The plain functions behind a function, method, property or decorated function."""
    if isinstance(value, types.FunctionType):
        return [inspect.unwrap(value)]
    if isinstance(value, (staticmethod, classmethod)):
        return [inspect.unwrap(value.__func__)]
    if isinstance(value, functools.cached_property):
        return [value.func]
    if isinstance(value, property):
        return [some for some in (value.fget, value.fset, value.fdel) if some is not None]
    if callable(value) and hasattr(value, "__wrapped__"):  # functools.cache
        return [inspect.unwrap(value)]
    return []
