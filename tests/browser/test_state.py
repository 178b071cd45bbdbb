"""What a reader keeps: saved code by version, progress in and out, no storage at all, two tabs."""

import json
import re

import pytest

from tests.browser.conftest import CHAPTER
from tests.browser.test_lab import SOLUTION, STARTER, Lab
from tests.browser.test_pages import violations

KEY = "deepseek-edu"


def kept(page) -> dict:
    return json.loads(page.evaluate(f"localStorage.getItem('{KEY}')") or "null")


def write_and_save(page, code: str) -> None:
    Lab(page).write(code)
    page.wait_for_function(
        f"code => (localStorage.getItem('{KEY}') || '').includes(JSON.stringify(code).slice(1, -1))", arg=code
    )


@pytest.mark.behaviour(9)
def test_code_and_answers_are_there_after_a_reload(visit):
    page = visit.open(CHAPTER)
    write_and_save(page, "# mine\n" + SOLUTION)
    quiz = page.locator("edu-quiz").first
    quiz.locator("input[type=radio]").nth(1).check()
    quiz.locator("button[type=submit]").click()
    said = quiz.locator(".edu-quiz__result").inner_text()
    page.reload()
    page.wait_for_selector("html[data-edu-ready]", state="attached")
    assert Lab(page).code.startswith("# mine")
    quiz = page.locator("edu-quiz").first
    assert quiz.locator("input[type=radio]").nth(1).is_checked()
    assert quiz.locator(".edu-quiz__result").inner_text() == said


@pytest.mark.behaviour(9)
@pytest.mark.parametrize(("choice", "expected"), [("keep-mine", "# of last year"), ("take-new", STARTER)])
def test_a_changed_exercise_offers_keep_take_compare(visit, choice, expected):
    page = visit.open(CHAPTER)
    old = {
        "version": 1,
        "quizzes": {},
        "chapters": {},
        "labs": {"fp4-codes": {"0ld": {"code": "# of last year", "at": 1}}},
    }
    page.evaluate("([key, state]) => localStorage.setItem(key, JSON.stringify(state))", [KEY, old])
    page.reload()
    lab = page.locator("edu-lab")
    lab.scroll_into_view_if_needed()
    lab.locator("[data-action=compare]").click()
    compared = lab.locator(".edu-compare").inner_text()
    assert "# of last year" in compared
    assert "def encode" in compared
    lab.locator(f"[data-action={choice}]").click()
    assert Lab(page).code.strip() == expected.strip()
    assert "0ld" in kept(page)["labs"]["fp4-codes"], "the old text must stay until the learner resets it"


@pytest.mark.behaviour(10)
def test_progress_goes_out_and_comes_back_after_showing_what_changes(visit, tmp_path):
    page = visit.open(CHAPTER)
    write_and_save(page, "# exported work")
    page.locator("edu-chapter [data-action=read]").click()
    page.goto(visit.address.url("progress.html"))
    with page.expect_download() as download:
        page.locator("edu-progress [data-action=export]").click()
    file = tmp_path / "progress.json"
    download.value.save_as(file)
    before = kept(page)
    page.locator("edu-progress [data-action=reset]").click()
    assert "exported work" not in json.dumps(kept(page))
    page.locator("edu-progress [data-action=undo]").click()
    assert kept(page) == before
    page.locator("edu-progress [data-action=reset]").click()
    page.locator("edu-progress input[type=file]").set_input_files(file)
    plan = page.locator("edu-progress .edu-progress__plan")
    plan.locator("[data-action=confirm]").wait_for()
    assert "1 new" in plan.inner_text()
    assert "exported work" not in json.dumps(kept(page)), "nothing may change before the learner says so"
    plan.locator("[data-action=confirm]").click()
    assert kept(page) == before


@pytest.mark.behaviour(10)
@pytest.mark.parametrize(
    "content", ["", "not json", "[]", '{"version": 99}', '{"format": "deepseek-edu-progress", "state": {"labs": 3}}']
)
def test_a_bad_progress_file_changes_nothing(visit, tmp_path, content):
    page = visit.open(CHAPTER)
    write_and_save(page, "# precious")
    page.goto(visit.address.url("progress.html"))
    before = kept(page)
    file = tmp_path / "bad.json"
    file.write_text(content)
    page.locator("edu-progress input[type=file]").set_input_files(file)
    page.wait_for_function(
        "() => document.querySelector('edu-progress .edu-notice').innerText.includes('not imported')"
    )
    assert kept(page) == before


@pytest.mark.behaviour(11)
@pytest.mark.parametrize(
    "trouble",
    [
        "Object.defineProperty(window, 'localStorage',"
        " {configurable: true, get() { throw new DOMException('no', 'SecurityError'); }})",
        "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }",
    ],
)
def test_without_storage_a_notice_is_shown_and_everything_works(open_context, trouble):
    visit = open_context()
    visit.context.add_init_script(trouble)
    page = visit.open(CHAPTER)
    lab = Lab(page)
    assert lab.run(SOLUTION) == "passed"
    assert "until this tab closes" in page.locator("edu-lab .edu-notice").inner_text()
    quiz = page.locator("edu-quiz").first
    quiz.locator("input[type=radio]").first.check()
    quiz.locator("button[type=submit]").click()
    assert quiz.locator(".edu-quiz__result").inner_text().strip()


