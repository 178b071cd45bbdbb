"""Keep the pages of the API reference out of the navigation of all other pages, where one link stands for them.

The shell writes the whole navigation into every page. Its own way to shorten it would also hide the glossary and the
other chapters.
"""

from __future__ import annotations

import re

from deepseek_edu.site.api.pages import INDEX, TITLE

LABEL = re.compile(rf">\s*{TITLE}\s*<")
ITEM = re.compile(r"<li\b|</li>")
OPENING = '<li class="md-nav__item'
LINK = f'{OPENING}"><a href="{{address}}" class="md-nav__link"><span class="md-ellipsis">{TITLE}</span></a></li>'


def trimmed(name: str, text: str) -> str:
    """Return a finished page with one link in place of the section of the reference.

    Args:
        name: of the page, relative to the site; those of the reference keep the section.
        text: its HTML.
    """
    folder = INDEX.partition("/")[0]
    label = LABEL.search(text)
    if name.startswith(f"{folder}/") or label is None:
        return text
    start = text.rfind(OPENING, 0, label.start())
    if start < 0 or "md-nav__item--nested" not in text[start : text.index(">", start)]:
        return text
    depth = 0
    for found in ITEM.finditer(text, start):
        depth += 1 if found.group() == "<li" else -1
        if depth == 0:
            address = "../" * name.count("/") + INDEX.removesuffix(".md") + ".html"
            return text[:start] + LINK.format(address=address) + text[found.end() :]
    return text
