"""Write the pages of the API reference into the staged docs: one per file of the package, and an overview.

Every first view loads the search index, so a page stands in it with its first paragraph and the names of its items.
"""

from __future__ import annotations

import ast
import html
import json
import re
from pathlib import Path
from typing import Any

from deepseek_edu.site.api import docstring
from deepseek_edu.site.api.names import Names
from deepseek_edu.site.api.parts import Field, Item, Module, Package
from deepseek_edu.site.api.read import packages

INDEX = "api/index.md"
"""The entry of `nav` in `mkdocs.yml` that stands for the whole reference."""

TITLE = "API reference"
FIRST_SENTENCE = re.compile(r".+?[.!?](?=\s|$)")
INTRODUCTION = """\
Every public function and class of the package, in reading order: what it takes and returns, when it refuses, where it
is described, and its source. The pages are made from the sources when the site is built.

The NumPy files come first. They are written to be read, one sequence at a time. The PyTorch files of the same name do
the same for batches, with caches and gradients. [The model in reading order](../model.md) says what each file is for
and which tests pin it.

One alphabet of shapes is used everywhere: B batch, T positions, N entries, H heads, D head width, C model width,
S streams, E experts, K selected, V vocabulary, R low-rank width. `[T H D]` is an array with these three dimensions.
"""


def write(root: Path, docs: Path) -> list[Any]:
    """Write all pages below `docs/api`; return the navigation below their entry."""
    found = packages(root)
    names = Names(found)
    (docs / "api").mkdir()
    (docs / INDEX).write_text(_index(found, names), encoding="utf-8")
    for package in found:
        if package.name:
            (docs / "api" / package.name).mkdir()
        for module in package.modules:
            (docs / "api" / f"{module.path}.md").write_text(_page(package, module, names), encoding="utf-8")
    return nav_entry(found)


def nav_entry(found: list[Package]) -> list[Any]:
    """Return what the navigation shows below the entry of the reference."""
    entries: list[Any] = [{"Overview": INDEX}]
    for package in found:
        pages = [{module.name: f"api/{module.path}.md"} for module in package.modules]
        entries.append({package.title: pages})
    return entries


def _front(title: str, description: str, source: str) -> str:
    head = {"title": title, "description": description}
    lines = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in head.items())
    return f"---\n{lines}---\n<!-- edu-source: {source}:1 plain -->\n"


# The overview


def _index(found: list[Package], names: Names) -> str:
    source = "src/deepseek_edu/__init__.py"
    out = [_front(TITLE, "Every public function of the package.", source), f"# {TITLE}\n\n{INTRODUCTION}"]
    for package in found:
        out.append(f"## {package.title}\n")
        if lead := docstring.summary([("text", package.doc)]):
            out.append(f"{html.escape(lead, quote=False)}\n")
        out.append(_excluded(_contents_of(package, names)))
    return "\n".join(out)


def _contents_of(package: Package, names: Names) -> str:
    rows = []
    for group in package.groups:
        if group.title and len(group.modules) > 1:
            title = group.title[0].upper() + group.title[1:]
            rows.append(f'<tr class="edu-api__group"><th colspan="3" scope="colgroup">{html.escape(title)}</th></tr>')
        rows += [_module_row(module, names) for module in group.modules]
    head = "<thead><tr><th>file</th><th>what it is</th><th>twin</th></tr></thead>"
    return f'{_scroll("Files")}<table class="edu-api__files">{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _module_row(module: Module, names: Names) -> str:
    link = f'<a href="{module.path}.html"><code>{module.name}</code></a>'
    twin = names.twin(module)
    other = f'<a href="{twin[1].removeprefix("../")}">{twin[0]}</a>' if twin else ""
    return f"<tr><td>{link}</td><td>{docstring.text(_lead(module), lambda name: None)}</td><td>{other}</td></tr>"


def _lead(module: Module) -> str:
    first = docstring.summary([("text", module.doc)])
    sentence = FIRST_SENTENCE.match(first)
    return sentence.group() if sentence else first


# One file

_UNSEARCHED = ("", " data-search-exclude")  # the first paragraph of a file whose twin says the same


def _page(package: Package, module: Module, names: Names) -> str:
    link = names.link(module)
    lead, _, rest = module.doc.partition("\n\n")
    twin = names.twin(module)
    other = f' · <a href="{twin[1]}">the same in {twin[0]}</a>' if twin else ""
    shown = module.file.removeprefix("src/")
    bar = f'<p class="edu-api__bar"><span>{package.title}</span> · <code>{shown}</code>{other}</p>'
    out = [
        _front(f"{module.name} ({package.title})" if module.package else module.name, _lead(module), module.file),
        f"# {module.name}",
        _excluded(bar),
        f'<p class="edu-api__lead"{_UNSEARCHED[bool(twin and package.name == "model")]}>'
        f"{docstring.text(' '.join(lead.split()), link)}</p>",
    ]
    if rest.strip():
        out.append(_excluded(docstring.blocks(rest, link)))
    if len(module.items) > 1:
        out.append(_contents(module))
    for item in module.items:
        out += _item(module, item, names, level=2)
        for member in item.members:
            out += _item(module, member, names, level=3)
    return "\n\n".join(out) + "\n"


