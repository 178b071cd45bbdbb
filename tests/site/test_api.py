"""The API reference as pages: what is read from sources, how a docstring becomes HTML, where names lead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from deepseek_edu.site import api
from deepseek_edu.site.api import docstring
from deepseek_edu.site.api.names import Names
from deepseek_edu.site.api.pages import without_docstrings
from deepseek_edu.site.api.parts import Item
from deepseek_edu.site.api.read import packages
from tests.site_build import ROOT, built_site

CODE = '''
"""A small mechanism: it halves.

    x   number
    y   half of it

Source: report, section 1. See b.py, and reference `Half`.
"""

from dataclasses import dataclass

LIMIT = 4  # largest result


@dataclass(frozen=True)
class Pair:
    """Two numbers."""

    # small ones
    low: int = 0  # the smaller; not "#1"
    _hidden: int = 0

    @property
    def both(self):
        """Both, as a list."""
        return [self.low]

    def add(self, x, *, to=None):
        """Add x [N], limited as in `half`."""

    def _secret(self):
        """Not shown."""


def half(x, w, rounding="down", *rest, exact: bool = False) -> float:
    """Return half of x, at most LIMIT < 5.

    Args:
        x: [N], numbers; see `Pair.add` and `b.other`.
        rounding: "down" or
            "up".

    Returns:
        float64 [N]: the halves.

    Raises:
        ValueError: rounding is neither.

    >>> half(3)
    1.5
    """
    if rounding not in ("down", "up"):
        raise ValueError(rounding)

    return x / 2
'''
PACKAGE = '''"""Two files. Begin with the second:

    b       first
    a       then

Arguments with one meaning in every file:

    w       weights [N]
"""
'''
OTHER = '''"""The other file.

Source: our own.
"""


def other(x):
    """Return x (…, N)."""
    return x
'''


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with the folders that the reference has, three of them all but empty."""
    root = tmp_path_factory.mktemp("api")
    package = root / "src" / "deepseek_edu"
    files = {
        "__init__.py": '"""All."""\n',
        "config.py": OTHER,
        "verify.py": OTHER,
        "reference/__init__.py": PACKAGE,
        "reference/a.py": CODE.strip() + "\n",
        "reference/b.py": OTHER,
        "model/__init__.py": '"""One file:\n\n    a    all\n"""\n',
        "model/a.py": OTHER.replace("other", "half"),
        "accounting/__init__.py": '"""Nothing."""\n',
        "grading/__init__.py": '"""Grades."""\n\n_HOMES = {"grade": "api"}\n',
        "grading/api.py": OTHER.replace("other", "grade"),
    }
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def items(root: Path) -> dict[str, Item]:
    module = next(module for module in packages(root)[0].modules if module.name == "a")
    return {item.anchor: item for part in module.items for item in (part, *part.members)}