@pytest.mark.behaviour(11)
def test_in_two_tabs_the_newest_text_wins_and_the_other_stays_in_reach(visit):
    first = visit.open(CHAPTER)
    Lab(first).element.locator(".cm-content").wait_for()
    write_and_save(first, "# from the first tab")
    second = visit.open(CHAPTER)
    assert Lab(second).code == "# from the first tab"
    write_and_save(second, "# from the second tab")
    first.wait_for_function("() => document.querySelector('edu-lab .edu-notice').innerText.includes('another tab')")
    assert Lab(first).code == "# from the second tab"
    first.locator("edu-lab .edu-notice button").click()
    assert Lab(first).code == "# from the first tab"


def answer(quiz, value: int) -> None:
    quiz.locator(f"input[type=radio][value='{value}']").check()
    quiz.locator("button[type=submit]").click()


def right_option(quiz) -> int:
    """The option that the static page, without scripts, calls right."""
    answers = quiz.locator(".edu-quiz__nojs li > p:first-child").evaluate_all("all => all.map(p => p.textContent)")
    return next(index for index, text in enumerate(answers) if text.startswith("Right:"))


def test_looking_at_another_option_takes_a_right_answer_from_nobody(visit):
    page = visit.open(CHAPTER)
    quiz = page.locator("edu-quiz").first
    right = right_option(quiz)
    other = (right + 1) % quiz.locator("input[type=radio]").count()
    answer(quiz, other)
    assert page.locator("edu-chapter").inner_text().count("0 of ") >= 1
    answer(quiz, right)
    answer(quiz, other)
    assert "Not right" in quiz.locator(".edu-quiz__result").inner_text(), "what was chosen now is judged as before"
    assert "1 of " in page.locator("edu-chapter").inner_text()
    page.reload()
    assert quiz.locator(f"input[value='{other}']").is_checked()
    page.goto(visit.address.url("progress.html"))
    assert ": right, " in page.locator(".edu-progress__items li").inner_text()


def test_progress_names_questions_and_labs_and_says_dates_in_the_language_of_the_page(open_context):
    visit = open_context(locale="de-DE", timezone_id="Europe/Berlin")
    page = visit.open(CHAPTER)
    write_and_save(page, "# mine")
    quiz = page.locator("edu-quiz").first
    question = " ".join(quiz.locator("legend").inner_text().split())
    answer(quiz, 0)
    page.goto(visit.address.url("progress.html"))
    items = page.locator(".edu-progress__items li")
    asked, written = items.nth(0).inner_text(), items.nth(1).inner_text()
    named = items.nth(0).locator("a").inner_text().removesuffix(" …")
    assert len(named) >= min(20, len(question))
    assert question.startswith(named)
    assert items.nth(1).locator("a").inner_text() == "Write the FP4 cache codes yourself"
    months = "January|February|March|April|May|June|July|August|September|October|November|December"
    for text in (asked, written):
        assert re.search(rf", \d{{1,2}} ({months}) \d{{4}}$", text), text


SAVED = {
    "version": 1,
    "labs": {"fp4-codes": {"v": {"code": "#", "at": 1e12, "title": "A lab", "page": f"{CHAPTER}#lab-fp4-codes"}}},
    "quizzes": {"old-entry": {"v": {"answer": "1", "correct": False, "at": 1e12}}},
    "chapters": {"04b_fp4_cache": {"1": {"read": True, "at": 1e12, "title": "A chapter", "page": CHAPTER}}},
}


@pytest.mark.behaviour(14)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_the_progress_page_with_entries_and_a_preview(open_context, tmp_path, theme):
    visit = open_context(color_scheme=theme)
    page = visit.open("progress.html")
    page.evaluate("([key, state]) => localStorage.setItem(key, JSON.stringify(state))", [KEY, SAVED])
    page.reload()
    page.locator(".edu-progress__items").nth(2).wait_for()
    assert "old-entry: not right yet, 9 September 2001" in page.locator("edu-progress").inner_text()
    file = tmp_path / "progress.json"
    file.write_text(json.dumps({"format": "deepseek-edu-progress", "state": SAVED}))
    page.locator("edu-progress input[type=file]").set_input_files(file)
    page.locator("edu-progress [data-action=confirm]").wait_for()
    assert violations(page) == []


def test_a_refusal_is_gone_when_the_next_file_is_shown(visit, tmp_path):
    page = visit.open("progress.html")
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    bad.write_text("no")
    good.write_text(json.dumps({"format": "deepseek-edu-progress", "state": SAVED}))
    progress = page.locator("edu-progress")
    progress.locator("input[type=file]").set_input_files(bad)
    page.wait_for_function("() => document.querySelector('edu-progress').innerText.includes('not imported')")
    progress.locator("input[type=file]").set_input_files(good)
    progress.locator("[data-action=confirm]").wait_for()
    assert "not imported" not in progress.inner_text()
    progress.locator("input[type=file]").set_input_files(bad)
    page.wait_for_function("() => document.querySelector('edu-progress').innerText.includes('not imported')")
    assert progress.locator("[data-action=confirm]").count() == 0, "the plan of another file stays beside the refusal"
