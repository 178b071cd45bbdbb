"""Each check finds what it is for: a site is broken in one way, and the problem names file, fault and cure."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from deepseek_edu.site.check import Problem, check, first_view, report
from deepseek_edu.site.checked import read_page
from deepseek_edu.site.finish import POLICY
from deepseek_edu.site.leaks import secrets
from tests.site_build import ROOT

PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>T</title>'
    '<link rel="stylesheet" href="edu/app.css"></head><body><h1 id="top">T</h1>'
    '<p><a href="other.html#there">a link</a> <a href="https://example.org/">elsewhere</a></p></body></html>'
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of two pages without any problem."""
    folder = tmp_path / "site"
    (folder / "edu").mkdir(parents=True)
    (folder / "search").mkdir()
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    (folder / "other.html").write_text(PAGE.replace('id="top"', 'id="there"'), encoding="utf-8")
    (folder / "claims.html").write_text(PAGE.replace('id="top"', 'id="claim-known"'), encoding="utf-8")
    (folder / "edu" / "app.css").write_text("p{background:url(data:image/png;base64,AA)}", encoding="utf-8")
    (folder / "edu" / "app.js").write_text(
        'import("./chunk.js"); const help = "https://example.org/";', encoding="utf-8"
    )
    index = {"docs": [{"location": "index.html", "title": "T", "text": "words"}]}
    (folder / "search" / "search_index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


def add(site: Path, html: str, page: str = "index.html") -> None:
    path = site / page
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", f"\n{html}</body>"), encoding="utf-8")


def only(site: Path) -> Problem:
    problems = check(site, ROOT)
    assert len(problems) == 1, report(problems)
    return problems[0]


def test_a_whole_site_has_no_problem(site: Path) -> None:
    assert check(site, ROOT) == []


@pytest.mark.behaviour(1)
@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<img alt="" src="//cdn.example.org/a.png">',
        '<img alt="" srcset="a.png 1x, http://cdn.example.org/b.png 2x">',
        '<link rel="stylesheet" href="https://fonts.example.org/css">',
        '<link rel="preconnect" href="https://fonts.example.org">',
        '<iframe src="https://example.org/"></iframe>',
        '<p style="background:url(https://example.org/a.png)">x</p>',
        "<style>@import 'https://example.org/a.css';</style>",
        '<form action="https://example.org/"></form>',
        '<svg><use href="https://example.org/i.svg#a"></use></svg>',
    ],
)
def test_a_page_that_loads_from_another_origin(site: Path, html: str) -> None:
    (site / "a.png").write_bytes(b"")
    add(site, html)
    problem = only(site)
    assert problem.file == "index.html"
    assert "line 2 loads" in problem.problem and "another origin" in problem.problem


@pytest.mark.behaviour(1)
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("edu/app.css", "@font-face{src:url('https://example.org/a.woff2')}"),
        ("edu/app.css", '@import "//example.org/a.css";'),
        ("edu/app.js", 'import x from "https://example.org/x.js";'),
        ("edu/app.js", "fetch(`https://example.org/data.json`)"),
        ("edu/app.js", 'importScripts("https://example.org/x.js")'),
        ("edu/app.js", 'script.src = "//example.org/x.js"'),
        ("edu/app.js", 'new Worker("https://example.org/w.js")'),
        ("edu/app.js", 'load("https://unpkg.com/mermaid")'),
    ],
)
def test_a_style_or_script_that_loads_from_another_origin(site: Path, file: str, text: str) -> None:
    (site / file).write_text(text, encoding="utf-8")
    problem = only(site)
    assert problem.file == file
    assert "another origin" in problem.problem


