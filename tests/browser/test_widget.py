"""The widget on the page: precomputed moves, live results equal to CPython's, editing the mechanism, the keyboard."""

import gzip
import itertools
import json
import random
import re

import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets.compare import differences
from deepseek_edu.widgets.render import render_parts
from tests.browser.conftest import CHAPTER, both_shells, serving
from tests.browser.test_pages import violations

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
            drawn[name] = [rng.uniform(control.min, control.max) for _ in range(control.length)]
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
    button = page.locator("edu-widget [data-action=live]").first
    assert re.search(r"loads \d+(\.\d+)? MB once", button.inner_text())
    assert "this site" in button.get_attribute("title")


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


def place_under_header(page):
    """How far the first widget stands under the header, once the page has gone there."""
    page.wait_for_function("() => scrollY > 50")
    return page.evaluate(
        """() => document.querySelector('edu-widget').getBoundingClientRect().top
          - document.querySelector('.md-header').getBoundingClientRect().bottom"""
    )


@both_shells
@pytest.mark.parametrize("width", [360, 1280])
def test_a_link_stops_with_the_widget_under_the_header(open_context, shell, width):
    visit = open_context(viewport={"width": width, "height": 740})
    assert 0 <= place_under_header(visit.open(f"{CHAPTER}#widget-fp4?value=2.5")) <= 40


def test_a_link_to_the_start_values_leads_to_the_widget_and_to_them(visit):
    page = visit.open(CHAPTER)
    assert page.evaluate("new URL(document.querySelector('edu-widget').link).hash") == "#widget-fp4"
    page = visit.open(f"{CHAPTER}#widget-fp4")
    assert 0 <= place_under_header(page) <= 40
    page.evaluate("location.hash = '#widget-fp4?value=2.5'")
    shown(page, widgets.evaluate("fp4", {"value": 2.5}).summary)
    page.evaluate("scrollTo(0, 0); location.hash = '#widget-fp4'")
    shown(page, widgets.evaluate("fp4", {}).summary)
    assert 0 <= place_under_header(page) <= 40


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


OWN = f"{CHAPTER}#widget-fp4?part=block&preset=own"


def own_numbers(visit):
    """The first widget with its sixteen typed numbers in sight, and the field of the first one."""
    page = visit.open(OWN)
    widget = page.locator("edu-widget").first
    field = widget.locator("[data-control=values16] input").first
    field.wait_for()
    return page, widget, field


def shown(page, text):
    page.wait_for_function(
        "text => document.querySelector('edu-widget .edu-summary').innerText === text", arg=text, timeout=15_000
    )


def said(page, pattern):
    page.wait_for_function(
        "pattern => new RegExp(pattern).test(document.querySelector('edu-widget .edu-status').innerText)", arg=pattern
    )


@pytest.mark.parametrize("typed", ["7.125", "1e-3", "0.30000000000000004", "-23.987654321"])
def test_the_number_that_is_typed_is_the_number_that_is_computed(visit, typed):
    page, _, field = own_numbers(visit)
    field.fill(typed)
    page.wait_for_selector("edu-widget[data-state=needs-live]")
    go_live(page)
    values = widgets.get("fp4").defaults["values16"]
    own = {"part": "block", "preset": "own", "values16": (float(typed), *values[1:])}
    shown(page, widgets.evaluate("fp4", own).summary)
    assert page.evaluate("document.querySelector('edu-widget').values.values16[0]") == float(typed)
    assert field.input_value() == typed
    link = page.evaluate("document.querySelector('edu-widget').link")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("html[data-edu-ready]", state="attached")
    assert page.evaluate("document.querySelector('edu-widget').values.values16[0]") == float(typed)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(("typed", "fault"), [("50", "not used"), ("", "empty"), ("-24.001", "not used")])
