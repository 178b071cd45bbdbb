"""The widget on the page: precomputed moves, live results equal to CPython's, editing the mechanism, the keyboard."""

import random

import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets.compare import differences
from tests.browser.conftest import CHAPTER, serving

RUNTIME = "**/edu/runtime/**"
ANSWER = """
values => new Promise((resolve, reject) => {
  const widget = document.querySelector('edu-widget');
  widget.addEventListener('edu:answer', event => resolve(event.detail), {once: true});
  setTimeout(() => reject(new Error('no answer: ' + widget.dataset.state)), 10000);
  widget.values = values;
  widget.update();
})
"""


def go_live(page, index=0):
    widget = page.locator("edu-widget").nth(index)
    widget.locator("[data-action=live]").click()
    page.wait_for_function(
        "i => ['live', 'error'].includes(document.querySelectorAll('edu-widget')[i].dataset.state)",
        arg=index,
        timeout=60_000,
    )
    assert widget.get_attribute("data-state") == "live", widget.locator(".edu-status").inner_text()
    return widget


def random_values(widget: widgets.Widget, rng: random.Random) -> dict:
    """Control values drawn uniformly from everything a reader could set."""
    drawn = {}
    for name, control in widget.controls.items():
        if control.kind == "choice":
            drawn[name] = rng.choice(list(control.options))
        elif control.kind == "toggle":
            drawn[name] = rng.random() < 0.5
        elif control.kind == "slider":
            drawn[name] = control.at(rng.randint(0, control.count))
        else:
            drawn[name] = [control.at(rng.randint(0, control.count)) for _ in range(control.length)]
    return drawn


def test_live_views_equal_cpython_on_fifty_random_settings(visit):
    page = visit.open(CHAPTER)
    go_live(page)
    rng = random.Random(20260910)
    fp4 = widgets.get("fp4")
    for _ in range(50):
        values = random_values(fp4, rng)
        here = widgets.evaluate("fp4", values)
        there = page.evaluate(ANSWER, values)
        assert there["ok"], there
        found = differences(here, there)
        assert found == [], values
        assert there["summary"] == here.summary


@pytest.mark.behaviour(3)
def test_first_moves_need_no_python(visit):
    visit.context.route(RUNTIME, lambda route: route.abort())
    page = visit.open(CHAPTER)
    widget = page.locator("edu-widget").first
    slider = widget.locator("input[type=range]").first
    before = widget.locator(".edu-view").inner_text()
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("before => document.querySelector('edu-widget .edu-view').innerText !== before", arg=before)
    assert widget.get_attribute("data-state") == "idle"
    value = round(float(slider.input_value()), 2)
    expected = widgets.evaluate("fp4", {"value": value}).summary
    assert widget.locator(".edu-summary").inner_text() == expected
    assert not any("/edu/runtime/" in url for url in visit.requests)


@pytest.mark.behaviour(3)
def test_nothing_of_python_is_loaded_before_a_click_and_the_button_says_how_much(visit):
    page = visit.open(CHAPTER)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.wait_for_load_state("networkidle")
    assert not any("/edu/runtime/" in url for url in visit.requests)
    text = page.locator("edu-widget [data-action=live]").first.inner_text()
    assert "MB" in text
    assert "this site" in text


def test_editing_the_mechanism_changes_the_picture_and_restoring_brings_it_back(visit):
    page = visit.open(CHAPTER)
    widget = go_live(page)
    page.evaluate(ANSWER, {**page.evaluate("document.querySelector('edu-widget').values"), "value": 2.5})
    page.wait_for_selector("edu-widget[data-state=live]")
    right = widget.locator(".edu-view").inner_html()
    widget.locator("[data-action=edit]").click()
    editor = widget.locator(".edu-editor .cm-content")
    editor.wait_for()
    source = page.evaluate("document.querySelector('edu-widget').spec.mechanism.source")
    assert "below % 2 == 1" in source
    editor.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(source.replace("below % 2 == 1", "below % 2 == 0"))
    widget.locator(".edu-editor [data-action=run-edit]").click()
    page.wait_for_function("before => document.querySelector('edu-widget .edu-view').innerHTML !== before", arg=right)
    assert "edited" in widget.locator(".edu-status").inner_text()
    widget.locator(".edu-editor [data-action=restore]").click()
    page.wait_for_function("before => document.querySelector('edu-widget .edu-view').innerHTML === before", arg=right)


def test_an_error_in_edited_code_names_its_line_and_keeps_the_picture(visit):
    page = visit.open(CHAPTER)
    widget = go_live(page)
    before = widget.locator(".edu-view").inner_html()
    widget.locator("[data-action=edit]").click()
    editor = widget.locator(".edu-editor .cm-content")
    editor.wait_for()
    editor.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text("def nearest_code(magnitude, levels, ties='even'):\n    return missing\n")
    widget.locator(".edu-editor [data-action=run-edit]").click()
    page.wait_for_selector("edu-widget[data-state=error]")
    said = widget.locator(".edu-status").inner_text()
    assert "NameError" in said
    assert "line 2" in said
    assert widget.locator(".edu-view").inner_html() == before


