"""One function, class, property or constant as griffe found it, as an Item: signature, fields, source lines."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from typing import Any

from deepseek_edu.site.api.parts import Field, Item

WIDTH = 84  # columns of a signature on one line
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


def own(scope: Any) -> Iterator[Any]:
    """Yield what a module or class defines itself and offers, in the order of the file."""
    members = [m for m in scope.members.values() if not m.is_alias and not m.is_module and m.lineno]
    for member in sorted(members, key=lambda m: m.lineno):
        if not member.name.startswith("_"):
            yield member


def item_of(member: Any, lines: Lines, owner: str) -> Item | None:
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
        inner = (item_of(part, lines, anchor) for part in own(member))
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
