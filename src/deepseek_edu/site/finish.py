"""The last step on the shell's output, the same for either shell.

Adds the site's own files, moves inline scripts into files and forbids them by a Content-Security-Policy, typesets
formulas, gives the search dialog a name, makes the site independent of its address, removes what is not needed, and
lists the result for readers who keep it on their device.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

from deepseek_edu.site.api import trimmed
from deepseek_edu.site.errors import SiteError
from deepseek_edu.site.formulas import FormulaError, typeset
from deepseek_edu.site.locate import where
from deepseek_edu.site.offline import write_listing
from deepseek_edu.site.prepare import Staged
from deepseek_edu.site.shell import SEARCH_DIALOG, SEARCH_WAITS, STORAGE_GUARD, mend

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'none'"
)
NOT_FOUND = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>Page not found</title>
<style>
:root{{color-scheme:light dark;--paper:#fbfaf6;--ink:#18222c;--muted:#53606c;--line:#d8dad2;--accent:#0a6468}}
@media (prefers-color-scheme:dark){{
:root{{--paper:#10181f;--ink:#e3e9ec;--muted:#a3b2bc;--line:#2c3b47;--accent:#62c8c1}}}}
body{{margin:0;background:var(--paper);color:var(--ink);font:1.125rem/1.6 system-ui,sans-serif}}
main{{max-width:34rem;margin:18vh auto 0;padding:1.5rem}}
h1{{margin:0 0 1rem;padding-bottom:.75rem;border-bottom:1px solid var(--line);font:600 2rem/1.2 Georgia,serif}}
p{{margin:0 0 1rem}}
.site{{color:var(--muted);font-size:.95rem}}
a{{color:var(--accent)}}
</style>
</head>
<body><main>
<p class="site">DeepSeek, from the inside</p>
<h1>Page not found</h1>
<p>There is no page of the course at this address.</p>
<!-- home --><p>Go back in your browser, or shorten the address until the course appears.</p><!-- /home -->
</main></body>
</html>
"""
HEAD = re.compile(r"<head>\s*(?P<charset><meta charset=[^>]*>)?")
INLINE_SCRIPT = re.compile(r"<script(?P<attributes>(?![^>]*\bsrc=)[^>]*)>(?P<code>.*?)</script>", re.DOTALL)
OUR_FILE = re.compile(r'(?P<before>(?:href|src)="(?:\.{1,2}/)*)edu/(?P<name>app\.(?:css|js))"')
BASE = re.compile(r'new URL\("[^"]*",location\)')
UNUSED = (
    "**/*.map",
    "sitemap.xml.gz",
    "objects.inv",
    "assets/javascripts/lunr",
    "assets/images/social",
    "assets/images/favicon.png",
)


def finish(root: Path, site: Path, staged: Staged) -> None:
    """Turn the shell's output in `site` into the finished site.

    Raises:
        SiteError: a formula is malformed, or the shell's files are not what this step knows how to mend.
    """
    for pattern in UNUSED:
        for path in site.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(staged.edu, site / "edu", dirs_exist_ok=True)
    pages = {
        path.relative_to(site).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(site.rglob("*.html"))
        if "edu" not in path.relative_to(site).parts[:1]
    }
    pages.pop("404.html", None)
    scripts: dict[str, str] = {}
    pages = {name: _page(name, text, staged.names, scripts) for name, text in pages.items()}
    try:
        pages = typeset(pages, root, root / ".cache")
    except FormulaError as error:
        place = where(root, staged.docs, error.page, error.tex)
        raise FormulaError(error.page, error.tex, error.reason, place) from None
    pages["404.html"] = NOT_FOUND.format(policy=POLICY)
    for name, text in pages.items():
        (site / name).write_text(text, encoding="utf-8")
    for name, code in scripts.items():
        (site / "edu" / name).write_text(code, encoding="utf-8")
    _write_sitemap(site, [name for name in pages if name != "404.html"])
    mend(site)
    _settle_search(site)
    write_listing(root, site)


def _page(name: str, text: str, names: dict[str, str], scripts: dict[str, str]) -> str:
    up = "../" * name.count("/")

    def hashed(found: re.Match[str]) -> str:
        if found["name"] not in names:
            raise SiteError(f"{name} asks for edu/{found['name']}, which the bundle did not make")
        return f'{found["before"]}edu/{names[found["name"]]}"'

    def moved(found: re.Match[str]) -> str:
        if "json" in found["attributes"]:
            return found.group()
        # the address of the site follows from the address of this very script
        code = BASE.sub('new URL("../",document.currentScript.src)', found["code"].strip())
        if "__md_scope=" in code:
            code = STORAGE_GUARD + SEARCH_WAITS + code
        file = f"shell-{hashlib.sha256(code.encode()).hexdigest()[:10]}.js"
        scripts[file] = code + "\n"
        return f'<script{found["attributes"]} src="{up}edu/{file}"></script>'

    text = OUR_FILE.sub(hashed, trimmed(name, text))
    text = INLINE_SCRIPT.sub(moved, text)
    text = SEARCH_DIALOG.sub(
        '<div class="md-search" data-md-component="search" role="dialog" aria-label="Search">', text
    )
    text, heads = HEAD.subn(
        f'<head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">', text, count=1
    )
    if heads != 1:
        raise SiteError(f"{name} has no <head>; the shell's page is not what the finish step expects")
    return text


def _write_sitemap(site: Path, names: list[str]) -> None:
    """List the pages by relative address. Instant navigation reads this list; see `shell.BOTH`."""
    entries = "\n".join(f"<url><loc>{name}</loc></url>" for name in ["./", *sorted(names)])
    (site / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}\n'
        "</urlset>\n",
        encoding="utf-8",
    )


CODE_BLOCK = re.compile(r"<pre>.*?</pre>", re.DOTALL)


def _settle_search(site: Path) -> None:
    """Keep headings and prose in the search index: no code, no headings of what was excluded."""
    path = next((p for p in (site / "search/search_index.json", site / "search.json") if p.exists()), None)
    if path is None:
        raise SiteError("the shell wrote no search index")
    index = json.loads(path.read_text(encoding="utf-8"))
    entries = "docs" if "docs" in index else "items"
    index[entries] = [
        {**entry, "text": CODE_BLOCK.sub(" ", entry["text"])}
        for entry in index[entries]
        if entry["title"].strip() or entry["text"].strip()
    ]
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