@pytest.mark.behaviour(6, 7)
def test_an_endless_loop_in_edited_code_is_stopped_and_the_widget_lives_on(visit):
    page = visit.open(CHAPTER)
    widget = go_live(page)
    page.evaluate("document.querySelector('edu-widget').source = 'while True: pass'")
    page.evaluate("void document.querySelector('edu-widget').update()")
    page.wait_for_selector("edu-widget[data-state=error]", timeout=30_000)
    assert "restarted" in widget.locator(".edu-status").inner_text()
    page.evaluate("document.querySelector('edu-widget').source = null")
    page.evaluate("void document.querySelector('edu-widget').update()")
    page.wait_for_selector("edu-widget[data-state=live]", timeout=30_000)


def test_a_link_carries_the_values_and_nonsense_in_it_is_ignored(visit):
    page = visit.open(CHAPTER)
    name = page.locator("edu-widget").first.get_attribute("id")
    page = visit.open(f"{CHAPTER}#{name}?value=2.5&ties=away")
    page.wait_for_function("() => document.querySelector('edu-widget .edu-summary').innerText.includes('2.5')")
    assert page.locator("edu-widget").first.locator("input[type=range]").first.input_value() == "2.5"
    expected = widgets.evaluate("fp4", {"value": 2.5, "ties": "away"}).summary
    assert page.locator("edu-widget .edu-summary").first.inner_text() == expected
    page = visit.open(f"{CHAPTER}#{name}?value=<script>&ties=9&part=nothing")
    assert page.locator("edu-widget .edu-summary").first.inner_text() == widgets.evaluate("fp4", {}).summary


def test_reset_returns_to_the_start(visit):
    page = visit.open(CHAPTER)
    widget = page.locator("edu-widget").first
    start = widget.locator(".edu-summary").inner_text()
    widget.locator("input[type=range]").first.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("start => document.querySelector('edu-widget .edu-summary').innerText !== start", arg=start)
    widget.locator("[data-action=reset]").click()
    page.wait_for_function("start => document.querySelector('edu-widget .edu-summary').innerText === start", arg=start)


def test_the_keyboard_alone_reaches_and_moves_everything(visit):
    page = visit.open(CHAPTER)
    page.evaluate("document.querySelector('edu-widget input').focus()")
    reached = set()
    for _ in range(60):
        reached.add(
            page.evaluate(
                """() => {
                  const e = document.activeElement;
                  if (!e.closest('edu-widget')) return 'outside';
                  const box = e.getBoundingClientRect(), style = getComputedStyle(e);
                  const ring = style.outlineStyle !== 'none' || style.boxShadow !== 'none' ||
                    getComputedStyle(e.nextElementSibling || e).outlineStyle !== 'none';
                  return `${e.dataset.action || e.type || e.tagName}${ring ? '' : ' without a visible focus'}`;
                }"""
            )
        )
        if "outside" in reached:
            break
        page.keyboard.press("Tab")
    assert {"live", "edit", "reset", "link", "copy", "range"} <= reached
    assert not [name for name in reached if "without" in name]


@pytest.mark.behaviour(4)
def test_blocked_webassembly_gets_one_plain_sentence(open_context):
    visit = open_context()
    visit.context.route(
        "**/edu/worker-*.js",
        lambda route: route.fulfill(
            body="delete globalThis.WebAssembly;\n" + route.fetch().text(), content_type="text/javascript"
        ),
    )
    page = visit.open(CHAPTER)
    page.locator("edu-widget [data-action=live]").first.click()
    page.wait_for_selector("edu-widget[data-state=error]")
    said = page.locator("edu-widget .edu-status").first.inner_text()
    assert "WebAssembly" in said
    assert page.locator("edu-widget [role=img]:visible").first.is_visible()


@pytest.mark.behaviour(4)
@pytest.mark.parametrize("name", ["pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json", "numpy"])
def test_a_missing_runtime_file_is_named(open_context, name):
    visit = open_context()
    visit.allowed_errors = ("404", "Failed to load resource")
    visit.context.route(f"**/edu/runtime/**/*{name}*", lambda route: route.fulfill(status=404, body=""))
    visit.context.route(f"**/edu/runtime/*{name}*", lambda route: route.fulfill(status=404, body=""))
    page = visit.open(CHAPTER)
    page.locator("edu-widget [data-action=live]").first.click()
    page.wait_for_selector("edu-widget[data-state=error]", timeout=30_000)
    said = page.locator("edu-widget .edu-status").first.inner_text()
    assert name.split(".")[0] in said
    assert page.locator("edu-widget [role=img]:visible").first.is_visible()


@pytest.mark.behaviour(1)
def test_with_the_network_cut_after_the_first_run_everything_still_works(site, open_context):
    with serving(site) as address:
        visit = open_context(at=address)
        page = visit.open(CHAPTER)
        go_live(page)
        visit.check()
    # the server is gone; the page goes on
    page.locator("edu-widget input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("edu-widget[data-state=live]")
