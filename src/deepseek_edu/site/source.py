"""Read the raw lines of a page: fences, where each line came from, and text outside of code.

Staging puts lines into a page that its author did not write, so staged pages carry markers,
`<!-- edu-source: course/page.md:12 -->`: the line after the marker is line 12 of that file. All errors are told in the
author's lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from deepseek_edu.site.errors import SourceError

MARKER = re.compile(r"<!-- edu-source: (?P<file>[^\n]+?):(?P<line>\d+)(?P<plain> plain)? -->\s*$")
OPENING = re.compile(r"^(?P<indent>[ ]*)(?P<ticks>`{3,}|~{3,})\s*(?P<info>[^`\n]*)$")
CODE_SPAN = re.compile(r"(?<![`\\])(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)")

KINDS = ("figure", "lab", "quiz", "run", "walk", "widget")


@dataclass(frozen=True)
class Place:
    """A line of a file of the repository."""

    file: str
    line: int

    def after(self, lines: int) -> Place:
        return Place(self.file, self.line + lines)


def source_text(root: Path, path: Path) -> str:
    """Return the text of a file of the repository.

    Raises:
        SourceError: it is not UTF-8; the message names the line and the byte.
    """
    data = path.read_bytes()
    try:
        return data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        start = error.start
        found = f"the byte 0x{data[start]:02x} at position {start}, which is not UTF-8"
        raise SourceError(name, data.count(b"\n", 0, start) + 1, found, "text saved as UTF-8") from None


@dataclass
class Piece:
    """A stretch of a page: one line of text, or one fence with its body.

    `kind` is "text", "code" (an ordinary fence or anything to be left alone), or one of `KINDS`. A fence of ours has
    its body without indentation, and `place` is that of its opening line. `plain` tells that our syntax is off there.
    """

    kind: str
    place: Place
    lines: list[str] = field(default_factory=list)
    indent: str = ""
    body: str = ""
    closed: bool = True
    plain: bool = False


def pieces(lines: list[str], start: Place) -> Iterator[Piece]:
    """Split a page into pieces. Markers are consumed and move the place of what follows.

    A marker with ` plain` switches our syntax off until the next marker (notebook pages show code and outputs).
    """
    place, plain, position = start, False, 0
    while position < len(lines):
        line = lines[position]
        if marker := MARKER.match(line):
            place, plain = Place(marker["file"], int(marker["line"])), bool(marker["plain"])
            position += 1
            continue
        opening = OPENING.match(line)
        if not opening:
            yield Piece("code" if plain else "text", place, [line])
            position, place = position + 1, place.after(1)
            continue
        end = _closing(lines, position, opening)
        closed = end < len(lines)
        taken = lines[position : end + 1] if closed else lines[position:]
        info = opening["info"].split()
        kind = info[0] if info and info[0] in KINDS and not plain else "code"
        indent = opening["indent"]
        body = [text.removeprefix(indent) for text in (taken[1:-1] if closed else taken[1:])]
        yield Piece(kind, place, taken, indent, "\n".join(body), closed, plain)
        position, place = position + len(taken), place.after(len(taken))


def _closing(lines: list[str], position: int, opening: re.Match[str]) -> int:
    """Return the index of the line that closes the fence, or the number of lines if none does."""
    mark, least = opening["ticks"][0], len(opening["ticks"])
    close = re.compile(rf"^{re.escape(opening['indent'])}[ ]{{0,3}}{re.escape(mark)}{{{least},}}\s*$")
    for index in range(position + 1, len(lines)):
        if close.match(lines[index]):
            return index
    return len(lines)


def outside_code(line: str) -> Iterator[tuple[str, bool]]:
    """Split one line into (text, is_text) runs; code spans come out with False."""
    position = 0
    for span in CODE_SPAN.finditer(line):
        yield line[position : span.start()], True
        yield span.group(), False
        position = span.end()
    yield line[position:], True
