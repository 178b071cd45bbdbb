"""Charts: a static picture in both themes, the interactive figure on demand, drawn at the right size, one script."""

import pytest

from tests.browser.conftest import CHAPTER, both_shells

NOTEBOOK = "notebooks/04b_fp4_cache.html"
CONTRAST = """
chart => {
  const parse = text => text.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = text => { const [r, g, b] = parse(text); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  let ground = chart;
  const clear = e => /rgba\\(0, 0, 0, 0\\)|transparent/.test(getComputedStyle(e).backgroundColor);
  while (clear(ground)) ground = ground.parentElement;
  const paper = light(getComputedStyle(ground).backgroundColor);
  return Math.min(...[...chart.querySelectorAll('text')].filter(t => t.getBoundingClientRect().width).map(t => {
    const ink = light(getComputedStyle(t).fill);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  }));
}
"""


@pytest.mark.behaviour(13)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page_name", [CHAPTER, NOTEBOOK])
def test_a_chart_is_readable_static_and_interactive(open_context, page_name, theme):
    visit = open_context(color_scheme=theme)
    page = visit.open(page_name)
    charts = page.locator("edu-chart")
    assert charts.count() >= 1
    for chart in charts.all():
        chart.scroll_into_view_if_needed()
        picture = chart.locator(".edu-chart__static svg:visible").first
        size = picture.bounding_box()
        assert size["width"] > 300
        assert size["height"] > 100
        assert chart.evaluate(CONTRAST) >= 4.5
        chart.locator(".edu-chart__open").click()
        page.wait_for_function("chart => chart.dataset.state === 'interactive'", arg=chart.element_handle())
        drawn = chart.locator(".edu-chart__plot .main-svg").first.bounding_box()
        room = chart.bounding_box()
        assert drawn["height"] > 150
        assert abs(drawn["width"] - room["width"]) < 40
        assert chart.locator(".edu-chart__plot .trace, .edu-chart__plot .point").count() > 0
        assert chart.evaluate(CONTRAST) >= 4.5
        assert chart.locator(".edu-chart__static").is_hidden()
    assert sum("/edu/plotly-" in url for url in visit.requests) == 1


@both_shells
@pytest.mark.behaviour(13)
def test_an_interactive_chart_follows_the_theme_and_the_width(visit):
    page = visit.open(NOTEBOOK)
    chart = page.locator("edu-chart").first
    chart.locator(".edu-chart__open").click()
    page.wait_for_selector("edu-chart[data-state=interactive]")
    tick = chart.locator(".xtick text").first
    before = tick.evaluate("e => getComputedStyle(e).fill")
    page.evaluate("document.body.setAttribute('data-md-color-scheme', 'slate')")
    page.wait_for_function(
        "before => getComputedStyle(document.querySelector('edu-chart .xtick text')).fill !== before", arg=before
    )
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_function("() => document.querySelector('edu-chart .main-svg').getBoundingClientRect().width < 400")
    chart.locator(".edu-chart__open").click()
    assert chart.locator(".edu-chart__static svg:visible").count() == 1


@pytest.mark.behaviour(13)
def test_without_the_script_the_picture_stays_and_the_page_says_so(open_context):
    visit = open_context()
    visit.allowed_errors = ("Failed to load resource", "ERR_FAILED")
    visit.context.route("**/edu/plotly-*", lambda route: route.abort())
    page = visit.open(NOTEBOOK)
    chart = page.locator("edu-chart").first
    chart.locator(".edu-chart__open").click()
    page.wait_for_selector("edu-chart[data-state=error]")
    assert chart.locator(".edu-chart__static svg:visible").count() == 1
    assert "could not be loaded" in chart.inner_text()