def _contents(module: Module) -> str:
    """Return the list of the file's items; their names stand in the search index as words of the page."""
    rows = "".join(
        f'<dt><a href="#{item.anchor}"><code>{item.name}</code></a></dt>'
        f"<dd data-search-exclude>{docstring.text(_summary(item), lambda name: None) or item.kind}</dd>"
        for item in module.items
    )
    return f'<div class="edu-api"><dl class="edu-api__contents">{rows}</dl></div>'


def _summary(item: Item) -> str:
    return docstring.summary(docstring.sections(item.docstring)) or item.doc


def _item(module: Module, item: Item, names: Names, level: int) -> list[str]:
    """Return heading, signature, summary and the rest, each a block of the page."""
    parts = docstring.completed(docstring.sections(item.docstring), item.parameters, names.common(module))
    link = names.link(module, item.parameters)
    twin = names.twin(module, item.anchor)
    other = f'<a href="{twin[1]}">in {twin[0]}</a>' if twin else ""
    kind = item.kind + (f" of {', '.join(item.bases)}" if item.bases else "")
    bar = f'<p class="edu-api__bar"><span>{html.escape(kind)}</span>{" · " if other else ""}{other}</p>'
    attributes = f'#{item.anchor} .edu-api__name data-toc-label="{item.name}" data-search-exclude=1'
    out = [
        f"{'#' * level} `{item.anchor}` {{ {attributes} }}",
        _excluded(bar + docstring.code(item.signature, "python", f"Signature of {item.anchor}")),
    ]
    if summary := _summary(item):
        out.append(f"<p data-search-exclude>{docstring.text(summary, link)}</p>")
    told = dict(next((content for kind, content in parts if kind == "attributes"), []))
    inner = docstring.body(parts, link, without=("attributes",) if item.fields else ())
    inner += _fields(item.fields, told, link) if item.fields else ""
    inner += _source(module, item) if item.kind not in ("constant", "property") and level == 2 else ""
    return [*out, _excluded(inner)] if inner else out


def _fields(fields: tuple[Field, ...], told: dict[str, str], link: docstring.Link) -> str:
    rows, heading = [], ""
    for part in fields:
        if part.heading != heading:
            heading = part.heading
            rows.append(f'<tr class="edu-api__group"><th colspan="3" scope="colgroup">{html.escape(heading)}</th></tr>')
        default = f" = {part.default}" if part.default else ""
        typed = html.escape(f"{part.type}{default}", quote=False)
        words = docstring.text(" ".join(told.get(part.name, part.doc).split()), link)
        rows.append(f"<tr><td><code>{part.name}</code></td><td><code>{typed}</code></td><td>{words}</td></tr>")
    head = "<thead><tr><th>field</th><th>type</th><th>meaning</th></tr></thead>"
    return f'{_scroll("Fields")}<table class="edu-api__fields">{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _source(module: Module, item: Item) -> str:
    place = f"{Path(module.file).name}, lines {item.first}–{item.last}"
    shown = docstring.code(without_docstrings(item.source), "python", f"Source of {item.anchor}")
    summary = f"<summary>Source, without docstrings <span>{place}</span></summary>"
    return f'<details class="edu-api__source">{summary}{shown}</details>'


def without_docstrings(source: str) -> str:
    """Return code without its docstrings, which the page shows above it.

    >>> without_docstrings('def f(x):\\n    \\"\\"\\"Return x.\\"\\"\\"\\n    return x')
    'def f(x):\\n    return x'
    """
    lines: list[str | None] = list(source.split("\n"))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None:
            if len(node.body) == 1:
                continue
            said = node.body[0]
            for number in range(said.lineno - 1, said.end_lineno or said.lineno):
                lines[number] = None
            while said.end_lineno < len(lines) and not (lines[said.end_lineno] or "x").strip():
                lines[said.end_lineno], said.end_lineno = None, said.end_lineno + 1
    return "\n".join(line for line in lines if line is not None)


def _scroll(name: str) -> str:
    return docstring.SCROLL.format(name=name)


def _excluded(inner: str) -> str:
    """Keep a part out of the search index; the shell's exclusion ends with the first element of the same name."""
    return f'<section class="edu-api" data-search-exclude>{inner}</section>'
