"""Examples in docstrings are what the code does."""

import doctest
import importlib
import pkgutil

import pytest

import deepseek_edu.model

MODULES = sorted(found.name for found in pkgutil.iter_modules(deepseek_edu.model.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name):
    assert doctest.testmod(importlib.import_module(f"deepseek_edu.model.{name}")).failed == 0


def test_there_are_examples():
    tests = [
        test
        for name in MODULES
        for test in doctest.DocTestFinder().find(importlib.import_module(f"deepseek_edu.model.{name}"))
        if test.examples
    ]
    assert len(tests) >= 3
