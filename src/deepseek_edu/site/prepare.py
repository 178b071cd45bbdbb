"""Staging: everything the site shell reads, and everything of ours that is added to its output.

In the work folder: `docs/` (pages), `edu/` (bundle, runtime, widget states), `manifest.json` (what pages need to know
about `edu/`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepseek_edu.site import api, notebooks, notices
from deepseek_edu.site.claims import LEDGER, Use, ledger_page, verified_ledger
from deepseek_edu.site.edu import make_edu
from deepseek_edu.site.errors import SourceError
from deepseek_edu.site.pages import Page, glossary, read_page, staged_text
from deepseek_edu.site.source import source_text

Say = Callable[[str], None]


@dataclass(frozen=True)
class Staged:
    """The result: folders to render and to add, the glossary's tooltips, the navigation of the API reference."""

    docs: Path
    edu: Path
    manifest: Path
    names: dict[str, str]
    abbreviations: dict[str, str]
    reference: list[Any]


def prepare(root: Path, work: Path, say: Say) -> Staged:
    """Stage the whole course into `work`.

    Raises:
        SiteError: any page, lab, notebook, claim or asset that cannot be staged.
    """
    pages = [read_page(root, path) for path in sorted((root / "course").glob("*.md"))]
    if not pages:
        raise SourceError("course", None, "no page", "pages *.md")
    docs = work / "docs"
    if docs.exists():
        shutil.rmtree(docs)
    docs.mkdir(parents=True)
    books = notebooks.stage(root, docs, root / ".cache" / "notebooks", say)
    for page in pages:
        book = f"notebooks/{page.head.get('chapter', '')}.md"
        text = staged_text(page, book if book in books else "")
        (docs / page.name).write_text(text, encoding="utf-8")
    if (root / "assets" / "img").exists():
        shutil.copytree(root / "assets" / "img", docs / "img")
    _write_ledger(root, pages, docs)
    generated(docs / "notices.md", notices.page(root), "package-lock.json")
    wanted = api.INDEX in source_text(root, root / "mkdocs.yml")
    reference = api.write(root, docs) if wanted else []
    used = {id for page in pages for id in page.uses.get("widget", [])}
    made = make_edu(root, work / "edu", used, root / ".cache", say)
    manifest = work / "manifest.json"
    manifest.write_text(json.dumps({"states": made.states, "live": made.live}, sort_keys=True), encoding="utf-8")
    words = root / "course" / "glossary.md"
    terms = glossary(source_text(root, words)) if words.exists() else {}
    return Staged(docs, work / "edu", manifest, made.names, terms, reference)


def generated(path: Path, text: str, source: str) -> None:
    """Write a page that the build makes; problems in it are told as problems of `source`."""
    head, _, body = text.partition("\n---\n")
    path.write_text(f"{head}\n---\n<!-- edu-source: {source}:1 plain -->\n{body}", encoding="utf-8")


def _write_ledger(root: Path, pages: Iterable[Page], docs: Path) -> None:
    ledger = verified_ledger(root)
    uses: dict[str, list[Use]] = {}
    for page in pages:
        for id in page.uses.get("claim", []):
            uses.setdefault(id, []).append(Use(page.name, page.head["title"]))
    unused = [claim for claim in ledger.values() if claim.id not in uses]
    if unused:
        first = unused[0]
        raise SourceError(
            first.file,
            first.line,
            f"{', '.join(claim.id for claim in unused)}, which no page uses",
            "claims that a page uses with [[claim id]] or as the claim of a figure",
        )
    generated(docs / "claims.md", ledger_page(ledger, uses), LEDGER)
