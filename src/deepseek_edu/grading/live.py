"""Source of functions that live in a notebook or a session, with what they use from around them."""

import builtins
import inspect
import textwrap
import types

from deepseek_edu.grading.harness import Unsupported, encode


class NoSource(ValueError):
    """A function cannot be turned back into source; says which and what to do."""


def source_of(functions):
    """One script that defines the functions and the imports, constants and helpers they use.

    Args:
        functions: named Python functions, defined with ``def``.

    Raises:
        NoSource: for anything else, or where Python does not know the source.
    """
    for function in functions:
        if not isinstance(function, types.FunctionType):
            raise NoSource(
                f"expected a function, got {type(function).__name__}: pass the functions themselves, "
                "as in grade('fp4-codes', encode, decode)"
            )
        if function.__name__ == "<lambda>":
            raise NoSource("a lambda has no name to grade: define the function with def")
        if function.__closure__:
            raise NoSource(f"{function.__name__} uses variables of the function around it: define it at top level")
    pieces, seen = [], set()
    for function in functions:
        _collect(function.__name__, function, pieces, seen)
    return "\n\n".join(pieces) + "\n"


def _collect(name, value, pieces, seen):
    """Append the piece of source that binds `name` to `value`, after the pieces it needs."""
    if name in seen:
        return
    seen.add(name)
    if isinstance(value, types.ModuleType):
        pieces.append(f"import {value.__name__} as {name}")
    elif (isinstance(value, types.FunctionType | type) and value.__module__ in ("__main__", "builtins")) or _is_local(
        value
    ):
        source = _source(value)
        for used, found in _globals_of(value):
            _collect(used, found, pieces, seen)
        pieces.append(source if value.__name__ == name else f"{source}\n{name} = {value.__name__}")
    elif hasattr(value, "__module__") and hasattr(value, "__qualname__") and value.__module__:
        pieces.append(f"from {value.__module__} import {value.__qualname__} as {name}")
    else:
        pieces.append(_constant(name, value))


def _is_local(value):
    """True for a function or class the learner wrote: not one of an installed package."""
    if not isinstance(value, types.FunctionType | type):
        return False
    try:
        file = inspect.getsourcefile(value) or ""
    except TypeError:
        return False
    return not any(part in file for part in ("site-packages", "dist-packages", "/lib/python"))


def _globals_of(value):
    """(name, value) of the globals the code of a function or class uses."""
    functions = (
        [value]
        if isinstance(value, types.FunctionType)
        else [item for item in vars(value).values() if isinstance(item, types.FunctionType)]
    )
    for function in functions:
        names, todo = [], [function.__code__]
        while todo:
            code = todo.pop()
            names.extend(code.co_names)
            todo.extend(item for item in code.co_consts if isinstance(item, types.CodeType))
        for name in dict.fromkeys(names):
            if name in function.__globals__ and not hasattr(builtins, name):
                yield name, function.__globals__[name]


def _source(value):
    try:
        return textwrap.dedent(inspect.getsource(value)).strip("\n")
    except (OSError, TypeError):
        raise NoSource(
            f"Python does not know the source of {value.__name__}: define it in a notebook cell or a file, "
            "or pass a path to grade"
        ) from None


def _constant(name, value):
    """``name = value`` for plain data and NumPy arrays."""
    module = type(value).__module__.partition(".")[0]
    try:
        if module == "numpy" and hasattr(value, "tolist"):
            encode(value)
            return f"import numpy\n{name} = numpy.array({value.tolist()!r}, dtype={str(value.dtype)!r})".replace(
                "nan", "numpy.nan"
            )
        encode(value)
    except Unsupported:
        raise NoSource(f"the functions use {name}, a {type(value).__name__}: make it inside the functions") from None
    return f"{name} = {value!r}"