@pytest.mark.behaviour(15)
@pytest.mark.parametrize(
    ("html", "told"),
    [
        ('<a href="gone.html">x</a>', "links to gone.html, which does not exist"),
        ('<a href="other.html#gone">x</a>', "links to #gone, which other.html does not have"),
        ('<a href="#gone">x</a>', "links to #gone, which index.html does not have"),
        ('<a href="../outside.html">x</a>', "links to ../outside.html, which does not exist"),
        ('<img alt="" src="gone.png">', "loads gone.png, which does not exist"),
        ('<a href="javascript:void(0)">x</a>', "a script as link"),
        ('<p id="top">x</p>', "the id top on lines 1 and 2"),
        (
            '<a class="edu-claim" href="claims.html#claim-known">x</a><a class="edu-claim" href="#top">x</a>',
            "unknown to the",
        ),
    ],
)
def test_a_link_anchor_id_or_badge_that_is_wrong(site: Path, html: str, told: str) -> None:
    add(site, html)
    assert told in only(site).problem


def test_a_claim_without_entry_is_told_as_link_and_as_claim(site: Path) -> None:
    add(site, '<a class="edu-claim" href="claims.html#claim-unknown">x</a>')
    problems = [problem.problem for problem in check(site, ROOT)]
    assert any("names claim-unknown, unknown to the ledger" in problem for problem in problems)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("http-equiv", "data-was", "no Content-Security-Policy"),
        ("'wasm-unsafe-eval'", "'unsafe-inline'", "another Content-Security-Policy"),
        ("<title>", "<script>alert(1)</script><title>", "an inline script on line 1"),
        ("<h1", '<h1 onclick="alert(1)"', "an inline handler onclick"),
        ('<meta charset="utf-8">', '<link rel="icon" href="edu/app.css">', "comes after something loaded"),
    ],
)
def test_a_page_without_the_policy_or_against_it(site: Path, old: str, new: str, told: str) -> None:
    path = site / "index.html"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert told in only(site).problem


def test_json_in_a_script_element_is_no_inline_script(site: Path) -> None:
    add(site, '<script type="application/json">{"a": 1}</script>')
    assert check(site, ROOT) == []


@pytest.mark.behaviour(3)
def test_a_page_over_the_budget_names_its_heaviest_files(site: Path) -> None:
    (site / "edu" / "heavy.js").write_bytes(b"//" + os.urandom(310_000).hex().encode())
    add(site, '<script src="edu/heavy.js"></script>')
    problem = only(site)
    assert "over 300 KB" in problem.problem
    assert "edu/heavy.js" in problem.cure


def test_the_first_view_counts_typefaces_and_no_search_index_for_it_waits(site: Path) -> None:
    (site / "edu" / "text.woff2").write_bytes(b"x")
    (site / "edu" / "KaTeX_Main-Regular.woff2").write_bytes(b"x")
    (site / "edu" / "app.css").write_text(
        "a{src:url(text.woff2)}b{src:url(KaTeX_Main-Regular.woff2)}", encoding="utf-8"
    )
    names = {path.name for path in first_view(site, read_page(site, site / "index.html"))}
    assert names == {"index.html", "app.css", "text.woff2"}
    add(site, '<span class="katex">x</span><div data-md-component="search"></div>')
    names = {path.name for path in first_view(site, read_page(site, site / "index.html"))}
    seen = {"index.html", "app.css", "text.woff2", "KaTeX_Main-Regular.woff2"}
    assert names == seen
    for index in ("search.json", "search/search_index.json"):  # of Zensical, of Material
        (site / index).write_text("{}", encoding="utf-8")
    names = {path.name for path in first_view(site, read_page(site, site / "index.html"))}
    assert names == seen, "both shells ask for the index when a reader searches (tests/browser/test_shell.py)"


@pytest.mark.behaviour(16)
def test_a_search_index_over_one_megabyte(site: Path) -> None:
    index = {"docs": [{"location": "index.html", "title": "T", "text": "word " * 210_000}]}
    (site / "search" / "search_index.json").write_text(json.dumps(index), encoding="utf-8")
    assert "over 1000000" in only(site).problem


@pytest.mark.behaviour(16)
def test_a_picture_in_the_search_index(site: Path) -> None:
    index = {"docs": [{"location": "index.html", "title": "T", "text": "data:image/png;base64,AAAA"}]}
    (site / "search" / "search_index.json").write_text(json.dumps(index), encoding="utf-8")
    assert "pictures in the search index" in only(site).problem


