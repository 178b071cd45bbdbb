"""Every page kind: no foreign request, no policy violation, accessible in both themes, and whole at 320 px."""

from pathlib import Path

import pytest

from tests.browser.conftest import CHAPTER

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
GENERATED = ("claims.html", "notices.html")
API = ("api/index.html", "api/reference/quant.html", "api/model/cache.html", "api/config.html")
"""Of the API reference, which one function writes, a page of each kind."""
PAGES = (
    *(f"{path.stem}.html" for path in sorted((ROOT / "course").glob("*.md"))),
    *(f"notebooks/{path.stem}.html" for path in sorted((ROOT / "notebooks").glob("*.py"))),
    *GENERATED,
    *API,
)


def test_the_list_of_pages_is_the_whole_site(site):
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    reference = {name for name in built if name.startswith("api/")}
    assert built - reference - {"404.html"} == set(PAGES) - set(API)
    assert set(API) < reference


@pytest.mark.behaviour(1)
@pytest.mark.parametrize("page_name", PAGES)
def test_no_foreign_request_and_no_error(visit, page_name):
    page = visit.open(page_name)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.wait_for_load_state("networkidle")
    assert page.locator("h1").count() == 1
    assert page.title()
    # requests, errors and violations are checked for every context when the test ends


def violations(page) -> list[str]:
    page.evaluate(AXE.read_text())  # through the debugger: the policy of the page allows no injected script
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {rule['help']} — {node['target']} {node['html'][:120]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.behaviour(14)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page_name", PAGES)
def test_axe_finds_nothing(open_context, page_name, theme):
    page = open_context(color_scheme=theme).open(page_name)
    scheme = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
    assert scheme == {"light": "default", "dark": "slate"}[theme]
    assert violations(page) == []


@pytest.mark.behaviour(14)
def test_axe_finds_nothing_in_the_open_search_dialog(visit):
    page = visit.open("index.html")
    page.keyboard.press("/")
    page.keyboard.type("scale")
    page.wait_for_selector(".md-search-result__item")
    assert violations(page) == []


OVERFLOW = """
() => {
  const wide = [];
  const inScroller = e => {
    for (let p = e.parentElement; p; p = p.parentElement) {
      const style = getComputedStyle(p);
      const root = p === document.body || p === document.documentElement;
      if (!root && /(auto|scroll|hidden|clip)/.test(style.overflowX)) return true;
      if (style.position === 'fixed') return true;
    }
    return false;
  };
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > innerWidth + 1 && !inScroller(e) && getComputedStyle(e).position !== 'fixed')
      wide.push(`${e.tagName}.${e.className} ${Math.round(box.right)}`);
  }
  return {page: document.documentElement.scrollWidth, view: innerWidth, wide: wide.slice(0, 10)};
}
"""

UNREACHABLE = """
() => [...document.querySelectorAll('.md-content *')].filter(e => {
  const style = getComputedStyle(e);
  if (!/(auto|scroll)/.test(style.overflowX) || e.scrollWidth <= e.clientWidth + 1 || !e.clientWidth) return false;
  return e.tabIndex < 0 && !e.querySelector('a, button, input, select, textarea, [tabindex], [contenteditable=true]');
}).map(e => `${e.tagName}.${e.className}`)
"""


@pytest.mark.behaviour(14)
@pytest.mark.parametrize("page_name", PAGES)
def test_nothing_overflows_at_320_pixels(open_context, page_name):
    page = open_context(viewport={"width": 320, "height": 640}).open(page_name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    measured = page.evaluate(OVERFLOW)
    assert measured["wide"] == []
    assert measured["page"] <= measured["view"]
    assert page.evaluate(UNREACHABLE) == [], "scroll containers a keyboard cannot reach"


@pytest.mark.behaviour(14)
def test_sliders_are_native_inputs_with_names_values_and_steps(visit):
    page = visit.open(CHAPTER)
    sliders = page.locator("edu-widget input[type=range]")
    assert sliders.count() >= 1
    for slider in sliders.all():
        for attribute in ("min", "max", "step", "aria-valuetext"):
            assert slider.get_attribute(attribute), f"a slider without {attribute}"
        assert page.locator(f"label[for='{slider.get_attribute('id')}']").inner_text().strip()


def test_the_search_index_comes_when_the_reader_searches(visit):
    page = visit.open("index.html")
    page.wait_for_load_state("networkidle")
    assert not any("search_index.json" in url for url in visit.requests)
    page.keyboard.press("/")
    page.keyboard.type("scale")
    page.wait_for_selector(".md-search-result__item")
    assert sum("search_index.json" in url for url in visit.requests) == 1


def test_a_query_in_the_address_is_answered(visit):
    page = visit.open("index.html?q=scale")
    page.wait_for_selector(".md-search-result__item", state="attached")
