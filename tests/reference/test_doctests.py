"""The examples in docstrings are true, every public function has one or says where it differs, and imports are few."""

import ast
import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from deepseek_edu.experiments import record
from deepseek_edu.reference import checks, quant

REFERENCE = Path(quant.__file__).parent


@pytest.mark.parametrize("module", [quant, checks, record], ids=lambda module: module.__name__)
def test_examples_in_docstrings_are_true(module):
    result = doctest.testmod(module)
    assert result.failed == 0
    assert module is checks or result.attempted > 0


def test_every_public_function_of_quant_has_a_docstring():
    public = [f for name, f in inspect.getmembers(quant, inspect.isfunction) if not name.startswith("_")]
    assert len(public) >= 20
    assert [f.__name__ for f in public if not f.__doc__] == []


def test_reference_imports_only_numpy_and_the_standard_library():
    for path in REFERENCE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.split(".")[0]
                assert top in sys.stdlib_module_names or top == "numpy" or name.startswith("deepseek_edu.reference")


def test_importing_quant_adds_only_its_own_files_to_numpy():
    code = (
        "import sys, dataclasses, numpy; before = set(sys.modules); import deepseek_edu.reference.quant;"
        "print(*sorted(set(sys.modules) - before))"
    )
    added = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name.split(".")[0] for name in added} == {"deepseek_edu"}
