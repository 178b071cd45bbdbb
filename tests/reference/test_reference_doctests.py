"""The examples in the docstrings of every module of the reference, the configuration and verify are true."""

import doctest
import importlib
import pkgutil

import pytest

from deepseek_edu import reference

MODULES = [f"deepseek_edu.reference.{module.name}" for module in pkgutil.iter_modules(reference.__path__)]
MODULES += ["deepseek_edu.config", "deepseek_edu.config_names", "deepseek_edu.config_checks", "deepseek_edu.verify"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true_and_public_functions_are_described(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
    for key, value in vars(module).items():
        if callable(value) and getattr(value, "__module__", "") == name and not key.startswith("_"):
            assert value.__doc__, f"{name}.{key} has no docstring"
