"""Notebooks run, fail with a name and a line, and become pages."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from markdown import Markdown

from deepseek_edu.site import notebooks
from deepseek_edu.site.errors import SourceError
from deepseek_edu.site.notebook_page import page_text, without_outputs
from tests.site.project import NOTEBOOK
from tests.site_build import ROOT


def book_of(folder: Path, text: str) -> notebooks.Notebook:
    (folder / "notebooks").mkdir(exist_ok=True)
    path = folder / "notebooks" / "small.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return notebooks.read(folder, path)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory):
    return notebooks.execute(book_of(tmp_path_factory.mktemp("book"), NOTEBOOK))


@pytest.mark.behaviour(17)
def test_a_failing_cell_is_named_with_its_line(tmp_path: Path) -> None:
    book = book_of(
        tmp_path,
        """\
        # ---
        # jupyter:
        #   jupytext:
        #     formats: ipynb,py:percent
        # ---
        # %% [markdown]
        # # Title

        # %%
        x = 1

        # %%
        y = 2

        z = x / (y - 2)
        """,
    )
    with pytest.raises(SourceError) as error:
        notebooks.execute(book)
    assert (error.value.file, error.value.line) == ("notebooks/small.py", 15)
    assert "ZeroDivisionError: division by zero in cell 3" in error.value.found


@pytest.mark.behaviour(17)
def test_a_hanging_cell_is_stopped_and_named_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    book = book_of(tmp_path, "# %%\nx = 1\n\n# %%\nwhile True:\n    pass\n")
    with pytest.raises(SourceError) as error:
        notebooks.execute(book, seconds=1)
    assert (error.value.file, error.value.line) == ("notebooks/small.py", 5)
    assert "no end after 1 s in cell 2" in error.value.found
    said = capfd.readouterr()
    assert said.out + said.err == ""


@pytest.mark.behaviour(17)
def test_a_kernel_that_dies_is_told(tmp_path: Path) -> None:
    book = book_of(tmp_path, "# %%\nimport os\n\nos._exit(1)\n")
    with pytest.raises(SourceError, match="the end of its Python process"):
        notebooks.execute(book)


@pytest.mark.behaviour(18)
def test_running_twice_gives_the_same_file(tmp_path: Path, executed) -> None:
    again = notebooks.execute(book_of(tmp_path, NOTEBOOK))
    assert json.dumps(again, sort_keys=True) == json.dumps(executed, sort_keys=True)


def test_the_page_shows_code_text_and_a_static_chart(executed) -> None:
    staged = page_text(executed, "notebooks/small.py", "small")
    html = Markdown(extensions=["pymdownx.superfences", "deepseek_edu.site.markdown"]).convert(
        staged.split("---\n", 2)[2]
    )
    page = BeautifulSoup(html, "html.parser")
    assert page.h1.text == "A small notebook"
    assert "[[= 1 ]]" in page.text
    stream, chart = page.find_all(class_="edu-output")
    assert stream.pre.text == "levels 15"
    assert (stream["role"], stream["tabindex"]) == ("group", "0")
    assert chart.svg["role"] == "img"
    assert chart.find("style") is None
    assert json.loads(chart.find("script").string)["data"][0]["y"] == [1, 4, 9]
    ids = [element["id"] for element in page.find_all(id=True)]
    assert len(ids) == len(set(ids))
    assert [link["href"] for link in page.find_all("a", download=True)] == ["small.ipynb", "small.executed.ipynb"]


def test_the_download_without_outputs_has_none(executed) -> None:
    bare = without_outputs(executed)
    assert all(cell.get("outputs", []) == [] for cell in bare.cells)
    assert any(cell.get("outputs") for cell in executed.cells)


def test_only_a_notebook_whose_sources_changed_runs_again(tmp_path: Path) -> None:
    book = book_of(tmp_path, "# %%\nprint(1)\n")
    said: list[str] = []
    for _ in range(2):
        notebooks.run_cached(tmp_path, book, tmp_path / "cache", said.append)
    assert len(said) == 1
    changed = book_of(tmp_path, "# %%\nprint(2)\n")
    result = notebooks.run_cached(tmp_path, changed, tmp_path / "cache", said.append)
    assert len(said) == 2
    assert result.cells[0].outputs[0].text == "2\n"


def test_a_first_build_has_the_page_of_every_later_one(tmp_path: Path) -> None:
    book = book_of(tmp_path, NOTEBOOK)
    pages = []
    for _ in range(2):
        node = notebooks.run_cached(tmp_path, book, tmp_path / "cache", lambda line: None)
        pages.append(page_text(node, book.source, "small"))
    assert pages[0] == pages[1]


def test_the_key_covers_modules_that_are_imported_through_others(tmp_path: Path) -> None:
    start = tmp_path / "start.py"
    start.write_text("from deepseek_edu.claims import fp4\n", encoding="utf-8")
    files = {path.relative_to(ROOT / "src").as_posix() for path in notebooks.imported_files(ROOT / "src", start)}
    assert "deepseek_edu/claims/fp4.py" in files
    assert "deepseek_edu/reference/quant.py" in files
    assert not any("site/" in file for file in files)


def test_a_script_beside_the_notebooks_is_not_one(tmp_path: Path) -> None:
    book_of(tmp_path, "# %%\nprint(1)\n")
    (tmp_path / "notebooks" / "tool.py").write_text("print('no cells')\n", encoding="utf-8")
    assert [path.name for path in notebooks.sources(tmp_path)] == ["small.py"]
