"""The site opened from the disk, without any server: it reads, and says what live Python needs."""

import pytest

from tests.browser.conftest import CHAPTER, Address, both_shells

pytestmark = both_shells


@pytest.fixture
def from_disk(open_context, site):
    return open_context(at=Address(site.as_uri().removesuffix(site.as_posix()), site.as_posix() + "/"))


@pytest.mark.behaviour(2)
def test_pages_read_and_link_to_each_other_from_the_disk(from_disk):
    page = from_disk.open("index.html")
    page.locator(f"a[href$='{CHAPTER}']:visible").first.click()
    page.wait_for_selector("edu-widget")
    assert page.locator("edu-widget [role=img]:visible").first.is_visible()
    assert page.locator(".katex .katex-html").count() >= 3
    assert page.evaluate("document.fonts.size > 0 && getComputedStyle(document.body).fontFamily !== 'serif'")
    quiz = page.locator("edu-quiz").first
    quiz.locator("input[type=radio]").first.check()
    quiz.locator("button[type=submit]").click()
    assert quiz.locator(".edu-quiz__result").inner_text().strip()


@pytest.mark.behaviour(2)
@pytest.mark.parametrize(
    ("element", "action", "where"),
    [("edu-widget", "live", ".edu-status"), ("edu-lab", "run", ".edu-lab__outcome")],
)
def test_live_buttons_say_that_the_small_server_is_needed(from_disk, element, action, where):
    page = from_disk.open(CHAPTER)
    holder = page.locator(element).first
    holder.locator(f"[data-action={action}]").click()
    said = holder.locator(where).inner_text()
    assert "serve.py" in said
    assert page.locator("edu-widget [role=img]:visible").first.is_visible()