def test_a_number_that_cannot_be_used_is_told_with_the_range(visit, typed, fault, live):
    page, widget, field = own_numbers(visit)
    if live:
        go_live(page)
    before = widget.locator(".edu-view").inner_html()
    field.fill(typed)
    said(page, f"Number 0 of “Your 16 values” is {fault}: it has to be from −24 to 24")
    assert "Live" not in widget.locator(".edu-status").inner_text()
    assert widget.get_attribute("data-state") == "error"
    assert field.get_attribute("aria-invalid") == "true"
    described = page.locator(f"#{field.get_attribute('aria-describedby')}")
    assert described.is_visible()
    assert "from −24 to 24" in described.inner_text()
    assert widget.locator(".edu-view").inner_html() == before
    assert violations(page) == []
    field.fill("7")
    page.wait_for_selector(f"edu-widget[data-state={'live' if live else 'idle'}]")
    assert field.get_attribute("aria-invalid") == "false"
    assert not described.is_visible()
    assert "not used" not in widget.locator(".edu-status").inner_text()


def test_one_field_that_cannot_be_used_leaves_the_others_working(visit):
    page, widget, field = own_numbers(visit)
    field.fill("50")
    widget.locator("[data-control=ties] select").select_option("away")
    block = {"part": "block", "preset": "own"}
    shown(page, widgets.evaluate("fp4", {**block, "ties": "away"}).summary)
    assert field.input_value() == "50"
    said(page, "Number 0 of “Your 16 values” is not used: .* The entry before it is used")
    second = widget.locator("[data-control=values16] input").nth(1)
    second.fill("9")
    widget.locator("[data-action=live]").click()
    page.wait_for_function("() => document.querySelector('edu-widget').answer", timeout=60_000)
    values = widgets.get("fp4").defaults["values16"]
    own = {**block, "ties": "away", "values16": (values[0], 9.0, *values[2:])}
    shown(page, widgets.evaluate("fp4", own).summary)
    assert widget.get_attribute("data-state") == "error"
    field.fill("3")
    page.wait_for_selector("edu-widget[data-state=live]")
    own["values16"] = (3.0, 9.0, *values[2:])
    shown(page, widgets.evaluate("fp4", own).summary)


def test_a_text_that_cannot_be_used_leaves_steps_and_switches_working(visit):
    page = visit.open("10_small_attention.html")
    widget = page.locator("edu-widget[data-widget=toy-attention]")
    ids = widget.locator("[data-control=ids] input")
    ids.fill("1,2,3")
    fault = "“Three ids” is not used: it has to be three whole numbers from 0 to 255 with spaces between them."
    assert widget.locator("[data-control=ids] .edu-control__fault").inner_text() == fault
    widget.locator("[data-control=mask] input").uncheck()
    shown(page, widgets.evaluate("toy-attention", {"mask": False}).summary)
    widget.locator("[data-step=next]").click()
    shown(page, widgets.evaluate("toy-attention", {"mask": False, "step": 7}).summary)
    assert ids.input_value() == "1,2,3"
    said(page, "is not used")
    widget.locator("[data-action=reset]").click()
    shown(page, widgets.evaluate("toy-attention", {}).summary)
    assert ids.input_value() == "12 37 9"
    assert widget.locator(".edu-control__fault:visible").count() == 0
    assert widget.get_attribute("data-state") == "idle"


def test_an_id_with_a_fraction_is_refused_not_rounded(visit):
    page = visit.open("01_architecture_map.html#widget-explorer?look=prompt")
    widget = page.locator("edu-widget[data-widget=explorer]")
    field, before = widget.locator("[data-control=prompt_id] input"), widget.locator(".edu-summary").inner_text()
    field.fill("1.5")
    fault = "“The prompt token” is not used: it has to be a whole number from 0 to 95."
    assert widget.locator("[data-control=prompt_id] .edu-control__fault").inner_text() == fault
    said(page, fault.replace(".", r"\."))
    assert widget.locator(".edu-summary").inner_text() == before
    assert widgets.get("explorer").defaults["prompt_id"] == tuple(
        page.evaluate("document.querySelector('edu-widget').values.prompt_id")
    )


