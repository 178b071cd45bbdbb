"""Read the package's sources with griffe: modules in reading order, their public items, docstrings, source lines."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import griffe

from deepseek_edu.site.api.items import Lines, item_of, own
from deepseek_edu.site.api.parts import Group, Module, Package

SINGLE = ("config", "verify")
"""Beginnings of the names of files that stand beside the packages."""


def packages(root: Path) -> list[Package]:
    """Return all parts of the reference, in the order of the navigation."""
    logging.getLogger("griffe").setLevel(logging.CRITICAL)  # the audit tells what a docstring lacks, in our words
    root = root.resolve()
    whole: Any = griffe.load("deepseek_edu", search_paths=[root / "src"], allow_inspection=False)
    found = [
        _ordered(root, whole["reference"], "NumPy"),
        _ordered(root, whole["model"], "PyTorch"),
        _ordered(root, whole["accounting"], "Accounting"),
    ]
    single = sorted(name for name, part in whole.members.items() if part.is_module and name.startswith(SINGLE))
    modules = tuple(read_module(root, whole[name], name) for name in single)
    found.append(Package("", "Configuration and tools", "", (Group("", (*modules, _grading(root, whole["grading"]))),)))
    return found


def _ordered(root: Path, package: Any, title: str) -> Package:
    name = package.name
    doc = package.docstring.value if package.docstring else ""
    members = {key: value for key, value in package.members.items() if value.is_module and not value.is_alias}
    groups, named = [], set()
    for names, words in reading_order(doc, set(members)):
        named |= set(names)
        groups.append(Group(words, tuple(read_module(root, members[key], f"{name}/{key}") for key in names)))
    if missing := sorted(set(members) - named):  # the tests want every file named; a page it has in any case
        groups.append(Group("", tuple(read_module(root, members[key], f"{name}/{key}") for key in missing)))
    return Package(name, title, doc, tuple(groups))


def reading_order(doc: str, known: set[str]) -> list[tuple[list[str], str]]:
    """Return the lines of a reading order, `    names, names    words`, as ([names], words).

    A line whose names end with a comma goes on in the next one; so does one that has words but no names.

    >>> lines = "    norms, rope   small\\n    mhc,          streams,\\n    block         layers"
    >>> reading_order(lines, {"norms", "rope", "mhc", "block"})
    [(['norms', 'rope'], 'small'), (['mhc', 'block'], 'streams, layers')]
    """
    groups: list[tuple[list[str], str]] = []
    open_names = False
    for line in doc.partition("\nArguments ")[0].split("\n"):  # the table of arguments is no reading order
        if not (found := re.match(r"    (?P<names>\S+(?: \S+)*)(?:\s{2,}(?P<words>\S.*))?$", line)):
            open_names = False
            continue
        names = [part.strip().removesuffix(".py") for part in found["names"].split(",")]
        words = (found["words"] or "").strip()
        if names[0] not in known:
            open_names = False
            continue
        names = [name for name in names if name in known]
        if open_names:
            before, said = groups[-1]
            groups[-1] = ([*before, *names], f"{said} {words}".strip())
        else:
            groups.append((names, words))
        open_names = found["names"].endswith(",")
    return groups


def read_module(root: Path, module: Any, path: str, text: str | None = None) -> Module:
    """Return what griffe found in a file.

    Args:
        root: repository.
        module: griffe's.
        path: of the page.
        text: content of the file, if it is not to be read.
    """
    lines = Lines(Path(module.filepath).read_text(encoding="utf-8") if text is None else text)
    items = [item_of(member, lines, "") for member in own(module)]
    doc = module.docstring.value if module.docstring else ""
    file = Path(module.filepath).relative_to(root).as_posix()
    return Module(path, file, doc, tuple(item for item in items if item))


def _grading(root: Path, package: Any) -> Module:
    """Return the public names of `deepseek_edu.grading`, which its `__init__` finds in other files."""
    homes: Any = package.members["_HOMES"].value
    found = []
    for key, value in sorted(zip(map(str, homes.keys), map(str, homes.values), strict=True)):
        name, home = key.strip("'\""), package.members[value.strip("'\"")]
        lines = Lines(Path(home.filepath).read_text(encoding="utf-8"))
        found.append(item_of(home.members[name], lines, ""))
    file = Path(package.filepath).relative_to(root).as_posix()
    return Module("grading", file, package.docstring.value, tuple(item for item in found if item))
