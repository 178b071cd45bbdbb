"""A docstring as HTML: paragraphs, aligned columns as tables, arguments, examples, and links to what it names."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import griffe
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, Token

Link = Callable[[str], str | None]
"""From a name in the text to an address, or None."""

CODE = re.compile(r"``?(?P<code>[^`]+)``?")
FILE = re.compile(r"(?<![\w./])(?:(?P<folder>[a-z_]+)/)?(?P<name>[a-z][a-z0-9_]*)\.py\b")
GAP = re.compile(r"\s{2,}")
ITEM = re.compile(r"[-*] ")
FOREIGN = re.compile(r"(?:reference|kernels?|engine)\s(?:`[^`]*`(?:,| and| or|;)?\s)*$")
"""Words before a name of the released code, which may be called like one of ours."""


def text(words: str, link: Link) -> str:
    """Return one paragraph's words: code spans and file names become code, with links where they lead somewhere."""
    out, position = [], 0
    for found in re.finditer(rf"{CODE.pattern}|{FILE.pattern}", words):
        out.append(html.escape(words[position : found.start()], quote=False))
        shown = found["code"] or found.group()
        foreign = found["code"] and FOREIGN.search(words[: found.start()])
        address = None if foreign else link(shown)
        code = f"<code>{html.escape(shown, quote=False)}</code>"
        out.append(f'<a href="{html.escape(address)}">{code}</a>' if address else code)
        position = found.end()
    out.append(html.escape(words[position:], quote=False))
    return "".join(out)


def blocks(words: str, link: Link) -> str:
    """Return text of several paragraphs; what is indented stands by itself, `>>>` begins an example."""
    return "".join(_block(lines, link) for lines in _paragraphs(words))


def _paragraphs(words: str) -> Iterator[list[str]]:
    """Yield runs of lines: parted by blank lines, and where indented lines begin or end."""
    run: list[str] = []
    for line in [*words.strip("\n").split("\n"), ""]:
        example = bool(run) and run[0].startswith(">>>")
        turned = bool(run) and run[0].startswith("    ") != line.startswith("    ") and not ITEM.match(run[0])
        if not line.strip() or (turned and not example):
            if run:
                yield run
            run = []
        if line.strip():
            run.append(line)


def _block(lines: list[str], link: Link) -> str:
    if lines[0].startswith(">>>"):
        return f'<p class="edu-api__label">Example</p>{code(chr(10).join(lines), "pycon", "Example")}'
    if lines[0].startswith("    "):
        inner = [line[4:] for line in lines]
        rows = columns(inner)
        return _table(rows, link) if rows else _pre(inner)
    if ITEM.match(lines[0]):
        items = re.split(r"\n[-*] ", "\n" + "\n".join(lines))[1:]
        return f"<ul>{''.join(f'<li>{text(_joined(item), link)}</li>' for item in items)}</ul>"
    words = " ".join(line.strip() for line in lines)
    said, source, told = words.partition("Source: ")
    shown = f"<p>{text(said.strip(), link)}</p>" if said else ""
    if source:
        shown += f'<p class="edu-api__from"><b>Source</b> {text(told, lambda name: _file_only(name, link))}</p>'
    return shown


def _file_only(name: str, link: Link) -> str | None:
    """Link files alone: in a list of sources the other names are those of the released code."""
    return link(name) if FILE.fullmatch(name) else None


def _joined(words: str) -> str:
    return " ".join(words.split())


def columns(lines: list[str]) -> list[list[str]]:
    """Return the cells of lines whose words stand in columns, or [] if they do not.

    A line without a first cell goes on with the cells of the one before it, and so does one after a comma.

    >>> columns(["norms, rope   small", "mhc,          streams,", "block         layers"])
    [['norms, rope', 'small'], ['mhc, block', 'streams, layers']]
    """
    starts = [0, *(found.end() for found in GAP.finditer(lines[0]))]
    if len(starts) == 1:
        return []
    rows: list[list[str]] = []
    for line in lines:
        if any(len(line) > start and line[start - 1 : start].strip() for start in starts[1:]):
            return []
        cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]
        if rows and (not cells[0] or rows[-1][0].endswith(",")):
            rows[-1] = [f"{before} {cell}".strip() for before, cell in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return [] if any(GAP.search(cell) for row in rows for cell in row) else rows


def _table(rows: list[list[str]], link: Link) -> str:
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell, link)}</td>' for cell in row)}</tr>" for row in rows)
    return f"{SCROLL.format(name='Table')}<table><tbody>{body}</tbody></table></div>"


SCROLL = '<div class="edu-scroll" role="group" aria-label="{name}" tabindex="0">'


def _cell(words: str, link: Link) -> str:
    """Return a cell; names in a row that all lead somewhere become links."""
    names = [link(part) for part in words.split(", ")] if re.fullmatch(r"[a-z0-9_]+(, [a-z0-9_]+)*", words) else []
    if names and all(names):
        return text(", ".join(f"`{part}`" for part in words.split(", ")), link)
    return text(words, link)


def _pre(lines: Iterable[str]) -> str:
    shown = html.escape("\n".join(lines), quote=False).replace("\n", "&#10;")
    return f'<div class="edu-output" role="group" aria-label="Formula" tabindex="0"><pre>{shown}</pre></div>'


@cache
def _lexer(name: str) -> Any:
    return get_lexer_by_name(name)


