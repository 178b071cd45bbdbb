"""The frame around the pages, of Material for MkDocs and of Zensical: search, themes, the menu of a phone."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import CHAPTER, both_shells
from tests.browser.test_navigation import MARK, follow
from tests.browser.test_pages import violations

FIELD = ".md-search__input, .edu-search input"
RESULT = ".md-search-result__item, .edu-search [role=option]"
INDEX = re.compile(r"/search(_index)?\.json$")


def search(page, words: str) -> None:
    """Open the search with the keyboard, type, and wait for what it finds."""
    page.keyboard.press("/")
    page.locator(FIELD).wait_for()
    page.keyboard.type(words)
    page.locator(RESULT).first.wait_for()


@both_shells
def test_the_search_index_comes_once_and_when_the_reader_searches(visit):
    page = visit.open("index.html")
    page.wait_for_load_state("networkidle")
    assert not any(INDEX.search(url) for url in visit.requests)
    search(page, "scale")
    assert "scale" in page.locator(RESULT).first.inner_text().lower()
    assert sum(bool(INDEX.search(url)) for url in visit.requests) == 1


@both_shells
@pytest.mark.behaviour(14)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_open_search_dialog(open_context, theme):
    page = open_context(color_scheme=theme).open("index.html")
    search(page, "scale")
    assert violations(page) == []


@both_shells
@pytest.mark.behaviour(12)
def test_a_result_opens_its_page_without_loading_a_new_one(visit):
    page = visit.open("index.html")
    page.evaluate(MARK)
    search(page, "even code")
    page.locator(RESULT).first.locator("xpath=descendant-or-self::a").first.click()
    page.wait_for_url(f"**/{CHAPTER}*")
    page.locator("edu-widget").first.wait_for()
    assert page.evaluate("window.__same_document") is True


@both_shells
def test_the_words_that_an_address_carries_are_marked(visit):
    page = visit.open(f"{CHAPTER}?h=scale")
    page.locator(".md-content mark").first.wait_for(state="attached")
    assert {mark.lower() for mark in page.locator(".md-content mark").all_text_contents()} == {"scale"}


@pytest.mark.parametrize("shell", ["zensical"], indirect=True)
def test_the_shortcut_that_its_button_shows_opens_the_search_before_the_index_is_there(visit):
    page = visit.open("index.html")
    page.wait_for_load_state("networkidle")
    page.keyboard.press("ControlOrMeta+k")
    page.locator(FIELD).wait_for()
    page.keyboard.type("scale")
    page.locator(RESULT).first.wait_for()


def test_a_query_in_the_address_is_answered(visit):
    """Material's own links to a search; Zensical has none."""
    page = visit.open("index.html?q=scale")
    page.locator(RESULT).first.wait_for(state="attached")


THEME = "document.body.getAttribute('data-md-color-scheme')"


@both_shells
@pytest.mark.behaviour(14)
def test_the_theme_follows_the_system_until_the_keyboard_switches_it_and_then_stays(open_context):
    page = open_context(color_scheme="dark").open(CHAPTER)
    assert page.evaluate(THEME) == "slate"
    page.evaluate(MARK)
    ink = "getComputedStyle(document.querySelector('edu-widget text')).fill"
    dark = page.evaluate(ink)
    shown = page.locator("[data-md-component=palette] label:visible")
    assert "light" in shown.get_attribute("title")
    page.locator("#__palette_0").focus()  # where Tab leads
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => {THEME} === 'default'")
    assert page.evaluate(ink) != dark
    follow(page, "glossary.html")
    assert page.evaluate(THEME) == "default"
    assert page.evaluate("window.__same_document") is True
    page.reload()
    page.wait_for_selector("html[data-edu-ready]", state="attached")
    assert page.evaluate(THEME) == "default", "the choice is lost"


@both_shells
@pytest.mark.behaviour(12)
def test_the_menu_of_a_phone_leads_from_chapter_to_chapter(open_context):
    page = open_context(viewport={"width": 360, "height": 740}).open(CHAPTER)
    page.evaluate(MARK)
    link = page.locator(".md-nav--primary a[href$='06_experts.html']")
    expect(link).not_to_be_in_viewport()
    page.locator("label.md-header__button[for=__drawer]").click()
    expect(link).to_be_in_viewport()
    link.click()
    page.wait_for_url("**/06_experts.html")
    page.locator("edu-widget[data-widget=router]").wait_for()
    assert page.evaluate("window.__same_document") is True
    expect(link).not_to_be_in_viewport()


@both_shells
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_title_above_a_scrolled_navigation_hides_what_scrolls_behind_it(open_context, theme):
    """The title stays while the list scrolls; it must have the page's colour, not let entries shine through."""
    page = open_context(color_scheme=theme).open("api/reference/checkpoint.html")
    title = page.locator(".md-sidebar--primary .md-nav--primary > .md-nav__title").first
    behind, below = title.evaluate(
        "e => [getComputedStyle(e).backgroundColor, getComputedStyle(document.body).backgroundColor]"
    )
    assert behind == below
