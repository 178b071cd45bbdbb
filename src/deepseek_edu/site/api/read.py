"""Read the package's sources with griffe: modules in reading order, their public items, docstrings, source lines."""

from __future__ import annotations

import io
import logging
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import griffe

WIDTH = 84  # columns of a signature on one line
SINGLE = ("config", "verify")
"""Beginnings of the names of files that stand beside the packages."""
MANY = 9  # fields above which a constructor's signature leaves them to the table


class Lines(list[str]):
    """The lines of a file, and the comments that stand behind code, which say what a field or a constant is."""

    def __init__(self, text: str) -> None:
        super().__init__(text.split("\n"))
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        self.comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}

    def comment(self, first: int, last: int) -> str:
        """Return the first comment behind one of these lines, numbered from 1."""
        return next((self.comments[n].lstrip("# ") for n in range(first, last + 1) if n in self.comments), "")


@dataclass(frozen=True)
class Group:
    """One line of the reference: a heading and modules, in reading order."""

    title: str
    modules: tuple[Module, ...]


@dataclass(frozen=True)
class Package:
    """A part of the reference.

    Attributes:
        name: folder of its pages ("reference"), or "" for single modules.
        title: as the navigation shows it.
        doc: docstring of the package.
        groups: its modules in reading order.
    """

    name: str
    title: str
    doc: str
    groups: tuple[Group, ...]

    @property
    def modules(self) -> tuple[Module, ...]:
        return tuple(module for group in self.groups for module in group.modules)


