"""Check a finished site: the gate between building and publishing.

Each problem is one line, `file: problem: what to do`. The checks look at the files alone; what only a browser can see
is in the browser tests.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deepseek_edu.site.checked import CSS_ADDRESS, PageFacts, is_foreign, read_page, target
from deepseek_edu.site.finish import POLICY
from deepseek_edu.site.leaks import find_leaks
from deepseek_edu.site.offline import LISTING, differences

FIRST_VIEW_BYTES = 300_000
SEARCH_INDEX_BYTES = 1_000_000
SCRIPT_LOADS = re.compile(
    r"""(?:\bimport\s*\(?|\bfrom|\bimportScripts\(|\bfetch\(|\bnew (?:Worker|WebSocket)\(|\.src\s*=)\s*"""
    r"""["'`](?P<url>(?:https?:|wss?:)?//[^"'`]+)["'`]"""
)
SERVERS = "unpkg|cdn\\.jsdelivr|cdnjs\\.cloudflare|esm\\.sh|fonts\\.googleapis|fonts\\.gstatic"
PUBLIC_SERVERS = re.compile(rf"""["'`](?P<url>https?://(?:{SERVERS})[^"'`]*)""")


@dataclass(frozen=True, order=True)
class Problem:
    """Something that keeps a site from being published."""

    file: str
    problem: str
    cure: str
    needle: str = field(default="", compare=False)  # what to look for in the page's source

    def __str__(self) -> str:
        return f"{self.file}: {self.problem}: {self.cure}"


def check(site: Path, root: Path, budget: bool = True) -> list[Problem]:
    """Return the problems of a finished site, in order of file.

    Args:
        site: the finished site.
        root: the repository it was built from; its labs say what must not be in the site.
        budget: also weigh pages. A build leaves that out: a heavy page is whole, only not ready to be published.
    """
    site = site.resolve()
    pages = [read_page(site, path) for path in sorted(site.rglob("*.html"))]
    if not pages:
        return [Problem(str(site.name), "no page", "build the site first: deepseek-edu build")]
    found: list[Problem] = []
    for part in (foreign, policy, links, claims, ids):
        found += part(site, pages)
    found += weight(site, pages) if budget else ()
    found += search_index(site)
    found += offline(site)
    for file, source, line in find_leaks(site, root):
        found.append(Problem(file, f"holds a line of {source}: {line!r}", "keep it out of what is published"))
    return sorted(set(found))


def foreign(site: Path, pages: Sequence[PageFacts]) -> Iterator[Problem]:
    """Addresses of other origins in whatever a browser loads."""
    cure = "ship the file with the site and refer to it by a relative address"
    for page in pages:
        for address, line in page.loaded:
            if is_foreign(address):
                yield Problem(page.name, f"line {line} loads {address} from another origin", cure, address)
    for path in sorted(site.rglob("*.css")):
        for found in CSS_ADDRESS.finditer(path.read_text(encoding="utf-8", errors="replace")):
            if is_foreign(found["url"]):
                yield Problem(_name(site, path), f"loads {found['url']} from another origin", cure)
    for path in sorted([*site.rglob("*.js"), *site.rglob("*.mjs")]):
        text = path.read_text(encoding="utf-8", errors="replace")
        for pattern in (SCRIPT_LOADS, PUBLIC_SERVERS):
            for found in pattern.finditer(text):
                if pattern is PUBLIC_SERVERS and "/pyodide/" in found["url"]:
                    continue  # Pyodide names its own server as a default; the page's loader says another place
                yield Problem(_name(site, path), f"loads {found['url']} from another origin", cure)


def policy(site: Path, pages: Sequence[PageFacts]) -> Iterator[Problem]:
    """Each page names the policy before it loads anything, and holds nothing the policy forbids."""
    for page in pages:
        if page.policy is None:
            yield Problem(
                page.name, "no Content-Security-Policy", "build with deepseek-edu build, whose last step adds it"
            )
        elif page.policy != POLICY:
            yield Problem(page.name, f"another Content-Security-Policy: {page.policy}", f"use {POLICY}")
        elif not page.policy_first:
            yield Problem(
                page.name, "the Content-Security-Policy comes after something loaded", "put it first in <head>"
            )
        for line in page.inline_scripts:
            yield Problem(page.name, f"an inline script on line {line}", "move the script into a file in assets/js")
        for name, line in page.handlers:
            yield Problem(page.name, f"an inline handler {name} on line {line}", "add the listener in assets/js")


def links(site: Path, pages: Sequence[PageFacts]) -> Iterator[Problem]:
    """Links and loaded files that lead nowhere, and anchors that do not exist."""
    anchors = {page.path: {id for id, _ in page.ids} for page in pages}
    for page in pages:
        for address, line in page.links:
            if address.strip().lower().startswith("javascript:"):
                yield Problem(page.name, f"a script as link on line {line}", "use a button and assets/js")
                continue
            led = target(site, page.path, address)
            if led is None:
                continue
            file, anchor = led
            if not file.is_file() or not file.is_relative_to(site):
                yield Problem(
                    page.name,
                    f"line {line} links to {address}, which does not exist",
                    "mend or remove the link",
                    address,
                )
            elif anchor and file in anchors and anchor not in anchors[file] and anchor != "__top":
                name = _name(site, file)
                yield Problem(
                    page.name,
                    f"line {line} links to #{anchor}, which {name} does not have",
                    "mend the anchor",
                    address,
                )
        for address, line in page.loaded:
            led = None if address.startswith("data:") else target(site, page.path, address)
            if led is not None and not led[0].is_file():
                yield Problem(
                    page.name, f"line {line} loads {address}, which does not exist", "mend the address", address
                )


def claims(site: Path, pages: Sequence[PageFacts]) -> Iterator[Problem]:
    """Evidence badges that lead to no entry of the ledger."""
    ledger = next((page for page in pages if page.name == "claims.html"), None)
    known = {id for id, _ in ledger.ids} if ledger else set()
    for page in pages:
        for address, line in page.claims:
            anchor = address.rpartition("#")[2]
            if anchor not in known:
                yield Problem(
                    page.name, f"the badge on line {line} names {anchor}, unknown to the ledger", "add the claim"
                )


def ids(site: Path, pages: Sequence[PageFacts]) -> Iterator[Problem]:
    """Ids that a page uses twice."""
    for page in pages:
        seen: dict[str, int] = {}
        for id, line in page.ids:
            if id in seen:
                yield Problem(page.name, f"the id {id} on lines {seen[id]} and {line}", "make ids unique", id)
            seen.setdefault(id, line)


def weight(site: Path, pages: Sequence[PageFacts]) -> Iterator[Problem]:
    """Pages whose first view transfers more than the budget."""
    sizes: dict[Path, int] = {}
    for page in pages:
        total = sum(transferred(path, sizes) for path in first_view(site, page))
        if total > FIRST_VIEW_BYTES:
            heaviest = sorted(first_view(site, page), key=lambda path: -transferred(path, sizes))[:3]
            named = ", ".join(f"{_name(site, path)} {transferred(path, sizes) // 1000} KB" for path in heaviest)
            yield Problem(
                page.name,
                f"first view of {total // 1000} KB compressed, over {FIRST_VIEW_BYTES // 1000} KB",
                f"make it lighter; the heaviest files are {named}",
            )


def first_view(site: Path, page: PageFacts) -> set[Path]:
    """Return the files a first view needs: the page, its styles and scripts, their typefaces, the search's worker.

    The search index waits until the reader searches (`shell.SEARCH_WAITS`).
    """
    files = {page.path}
    for address in page.eager:
        led = target(site, page.path, address)
        if led is not None and led[0].is_file():
            files.add(led[0])
    text = page.path.read_text(encoding="utf-8", errors="replace")
    for style in [file for file in files if file.suffix == ".css"]:
        for found in CSS_ADDRESS.finditer(style.read_text(encoding="utf-8", errors="replace")):
            led = target(site, style, found["url"])
            if led is not None and led[0].suffix == ".woff2" and _typeface_used(led[0].name, text):
                files.add(led[0])
    if 'data-md-component="search"' in text:
        files |= set(site.glob("assets/javascripts/workers/search.*.js"))
    return {file.resolve() for file in files}


def _typeface_used(file: str, page: str) -> bool:
    """Whether a page needs a typeface. KaTeX has one per style of formula; ours are counted whole."""
    if not file.startswith("KaTeX_"):
        return True
    marks = {
        "Main-Regular": 'class="katex"',
        "Math-Italic": "mathnormal",
        "Main-Bold": "mathbf",
        "AMS-Regular": "amsrm",
    }
    marks |= {f"Size{size}-Regular": f"delimsizing size{size}" for size in range(1, 5)}
    return any(file.startswith(f"KaTeX_{name}") and mark in page for name, mark in marks.items())


def transferred(path: Path, known: dict[Path, int]) -> int:
    """Return the bytes of a file as a server sends it."""
    if path not in known:
        data = path.read_bytes()
        known[path] = len(data) if path.suffix in (".woff2", ".png") else len(gzip.compress(data, 6, mtime=0))
    return known[path]


def search_index(site: Path) -> Iterator[Problem]:
    """A search index that is too large or holds more than prose."""
    for path in (site / "search/search_index.json", site / "search.json"):
        if not path.exists():
            continue
        size = path.stat().st_size
        if size > SEARCH_INDEX_BYTES:
            yield Problem(
                _name(site, path),
                f"{size} bytes, over {SEARCH_INDEX_BYTES}",
                "exclude outputs with data-search-exclude",
            )
        try:
            text = json.dumps(json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            yield Problem(_name(site, path), f"no JSON ({error}), so nothing can be searched", "build again")
            continue
        if re.search(r"base64,|<svg|&lt;svg", text):
            yield Problem(_name(site, path), "pictures in the search index", "exclude outputs with data-search-exclude")


def offline(site: Path) -> Iterator[Problem]:
    """Files that are not as the list for offline readers says; their browsers would refuse the copy."""
    if not (site / LISTING).is_file():
        return
    try:
        changed = differences(site)
    except (ValueError, KeyError, TypeError, AttributeError):
        yield Problem(LISTING, "no list of files, so nobody can keep the course on a device", "build again")
        return
    for name in changed:
        yield Problem(name, f"not as {LISTING} lists it", "build again, and change nothing in the finished site")


def _name(site: Path, path: Path) -> str:
    return path.relative_to(site).as_posix() if path.is_relative_to(site) else path.name


def report(problems: Iterable[Problem], limit: int = 100) -> str:
    """Return the problems as lines, with the number of those left out."""
    lines = [str(problem) for problem in problems]
    rest = [f"… and {len(lines) - limit} more"] if len(lines) > limit else []
    return "\n".join(lines[:limit] + rest)