def test_files_that_cannot_be_read_are_told_and_the_rest_is_checked(site: Path) -> None:
    add(site, '<a href="gone.html">x</a><script type="application/json">{no json}</script>')
    (site / "search" / "search_index.json").write_text("{no json", encoding="utf-8")
    (site / "edu" / "offline.json").write_text("{no json", encoding="utf-8")
    (site / "edu" / "a.whl").write_bytes(b"no archive")
    (site / "edu" / "a.states").write_bytes(b"no states")
    (site / "edu" / "b.css").write_bytes(b"p{color:red}/* \xff */")
    (site / "b.html").write_bytes(PAGE.replace('id="top"', 'id="b"').encode() + b"<!-- \xff -->")
    told = {problem.file: problem.problem for problem in check(site, ROOT)}
    assert set(told) == {"index.html", "search/search_index.json", "edu/offline.json"}
    assert "gone.html" in told["index.html"]
    assert told["search/search_index.json"].startswith("no JSON (")
    assert "no list of files" in told["edu/offline.json"]


# ── leaks ───────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def secret() -> str:
    """A line of a solution that stands nowhere else, with characters that HTML and JSON write differently."""
    lines = [line for line, source in secrets(ROOT).items() if source.endswith("solution.py")]
    return max(lines, key=lambda line: ("<" in line or '"' in line or "&" in line, len(line)))


def as_html(line: str) -> str:
    marked = "".join(f'<span class="n">{char.replace("&", "&amp;").replace("<", "&lt;")}</span>' for char in line)
    return f"<pre><code>{marked}\n</code></pre>"


@pytest.mark.behaviour(27)
@pytest.mark.parametrize(
    "where", ["text", "highlighted", "island", "json", "states", "notebook", "script", "zip", "wheel in a zip"]
)
def test_a_line_of_a_solution_is_found_wherever_it_hides(site: Path, secret: str, where: str, tmp_path: Path) -> None:
    indented = f"def f():\n    {secret}\n"
    if where == "text":
        (site / "a.txt").write_text(indented, encoding="utf-8")
    elif where == "highlighted":
        add(site, as_html(secret))
    elif where == "island":
        text = json.dumps({"starter": indented}).replace("<", "\\u003c")
        add(site, f'<script type="application/json">{text}</script>')
    elif where == "json":
        (site / "a.json").write_text(json.dumps({"a": [{"b": indented}]}), encoding="utf-8")
    elif where == "states":
        data = json.dumps({"fragments": [f"<pre>{indented}</pre>"]}).encode()
        (site / "edu" / "a.states").write_bytes(gzip.compress(data))
    elif where == "notebook":
        cell = {"cell_type": "code", "source": ["def f():\n", f"    {secret}\n"], "metadata": {"solution": indented}}
        (site / "a.ipynb").write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    elif where == "script":
        (site / "a.js").write_text(f"const code = {json.dumps(indented)};", encoding="utf-8")
    else:
        inner = tmp_path / "a.whl"
        with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("deepseek_edu/a.py", indented)
        if where == "zip":
            shutil.copy(inner, site / "a.zip")
        else:
            with zipfile.ZipFile(site / "a.zip", "w") as archive:
                archive.write(inner, "a.whl")
    problem = only(site)
    assert "holds a line of labs/fp4-codes/solution.py" in problem.problem


@pytest.mark.behaviour(27)
def test_solutions_alternatives_and_generators_of_all_labs_are_looked_for() -> None:
    sources = set(secrets(ROOT).values())
    for lab in ROOT.glob("labs/*/lab.toml"):
        folder = lab.parent.relative_to(ROOT).as_posix()
        assert f"{folder}/solution.py" in sources
        assert f"{folder}/cases.py" in sources
        assert any(source.startswith(f"{folder}/alternative/") for source in sources)


@pytest.mark.behaviour(27)
def test_what_learners_are_given_is_no_secret() -> None:
    found = secrets(ROOT)
    for path in [*ROOT.glob("labs/*/starter.py"), *(ROOT / "src").rglob("*.py")]:
        assert found.keys().isdisjoint(line.strip() for line in path.read_text(encoding="utf-8").splitlines())
