"""Evaluate the expressions that pages contain: `[[= expr | format ]]` and numeric quiz answers.

The names are the modules of `deepseek_edu.reference`, `accounting`, `config`, `claims` (the checks of the ledger, a
module for each chapter), `math`, NumPy as `np`, and a few builtins. Pages are part of the course's own source, so this
is a convenience, not a sandbox.
"""

from __future__ import annotations

import builtins
import importlib
import math
import pkgutil
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from deepseek_edu.site.errors import SourceError, one_of
from deepseek_edu.site.source import Place

ALLOWED_BUILTINS = (
    "abs all any bin bool bytes divmod enumerate float hex int len list max min pow range round set sorted str sum "
    "tuple zip"
)
BUILTINS = {name: getattr(builtins, name) for name in ALLOWED_BUILTINS.split()}


BESIDE = ("accounting", "claims", "config")
"""Modules of the package itself that pages may use; none of the reference has such a name."""


@cache
def module_names() -> frozenset[str]:
    """Return the names of the modules that expressions may use."""
    package = importlib.import_module("deepseek_edu.reference")
    return frozenset((*BESIDE, *(module.name for module in pkgutil.iter_modules(package.__path__))))


@cache
def _compiled(expression: str) -> CodeType:
    return compile(expression.strip(), "<page>", "eval")


def _names_in(code: CodeType) -> set[str]:
    inner = [_names_in(item) for item in code.co_consts if isinstance(item, CodeType)]
    return set(code.co_names).union(*inner)


def evaluate(expression: str, place: Place) -> Any:
    """Return the value of an expression of a page.

    Raises:
        SourceError: the expression is malformed or fails.
    """
    try:
        code = _compiled(expression)
        names: dict[str, Any] = {"__builtins__": BUILTINS, "math": math, "np": np}
        found = _names_in(code)
        for name in found & module_names():
            folder = "deepseek_edu" if name in BESIDE else "deepseek_edu.reference"
            names[name] = importlib.import_module(f"{folder}.{name}")
        if "claims" in found:
            for module in pkgutil.iter_modules(names["claims"].__path__):
                if module.name in found:
                    importlib.import_module(f"deepseek_edu.claims.{module.name}")
        return eval(code, names)
    except Exception as error:
        known = one_of([*module_names(), "math", "np"])
        raise SourceError(
            place.file,
            place.line,
            f"[[= {expression.strip()} ]], which fails with {type(error).__name__}: {error}",
            f"a Python expression over {known}",
        ) from error


def split_format(text: str) -> tuple[str, str]:
    """Split `expr | format`; the last bar outside of brackets and quotes separates.

    >>> split_format("quant.fp4_bytes(512, 16) | ,d")
    ('quant.fp4_bytes(512, 16)', ',d')
    """
    expression, bar, form = text.rpartition("|")
    if not bar or any(mark in form for mark in "()[]{}\"'"):
        return text.strip(), ""
    return expression.strip(), form.strip()


def formatted(text: str, place: Place) -> str:
    """Return the text that `[[= text ]]` stands for: a number with a true minus sign, or a string."""
    expression, form = split_format(text)
    value = evaluate(expression, place)
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    if not form and isinstance(value, float):
        form = "g"
    try:
        shown = format(value, form) if form else str(value)
    except (TypeError, ValueError) as error:
        raise SourceError(
            place.file,
            place.line,
            f"the format {form!r} for a {type(value).__name__} ({error})",
            "a Python format such as .1f, d, ,d, g or 08b",
        ) from error
    return shown.replace("-", "\N{MINUS SIGN}", 1) if isinstance(value, int | float) and shown[:1] == "-" else shown
