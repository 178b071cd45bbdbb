"""What a reader keeps: saved code by version, progress in and out, no storage at all, two tabs."""

import json

import pytest

from tests.browser.conftest import CHAPTER
from tests.browser.test_lab import SOLUTION, STARTER, Lab

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
