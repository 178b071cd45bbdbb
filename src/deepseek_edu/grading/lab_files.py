"""Read the files of a lab folder; every mistake is a LabError with the file, what was found and what is allowed."""

import importlib.util
import sys
import tomllib
from dataclasses import dataclass

from deepseek_edu.grading.case import LabError

SOLUTION_POLICIES = ("none", "after_attempts", "all")
_KEYS = {
    "title": str,
    "points": (int, float),
    "chapter": str,
    "mechanism": list,
    "functions": list,
    "solutions": str,
    "limits": dict,
    "attempts": int,
}
_REQUIRED = ("title", "points", "chapter", "mechanism", "functions")


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    Attributes:
        seconds: wall time for one case.
        memory_mb: memory of the child process, in MiB.
        load_seconds: wall time for the top level of the file.
        total_seconds: wall time for all cases together; what is left over is reported as not graded.
    """

    seconds: float = 2.0
    memory_mb: int = 512
    load_seconds: float = 5.0
    total_seconds: float = 60.0


def read_text(path):
    """UTF-8 text of a lab file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(path, f"it cannot be read: {error}", "Lab files are UTF-8 text") from None


def read_settings(where):
    """The checked table of lab.toml."""
    try:
        table = tomllib.loads(read_text(where))
    except tomllib.TOMLDecodeError as error:
        raise LabError(where, f"not valid TOML: {error}", "See an existing lab for the form") from None
    for key, value in table.items():
        if key not in _KEYS:
            raise LabError(where, f"unknown key {key!r}", f"Allowed: {', '.join(_KEYS)}")
        if isinstance(value, bool) or not isinstance(value, _KEYS[key]):
            raise LabError(where, f"{key} is {value!r}", f"It has to be {_type_name(_KEYS[key])}")
    for key in _REQUIRED:
        if not table.get(key):
            raise LabError(where, f"{key} is missing or empty", f"Required: {', '.join(_REQUIRED)}")
    for name in table["functions"]:
        if not isinstance(name, str) or not name.isidentifier():
            raise LabError(where, f"functions holds {name!r}", "List names of Python functions")
    if table["points"] <= 0:
        raise LabError(where, f"points = {table['points']}", "Use a number above zero")
    if table.get("solutions", "none") not in SOLUTION_POLICIES:
        raise LabError(where, f"solutions = {table['solutions']!r}", f"Allowed: {', '.join(SOLUTION_POLICIES)}")
    return table


def _type_name(kind):
    return {str: "text", int: "an integer", list: "a list", dict: "a table"}.get(kind, "a number")


def read_limits(table, where):
    """Limits from the table [limits]."""
    allowed = Limits.__dataclass_fields__
    for key, value in table.items():
        if key not in allowed:
            raise LabError(where, f"unknown limit {key!r}", f"Allowed: {', '.join(allowed)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise LabError(where, f"limits.{key} = {value!r}", "Use a number above zero")
    return Limits(**table)


def import_file(where, name):
    """Run a file of cases as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"_deepseek_edu_{name.replace('-', '_')}", where)
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = getattr(error, "lineno", None) or error.__traceback__.tb_lineno
        raise LabError(
            where, f"{type(error).__name__}: {error} (line {line})", "cases.py has to import cleanly"
        ) from error
    finally:
        sys.dont_write_bytecode = writes
    return module


def call_list(module, name, where):
    """The list a function of a cases file returns."""
    function = getattr(module, name, None)
    if not callable(function):
        raise LabError(where, f"there is no function {name}", f"Define {name}() -> list of Case")
    try:
        cases = function()
    except Exception as error:
        raise LabError(
            where, f"{name}() raised {type(error).__name__}: {error}", "It has to return a list of Case"
        ) from error
    if not isinstance(cases, list | tuple):
        raise LabError(where, f"{name}() returned a {type(cases).__name__}", "Return a list of Case")
    return cases
