"""Find what a finished page holds (a link, an image, an id, a formula) in the author's files: file and lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from deepseek_edu.site.source import MARKER, Place, pieces

LAB = re.compile(r"(?m)^\s*id:\s*([a-z0-9_-]+)\s*$")


def sources_of(root: Path, docs: Path, page: str) -> list[Path]:
    """Return the author's files behind a page (`chapter.md` or `chapter.html`), the nearest first."""
    staged = docs / Path(page).with_suffix(".md")
    if not staged.is_file():
        return []
    text = staged.read_text(encoding="utf-8")
    names = [found["file"] for line in text.split("\n") if (found := MARKER.match(line))]
    names += [f"labs/{id}/statement.md" for id in LAB.findall(text)]
    return [root / name for name in dict.fromkeys(names) if (root / name).is_file()]


def where(root: Path, docs: Path, page: str, needle: str) -> str:
    """Return `course/page.md:10` or, for several lines, `course/page.md:10, 14`; an empty text if it is not found.

    Args:
        root: repository root.
        docs: the staged pages.
        page: name of the page, as staged or as finished.
        needle: the address, id or formula as the page has it.
    """
    wanted = re.escape(needle.strip().split("\n")[0].strip())
    if not wanted:
        return ""
    patterns = (  # as a whole address or id first, then anywhere
        rf"""(?:\]\(\s*<?|\]:\s*<?|(?:href|src|id)=["']?|\{{[^}}]*#){wanted}(?=[\s)>"'}}]|$)""",
        wanted,
    )
    for pattern in patterns:
        for path in sources_of(root, docs, page):
            lines = [str(number) for number, line in _lines(path) if re.search(pattern, line)]
            if lines:
                return f"{path.relative_to(root).as_posix()}:{', '.join(lines)}"
    return ""


def staged_line(docs: Path, page: str, number: int) -> Place | None:
    """Return the author's place of a line of a staged page."""
    path = docs / page
    place: Place | None = None
    lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
    for line in lines[: number - 1]:
        marker = MARKER.match(line)
        place = Place(marker["file"], int(marker["line"])) if marker else place.after(1) if place else None
    return place


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a file; of Markdown, those outside of code."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if path.suffix != ".md":
        yield from enumerate(lines, 1)
        return
    for piece in pieces(lines, Place("", 1)):
        if piece.kind != "code":
            yield from enumerate(piece.lines, piece.place.line)
