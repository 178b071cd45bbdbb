"""Instant navigation, sub-paths, links into a widget's state, and the keyboard."""

import pytest

from tests.browser.conftest import CHAPTER, both_shells, serving
from tests.browser.test_lab import SOLUTION, Lab

MARK = "window.__same_document = true"


def follow(page, name: str) -> None:
    """Click a link to another page of the site and wait until its content is shown."""
    before = page.locator("h1").inner_text()
    page.locator(
        f".md-nav--primary a[href$='{name}'], .md-footer a[href$='{name}'], .md-tabs a[href$='{name}']"
    ).first.evaluate("link => link.click()")
    page.wait_for_function("before => document.querySelector('h1')?.innerText !== before", arg=before)


@both_shells
@pytest.mark.behaviour(12)
def test_two_hops_and_back_keep_everything_alive(visit):
    page = visit.open(CHAPTER)
    page.evaluate(MARK)
    follow(page, "glossary.html")
    follow(page, "sources.html")
    assert page.evaluate("window.__same_document") is True, "the navigation was not instant"
    page.go_back()
    page.wait_for_url("**/glossary.html")
    page.go_back()
    page.wait_for_selector("edu-widget")
    assert page.evaluate("window.__same_document") is True
    assert page.locator(".katex .katex-html").count() >= 3
    slider = page.locator("edu-widget input[type=range]").first
    before = page.locator("edu-widget .edu-view").first.inner_text()
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("before => document.querySelector('edu-widget .edu-view').innerText !== before", arg=before)
    quiz = page.locator("edu-quiz").first
    quiz.locator("input[type=radio]").first.check()
    quiz.locator("button[type=submit]").click()
    assert quiz.locator(".edu-quiz__result").inner_text().strip()
    assert Lab(page).run(SOLUTION) == "passed"


@both_shells
@pytest.mark.behaviour(5)
@pytest.mark.parametrize("prefix", ["/a/b/"])
def test_everything_works_under_a_sub_path(site, open_context, prefix):
    with serving(site, prefix) as address:
        visit = open_context(at=address)
        page = visit.open(CHAPTER)
        page.evaluate(MARK)
        widget = page.locator("edu-widget").first
        widget.locator("[data-action=live]").click()
        page.wait_for_selector("edu-widget[data-state=live]", timeout=60_000)
        follow(page, "glossary.html")
        assert page.url.startswith(address.url())
        assert page.evaluate("window.__same_document") is True
        page.go_back()
        page.wait_for_selector("edu-lab")
        assert Lab(page).run(SOLUTION) == "passed"
        outside = [url for url in visit.requests if not url.startswith(address.url()) and url.startswith("http")]
        assert outside == [], "requests outside the sub-path"
        visit.check()
        page.close()
