"""Typeset the formulas of rendered pages with KaTeX when the site is built: pages then need no script for them."""

from __future__ import annotations

import hashlib
import html
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from deepseek_edu.site.errors import SiteError

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">(?:\\\((?P<inline>.*?)\\\)|\\\[(?P<display>.*?)\\\])</(?P=tag)>', re.DOTALL
)


class FormulaError(SiteError):
    """KaTeX refuses a formula.

    Attributes:
        page: name of the rendered page that holds it.
        tex: the formula.
    """

    def __init__(self, page: str, tex: str, reason: str, place: str = "") -> None:
        self.page, self.tex, self.reason = page, tex, reason
        super().__init__(f"{place or page}: found the formula {tex!r}, which KaTeX refuses: {reason}")


def typeset(pages: Mapping[str, str], root: Path, cache: Path) -> dict[str, str]:
    """Return the pages (name → HTML) with every formula typeset.

    Raises:
        FormulaError: KaTeX refuses a formula; the message names page and formula.
    """
    wanted: dict[tuple[str, bool], str] = {}
    for name, text in pages.items():
        for found in FORMULA.finditer(text):
            wanted.setdefault(_key(found), name)
    known = _render(wanted, root, cache)
    return {name: FORMULA.sub(lambda found: _element(found, known), text) for name, text in pages.items()}


def _key(found: re.Match[str]) -> tuple[str, bool]:
    display = found["display"] is not None
    return html.unescape(found["display"] if display else found["inline"]).strip(), display


def _element(found: re.Match[str], known: Mapping[tuple[str, bool], str]) -> str:
    tex, display = _key(found)
    if not display:
        return f'<span class="edu-math">{known[tex, display]}</span>'
    return (
        '<div class="edu-math edu-math--display edu-scroll" tabindex="0" role="group" aria-label="Formula">'
        f"{known[tex, display]}</div>"
    )


def _render(wanted: Mapping[tuple[str, bool], str], root: Path, cache: Path) -> dict[tuple[str, bool], str]:
    """Return formula → HTML, from the cache where it was typeset by the same KaTeX before."""
    if not wanted:
        return {}
    package = root / "node_modules" / "katex" / "package.json"
    if not package.exists():
        raise SiteError(f"{package} is missing: run `npm ci` in {root} first")
    version = json.loads(package.read_text(encoding="utf-8"))["version"]
    file = cache / "katex.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    names = {key: hashlib.sha256(f"{version}\0{key[1]}\0{key[0]}".encode()).hexdigest() for key in wanted}
    missing = [key for key in wanted if names[key] not in kept]
    if missing:
        for key, answer in zip(missing, _katex(missing, root), strict=True):
            if "error" in answer:
                raise FormulaError(wanted[key], key[0], answer["error"])
            kept[names[key]] = answer["html"]
        cache.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(kept, ensure_ascii=False, sort_keys=True), encoding="utf-8")
    return {key: kept[name] for key, name in names.items()}


def _katex(formulas: list[tuple[str, bool]], root: Path) -> list[dict[str, str]]:
    from deepseek_edu.site.bundle import find_node

    script = Path(__file__).with_name("katex_batch.mjs")
    question = json.dumps({"root": str(root), "formulas": formulas})
    done = subprocess.run([find_node(), str(script)], input=question, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SiteError(f"KaTeX could not run: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)
