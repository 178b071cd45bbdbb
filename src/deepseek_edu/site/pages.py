"""Stage one hand-written page: front matter checked, line markers, chapter head with reading time, chapter end."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from markdown import Markdown

from deepseek_edu.site.errors import SourceError
from deepseek_edu.site.schema import Key, Lines, check, load
from deepseek_edu.site.source import KINDS, Piece, Place, outside_code, pieces, source_text

FRONT_MATTER = {
    "title": Key("text", True),
    "description": Key("text"),
    "chapter": Key("text"),
    "section": Key("text"),
    "objectives": Key("list"),
    "prerequisites": Key("list"),
    "hide": Key("list"),
}
WORDS_PER_MINUTE = 200
CLAIM = re.compile(r"\s*\[\[claim\s+(?P<id>[^\]\s]+)\s*\]\]")
DISTINCT = re.compile(r"\d|[A-Z][a-z]?[A-Z]")
CLAIM_KEY = re.compile(r"(?m)^\s*claim:\s*(?P<id>[a-z0-9-]+)\s*$")
ID_KEY = re.compile(r"(?m)^\s*id:\s*(?P<id>[\w-]+)\s*$")


@dataclass
class Page:
    """A page of the course before it is rendered.

    Attributes:
        source: file relative to the repository; `name` is its file name in the staged docs.
        text: body without front matter, `first_line` the number of its first line.
        uses: kind of fence → ids in order; claims under "claim".
    """

    source: str
    name: str
    head: Lines
    front_matter: str
    text: str
    first_line: int
    uses: dict[str, list[str]] = field(default_factory=dict)
    words: int = 0

    @property
    def minutes(self) -> int:
        return max(1, round(self.words / WORDS_PER_MINUTE))


def read_page(root: Path, path: Path) -> Page:
    """Read a page and find what it uses.

    Raises:
        SourceError: malformed or unknown front matter.
    """
    source = path.relative_to(root).as_posix()
    text = source_text(root, path)
    found = re.match(r"---\n(?P<yaml>.*?)\n---\n", text, re.DOTALL)
    if not found:
        raise SourceError(source, 1, f"{text[:20].splitlines()[:1]}", "front matter between --- lines, with title")
    head = check(load(found["yaml"], Place(source, 2)), FRONT_MATTER, "front matter", Place(source, 1))
    body = text[found.end() :]
    page = Page(source, path.name, head, found.group(), body, text.count("\n", 0, found.end()) + 1)
    for piece in _pieces(page):
        _collect(piece, page)
    return page


def _pieces(page: Page) -> Iterator[Piece]:
    return pieces(page.text.split("\n"), Place(page.source, page.first_line))


def _collect(piece: Piece, page: Page) -> None:
    if piece.kind in KINDS:
        if found := ID_KEY.search(piece.body):
            page.uses.setdefault(piece.kind, []).append(found["id"])
        claims = [found["id"] for found in CLAIM_KEY.finditer(piece.body)] if piece.kind == "figure" else []
        lines = piece.body.split("\n") if piece.kind in ("quiz", "walk") else []
    else:
        claims, lines = [], piece.lines if piece.kind == "text" else []
    for line in lines:
        shown = "".join(run for run, is_text in outside_code(line) if is_text)
        claims += [found["id"] for found in CLAIM.finditer(shown)]
        page.words += len(re.findall(r"\w+(?:[-.,'’]\w+)*", CLAIM.sub("", line)))
    for id in claims:
        known = page.uses.setdefault("claim", [])
        if id not in known:
            known.append(id)


def staged_text(page: Page, notebook: str = "") -> str:
    """Return the page as the shell reads it. Lines added here are followed by a marker that resumes the author's count.

    Args:
        page: the page.
        notebook: page of its notebook, relative to the docs, if it has one.
    """
    lines = page.text.rstrip("\n").split("\n")
    title = next((number for number, line in enumerate(lines) if line.startswith("# ")), None)
    out = [f"<!-- edu-source: {page.source}:{page.first_line} -->"]
    if title is None or "chapter" not in page.head:
        out += lines
    else:
        out += [*lines[: title + 1], "", chapter_head(page, notebook), ""]
        out += [f"<!-- edu-source: {page.source}:{page.first_line + title + 1} -->", *lines[title + 1 :]]
        out += ["", f'<edu-chapter data-chapter="{page.head["chapter"]}"></edu-chapter>']
    return page.front_matter + "\n".join(out) + "\n"


def chapter_head(page: Page, notebook: str) -> str:
    """Return the block below a chapter's title: facts, what the reader will be able to do, what is needed."""
    facts = [f"{page.minutes} minutes to read"]
    for kind, one, many in (("widget", "widget", "widgets"), ("quiz", "question", "questions"), ("lab", "lab", "labs")):
        if number := len(page.uses.get(kind, [])):
            facts.append(f"{number} {one if number == 1 else many}")
    if notebook:
        facts.append(f'<a href="{notebook.removesuffix(".md")}.html">notebook</a>')
    section = page.head.get("section")
    named = f'<p class="edu-head__section">{html.escape(section)}</p>' if section else ""
    shown = f'<p class="edu-head__facts">{" · ".join(facts)}</p>'
    lists = _list("After this chapter you can", page.head.get("objectives", []))
    lists += _list("What you need", page.head.get("prerequisites", []))
    return f'<div class="edu-head" data-search-exclude>{named}{shown}{lists}</div>'


def _list(label: str, items: list[str]) -> str:
    if not items:
        return ""
    render = Markdown().convert
    shown = "".join(f"<li>{render(str(item)).removeprefix('<p>').removesuffix('</p>')}</li>" for item in items)
    return f'<div class="edu-head__list"><p class="edu-head__label">{label}</p><ul>{shown}</ul></div>'


def glossary(text: str) -> dict[str, str]:
    """Return term → first sentence of its definition, from the definition lists of the glossary page.

    Only terms that cannot be mistaken for a common word get a tooltip: those with a digit or two capitals.

    >>> glossary("KV cache\\n:   Stored keys and values. More.\\n\\nCode\\n:   A bit pattern.\\n")
    {'KV cache': 'Stored keys and values.'}
    """
    terms: dict[str, str] = {}
    for found in re.finditer(r"(?m)^(?P<terms>(?:[^\s:#<|>-][^\n]*\n)+)\n?:[ ]+(?P<text>(?:[^\n]+\n?)+)", text):
        words = _plain(found["text"])
        sentence = re.match(r".+?[.!?](?=\s|$)", words)
        for term in found["terms"].strip().split("\n"):
            if DISTINCT.search(_plain(term)):
                terms[_plain(term)] = sentence.group() if sentence else words
    return terms


def _plain(text: str) -> str:
    """Strip Markdown's marks and join lines."""
    text = CLAIM.sub("", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\{[^}]*\}", "", text)
    return " ".join(re.sub(r"[*`_]", "", text).split())
