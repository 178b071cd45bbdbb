"""What malformed input says: file, line, what was found, what is allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup

from deepseek_edu.site.errors import SourceError
from tests.site.project import block

QUIZ = "id: q\nquestion: Q?\noptions:\n  - text: A\n    why: B\n    correct: true\n  - text: C\n    why: D\n"
NUMBER = "id: q\nquestion: Q?\nanswer: 1\ntolerance: 0\nwhy: W.\n"

# fence, body, line of the error counted from the opening line of the fence (0), found, allowed
MALFORMED = [
    ("widget", "id: fp5", 1, "unknown widget fp5", "did you mean fp4?"),
    ("widget", "values:\n  value: 1", 1, "a widget without id", "id (text)"),
    ("widget", "id: fp4\nvalue: 1", 2, "unknown key value", "did you mean values?"),
    ("widget", "id: fp4\nvalues:\n  value: 99", 2, "99", "values of its controls"),
    ("widget", "id: fp4\nvalues:\n  colour: red", 2, "colour", "values of its controls"),
    ("widget", "id: [1, 2]", 1, "id: [1, 2]", "id: text"),
    ("widget", "just text", 0, "'just text'", "a mapping with the keys id, predict, values"),
    ("widget", "id: fp4\npredict: q", 2, "predict: 'q'", "predict: mapping"),
    ("widget", "id: fp4\npredict:\n  quiz: q", 3, "no question above", "a quiz that stands above"),
    ("widget", "", 0, "nothing as a widget", "a mapping"),
    ("quiz", QUIZ.replace("    why: D\n", ""), 7, "an option without why", "why (text)"),
    ("quiz", QUIZ.replace("correct: true", "correct: maybe"), 6, "'maybe'", "true or false"),
    ("quiz", QUIZ.replace("    correct: true\n", ""), 3, "no option with correct: true", "one correct option"),
    ("quiz", QUIZ + "    correct: true\n    right_if: 1 > 0\n", 10, "correct and right_if", "one of the two"),
    ("quiz", QUIZ.replace("correct: true", "right_if: 1 + 1"), 6, "the value 2", "true or false"),
    ("quiz", QUIZ.replace("correct: true", "right_if: 1 > 2"), 3, "no option with correct: true", "one correct option"),
    ("quiz", QUIZ.replace("correct: true", "right_if: quant.nothing > 0"), 6, "AttributeError", "a Python expression"),
    ("quiz", QUIZ.replace("question: Q?", "questoin: Q?"), 2, "unknown key questoin", "did you mean question?"),
    ("quiz", QUIZ + "id: again\n", 9, "the key id a second time", "each key once"),
    ("quiz", QUIZ + "answer: 3\n", 3, "answer and options", "options (choice) or answer (number)"),
    ("quiz", 'id: q\nquestion: "Q?\n', 2, "malformed YAML", "inside quotes"),
    ("quiz", NUMBER.replace("answer: 1", "answer: quant.nothing(1)"), 3, "AttributeError", "a Python expression"),
    ("quiz", NUMBER.replace("answer: 1", "answer: '[1]'"), 3, "the answer [1]", "a finite number"),
    ("quiz", NUMBER.replace("answer: 1", "answer: 1e999"), 3, "the answer", "a finite number"),
    ("quiz", NUMBER.replace("tolerance: 0", "tolerance: -1"), 4, "tolerance: -1", "0 or more"),
    ("quiz", NUMBER.replace("tolerance: 0", "tolerance: small"), 4, "'small'", "tolerance: number"),
    ("quiz", NUMBER.replace("tolerance: 0\n", ""), 1, "a quiz without tolerance", "tolerance (number)"),
    ("lab", "id: fp4-code", 1, "unknown lab fp4-code", "did you mean fp4-codes?"),
    ("lab", "id: fp4-codes\npoints: 3", 2, "unknown key points", "id"),
    ("run", "id: fp4_eror", 1, "has no record", "did you mean fp4_error?"),
    (
        "figure",
        "id: fp4-level\ncaption: C.\nclaim: read-only",
        1,
        "unknown figure fp4-level",
        "did you mean fp4-levels?",
    ),
    ("figure", "id: fp4-levels\ncaption: C.", 1, "a figure without claim", "claim (text)"),
    (
        "figure",
        "id: fp4-levels\ncaption: C.\nclaim: raed-only",
        3,
        "unknown claim raed-only",
        "did you mean read-only?",
    ),
    ("walk", "id: w\ncards: []", 2, "cards: []", "cards: list"),
    ("walk", "id: w\ncards:\n  - title: T", 3, "a card without text", "text (text)"),
    ("walk", "id: w\ncards:\n  - title: T\n    text: X\n    figure: no", 5, "figure: False", "figure: text"),
    (
        "walk",
        "id: w\ncards:\n  - title: T\n    text: |\n      A.\n\n      B [[= 1 / 0 ]].",
        7,
        "ZeroDivisionError",
        "expression",
    ),
]


@pytest.mark.parametrize(("kind", "body", "line", "found", "allowed"), MALFORMED)
def test_a_malformed_block_is_told_with_its_line(
    render: Callable[..., str], kind: str, body: str, line: int, found: str, allowed: str
) -> None:
    opening = 4  # the fence opens on the fourth line below the marker
    fence = f"```{kind}\n{body.rstrip()}\n```" if body else f"```{kind}\n```"
    with pytest.raises(SourceError) as error:
        render(f"# Title\n\nText.\n{fence}\n\nMore.", line=20)
    assert error.value.file == "course/page.md"
    assert error.value.line == 20 + opening - 1 + line
    assert found in error.value.found
    assert allowed in error.value.allowed
    assert str(error.value).startswith(f"course/page.md:{error.value.line}: found ")


INLINE = [
    ("[[= quant.nothing ]]", "AttributeError", "quant"),
    ("[[= 1 + ]]", "SyntaxError", "a Python expression"),
    ("[[= open('x') ]]", "NameError", "a Python expression"),
    ("[[= 3 | q ]]", "the format 'q'", ".1f"),
    ("[[= 1 + 1", "[[= without its end", "]] on the same line"),
    ("[[claim read only]]", "the unknown claim read only", "did you mean read-only?"),
    ("[[claim ]]", "the unknown claim", "read-only"),
]


@pytest.mark.parametrize(("text", "found", "allowed"), INLINE)
def test_a_failing_inline_value_is_told_with_its_line(
    render: Callable[..., str], text: str, found: str, allowed: str
) -> None:
    with pytest.raises(SourceError) as error:
        render(f"One.\n\n- Two {text} three.", line=7)
    assert (error.value.file, error.value.line) == ("course/page.md", 9)
    assert found in error.value.found
    assert allowed in error.value.allowed


def test_a_fence_that_is_never_closed_is_named(render: Callable[..., str]) -> None:
    with pytest.raises(SourceError) as error:
        render("Text.\n\n```quiz\nid: q\n")
    assert error.value.line == 3
    assert "never closed" in error.value.found


@pytest.mark.parametrize(
    ("name", "meant"),
    [("rnu", "run"), ("widgt", "widget"), ("Quiz", "quiz"), ("quizz", "quiz"), ("wlak", "walk"), ("figur", "figure")],
)
def test_a_fence_with_nearly_one_of_our_names_stops_the_build(
    render: Callable[..., str], name: str, meant: str
) -> None:
    with pytest.raises(SourceError) as error:
        render(f"Text.\n\n```{name}\nid: x\n```\n", line=7)
    assert error.value.line == 9
    assert f"the fence {name}" in error.value.found
    assert f"did you mean {meant}?" in error.value.allowed


@pytest.mark.parametrize("name", ["python", "lua", "rust", "text", "console", "", "madeup", "Python"])
def test_a_fence_of_a_language_or_of_nothing_is_code(render: Callable[..., str], name: str) -> None:
    html = render(f"```{name}\na = 1\n```\n")
    assert BeautifulSoup(html, "html.parser").code.text == "a = 1\n"


def test_a_page_that_shows_nearly_our_fence_as_code_is_left_alone(render: Callable[..., str]) -> None:
    assert "rnu" in render("````text\n```rnu\nid: x\n```\n````\n")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("## Numbers", "## Other {#numbers}"),
        ("## Other {#numbers}", "## Numbers"),
        ("## One {#same}", "### Two {: #same .wide }"),
    ],
)
def test_an_explicit_id_that_another_heading_has_is_told_with_both_lines(
    render: Callable[..., str], first: str, second: str
) -> None:
    with pytest.raises(SourceError) as error:
        render(f"# Title\n\n{first}\n\nText.\n\n{second}\n", line=5)
    assert error.value.line == 11
    assert "a second time" in error.value.found
    assert "the first is on line 7" in error.value.allowed


def test_two_headings_of_the_same_words_are_told_apart_by_the_shell(render: Callable[..., str]) -> None:
    html = render("# Title\n\n## Limits\n\nA.\n\n## Limits\n\n```text\n## Other {#limits}\n```\n")
    assert 'id="limits"' in html and 'id="limits_1"' in html


@pytest.mark.parametrize(
    ("kind", "body"),
    [("quiz", NUMBER), ("lab", "id: fp4-codes"), ("figure", "id: fp4-levels\ncaption: C.\nclaim: read-only")],
)
def test_the_same_exercise_twice_on_a_page_names_the_first_line(
    render: Callable[..., str], kind: str, body: str
) -> None:
    once = block(kind, body)
    with pytest.raises(SourceError) as error:
        render(f"{once}\n{once}")
    assert "a second time" in error.value.found
    assert "the first is on line 2" in error.value.allowed


def test_a_second_marker_resumes_the_count_of_the_author(render: Callable[..., str]) -> None:
    added = "<div>added by staging</div>\n<!-- edu-source: course/page.md:12 -->\n"
    with pytest.raises(SourceError) as error:
        render(f"# Title\n{added}line 12\n[[= 1 / 0 ]]", line=11)
    assert error.value.line == 13


def test_plain_pages_are_left_alone(render: Callable[..., str]) -> None:
    text = "<!-- edu-source: notebooks/a.py:1 plain -->\nShown as [[= 1 / 0 ]].\n\n```quiz\nnot: ours\n```\n"
    assert "[[= 1 / 0 ]]" in render(text)


@pytest.mark.parametrize(
    ("when", "line", "found", "allowed"),
    [
        ("part: blok", 13, "when: control 'part'", "a value of that control"),
        ("value: 3", 13, "when with value, no choice of fp4", "part"),
    ],
)
def test_a_cover_over_settings_that_do_not_exist_is_told_with_its_line(
    render: Callable[..., str], when: str, line: int, found: str, allowed: str
) -> None:
    quiz = f"```quiz\n{NUMBER}```\n\n"
    with pytest.raises(SourceError) as error:
        render(f"{quiz}```widget\nid: fp4\npredict:\n  quiz: q\n  when:\n    {when}\n```")
    assert error.value.line == line
    assert found in error.value.found
    assert allowed in error.value.allowed
