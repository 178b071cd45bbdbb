"""What a page says before, or without, any of its scripts."""

from tests.browser.conftest import CHAPTER, both_shells

pytestmark = both_shells


def test_a_widget_is_readable_with_javascript_off(open_context):
    visit = open_context(java_script_enabled=False)
    page = visit.open(CHAPTER, settle=False)
    widget = page.locator("edu-widget").first
    assert widget.locator("[role=img]:visible").first.is_visible()
    text = widget.inner_text()
    for expected in ("3.2", "0101", "−0.2"):  # 3.2 with scale 1 is code 0101, read back as 3
        assert expected in text, f"{expected} is not in the widget's start state"
    assert all(control.is_disabled() for control in widget.locator("input, select").all())
    assert page.locator("edu-widget button:visible").count() == 0, "a button that would do nothing"
    assert "JavaScript" in widget.inner_text()


def test_formulas_quizzes_walks_and_labs_read_with_javascript_off(open_context):
    page = open_context(java_script_enabled=False).open(CHAPTER, settle=False)
    assert page.locator(".katex .katex-html").count() >= 3
    assert page.locator(".arithmatex").count() == 0 or "\\(" not in page.locator(".md-content").inner_text()
    assert page.locator("edu-quiz legend").first.is_visible()
    answer = page.locator("edu-quiz details").first
    answer.locator("summary").click()
    assert len(answer.inner_text()) > 40
    cards = page.locator("edu-walk li")
    assert cards.count() >= 5
    assert all(card.is_visible() for card in cards.all())
    assert "def encode" in page.locator("edu-lab pre").first.inner_text()
    assert "visible" in page.locator("edu-lab").inner_text()
    assert "hidden" in page.locator("edu-lab").inner_text()