@dataclass(frozen=True)
class Module:
    """A file of the package.

    Attributes:
        path: "reference/indexer"; the page is api/<path>.html.
        file: source relative to the repository.
        doc: docstring, dedented.
        items: what the file offers, in the order of the file.
    """

    path: str
    file: str
    doc: str
    items: tuple[Item, ...]

    @property
    def package(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Field:
    """An attribute of a class: type, default and what its docstring or the comment behind it says."""

    name: str
    type: str
    default: str
    doc: str
    heading: str = ""


@dataclass(frozen=True)
class Item:
    """A function, class, method, property or constant.

    Attributes:
        kind: one of these words.
        anchor: "top_k" or "Cache.nbytes", the id on its page.
        parameters: names, without self and cls.
        signature: as it is called, on one line or one parameter a line.
        docstring: griffe's, or None.
        source: its lines; first and last their numbers in the file.
        members: public methods and properties of a class; fields its attributes.
    """

    kind: str
    anchor: str
    signature: str
    docstring: griffe.Docstring | None
    source: str = ""
    first: int = 0
    last: int = 0
    parameters: tuple[str, ...] = ()
    doc: str = ""
    bases: tuple[str, ...] = ()
    members: tuple[Item, ...] = ()
    fields: tuple[Field, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.anchor.rpartition(".")[2]


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
    items = [_item(member, lines, "") for member in _own(module)]
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
        found.append(_item(home.members[name], lines, ""))
    file = Path(package.filepath).relative_to(root).as_posix()
    return Module("grading", file, package.docstring.value, tuple(item for item in found if item))


def _own(scope: Any) -> Iterator[Any]:
    """Yield what a module or class defines itself and offers, in the order of the file."""
    members = [m for m in scope.members.values() if not m.is_alias and not m.is_module and m.lineno]
    for member in sorted(members, key=lambda m: m.lineno):
        if not member.name.startswith("_"):
            yield member


def _item(member: Any, lines: Lines, owner: str) -> Item | None:
    anchor = f"{owner}.{member.name}" if owner else member.name
    doc = member.docstring
    if member.is_attribute and "property" not in member.labels:
        return None if owner else _constant(member, lines, anchor)
    first = member.lineno
    while lines[first - 2].strip().startswith("@"):
        first -= 1
    source = _dedented(lines[first - 1 : member.endlineno])
    place = {"docstring": doc, "source": source, "first": first, "last": member.endlineno}
    if member.is_class:
        inner = (_item(part, lines, anchor) for part in _own(member))
        return Item(
            "class",
            anchor,
            _signature(member.name, _constructor(member), made=True),
            parameters=_parameters(_constructor(member)),
            bases=tuple(str(base) for base in member.bases),
            members=tuple(part for part in inner if part),
            fields=tuple(_fields(member, lines)),
            **place,
        )
    if member.is_attribute:
        return Item("property", anchor, f"{member.name}", **place)
    kind = "method" if owner else "function"
    for label in ("classmethod", "staticmethod"):
        kind = label.replace("method", " method") if label in member.labels else kind
    return Item(kind, anchor, _signature(member.name, member), parameters=_parameters(member), **place)


def _constructor(member: Any) -> Any:
    made = member.members.get("__init__")
    return made if made is not None and not made.is_alias else member


def _given(member: Any) -> list[Any]:
    return [p for p in member.parameters if p.name not in ("self", "cls") and not p.name.startswith("__")]


def _parameters(member: Any) -> tuple[str, ...]:
    return tuple(p.name for p in _given(member))


def _signature(name: str, member: Any, made: bool = False) -> str:
    """Return `name(a, b=1)`, one parameter a line if it is long."""
    shown, star, slash = [], False, False
    given = [p for p in _given(member) if not (made and p.name.startswith("_"))]
    if made and len(given) > MANY:
        return f"{name}(…)"
    for parameter in given:
        kind = parameter.kind.value
        if slash and kind != "positional-only":
            shown.append("/")
        slash = kind == "positional-only"
        if kind == "keyword-only" and not star:
            shown.append("*")
        star = star or kind in ("keyword-only", "variadic positional")
        mark = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        typed = f": {parameter.annotation}" if parameter.annotation is not None else ""
        gap = " " if typed else ""
        default = f"{gap}={gap}{parameter.default}" if parameter.default is not None and not mark else ""
        shown.append(f"{mark}{parameter.name}{typed}{default}")
    returns = None if made else member.returns
    back = "" if returns is None else f" -> {returns}"
    line = f"{name}({', '.join(shown)}){back}"
    if len(line) <= WIDTH:
        return line
    inner = "".join(f"    {part},\n" for part in shown)
    return f"{name}(\n{inner}){back}"


def _constant(member: Any, lines: Lines, anchor: str) -> Item | None:
    if not member.name.isupper():
        return None
    value = str(member.value)
    shown = f"{member.name} = {value}" if len(value) <= 300 else f"{member.name} = …"
    doc = "" if member.docstring else lines.comment(member.lineno, member.endlineno)
    source = _dedented(lines[member.lineno - 1 : member.endlineno])
    return Item("constant", anchor, shown, member.docstring, source, member.lineno, member.endlineno, doc=doc)


def _fields(member: Any, lines: Lines) -> Iterator[Field]:
    """Yield the annotated attributes of a class body. A comment line above one is a heading for those below it."""
    heading = ""
    for part in sorted((m for m in member.members.values() if not m.is_alias and m.lineno), key=lambda m: m.lineno):
        if not part.is_attribute or part.annotation is None or "property" in part.labels or part.name.startswith("_"):
            continue
        if "class-attribute" not in part.labels and not _in_body(part, member, lines):
            continue
        above = lines[part.lineno - 2].strip()
        if above.startswith("# "):
            heading = above[2:]
        doc = part.docstring.value if part.docstring else lines.comment(part.lineno, part.endlineno)
        default = "" if part.value is None else str(part.value)
        yield Field(part.name, str(part.annotation), default, doc, heading)


def _in_body(part: Any, member: Any, lines: Lines) -> bool:
    """Whether an attribute stands in the body of its class, not in a method."""
    line, opening = lines[part.lineno - 1], lines[member.lineno - 1]
    return len(line) - len(line.lstrip()) == len(opening) - len(opening.lstrip()) + 4


def _dedented(lines: list[str]) -> str:
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] if not line[:indent].strip() else line for line in lines)
