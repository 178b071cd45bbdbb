"""The one Python-Markdown extension of the course: our fences, inline values, claim badges.

It works on raw lines, before other extensions see them, because only raw lines can be told to an author ("file, line").
Ordinary code fences and code spans are left alone. Both site shells load it by its name in `mkdocs.yml`:

    markdown_extensions:
      - deepseek_edu.site.markdown

Options: `root` (repository, default the current folder) and `manifest` (what staging built).
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.extensions.toc import slugify
from markdown.preprocessors import Preprocessor
from pygments.lexers import find_lexer_class_by_name
from pygments.util import ClassNotFound

from deepseek_edu.site.blocks import RENDERERS
from deepseek_edu.site.errors import SourceError, one_of
from deepseek_edu.site.page import PageContext, Project
from deepseek_edu.site.source import KINDS, OPENING, Piece, Place, outside_code, pieces
from deepseek_edu.site.trees import FirstTooltips, ScrollTables
from deepseek_edu.site.values import formatted

INLINE = re.compile(r"\[\[(?P<kind>=|claim\b)(?P<body>.*?)\]\](?!\])")
OPEN_INLINE = re.compile(r"\[\[(=|claim\b)")
PAGE = re.compile(r"<!-- edu-page: (?P<depth>\d+) -->\s*$")
HEADING = re.compile(r"#{1,6}\s+(?P<words>.+?)\s*#*\s*$")
EXPLICIT_ID = re.compile(r"\{:?[^}]*#(?P<id>[\w-]+)[^}]*\}\s*$")
ELEMENTS = ["edu-chapter", "edu-chart", "edu-lab", "edu-progress", "edu-quiz", "edu-walk", "edu-widget"]


class EduPreprocessor(Preprocessor):
    """Replace our syntax in the raw lines of a page."""

    def __init__(self, md: Markdown, project: Project) -> None:
        super().__init__(md)
        self.project = project

    def run(self, lines: list[str]) -> list[str]:
        page = PageContext(self.project, lambda line, place: self._inline(line, place, page))
        _distinct_headings(lines)
        written: list[str] = []
        for piece in pieces(lines, Place("page", 1)):
            if piece.kind == "text":
                line = piece.lines[0]
                if depth := PAGE.match(line):
                    page.ledger_url = "../" * int(depth["depth"]) + "claims.html"
                else:
                    written.append(self._inline(line, piece.place, page))
            elif piece.kind == "code":
                _no_slip(piece)
                written += piece.lines
            else:
                if not piece.closed:
                    raise SourceError(
                        piece.place.file,
                        piece.place.line,
                        f"a {piece.kind} fence that is never closed",
                        "a closing fence",
                    )
                html = RENDERERS[piece.kind](piece, page)
                written += ["", piece.indent + self.md.htmlStash.store(html), ""]
        return written

    def _inline(self, line: str, place: Place, page: PageContext) -> str:
        if "[[" not in line:
            return line
        return "".join(self._text(run, place, page) if text else run for run, text in outside_code(line))

    def _text(self, text: str, place: Place, page: PageContext) -> str:
        def replace(found: re.Match[str]) -> str:
            body = found["body"].strip()
            return formatted(body, place) if found["kind"] == "=" else page.badge(body, place)

        replaced = INLINE.sub(replace, text)
        if left := OPEN_INLINE.search(replaced):
            raise SourceError(place.file, place.line, f"{left.group()} without its end", "]] on the same line")
        return replaced


def _no_slip(piece: Piece) -> None:
    """Refuse a fence whose name is nearly one of ours and no language: it would be shown as code."""
    opening = None if piece.plain else OPENING.match(piece.lines[0])
    info = opening["info"].split() if opening else []
    name = info[0].strip("{}.:") if info else ""
    near = difflib.get_close_matches(name.lower(), KINDS, n=1)
    if near and _language(name) is None:
        found, place = f"the fence {name}, which is no language", piece.place
        raise SourceError(place.file, place.line, found, f"a language, or {one_of(KINDS, name.lower())}")


def _language(name: str) -> type | None:
    """Return Pygments' lexer for the name of a language, if there is one."""
    try:
        return find_lexer_class_by_name(name)
    except ClassNotFound:
        return None


def _distinct_headings(lines: list[str]) -> None:
    """Refuse an explicit id, `{#id}`, that another heading of the page has or would get from its words."""
    seen: dict[str, tuple[Place, bool]] = {}
    for piece in pieces(lines, Place("page", 1)):
        heading = HEADING.match(piece.lines[0]) if piece.kind == "text" else None
        if heading is None:
            continue
        explicit = EXPLICIT_ID.search(heading["words"])
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*`]", r"\1", EXPLICIT_ID.sub("", heading["words"]))
        id = explicit["id"] if explicit else slugify(words, "-")
        first = seen.setdefault(id, (piece.place, bool(explicit)))
        if first[0] != piece.place and (explicit or first[1]):
            raise SourceError(
                piece.place.file,
                piece.place.line,
                f"a heading with the id {id} a second time",
                f"one heading of a page for each id; the first is on line {first[0].line}",
            )


class EduExtension(Extension):
    """Register the preprocessor before fenced code and the table container after inline text."""

    def __init__(self, **kwargs: Any) -> None:
        self.config = {
            "root": [".", "repository root"],
            "manifest": ["", "JSON file written by staging"],
        }
        super().__init__(**kwargs)

    def extendMarkdown(self, md: Markdown) -> None:
        root = Path(self.getConfig("root")).resolve()
        manifest = self.getConfig("manifest")
        project = Project.load(root, Path(manifest) if manifest else None)
        md.block_level_elements.extend(ELEMENTS)
        # after normalize_whitespace (30), before pymdownx.superfences (25) and raw HTML (20)
        md.preprocessors.register(EduPreprocessor(md, project), "edu", 28)
        # after inline patterns (20) and abbr (7), before toc (5)
        md.treeprocessors.register(ScrollTables(md), "edu-tables", 8)
        md.treeprocessors.register(FirstTooltips(md), "edu-tooltips", 6)


def makeExtension(**kwargs: Any) -> EduExtension:
    """Entry point of Python-Markdown."""
    return EduExtension(**kwargs)
