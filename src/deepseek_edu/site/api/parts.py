"""What the API reference consists of: packages, groups, modules, items and fields, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import griffe


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
    fields: tuple[Field, ...] = ()

    @property
    def name(self) -> str:
        return self.anchor.rpartition(".")[2]