@pytest.fixture(scope="module")
def page(root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The staged page of the small mechanism."""
    docs = tmp_path_factory.mktemp("docs")
    api.write(root, docs)
    return (docs / "api" / "reference" / "a.md").read_text(encoding="utf-8")


def test_the_same_sources_give_the_same_pages(tmp_path: Path) -> None:
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        nav = api.write(ROOT, tmp_path / name)
        pages = sorted((tmp_path / name).rglob("*.md"))
        written.append((nav, [(path.relative_to(tmp_path / name), path.read_bytes()) for path in pages]))
    assert written[0] == written[1]
    assert len(written[0][1]) > 60


def test_files_come_in_the_order_of_the_package_and_items_in_the_order_of_the_file(
    root: Path, items: dict[str, Item]
) -> None:
    assert [module.name for module in packages(root)[0].modules] == ["b", "a"]
    assert list(items) == ["LIMIT", "Pair", "Pair.both", "Pair.add", "half"]
    assert [items[name].kind for name in items] == ["constant", "class", "property", "method", "function"]


def test_a_signature_shows_types_defaults_and_marks(items: dict[str, Item]) -> None:
    assert items["half"].signature == "half(x, w, rounding='down', *rest, exact: bool = False) -> float"
    assert items["Pair.add"].signature == "add(x, *, to=None)"
    assert items["Pair"].signature == "Pair(low: int = 0)"


def test_comments_behind_code_tell_what_fields_and_constants_are(items: dict[str, Item]) -> None:
    assert items["LIMIT"].doc == "largest result"
    (field,) = items["Pair"].fields
    assert (field.name, field.doc, field.heading) == ("low", 'the smaller; not "#1"', "small ones")


def test_a_page_shows_summary_arguments_result_errors_and_example(page: str) -> None:
    soup = BeautifulSoup(page, "html.parser")
    text = " ".join(soup.get_text(" ").split())
    for part in ("Return half of x, at most LIMIT < 5.", '"down" or "up".', "float64 [N]: the halves.", "ValueError"):
        assert part in text
    assert ">>> half(3)" in soup.get_text()
    assert '## `half` { #half .edu-api__name data-toc-label="half"' in page
    assert "_secret" not in soup.find("dl", class_="edu-api__contents").get_text()
    names = [term.get_text() for term in soup.select(".edu-api__list dt")]
    assert names == ["x", "rounding", "w", "ValueError"], "an argument that the package tells about stands at the end"


def test_columns_become_a_table_and_a_source_stands_by_itself(page: str) -> None:
    soup = BeautifulSoup(page, "html.parser")
    rows = [[cell.get_text() for cell in row.find_all("td")] for row in soup.find("table").find_all("tr")]
    assert rows == [["x", "number"], ["y", "half of it"]]
    assert soup.find(class_="edu-api__from").get_text().startswith("Source report, section 1")


def test_names_lead_to_items_files_and_the_twin_but_not_from_the_released_code(page: str) -> None:
    soup = BeautifulSoup(page, "html.parser")
    links = {link.get_text(): link["href"] for link in soup.find_all("a")}
    assert links["Pair.add"] == "#Pair.add"
    assert links["b.other"] == "b.html#other"
    assert links["b.py"] == "b.html"
    assert links["in PyTorch"] == "../model/a.html#half"
    assert links["the same in PyTorch"] == "../model/a.html"
    assert "Half" not in links


def test_the_source_is_there_without_docstrings() -> None:
    shown = without_docstrings(CODE[CODE.index("def half") :].strip())
    assert shown.endswith("raise ValueError(rounding)\n\n    return x / 2")
    assert '"""' not in shown
    only = 'def f():\n    """All there is."""'
    assert without_docstrings(only) == only


def test_code_with_markup_and_blank_lines_stays_code() -> None:
    shown = docstring.code('x = "<b>" if a < b else ""\n\ny = 1', "python", "X")
    assert "\n" not in shown
    assert BeautifulSoup(shown, "html.parser").get_text() == 'x = "<b>" if a < b else ""\n\ny = 1'


def test_lines_that_do_not_stand_in_columns_are_a_formula() -> None:
    assert "<pre>score = Σ a  b&#10;x  y</pre>" in docstring.blocks("    score = Σ a  b\n    x  y", lambda name: None)


# ── the package itself ──────────────────────────────────────────────────────────────────────────────────────────────
def test_every_reading_order_names_every_file() -> None:
    for package in packages(ROOT):
        for group in package.groups:
            names = ", ".join(module.name for module in group.modules)
            assert group.title or not package.name, f"{package.name}/__init__.py does not name {names}"


# `model` has a method that hands over to the loop, which is read after it; the small model needs a softmax
LOOKS_AHEAD = {"model": {"dspark", "generate"}, "toy_attention": {"activations"}}


def test_a_file_of_the_reference_uses_only_files_that_come_before_it() -> None:
    """A reader who goes in file order meets nothing that was not explained."""
    reference = packages(ROOT)[0]
    seen: set[str] = set()
    for module in reference.modules:
        text = (ROOT / module.file).read_text(encoding="utf-8")
        top = re.findall(r"(?m)^from deepseek_edu\.reference import ([\w, ]+?)(?: as \w+)?$", text)
        used = {name.split(" as ")[0].strip() for line in top for name in line.split(",")}
        used |= set(re.findall(r"(?m)^from deepseek_edu\.reference\.(\w+) import", text))
        used -= LOOKS_AHEAD.get(module.name, set())
        assert used <= seen, f"{module.name} comes before {', '.join(sorted(used - seen))}"
        seen.add(module.name)


def test_functions_of_both_implementations_lead_to_each_other() -> None:
    found = packages(ROOT)
    names = Names(found)
    modules = {module.path: module for package in found for module in package.modules}
    assert names.twin(modules["reference/indexer"], "top_k") == ("PyTorch", "../model/indexer.html#top_k")
    assert names.twin(modules["model/indexer"], "top_k") == ("NumPy", "../reference/indexer.html#top_k")
    assert names.twin(modules["reference/v4_compressor"], "no_such_name") is None


def test_the_finished_site_has_each_item_at_its_anchor() -> None:
    site = built_site()
    for package in packages(ROOT):
        for module in package.modules:
            soup = BeautifulSoup((site / "api" / f"{module.path}.html").read_text(encoding="utf-8"), "html.parser")
            ids = {element["id"] for element in soup.find_all(id=True)}
            anchors = {item.anchor for part in module.items for item in (part, *part.members)}
            assert anchors <= ids, module.path
            assert len(soup.find_all("h1")) == 1


def test_the_search_index_has_the_names_of_a_file_and_none_of_its_code() -> None:
    text = (built_site() / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "<code>candidate_pool</code>" in text
    assert "np.argsort" not in text and "Source, without docstrings" not in text


def test_pages_outside_the_reference_have_one_link_to_it() -> None:
    site = built_site()
    for page in ("index.html", "model.html", "notebooks/04b_fp4_cache.html"):
        soup = BeautifulSoup((site / page).read_text(encoding="utf-8"), "html.parser")
        nav = soup.select_one(".md-nav--primary")
        found = [link["href"] for link in nav.find_all("a", href=True) if "api/" in link["href"]]
        assert found == ["../" * page.count("/") + "api/index.html"], page
        assert nav.select_one("a[href$='glossary.html']"), "what stands beside it stays"
    inside = BeautifulSoup((site / "api" / "index.html").read_text(encoding="utf-8"), "html.parser")
    assert len(inside.select(".md-nav--primary a[href^='reference/']")) > 30
