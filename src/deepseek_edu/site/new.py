"""Scaffold a chapter, a lab or a widget: files that build as they are and say what to put in their place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from deepseek_edu.site.errors import SiteError, one_of

ID = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")

CHAPTER = """\
---
title: {title}
description: One sentence that says what a reader learns here.
chapter: {id}
section: Drafts
objectives:
  - Say in one line what the reader can do afterwards.
prerequisites:
  - Say what the reader needs to know before.
---

# {title}

Begin with an example, before any abstraction. Numbers are computed when the site is built: sixteen four-bit values and
their scale take [[= quant.fp4_bytes(16, 16) ]] bytes [[claim fp4-bits-per-value]].

## Try it

```quiz
id: {id}-first
question: How many bytes do 32 values take in the same format?
answer: quant.fp4_bytes(32, 16)
unit: bytes
tolerance: 0
why: "Two groups of nine bytes."
```

## Limits of this chapter

- Say plainly what is not shown here.

## Sources

- Name the source with section and page. Every fact a reader could doubt is a claim in `course/claims/{id}.toml`.
"""

LAB = {
    "lab.toml": """\
title = "{title}"
points = 10
chapter = "04b_fp4_cache"
mechanism = ["deepseek_edu.reference.quant:pack_nibbles"]
functions = ["double"]
solutions = "none"

[limits]
seconds = 2.0
memory_mb = 512
""",
    "statement.md": """\
Write `double(values)`: a list with every number of `values` doubled, in the same order. Replace this task by your own.
""",
    "starter.py": '''\
def double(values):
    """Return a list with every number doubled."""
    raise NotImplementedError("write this function")
''',
    "solution.py": '''\
def double(values):
    """Return a list with every number doubled."""
    return [2 * value for value in values]
''',
    "cases.py": '''\
"""Visible cases and the generator of hidden ones. `expected` is derived apart from the solution."""

from deepseek_edu.grading import Case

HIDDEN = 6


def expected(values):
    """Doubling as addition."""
    return [value + value for value in values]


def visible():
    """What learners see and run on the page."""
    return [
        Case(id="two-numbers", function="double", args=([1, 2],), expected=[2, 4], points=1),
        Case(id="empty", function="double", args=([],), expected=[], points=1),
    ]


def generate(rng, index):
    """Return hidden case `index`; the same for the same random state."""
    values = [rng.randint(-100, 100) for _ in range(index + 1)]
    return Case(id=f"hidden-{{index}}", function="double", args=(values,), expected=expected(values), points=1)
''',
    "wrong/squares.py": '''\
"""Squares instead of doubling: right for 0 and 2 only. Fails two-numbers."""


def double(values):
    return [value * value for value in values]
''',
    "wrong/first_only.py": '''\
"""Doubles the first number and forgets the others. Fails two-numbers."""


def double(values):
    return [2 * value for value in values[:1]]
''',
}

WIDGET = '''\
"""Widget `{id}`: say what it shows and which section of which source describes it."""

from deepseek_edu.reference.quant import round_to_e2m1

from .contract import Slider, View, widget
from .parts import Metric, Metrics, Prose


@widget(
    "{id}",
    title="{title}",
    mechanism={{"reference.quant": ("round_to_e2m1",)}},
    source="report §2.4.4",
    chapter="04b_fp4_cache",
)
def {function}(value: Slider(-8, 8, 0.05, "Value") = 3.2) -> View:
    """Round one value. Replace this by the mechanism of your widget."""
    level = float(round_to_e2m1(value))
    metrics = Metrics((Metric("stored as", level), Metric("error", level - value)))
    words = f"{{value:.2f}} is stored as {{level:g}}."
    return View((metrics, Prose(words)), words)
'''


def new(root: Path, kind: str, id: str) -> list[Path]:
    """Write the files of a new chapter, lab or widget and return them.

    Raises:
        SiteError: an unknown kind, an id that cannot be one, or files that are already there.
    """
    makers: dict[str, Callable[[Path, str], list[Path]]] = {"chapter": _chapter, "lab": _lab, "widget": _widget}
    if kind not in makers:
        raise SiteError(f"found the kind {kind!r}; allowed: {one_of(makers, kind)}")
    if not ID.fullmatch(id):
        raise SiteError(f"found the id {id!r}; allowed: lower-case words joined by hyphens or underscores")
    return makers[kind](root, id)


def _title(id: str) -> str:
    return re.sub(r"[-_]", " ", id).capitalize()


def _write(path: Path, text: str) -> Path:
    if path.exists():
        raise SiteError(f"found {path}, which is already there; choose another id")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _chapter(root: Path, id: str) -> list[Path]:
    config = root / "mkdocs.yml"
    lines = config.read_text(encoding="utf-8").split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip() == "- Chapters:"), None)
    if start is None:
        raise SiteError("mkdocs.yml: found no `- Chapters:` in nav; allowed: a nav with that section")
    end = start + 1
    while end < len(lines) and lines[end].startswith("      - "):
        end += 1
    written = _write(root / "course" / f"{id}.md", CHAPTER.format(id=id, title=_title(id)))
    lines.insert(end, f"      - {_title(id)}: {id}.md")
    config.write_text("\n".join(lines), encoding="utf-8")
    return [written, config]


def _lab(root: Path, id: str) -> list[Path]:
    folder = root / "labs" / id
    if folder.exists():
        raise SiteError(f"found {folder}, which is already there; choose another id")
    return [_write(folder / name, text.format(title=_title(id))) for name, text in LAB.items()]


def _widget(root: Path, id: str) -> list[Path]:
    function = id.replace("-", "_")
    package = root / "src" / "deepseek_edu" / "widgets"
    index = package / "__init__.py"
    text = index.read_text(encoding="utf-8")
    listed, count = re.subn(r"(?ms)^(_WIDGETS = \(\n.*?)^\)$", rf'\1    "{id}",\n)', text)
    if count != 1:
        raise SiteError(f"{index}: found no list `_WIDGETS = (…)`; allowed: one with an id on each line")
    title = _title(id)
    written = _write(package / f"{function}.py", WIDGET.format(id=id, function=function, title=title))
    index.write_text(listed, encoding="utf-8")
    return [written, index]
