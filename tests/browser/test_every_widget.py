"""What holds for every widget on its page, in both shells: without scripts, its first moves by keyboard, live views
equal to CPython's, an edit, and a phone of 320 pixels with the editor open."""

import json
import random
import re

import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets import live, states
from deepseek_edu.widgets.compare import differences
from tests.browser.conftest import both_shells
from tests.browser.test_pages import overflowing, violations
from tests.widgets.test_every_widget import sabotaged

LIVE_SETTINGS = {"material": 10, "zensical": 3}  # the same worker computes in both frames

pytestmark = [pytest.mark.parametrize("id", widgets.names()), both_shells]

ANSWER = """
([selector, values]) => new Promise((resolve, reject) => {
  const widget = document.querySelector(selector);
  widget.addEventListener('edu:answer', event => resolve(event.detail), {once: true});
  setTimeout(() => reject(new Error('no answer: ' + widget.dataset.state)), 20000);
  widget.values = values;
  widget.update();
})
"""


CROWDED = """
(widget, phone) => {
  const found = [], lines = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return new Set([...range.getClientRects()].map(box => Math.round(box.top / 6))).size;
  };
  for (const hidden of widget.querySelectorAll('.edu-control[hidden], .edu-more[hidden]')) hidden.hidden = false;
  for (const folded of widget.querySelectorAll('.edu-more')) folded.open = true;
  for (const label of widget.querySelectorAll('.edu-segment label')) {
    if (lines(label) > (phone ? 2 : 1)) found.push(`the choice “${label.textContent}” takes ${lines(label)} lines`);
  }
  for (const field of widget.querySelectorAll('select')) {
    const pen = document.createElement('canvas').getContext('2d'), style = getComputedStyle(field);
    pen.font = `${style.fontSize} ${style.fontFamily}`;
    for (const { text } of phone ? [] : field.options) {
      if (pen.measureText(text).width > field.clientWidth - 40) found.push(`“${text}” is cut`);
    }
  }
  for (const field of widget.querySelectorAll('table input[type=number]')) {
    for (const text of ['-2', '100', field.value]) {
      field.value = text;
      if (field.scrollWidth > field.clientWidth) found.push(`the field ${field.ariaLabel} cuts ${text}`);
    }
  }
  for (const field of widget.querySelectorAll('.edu-text--code')) {
    if (!getComputedStyle(field).fontFamily.includes('Mono')) found.push('code is not written in the font of code');
  }
  const bar = [...widget.querySelectorAll('.edu-widget__bar button')];
  const rows = new Set(bar.map(button => Math.round(button.getBoundingClientRect().top))).size;
  if (rows !== (phone ? 3 : 1)) found.push(`the buttons stand in ${rows} rows`);
  for (const button of bar) if (lines(button) > 1) found.push(`the button “${button.textContent}” is wrapped`);
  return found;
}
"""


def opened(watched, id):
    """The page of a widget and its first element there."""
    page = watched.open(f"{widgets.get(id).chapter}.html")
    return page, page.locator(f"edu-widget[data-widget={id}]").first


def set_values(page, id, values):
    return page.evaluate(ANSWER, [f"edu-widget[data-widget={id}]", values])


def start_values(page, id):
    return page.evaluate(f"document.querySelector('edu-widget[data-widget={id}]').start")


def test_the_start_state_reads_without_scripts(open_context, id):
    watched = open_context(java_script_enabled=False)
    page = watched.open(f"{widgets.get(id).chapter}.html", settle=False)
    widget = page.locator(f"edu-widget[data-widget={id}]").first
    assert widget.locator(".edu-summary").inner_text().strip()
    assert widget.locator(".edu-view").inner_text().strip()
    assert widget.locator("button:visible").count() == 0, "a button that does nothing"


