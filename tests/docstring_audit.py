"""What a docstring of the model has to say, checked against the code below it. Sources are read, nothing is imported.

A function states what it does, names its parameters, gives the shape of every array it takes and returns, and tells
which errors it raises. Small functions (three parameters at most) may say all of it in one sentence; a docstring may
refer to another function, "arguments as in `rotate`". A module names its source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

from deepseek_edu.site.api import docstring
from deepseek_edu.site.api.parts import Item, Module

SMALL = 3
ARRAY_USES = {"shape", "ndim", "T", "mT", "reshape", "flatten", "unflatten", "astype", "transpose", "gather", "chunk"}
"""Attributes by which the code of a function shows that a parameter is an array."""

SHAPE = re.compile(
    r"\[[^\]\n]*\b(?:[A-Za-z]|[0-9]|[A-Z][a-z]|rows|tokens|layers|modules|orders|block|width|heads)\b[^\]\n]*\]"
    r"|\(…[^)]*\)|\(n,\)|\bshapes?\b|\bdimension\b|\bscalar\b|\bmatri(?:x|ces)\b|\bvectors?\b"
)
RESULT = re.compile(rf"{SHAPE.pattern}|\b(?:floats?|int|bool|bytes|dict)\b|^[A-Z]\w+(?:\.|,| )", re.MULTILINE)
"""What is returned may also be a number, or an object of a named class."""
SOURCE = re.compile(r"\bSource:|\bWhat is known from where:|\(report, section")
AS_IN = re.compile(r"(?:as (?:in|for)|what|like|of|see) `(?P<name>[\w.]+)`")


def findings(module: Module, others: dict[str, Item] | None = None, common: dict[str, str] | None = None) -> list[str]:
    """Return what the docstrings of a module lack, one sentence each.

    Args:
        module: as read for the API reference.
        others: functions of other modules by `module.name`, which a docstring may refer to.
        common: arguments that the package tells about once, for all its files.
    """
    known = {**(others or {}), **{item.anchor: item for item in _all(module.items)}}
    common = common or {}
    found = [] if SOURCE.search(module.doc) else ["the module docstring names no source"]
    if not module.doc.strip():
        found = ["no module docstring"]
    for item in _all(module.items):
        found += [f"{item.anchor}: {lack}" for lack in _lacks(item, known, common)]
    return found


def by_name(modules: Iterable[Module]) -> dict[str, Item]:
    """Return every function and method as `module.name`, under which docstrings of other files refer to it."""
    return {f"{module.name}.{item.anchor}": item for module in modules for item in _all(module.items)}


def _all(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        yield item
        yield from item.members


def _lacks(item: Item, known: dict[str, Item], common: dict[str, str]) -> Iterator[str]:
    parts = docstring.completed(docstring.sections(item.docstring), item.parameters, common)
    words = item.docstring.value if item.docstring else item.doc
    if not (docstring.summary(parts) or item.doc):
        yield "no summary"
        return
    if item.kind == "constant":
        return
    if item.kind == "class":
        yield from _class_lacks(item, parts, words)
        return
    code = ast.parse(item.source).body[0]
    names = [name for name in item.parameters if not name.startswith("_")]
    told = _told(parts, names)
    referred = _referred(words, known, names)
    for name in names:
        if name not in told and name not in referred and not (len(names) <= SMALL and _said(name, parts)):
            yield f"no word about the parameter {name}"
    arrays = [name for name in names if _is_array(name, code)]
    for name in arrays:
        if name not in referred and not SHAPE.search(told.get(name) or _prose(parts)):
            yield f"no shape of the array {name}"
    if arrays and _returns_something(code) and not RESULT.search(_result(parts)):
        yield "no shape of what is returned"
    for error in _raised(code):
        if not re.search(rf"\b{error}\b", words) and not any(error in _words(other) for other in _others(words, known)):
            yield f"raises {error} and does not say so"


def _class_lacks(item: Item, parts: docstring.Sections, words: str) -> Iterator[str]:
    attributes = dict(next((content for kind, content in parts if kind == "attributes"), []))
    if item.fields:
        for part in item.fields:
            if not (part.doc or attributes.get(part.name) or re.search(rf"\b{part.name}\b", words)):
                yield f"no word about the field {part.name}"
        return
    told = _told(parts, list(item.parameters))
    for name in item.parameters:
        if name not in told and not (len(item.parameters) <= SMALL and re.search(rf"\b{name}\b", words)):
            yield f"no word about the parameter {name}"
    made = next((node for node in ast.walk(ast.parse(item.source)) if getattr(node, "name", "") == "__init__"), None)
    for error in _raised(made) if made else ():
        if not re.search(rf"\b{error}\b", words):
            yield f"raises {error} and does not say so"


def _told(parts: docstring.Sections, names: list[str]) -> dict[str, str]:
    """Return parameter → what the lists of arguments say of it."""
    return {name: words for name in names if (words := docstring.told(parts, name))}


def _prose(parts: docstring.Sections) -> str:
    return " ".join(content for kind, content in parts if kind == "text")


def _result(parts: docstring.Sections) -> str:
    said = [content for kind, content in parts if kind in ("returns", "yields")]
    return " ".join(said) or _prose(parts)


def _said(name: str, parts: docstring.Sections) -> bool:
    prose = _prose(parts)
    return bool(re.search(rf"\b{name}\b", prose) or SHAPE.search(prose))


def _others(words: str, known: dict[str, Item]) -> list[Item]:
    return [known[found["name"]] for found in AS_IN.finditer(words) if found["name"] in known]


def _referred(words: str, known: dict[str, Item], names: list[str]) -> set[str]:
    """Return the parameters that functions to which a docstring refers tell about."""
    told: set[str] = set()
    for other in _others(words, known):
        parts = docstring.sections(other.docstring)
        told |= set(_told(parts, names)) | {name for name in names if _said(name, parts)}
    return told


def _words(item: Item) -> str:
    return item.docstring.value if item.docstring else ""


def _own_nodes(code: Any) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions inside."""
    waiting = list(ast.iter_child_nodes(code))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _raised(code: Any) -> list[str]:
    found = []
    for node in _own_nodes(code):
        if isinstance(node, ast.Raise) and node.exc is not None:
            made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = made.id if isinstance(made, ast.Name) else made.attr if isinstance(made, ast.Attribute) else ""
            if name[:1].isupper() and name not in found:
                found.append(name)
    return found


def _returns_something(code: Any) -> bool:
    return any(isinstance(node, ast.Return) and node.value is not None for node in _own_nodes(code))


def _is_array(name: str, code: Any) -> bool:
    """Whether the code uses a parameter as only an array can be used."""

    def means(node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == name

    for node in _own_nodes(code):
        if isinstance(node, ast.Attribute) and node.attr in ARRAY_USES and means(node.value):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) and (means(node.left) or means(node.right)):
            return True
        if isinstance(node, ast.Subscript) and means(node.value) and _several(node.slice):
            return True
    return False


def _several(index: ast.AST) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else []
    return any(isinstance(p, ast.Slice) or (isinstance(p, ast.Constant) and p.value in (None, ...)) for p in parts)
