"""Staging of one page: front matter, chapter head, markers, glossary."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from deepseek_edu.site.errors import SourceError
from deepseek_edu.site.pages import glossary, read_page, staged_text
from deepseek_edu.site.source import Place, pieces
from tests.site.project import CHAPTER


def page_of(folder: Path, text: str):
    (folder / "course").mkdir(exist_ok=True)
    path = folder / "course" / "page.md"
    path.write_text(text, encoding="utf-8")
    return read_page(folder, path)


def test_each_line_of_the_author_keeps_its_number(tmp_path: Path) -> None:
    text = CHAPTER.replace("\\\\", "\\")
    staged = staged_text(page_of(tmp_path, text))
    body = staged.split("---\n", 2)[2].split("\n")
    author = text.split("\n")
    seen = {}
    for piece in pieces(body, Place("?", 1)):
        for offset, line in enumerate(piece.lines):
            seen.setdefault((piece.place.line + offset, line), piece.place.file)
    for number, line in enumerate(author[author.index("# A chapter") :], author.index("# A chapter") + 1):
        if line.strip():
            assert seen[number, line] == "course/page.md"


def test_the_chapter_head_tells_time_and_contents(tmp_path: Path) -> None:
    words = " ".join(["word"] * 1000)
    staged = staged_text(
        page_of(tmp_path, CHAPTER.replace("## Numbers", f"## Numbers\n\n{words}")), "notebooks/small.md"
    )
    head = BeautifulSoup(staged, "html.parser").find(class_="edu-head")
    facts = head.find(class_="edu-head__facts")
    assert facts.text == "5 minutes to read · 1 widget · 1 question · 1 lab · notebook"
    assert facts.a["href"] == "notebooks/small.html"
    assert "Count to nine." in head.text
    assert staged.rstrip().endswith('<edu-chapter data-chapter="small"></edu-chapter>')


def test_words_of_code_are_not_reading_time(tmp_path: Path) -> None:
    code = "```python\n" + "word " * 5000 + "\n```\n"
    assert page_of(tmp_path, CHAPTER + code).minutes == 1


def test_uses_are_found_outside_of_code_only(tmp_path: Path) -> None:
    page = page_of(tmp_path, CHAPTER + "\n`[[claim in-code]]`\n\n```\n[[claim in-fence]]\n```\n")
    assert page.uses["claim"] == ["sixteen-codes", "read-only"]
    assert page.uses["widget"] == ["fp4"]


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("# No front matter\n", 1, "No front matter"),
        ("---\ntitle: T\ntitel: U\n---\n# T\n", 3, "unknown key titel"),
        ("---\ndescription: D\n---\n# T\n", 2, "front matter without title"),
        ("---\ntitle: T\nobjectives: none\n---\n# T\n", 3, "objectives: 'none'"),
        ("---\ntitle: T: U\n---\n# T\n", 2, "malformed YAML"),
    ],
)
def test_malformed_front_matter_is_told_with_its_line(tmp_path: Path, text: str, line: int, found: str) -> None:
    with pytest.raises(SourceError) as error:
        page_of(tmp_path, text)
    assert (error.value.file, error.value.line) == ("course/page.md", line)
    assert found in error.value.found


def test_tooltips_are_first_sentences_of_unmistakable_terms() -> None:
    text = (
        "# Glossary\n\nText.\n\nFP4\n:   Floating point in *four* bits [[claim x]]. More.\n\n"
        "Code\n:   A pattern.\n\nBF16\nbfloat16\n:   A format\n    on two lines. More.\n"
    )
    assert glossary(text) == {
        "FP4": "Floating point in four bits.",
        "BF16": "A format on two lines.",
        "bfloat16": "A format on two lines.",
    }
