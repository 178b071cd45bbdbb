"""Without a mouse: questions, cards, the editor's way out, the lab from writing to result, the theme."""

import pytest

from tests.browser.conftest import CHAPTER, both_shells
from tests.browser.test_lab import SOLUTION, Lab

pytestmark = pytest.mark.behaviour(14)


def test_a_question_is_answered_with_the_keyboard(visit):
    page = visit.open(CHAPTER)
    quiz = page.locator("edu-quiz").first
    quiz.locator("input[type=radio]").first.focus()
    page.keyboard.press("ArrowDown")
    assert quiz.locator("input[type=radio]").nth(1).is_checked()
    page.keyboard.press("Enter")
    result = quiz.locator(".edu-quiz__result")
    assert result.inner_text().strip()
    assert quiz.locator(".edu-why:visible").count() >= 1


def test_cards_are_stepped_with_the_keyboard(visit):
    page = visit.open(CHAPTER)
    walk = page.locator("edu-walk").first
    assert walk.locator("li:visible").count() == 1
    first = walk.locator("li:visible").inner_text()
    walk.locator("button:visible:enabled").last.focus()
    page.keyboard.press("Enter")
    assert walk.locator("li:visible").inner_text() != first


def test_tab_indents_in_the_editor_and_escape_then_tab_leaves_it(visit):
    page = visit.open(CHAPTER)
    lab = Lab(page)
    lab.write("x = 1")
    page.keyboard.press("Tab")
    assert page.evaluate("!!document.activeElement.closest('.cm-editor')")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert not page.evaluate("!!document.activeElement.closest('.cm-content')")
    assert "Esc" in lab.element.inner_text(), "the way out must be told"


def test_the_lab_is_written_and_run_with_the_keyboard(visit):
    page = visit.open(CHAPTER)
    lab = Lab(page)
    lab.write(SOLUTION)
    page.keyboard.press("Escape")
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.action") == "run":
            break
    page.keyboard.press("Enter")
    assert lab.wait_for("passed", "failed", "error") == "passed"
    assert lab.element.locator(".edu-lab__outcome").get_attribute("role") == "status"


@both_shells
def test_the_first_tab_offers_to_skip_to_the_text(visit):
    page = visit.open(CHAPTER)
    page.keyboard.press("Tab")
    address, anchor = page.evaluate("document.activeElement.href").split("#")
    assert address == visit.address.url(CHAPTER)
    assert page.locator(f"[id='{anchor}']").count() == 1
