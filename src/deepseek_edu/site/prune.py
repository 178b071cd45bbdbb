"""Drop rules of the shell's style sheets that no page of this site can use.

A selector goes if it needs a class whose name occurs nowhere in the site's pages, scripts or widget states, or a colour
of the shell's palette that the site does not use. That is a generous test (any word counts), so nothing in use is lost;
it removes a third of what each first view transfers as style.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from pathlib import Path

import tinycss2

WORD = re.compile(r"[A-Za-z_][\w-]*")
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
COLOUR = re.compile(r'\[data-md-color-(?P<role>primary|accent)="?(?P<name>[\w-]+)"?\]')
CONDITION = re.compile(r":(?:not|is|where|has)\([^)]*\)")
GROUPS = ("media", "supports")


def words_of(site: Path) -> set[str]:
    """Return every word of the site's pages, scripts and widget states."""
    files = [*site.rglob("*.html"), *site.glob("assets/javascripts/*.js"), *site.glob("edu/*.js")]
    texts = [file.read_text(encoding="utf-8") for file in files]
    texts += [gzip.decompress(file.read_bytes()).decode("utf-8") for file in site.glob("edu/widgets/*.states")]
    words = {word for text in texts for word in WORD.findall(text)}
    page = (site / "index.html").read_text(encoding="utf-8")
    colours = re.findall(r'data-md-color-(primary|accent)="([\w-]+)"', page)
    return words | {f"{role}={name}" for role, name in colours}


def prune(css: str, words: set[str]) -> str:
    """Return a style sheet without the selectors that need a class outside of `words`.

    >>> prune(".used{top:0}.used .gone,.gone{top:1px}@media print{.gone{top:0}}", {"used"})
    '.used{top:0}'
    """
    return "".join(_rules(tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True), words))


def _rules(rules: Iterable[tinycss2.ast.Node], words: set[str]) -> Iterable[str]:
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors = [text for text in _selectors(tinycss2.serialize(rule.prelude)) if _possible(text, words)]
            if selectors:
                yield f"{','.join(selectors)}{{{tinycss2.serialize(rule.content)}}}"
        elif rule.type == "at-rule" and rule.content is not None and rule.lower_at_keyword in GROUPS:
            inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
            if kept := "".join(_rules(inner, words)):
                yield f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{kept}}}"
        else:
            yield rule.serialize()


def _possible(selector: str, words: set[str]) -> bool:
    colours = all(f"{found['role']}={found['name']}" in words for found in COLOUR.finditer(selector))
    return colours and all(name in words for name in CLASS.findall(CONDITION.sub("", selector)))


def _selectors(prelude: str) -> list[str]:
    """Split at the commas that are outside of brackets."""
    parts, depth = [""], 0
    for char in prelude:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
