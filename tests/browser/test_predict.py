"""Predict first: a result is covered until its question has an answer, or the reader asks to see it; and stays open."""

import pytest

from tests.browser.conftest import Watched
from tests.browser.test_pages import violations

PAGE, QUIZ = "02_weights_states_caches.html", "#quiz-homes-predict"
PRINTED = "part => getComputedStyle(document.querySelector(`edu-widget ${part}`)).display"


class Covered:
    """The first widget of a page and what covers it."""

    def __init__(self, visit: Watched, page: str = PAGE) -> None:
        self.page = visit.open(page)
        self.widget = self.page.locator("edu-widget").first
        self.cover = self.widget.locator(".edu-cover")
        self.result = self.widget.locator(".edu-view")
        self.summary = self.widget.locator(".edu-summary")

    @property
    def open(self) -> bool:
        shown = {self.result.is_visible(), self.summary.is_visible(), not self.cover.is_visible()}
        assert len(shown) == 1, "picture, summary and cover disagree"
        return shown.pop()


@pytest.mark.parametrize("option", [0, 1], ids=["wrong", "right"])
def test_any_answer_uncovers_and_is_remembered(visit, option):
    covered = Covered(visit)
    assert not covered.open
    quiz = covered.page.locator(QUIZ)
    quiz.locator("input").nth(option).check()
    assert not covered.open, "a choice is no answer before it is checked"
    quiz.locator("button[type=submit]").click()
    assert covered.open
    assert "shown now" in covered.widget.locator(".edu-status").inner_text()
    again = Covered(visit)
    assert again.open
    again.widget.locator("[data-action=reset]").click()
    assert again.open, "reset is about the values"


def test_the_result_can_be_shown_without_an_answer_by_keyboard(visit):
    covered = Covered(visit)
    assert violations(covered.page) == []
    covered.cover.locator("button").focus()
    covered.page.keyboard.press("Enter")
    assert covered.open
    assert covered.page.evaluate("document.activeElement.classList.contains('edu-view')"), "the focus is lost"
    again = Covered(visit)
    assert again.open
    assert again.page.locator(QUIZ).get_attribute("data-state") == "idle", "looking is no answer"
    assert again.page.locator(f"{QUIZ} .edu-quiz__result").inner_text() == ""
    progress = visit.open("progress.html")
    assert "result shown, not answered" in progress.locator("edu-progress").inner_text()
    progress.locator("[data-action=reset]").click()
    assert not Covered(visit).open, "with the answers gone the question is new"


def test_the_cover_leads_to_its_question_and_hides_the_result_from_readers_of_any_kind(visit):
    covered = Covered(visit)
    heard = covered.widget.aria_snapshot()
    assert "Show without answering" in heard
    assert covered.summary.text_content() not in heard
    covered.cover.locator("a").click()
    assert covered.page.evaluate("location.hash") == QUIZ
    assert covered.page.locator(QUIZ).is_visible()


def test_only_the_settings_that_are_asked_about_are_covered(visit):
    covered = Covered(visit, "03_kv_cache.html")
    assert covered.open
    parts = covered.widget.locator("[data-control=part] input")
    parts.nth(1).check(force=True)
    assert not covered.open
    parts.nth(0).check(force=True)
    assert covered.open


def test_paper_and_pages_without_scripts_show_everything(open_context, visit):
    covered = Covered(visit)
    covered.page.emulate_media(media="print")
    assert [covered.page.evaluate(PRINTED, part) for part in (".edu-view", ".edu-summary", ".edu-cover")] == [
        "grid",
        "block",
        "none",
    ]
    page = open_context(java_script_enabled=False).open(PAGE, settle=False)
    assert page.locator("edu-widget .edu-view").first.is_visible()
    assert page.locator("edu-widget .edu-cover").first.is_hidden()
    answer = page.locator(f"{QUIZ} details")
    answer.locator("summary").click()
    assert "Right:" in answer.inner_text()
