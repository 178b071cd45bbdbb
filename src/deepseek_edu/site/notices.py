"""The page of notices: everything the site ships that others made, with its licence text."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

USES = {
    "pyodide": "Python in the browser; loaded after a click",
    "katex": "typesetting of formulas at build time, its fonts and styles",
    "plotly.js-basic-dist-min": "interactive figures; loaded after a click",
    "numpy": "array library in the browser's Python; loaded after a click",
    "mkdocs-material": "page layout, styles, search, icons (Material Design Icons, Apache-2.0)",
}
PYODIDE_NOTE = (
    "Pyodide is distributed under the Mozilla Public License 2.0; its source code is available at "
    "https://github.com/pyodide/pyodide under the tag of the version above, and the licence text at "
    "https://www.mozilla.org/MPL/2.0/. It contains CPython and its standard library (Python Software Foundation "
    "License, https://docs.python.org/3/license.html), and libraries under permissive licences that Pyodide lists."
)


@dataclass(frozen=True)
class Notice:
    """One work of others: name, version, licence, what it does here, licence text."""

    name: str
    version: str
    licence: str
    use: str
    text: str


def shipped(root: Path) -> list[Notice]:
    """Return what the site ships: npm packages that are not only for development, NumPy, the page layout."""
    lock = json.loads((root / "package-lock.json").read_text(encoding="utf-8"))
    found = []
    for path, entry in sorted(lock["packages"].items()):
        name = path.removeprefix("node_modules/")
        if not path or entry.get("dev") or name in ("@types/emscripten", "ws", "commander"):
            continue  # needed to install pyodide and katex, not part of what a page loads
        found.append(Notice(name, entry["version"], entry.get("license", ""), _use(name), _npm_text(root / path, name)))
    found.append(_python_notice("numpy", "BSD-3-Clause"))
    found.append(_python_notice("mkdocs-material", "MIT"))
    return found


def _use(name: str) -> str:
    if name.startswith("@fontsource"):
        return "typeface"
    return USES.get(name, "code editor; loaded after a click")


def _npm_text(folder: Path, name: str) -> str:
    if name == "pyodide":
        return PYODIDE_NOTE
    for file in sorted(folder.glob("LICEN[SC]E*")):
        return file.read_text(encoding="utf-8")
    return ""


def _python_notice(name: str, licence: str) -> Notice:
    package = metadata.distribution(name)
    texts = [
        file.read_text(encoding="utf-8")
        for file in package.files or []
        if file.name.startswith("LICENSE") and "licenses" in file.parts and len(file.parts) == 3
    ]
    return Notice(name, package.version, licence, USES[name], "\n".join(texts))


def page(root: Path) -> str:
    """Return the Markdown page `notices.md`."""
    notices = shipped(root)
    rows = "\n".join(f"| {n.name} | {n.version} | {n.licence} | {n.use} |" for n in notices)
    texts = "\n".join(
        f"<details><summary>{html.escape(n.name)} {n.version}: {n.licence}</summary>"
        f'<div class="edu-output" tabindex="0" role="group" aria-label="{html.escape(n.name)}">'
        f"<pre>{_one_line(n.text)}</pre></div></details>"
        for n in notices
    )
    return (
        "---\ntitle: Notices\ndescription: Licences of the course and of what it ships.\n---\n"
        "# Notices\n\n"
        "The text of this course is licensed under CC BY 4.0, its code under the MIT licence. "
        "The site also ships works of others:\n\n"
        f"| work | version | licence | used for |\n|---|---|---|---|\n{rows}\n\n"
        f"## Licence texts\n\n<div data-search-exclude>\n{texts}\n</div>\n"
    )


def _one_line(text: str) -> str:
    return html.escape(text.strip(), quote=False).replace("\n", "&#10;")
