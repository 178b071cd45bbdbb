"""What blocks need while one page is rendered: the project's facts, nested Markdown, ids that stay unique."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from markdown import Markdown

from deepseek_edu.site.claims import Claim, badge, verified_ledger
from deepseek_edu.site.errors import SourceError, one_of
from deepseek_edu.site.source import Place
from deepseek_edu.site.trees import ScrollTablesExtension

HEADING = re.compile(r"(?m)^(#{1,6}) ")
NESTED = ["attr_list", "tables", "sane_lists", "pymdownx.superfences", "pymdownx.highlight", "pymdownx.arithmatex"]
NESTED_OPTIONS = {
    "pymdownx.arithmatex": {"generic": True},
    "pymdownx.highlight": {"use_pygments": True, "pygments_lang_class": True},
}


@dataclass
class Project:
    """The repository a page belongs to, and what staging has already built.

    Attributes:
        root: repository root.
        staged: answers of staging: `states` (widget id → path under edu/), `live` (kind → size text).
    """

    root: Path
    staged: dict[str, Any] = field(default_factory=dict)

    @property
    def ledger(self) -> dict[str, Claim]:
        return verified_ledger(self.root)

    def claim(self, id: str, place: Place) -> Claim:
        """Return a verified claim; an unknown id is an error of the page."""
        if id not in self.ledger:
            raise SourceError(place.file, place.line, f"the unknown claim {id}", one_of(self.ledger, id))
        return self.ledger[id]

    @classmethod
    def load(cls, root: Path, manifest: Path | None) -> Project:
        """Read what staging wrote, if it ran."""
        known = manifest is not None and manifest.exists()
        return cls(root, json.loads(manifest.read_text(encoding="utf-8")) if known and manifest else {})


class PageContext:
    """State of one page while it is rendered."""

    def __init__(self, project: Project, inline: Callable[[str, Place], str]) -> None:
        self.project = project
        self.inline = inline
        self.used: dict[str, Place] = {}
        self.counts: dict[str, int] = {}
        self.questions: dict[str, str] = {}  # id of a quiz of this page, so far → its version
        self.ledger_url = "claims.html"

    def unique(self, id: str, place: Place, what: str) -> str:
        """Claim an id of the page; a second use is an error that names both places."""
        if id in self.used:
            first = self.used[id]
            raise SourceError(
                place.file, place.line, f"{what} a second time", f"one per page; the first is on line {first.line}"
            )
        self.used[id] = place
        return id

    def count(self, id: str) -> int:
        """Return 1 for the first use of an id on the page, 2 for the second, and so on."""
        self.counts[id] = self.counts.get(id, 0) + 1
        return self.counts[id]

    def markdown(self, text: str, place: Place, prefix: str = "", level: int = 4) -> str:
        """Render Markdown inside a block. Its highest headings become `level`; ids begin with `prefix`."""
        lines = text.rstrip().split("\n")
        source = "\n".join(self.inline(line, place.after(number)) for number, line in enumerate(lines))
        highest = min((len(marks) for marks in HEADING.findall(source)), default=1)

        def slugify(words: str, separator: str) -> str:
            return f"{prefix}-{_slug(words, separator)}"

        toc = {"baselevel": level - highest + 1, "permalink": False, "slugify": slugify}
        options = {**NESTED_OPTIONS, "toc": toc}
        extensions = [*NESTED, "toc", ScrollTablesExtension()]
        return Markdown(extensions=extensions, extension_configs=options).convert(source)

    def phrase(self, text: str, place: Place) -> str:
        """Render one paragraph of Markdown without its `<p>`."""
        rendered = self.markdown(text, place)
        single = rendered.startswith("<p>") and rendered.count("<p>") == 1 and rendered.endswith("</p>")
        if not single:
            raise SourceError(place.file, place.line, f"more than a paragraph in {text[:40]!r} …", "one paragraph here")
        return rendered[3:-4]

    def badge(self, id: str, place: Place) -> str:
        return badge(self.project.claim(id, place), self.ledger_url)


def _slug(words: str, separator: str) -> str:
    kept = "".join(char.lower() if char.isalnum() else " " for char in words)
    return separator.join(kept.split())


def json_script(value: Any, style: str = "") -> str:
    """Return a JSON island that is safe inside a page."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    attribute = f' class="{style}"' if style else ""
    return f'<script type="application/json"{attribute}>{text}</script>'


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]], caption: str = "") -> str:
    """Return a table in a scroll container that the keyboard reaches."""
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    label = escape(caption or "Table", quote=True)
    return (
        f'<div class="edu-scroll" role="group" aria-label="{label}" tabindex="0"><table class="edu-table">{named}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.4g}".replace("-", "\N{MINUS SIGN}")
    return escape(str(cell))
