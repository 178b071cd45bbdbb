"""One built page as the checks see it: ids, links, loaded addresses, scripts, policy."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "iframe": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "use": ("href", "xlink:href"),
    "image": ("href", "xlink:href"),
    "input": ("src",),
    "form": ("action",),
    "body": ("background",),
}
LOADING_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "manifest", "prefetch", "preconnect", "dns-prefetch"}
CSS_ADDRESS = re.compile(r"""(?:url\(\s*|@import\s+)["']?(?P<url>[^"')\s;]+)""")


@dataclass
class PageFacts:
    """What a page holds, in order of appearance; numbers are lines of the file."""

    path: Path
    name: str
    ids: list[tuple[str, int]] = field(default_factory=list)
    links: list[tuple[str, int]] = field(default_factory=list)
    claims: list[tuple[str, int]] = field(default_factory=list)
    loaded: list[tuple[str, int]] = field(default_factory=list)
    eager: list[str] = field(default_factory=list)
    inline_scripts: list[int] = field(default_factory=list)
    handlers: list[tuple[str, int]] = field(default_factory=list)
    policy: str | None = None
    policy_first: bool = True


class _Reader(HTMLParser):
    def __init__(self, facts: PageFacts) -> None:
        super().__init__(convert_charrefs=True)
        self.facts = facts
        self.style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts, line = self.facts, self.getpos()[0]
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            facts.ids.append((values["id"], line))
        for name, value in values.items():
            if name.startswith("on"):
                facts.handlers.append((name, line))
            if name == "style":
                facts.loaded += [(found["url"], line) for found in CSS_ADDRESS.finditer(value)]
        self.style = tag == "style"
        if tag == "a" and "href" in values:
            facts.links.append((values["href"], line))
            if "edu-claim" in values.get("class", "").split():
                facts.claims.append((values["href"], line))
        elif tag == "link":
            self._link(values, line)
        elif tag == "meta" and values.get("http-equiv", "").lower() == "content-security-policy":
            facts.policy = values.get("content", "")
        elif tag == "script" and "src" not in values and "json" not in values.get("type", ""):
            facts.inline_scripts.append(line)
        for name in LOADED.get(tag, ()):
            for address in _addresses(name, values.get(name, "")):
                self._load(address, line, eager=tag == "script")

    def handle_data(self, data: str) -> None:
        if self.style:
            self.facts.loaded += [(found["url"], self.getpos()[0]) for found in CSS_ADDRESS.finditer(data)]
            self.style = False

    def _link(self, values: dict[str, str], line: int) -> None:
        relations = set(values.get("rel", "").lower().split())
        if "href" in values and relations & LOADING_LINKS:
            self._load(values["href"], line, eager=bool(relations & {"stylesheet", "preload", "modulepreload", "icon"}))

    def _load(self, address: str, line: int, eager: bool) -> None:
        if self.facts.policy is None:
            self.facts.policy_first = False
        self.facts.loaded.append((address, line))
        if eager:
            self.facts.eager.append(address)


def _addresses(attribute: str, value: str) -> list[str]:
    if attribute == "srcset":
        return [part.split()[0] for part in value.split(",") if part.split()]
    return [value] if value else []


def read_page(site: Path, path: Path) -> PageFacts:
    """Parse one page of a built site."""
    facts = PageFacts(path, path.relative_to(site).as_posix())
    reader = _Reader(facts)
    reader.feed(path.read_text(encoding="utf-8", errors="replace"))
    reader.close()
    return facts


def is_foreign(address: str) -> bool:
    """Whether loading this address would ask another origin."""
    parts = urlsplit(address.strip())
    return parts.scheme in ("http", "https", "ws", "wss", "ftp") or bool(parts.netloc)


def target(site: Path, page: Path, address: str) -> tuple[Path, str] | None:
    """Return the file and the anchor a relative address leads to; None for addresses that lead elsewhere."""
    parts = urlsplit(address.strip())
    if parts.scheme or parts.netloc:
        return None
    if not parts.path:
        return page, unquote(parts.fragment)
    start = site if parts.path.startswith("/") else page.parent
    file = (start / unquote(parts.path).lstrip("/")).resolve()
    if file.is_dir() or parts.path.endswith("/"):
        file = file / "index.html"
    return file, unquote(parts.fragment)
