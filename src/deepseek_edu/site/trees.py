"""Changes to the tree of a page after Markdown has made it: tables that scroll, tooltips that appear once."""

from __future__ import annotations

from xml.etree import ElementTree as etree

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

SCROLLER = {"class": "edu-scroll", "role": "group", "aria-label": "Table", "tabindex": "0"}
NO_TOOLTIPS = {"h1", "h2", "h3", "h4", "h5", "h6", "a", "dt", "th", "code"}


class ScrollTables(Treeprocessor):
    """Put each table into a scroll container that the keyboard reaches, so that no page grows wider than a phone.

    A head without words, which Markdown cannot avoid, is dropped: screen readers would announce empty headers.
    """

    def run(self, root: etree.Element) -> None:
        for parent in list(root.iter()):
            for position, child in enumerate(list(parent)):
                if child.tag == "table":
                    head = child.find("thead")
                    if head is not None and not "".join(head.itertext()).strip():
                        child.remove(head)
                    holder = etree.Element("div", SCROLLER)
                    holder.tail, child.tail = child.tail, None
                    parent[position] = holder
                    holder.append(child)


class FirstTooltips(Treeprocessor):
    """Keep a glossary tooltip where a term first appears in the prose of a page, and nowhere in headings and links."""

    def run(self, root: etree.Element) -> None:
        seen: set[str] = set()
        self._thin(root, seen, inside=False)

    def _thin(self, element: etree.Element, seen: set[str], inside: bool) -> None:
        inside = inside or element.tag in NO_TOOLTIPS
        for child in list(element):
            if child.tag != "abbr":
                self._thin(child, seen, inside)
                continue
            term = "".join(child.itertext())
            if inside or term in seen:
                _unwrap(element, child)
            else:
                seen.add(term)


def _unwrap(parent: etree.Element, child: etree.Element) -> None:
    """Replace an element without children by its text."""
    text = (child.text or "") + (child.tail or "")
    position = list(parent).index(child)
    if position == 0:
        parent.text = (parent.text or "") + text
    else:
        before = parent[position - 1]
        before.tail = (before.tail or "") + text
    parent.remove(child)


class ScrollTablesExtension(Extension):
    """The table container alone, for Markdown inside of blocks."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.treeprocessors.register(ScrollTables(md), "edu-tables", 8)
