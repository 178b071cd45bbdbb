"""The page "The model in reading order": its examples run, and its tables name every file and tests that exist."""

from __future__ import annotations

import contextlib
import io
import re

import pytest

from deepseek_edu.site.api.read import packages
from tests.site_build import ROOT

PAGE = (ROOT / "course" / "model.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
ROWS = re.findall(r"(?m)^\| \[`(\w+)`\]\(api/reference/(\w+)\.md\) \|.*\| `(\w+)` \|$", PAGE)


def test_there_are_examples_with_their_output() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") == 2


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_an_example_prints_what_the_page_says(code: str, printed: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "course/model.md", "exec"), {})
    assert said.getvalue() == printed


def test_the_tables_name_every_file_of_the_reference_once() -> None:
    reference = next(package for package in packages(ROOT) if package.name == "reference")
    assert all(shown == linked for shown, linked, _ in ROWS)
    named = [linked for _, linked, _ in ROWS]
    assert len(set(named)) == len(named)
    assert set(named) == {module.name for module in reference.modules}


# files that tests reach through others: by running them, or by the examples of all docstrings
INDIRECT = {
    "checks": "quant",
    "block": "model",
    "run": "model",
    "norms": "attention",
    "cache": "tiny",
    "activations": "reference",
}


@pytest.mark.parametrize(("file", "tests"), sorted({(row[1], row[2]) for row in ROWS}))
def test_the_named_tests_reach_the_file(file: str, tests: str) -> None:
    places = (ROOT / "tests" / "reference" / f"{tests}.py", ROOT / "tests" / f"{tests}.py")
    code = next(path for path in places if path.exists()).read_text(encoding="utf-8")
    assert any(re.search(rf"\b{name}\b", code) for name in (file, INDIRECT.get(file, file)))