@pytest.mark.behaviour(3)
def test_a_first_move_by_keyboard_needs_no_python(visit, id):
    visit.context.route("**/edu/runtime/**", lambda route: route.abort())
    page, widget = opened(visit, id)
    name, control = next(
        (name, control)
        for name, control in widgets.get(id).controls.items()
        if control.kind in ("slider", "choice", "toggle") and widget.locator(f"[data-control={name}]").is_visible()
    )
    field = widget.locator(f"[data-control={name}]").locator("input, select").first
    before = page.evaluate(f"document.querySelector('edu-widget[data-widget={id}]').values")
    field.focus()
    if control.kind == "toggle":
        page.keyboard.press("Space")
    elif getattr(control, "look", "") == "search":
        other = next(words for key, words in control.options.items() if key != before[name])
        field.fill(other)
    elif getattr(control, "look", "") == "segments":
        widget.locator(f"[data-control={name}] input:checked").focus()
        page.keyboard.press("ArrowRight")
    else:
        page.keyboard.press("ArrowDown" if control.kind == "choice" else "ArrowRight")
        if page.evaluate(f"document.querySelector('edu-widget[data-widget={id}]').values")[name] == before[name]:
            page.keyboard.press("ArrowUp" if control.kind == "choice" else "ArrowLeft")
    values = page.evaluate(f"document.querySelector('edu-widget[data-widget={id}]').values")
    assert values[name] != before[name]
    expected = widgets.evaluate(id, widgets.get(id).canonical(values)).summary
    page.wait_for_function(
        "([id, text]) => document.querySelector(`edu-widget[data-widget=${id}] .edu-summary`).textContent === text",
        arg=[id, expected],
    )
    assert widget.get_attribute("data-state") == "idle"
    assert not any("/edu/runtime/" in url for url in visit.requests)


def test_live_views_equal_cpython_and_an_edit_reaches_the_picture(visit, shell, id):
    page, widget = opened(visit, id)
    widget.locator("[data-action=live]").click()
    selector = f"edu-widget[data-widget={id}]"
    page.wait_for_function(
        "s => ['live', 'error'].includes(document.querySelector(s).dataset.state)", arg=selector, timeout=60_000
    )
    assert widget.get_attribute("data-state") == "live", widget.locator(".edu-status").inner_text()
    chosen = widgets.get(id)
    rng = random.Random(20261130)
    for values in states.random_values(chosen, LIVE_SETTINGS[shell], seed=rng.randrange(10**6)):
        for name, control in chosen.controls.items():
            if control.kind == "numbers":
                low, high = control.min, control.max
                values[name] = [
                    float(rng.randint(int(low), int(high))) if control.whole else rng.uniform(low, high)
                    for _ in range(control.length)
                ]
        there = set_values(page, id, values)
        here = widgets.evaluate(id, chosen.canonical(values))
        assert there["ok"], there
        assert differences(here, there) == [], values
        assert there["summary"] == here.summary

    broken = sabotaged(id, chosen.names[0])
    candidates = [dict(chosen.defaults), *states.random_values(chosen, 24, seed=7)]
    values = next(v for v in candidates if "sabotaged on purpose" in live.evaluate_json(id, json.dumps(v), broken))
    set_values(page, id, values)
    page.evaluate("([s, text]) => document.querySelector(s).runEdited(text)", [selector, broken])
    page.wait_for_selector(f"{selector}[data-state=error]")
    said = widget.locator(".edu-status").inner_text()
    assert re.search(r"RuntimeError, line \d+ of the code: sabotaged on purpose", said)
    page.evaluate("s => document.querySelector(s).runEdited(null)", selector)
    page.wait_for_selector(f"{selector}[data-state=live]")


@pytest.mark.parametrize("width", [1280, 360])
def test_words_of_controls_have_room(open_context, id, width):
    _, widget = opened(open_context(viewport={"width": width, "height": 800}), id)
    assert widget.evaluate(CROWDED, width < 600) == []


@pytest.mark.behaviour(14)
def test_a_phone_shows_all_of_it_with_the_editor_open_and_axe_finds_nothing(open_context, id):
    watched = open_context(viewport={"width": 320, "height": 720}, color_scheme="dark")
    page, widget = opened(watched, id)
    widget.locator("[data-action=edit]").click()
    widget.locator(".edu-editor .cm-content").wait_for()
    assert overflowing(page) == []
    assert violations(page) == []
