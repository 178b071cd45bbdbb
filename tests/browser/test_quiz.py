"""Questions with a number: what a wrong answer is told, and the way to the right one, by mouse and by keyboard."""

import pytest

from tests.browser.conftest import CHAPTER

NINE = "#quiz-fp4-nine"


class Question:
    """Drives one question with a number."""

    def __init__(self, page, selector: str = NINE):
        self.page, self.element = page, page.locator(selector)
        self.why = self.element.locator(".edu-why")
        self.show = self.element.locator("[data-action=answer]")

    def answer(self, text: str) -> str:
        self.element.locator("input").fill(text)
        self.element.locator("input").press("Enter")
        return self.said

    @property
    def said(self) -> str:
        return self.element.locator(".edu-quiz__result").inner_text()


@pytest.fixture
def question(visit) -> Question:
    return Question(visit.open(CHAPTER))


@pytest.mark.parametrize(("typed", "word"), [("32", "Too large"), ("8,5", "Too small"), ("−9", "Too small")])
def test_a_wrong_number_is_told_the_direction_and_promised_nothing_it_does_not_get(question, typed, word):
    said = question.answer(typed)
    assert word in said
    assert "Read why" not in said
    assert "9 bytes" not in said
    assert not question.why.is_visible()
    assert question.show.inner_text() == "Show the answer and why"


def test_the_answer_and_why_are_shown_when_asked_for_by_keyboard(question):
    question.answer("8")
    question.page.keyboard.press("Tab")  # the check button
    question.page.keyboard.press("Tab")
    assert question.show.evaluate("button => button === document.activeElement")
    assert question.show.get_attribute("aria-expanded") == "false"
    question.page.keyboard.press("Enter")
    assert "The answer is 9 bytes" in question.said
    assert "4.5 bits per value" in question.why.inner_text()
    assert question.why.is_visible()
    assert question.show.get_attribute("aria-expanded") == "true"
    assert question.show.get_attribute("aria-controls") == question.why.get_attribute("id")
    assert question.show.evaluate("button => button === document.activeElement"), "the focus is lost"
    question.page.keyboard.press("Enter")
    assert not question.why.is_visible()
    assert "9 bytes" not in question.said


def test_typing_again_takes_the_answer_away_and_right_shows_why_without_asking(question):
    question.answer("8")
    question.show.click()
    question.element.locator("input").fill("7")
    assert question.said == ""
    assert not question.why.is_visible()
    assert not question.show.is_visible()
    assert question.answer("9") == "Right."
    assert question.why.is_visible()
    assert not question.show.is_visible()


def test_what_is_no_number_is_told_so_and_not_how_far(question):
    assert question.answer("nine") == "Type a number, such as 1.5."
    assert not question.show.is_visible()


def test_a_choice_still_shows_why_at_once(visit):
    quiz = visit.open(CHAPTER).locator("edu-quiz:has(input[type=radio])").first
    for option in quiz.locator("input[type=radio]").all():
        option.check()
        quiz.locator("button[type=submit]").click()
        if quiz.get_attribute("data-state") == "wrong":
            break
    assert quiz.locator(".edu-quiz__result").inner_text() == "Not right. Read why, then try again."
    assert quiz.locator(".edu-why:visible").count() == 1
    assert quiz.locator("[data-action=answer]").count() == 0