COLOURED = (Token.Keyword, Token.Literal, Token.Comment, Token.Name.Function, Token.Name.Class, Token.Generic)


def coloured(source: str, language: str = "python") -> str:
    """Return highlighted code on one line of HTML, which Markdown therefore leaves alone.

    Only what tells a reader most has a colour: each marked name costs the build and every page.
    """
    out = []
    for kind, words in _lexer(language).get_tokens(source.rstrip("\n")):
        shown = html.escape(words, quote=False)
        if words.strip() and any(kind in group for group in COLOURED):
            shown = f'<span class="{_class_of(kind)}">{shown}</span>'
        out.append(shown)
    return "".join(out).rstrip("\n").replace("\n", "&#10;")


def _class_of(kind: Any) -> str:
    """Return Pygments' short class of a kind of token; a kind without one has that of its parent."""
    return next(found for part in (kind, *reversed(kind.split()[:-1])) if (found := STANDARD_TYPES.get(part)))


def code(source: str, language: str, name: str) -> str:
    """Return a block of code as the site's other blocks are: highlighted, reached by the keyboard."""
    attributes = f'tabindex="0" role="group" aria-label="{html.escape(name)}"'
    shown = f"<pre><span></span><code {attributes}>{coloured(source, language)}</code></pre>"
    return f'<div class="language-{language} highlight">{shown}</div>'


Sections = list[tuple[str, Any]]


def sections(docstring: griffe.Docstring | None) -> Sections:
    """Return (kind, content) in order: kind text, parameters, attributes, returns or raises.

    The content of text and returns is a string, that of the others a list of (name, words).
    """
    found: Sections = []
    if docstring is None:
        return found
    options = {"returns_named_value": False, "returns_multiple_items": False, "warnings": False}
    for section in docstring.parse("google", **options):
        kind = section.kind.value
        if kind == "text":
            found.append((kind, section.value))
        elif kind in ("parameters", "attributes"):
            found.append((kind, [(part.name, part.description) for part in section.value]))
        elif kind == "raises":
            found.append((kind, [(str(part.annotation), part.description) for part in section.value]))
        elif kind in ("returns", "yields"):
            found.append((kind, _as_written(docstring.value, kind)))
    return found


def _as_written(words: str, kind: str) -> str:
    """Return the text below `Returns:`. Griffe would take `float64 [N]: …` for a type and write it anew."""
    found = re.search(rf"(?m)^{kind.capitalize()}:\n(?P<text>(?:[ ]+.*\n?|\n(?=[ ]))+)", words)
    return _joined(found["text"]) if found else ""


LABELS = {
    "parameters": "Arguments",
    "attributes": "Attributes",
    "returns": "Returns",
    "yields": "Yields",
    "raises": "Raises",
}


def body(parts: Sections, link: Link, without: tuple[str, ...] = ()) -> str:
    """Return a parsed docstring without its first paragraph, which is the summary."""
    out = []
    for position, (kind, content) in enumerate(parts):
        if kind in without:
            continue
        if kind == "text":
            words = content if position else content.partition("\n\n")[2]
            out.append(blocks(words, link) if words.strip() else "")
            continue
        out.append(f'<p class="edu-api__label">{LABELS[kind]}</p>')
        if isinstance(content, str):
            out.append(f"<p>{text(_joined(content), link)}</p>")
        else:
            rows = "".join(
                f"<dt><code>{html.escape(name, quote=False)}</code></dt><dd>{text(_joined(words), link)}</dd>"
                for name, words in content
            )
            out.append(f'<dl class="edu-api__list">{rows}</dl>')
    return "".join(out)


def conventions(doc: str) -> dict[str, str]:
    """Return parameter → meaning from the table that a package has below a line `Arguments … :`.

    >>> conventions("Arguments of one meaning everywhere:\\n\\n    w          weights\\n    gain, eps  of the norm")
    {'w': 'weights', 'gain': 'of the norm', 'eps': 'of the norm'}
    """
    found = re.search(r"(?m)^Arguments [^\n]*:\n\n(?P<table>(?:    .*\n?)+)", doc)
    rows = columns([line[4:] for line in found["table"].rstrip("\n").split("\n")]) if found else []
    return {name: row[1] for row in rows for name in row[0].split(", ")}


def told(parts: Sections, name: str) -> str:
    """Return what the lists of arguments say of one of them: its entry, or `projection: [M N]; base [M]` for base."""
    entries = [entry for kind, content in parts if kind == "parameters" for entry in content]
    for entry, words in entries:
        if name in re.findall(r"\w+", entry):
            return words
    return next((words for _, words in entries if re.search(rf"[.;,\]] {name}\b", words)), "")


def completed(parts: Sections, names: Iterable[str], common: dict[str, str]) -> Sections:
    """Add arguments that mean the same everywhere and of which a docstring therefore says nothing."""
    missing = [(name, common[name]) for name in names if name in common and not told(parts, name)]
    if not missing:
        return parts
    at = next((n for n, part in enumerate(parts) if part[0] == "parameters"), None)
    if at is None:
        return [*parts[:1], ("parameters", missing), *parts[1:]]
    return [*parts[:at], ("parameters", [*parts[at][1], *missing]), *parts[at + 1 :]]


def summary(parts: Sections) -> str:
    """Return the first paragraph."""
    return _joined(parts[0][1].partition("\n\n")[0]) if parts and parts[0][0] == "text" else ""