def test_arrow_keys_in_a_field_of_numbers_move_by_the_step(visit):
    page, _, field = own_numbers(visit)
    field.fill("7.125")
    page.keyboard.press("ArrowUp")
    assert field.input_value() == "7.15"
    page.keyboard.press("ArrowDown")
    assert field.input_value() == "7.1"


def open_editor(page, widget):
    widget.locator("[data-action=edit]").click()
    widget.locator(".edu-editor .cm-content").wait_for()


def run_text(page, widget, text):
    widget.locator(".edu-editor .cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)
    widget.locator(".edu-editor [data-action=run-edit]").click()


def test_an_edited_text_that_lacks_functions_says_whose_code_ran(visit):
    page = visit.open(CHAPTER)
    widget = go_live(page)
    open_editor(page, widget)
    run_text(page, widget, "")
    said(page, "not by your code.*empty.*original code is used")
    source = page.evaluate("document.querySelector('edu-widget').spec.mechanism.source")
    cut = source[: source.index("def pack_nibbles")]
    run_text(page, widget, cut)
    said(page, "edited code. pack_nibbles is missing in it: the original is used")


def test_the_line_of_a_syntax_error_is_brought_into_view(visit):
    page = visit.open(CHAPTER)
    widget = go_live(page)
    open_editor(page, widget)
    run_text(page, widget, "def nearest_code(:\n" + "# a line\n" * 150)
    line = widget.locator(".edu-line--error")
    line.wait_for()
    assert line.inner_text() == "def nearest_code(:"
    page.wait_for_function(
        """() => {
          const [line, box] = ['.edu-line--error', '.cm-scroller'].map(
            name => document.querySelector(`edu-widget ${name}`).getBoundingClientRect());
          const header = document.querySelector('.md-header').getBoundingClientRect().bottom;
          return line.top >= Math.max(box.top, header) && line.bottom <= Math.min(box.bottom, innerHeight);
        }"""
    )


@pytest.mark.parametrize("uncovered", [False, True])
def test_a_covered_result_is_not_copied(visit, uncovered):
    visit.context.add_init_script(
        "if (isSecureContext) navigator.clipboard.writeText = async text => { window.copied = JSON.parse(text); };"
    )
    page = visit.open("03_kv_cache.html")
    widget = page.locator("edu-widget[data-widget=kv-cache]")
    widget.locator("[data-control=part] input").nth(1).check(force=True)
    widget.locator("[data-action=live]").click()
    page.wait_for_function("() => document.querySelector('edu-widget').answer", timeout=60_000)
    if uncovered:
        widget.locator("[data-action=uncover]").click()
    widget.locator("[data-action=copy]").click()
    said(page, "Values and result are copied" if uncovered else "result is covered until its question has an answer")
    copied = page.evaluate("window.copied")
    part = list(widgets.get("kv-cache").controls["part"].options)[1]
    assert copied["values"]["part"] == part
    expected = widgets.evaluate("kv-cache", {"part": part}).summary
    assert (copied["result"] and copied["result"]["summary"]) == (expected if uncovered else None)


def test_a_run_says_that_it_runs_and_what_the_code_printed_is_shown(visit):
    page = visit.open(CHAPTER)
    widget = go_live(page)
    open_editor(page, widget)
    page.evaluate(
        """() => {
          window.told = [];
          const status = document.querySelector('edu-widget .edu-status');
          new MutationObserver(() => window.told.push(status.textContent)).observe(status, {childList: true});
        }"""
    )
    source = page.evaluate("document.querySelector('edu-widget').spec.mechanism.source")
    slow = "import time\nend = time.time() + 1\nwhile time.time() < end: pass\nprint('<b>seen</b>')\n"
    run_text(page, widget, source + slow)
    printed = widget.locator(".edu-editor__printed pre")
    printed.wait_for()
    assert printed.inner_text().strip() == "<b>seen</b>"
    assert page.evaluate("window.told") == ["Running your edited code …", "Live: computed by your edited code."]
    run_text(page, widget, source + "print(1)\nraise SystemExit(3)\n")
    said(page, r"^SystemExit, line \d+ of the code: the code ended Python with exit code 3\. The picture")
    assert printed.inner_text().strip() == "1"
    widget.locator("[data-action=restore]").click()
    said(page, "computed by Python on this page")
    assert not widget.locator(".edu-editor__printed").is_visible()


def test_once_python_runs_no_widget_offers_to_load_it(visit):
    page = visit.open(CHAPTER)
    second = page.locator("edu-widget").nth(1)
    assert "MB" in second.locator("[data-action=live]").inner_text()
    go_live(page)
    assert second.locator("[data-action=live]").inner_text() == "Run live"


@pytest.mark.behaviour(14)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_a_widget_with_its_editor_open(open_context, theme):
    page = open_context(color_scheme=theme).open(CHAPTER)
    widget = go_live(page)
    open_editor(page, widget)
    source = page.evaluate("document.querySelector('edu-widget').spec.mechanism.source")
    run_text(page, widget, source + "for i in range(40): print(i)\n")
    widget.locator(".edu-editor__printed pre").wait_for()
    assert violations(page) == []


@pytest.mark.behaviour(14)
@pytest.mark.parametrize("width", [360, 1280])
def test_the_button_back_to_the_top_covers_nothing_that_has_the_focus(open_context, width):
    page = open_context(viewport={"width": width, "height": 740}).open(OWN)
    field = page.locator("edu-widget [data-control=values16] input").first
    field.wait_for()
    top = page.locator(".md-top")
    page.mouse.move(width / 2, 400)
    page.mouse.wheel(0, 900)
    page.wait_for_timeout(200)
    page.mouse.wheel(0, -200)
    page.wait_for_function("() => !document.querySelector('.md-top').hidden")
    assert top.is_visible()
    field.focus()
    page.mouse.wheel(0, -20)
    page.wait_for_timeout(200)
    assert not top.is_visible()


def test_values_that_need_python_show_the_nearest_prepared_ones(visit):
    own = ",".join(["2.125", *["0"] * 15])
    page = visit.open(f"{CHAPTER}#widget-fp4?part=block&preset=own&values16={own}")
    page.wait_for_selector("edu-widget[data-state=needs-live]")
    prepared = widgets.evaluate("fp4", {"part": "block", "preset": "own"}).summary
    assert page.locator("edu-widget .edu-summary").first.inner_text() == prepared
    said = page.locator("edu-widget .edu-status").first.inner_text()
    assert said == "The picture shows the nearest values that were prepared. Press “Run live” to compute yours."


PICTURED = """html => {
  const part = document.createElement('div');
  part.innerHTML = html;
  return part.innerHTML === document.querySelector('edu-widget .edu-part').innerHTML;
}"""
KEPT_STEPS = [
    ("one-token", "stop=15&edit=router.bias&bias=0.5,0,0,0", {"stop": 15, "edit": "router.bias"}),
    ("replay", "step=5&tokens=20", {"step": 5}),
]


@pytest.mark.parametrize(("id", "query", "shown_values"), KEPT_STEPS, ids=[id for id, _, _ in KEPT_STEPS])
def test_values_that_need_python_keep_the_step_the_reader_chose(visit, id, query, shown_values):
    page = visit.open(f"{widgets.get(id).chapter}.html#widget-{id}?{query}")
    page.wait_for_selector("edu-widget[data-state=needs-live]")
    same = [page.evaluate(PICTURED, render_parts(widgets.evaluate(id, values))[0]) for values in (shown_values, {})]
    assert same == [True, False], "the picture is that of the start, or of another step"
    assert page.locator("edu-widget .edu-over").first.inner_text() == "near your values: press “Run live” for yours"


def test_a_step_that_was_not_prepared_is_not_passed_off_as_the_readers(visit):
    visit.context.route("**/edu/widgets/replay*", without_step(5))
    page = visit.open("05b_bounded_replay.html#widget-replay?step=5&tokens=20")
    widget = page.locator("edu-widget[data-widget=replay]")
    page.wait_for_selector("edu-widget[data-state=needs-live]")
    names = widgets.get("replay").controls["step"].names
    assert widget.locator(".edu-over").inner_text() == (
        f"not your step: this is Step “{names[3]}”: press “Run live” for yours"
    )
    assert f"does not show your step: it is Step “{names[3]}”" in widget.locator(".edu-status").inner_text()
    assert widget.locator("output").first.inner_text() == names[4]


def without_step(step):
    """A route that leaves the states at one step out of those that were prepared."""

    def answer(route):
        states = json.loads(gzip.decompress(route.fetch().body()))
        index = f"step={step - 1};"
        states["states"] = {key: parts for key, parts in states["states"].items() if not key.startswith(index)}
        route.fulfill(body=gzip.compress(json.dumps(states).encode()))

    return answer


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize(
    "link",
    [
        "01_architecture_map.html#widget-explorer?look=new&token=5",
        "05b_bounded_replay.html#widget-replay?step=5&tokens=20",
    ],
)
def test_what_stands_over_a_picture_of_other_values_has_a_row_of_its_own(open_context, width, link):
    page = open_context(viewport={"width": width, "height": 740}).open(link)
    page.wait_for_selector("edu-widget[data-state=needs-live]")
    form, over, picture = page.evaluate(
        """() => ['form', '.edu-over', '.edu-part'].map(part => {
          const box = document.querySelector(`edu-widget ${part}`).getBoundingClientRect();
          return [box.top, box.bottom];
        })"""
    )
    assert form[1] <= over[0] < over[1] <= picture[0]
    assert violations(page) == []


def test_while_python_starts_the_readers_own_picture_is_not_called_another(visit):
    page = visit.open(CHAPTER)
    page.evaluate("void (document.querySelector('edu-widget [data-action=live]').click())")
    widget = page.locator("edu-widget").first
    assert widget.get_attribute("data-state") == "booting"
    assert widget.locator(".edu-over").is_hidden()
    widget.locator("[data-control=ties] select").select_option("away")
    assert widget.locator(".edu-over").inner_text() == "not yet your values: Python starts"
    page.wait_for_selector("edu-widget[data-state=live]", timeout=60_000)
    assert widget.locator(".edu-over").is_hidden()


HEIGHTS = """id => {
  const controls = document.querySelectorAll(`edu-widget[data-widget=${id}] form .edu-control:not([hidden])`);
  return [...controls].map(control => {
    const top = names => Math.round(control.querySelector(names).getBoundingClientRect().top);
    const [label, field] = [top('.edu-control__label'), top('.edu-segments, select, input:not([type=radio])')];
    return {kind: control.dataset.kind, row: Math.round(control.getBoundingClientRect().top), label, field};
  });
}"""


@pytest.mark.parametrize("id", widgets.names())
def test_controls_side_by_side_have_their_names_and_fields_at_one_height(visit, id):
    page = visit.open(f"{widgets.get(id).chapter}.html")
    rows = {}
    for control in page.evaluate(HEIGHTS, id):
        rows.setdefault(control["row"], []).append(control)
    for row in rows.values():
        fields = [control["field"] for control in row if control["kind"] != "toggle"]
        assert max(fields, default=0) - min(fields, default=0) <= 1, row
        labels = [control["label"] for control in row if control["kind"] != "toggle"]
        assert max(labels, default=0) - min(labels, default=0) <= 1, row
        assert all(control["field"] > control["label"] for control in row if control["kind"] != "toggle"), row


def test_a_table_of_numbers_pushes_what_follows_down(visit):
    page = visit.open("07_engram.html#widget-engram?part=hash")
    table = page.locator("edu-widget [data-control=ids]")
    table.locator("input").first.fill("")
    fault, below = table.locator(".edu-control__fault"), page.locator("edu-widget [data-control=first]")
    boxes = [part.bounding_box() for part in (table.locator("table"), fault, below)]
    for upper, lower in itertools.pairwise(boxes):
        assert upper["y"] + upper["height"] <= lower["y"], boxes
