"""Every page in both shells: no foreign request, no policy violation, accessible in both themes, whole at 320 px."""

from pathlib import Path

import pytest

from tests.browser.conftest import CHAPTER, both_shells

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


@both_shells
def test_the_list_of_pages_is_the_whole_site(site):
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    reference = {name for name in built if name.startswith("api/")}
    assert built - reference - {"404.html"} == set(PAGES) - set(API)
    assert set(API) < reference


def violations(page) -> list[str]:
    """What axe finds on the page as it is now. Only violations come back: what passes is ten times as long."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())  # through the debugger: the policy of the page allows no injected script
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)")
    return [
        f"{rule['id']}: {rule['help']} — {node['target']} {node['html'][:120]}"
        for rule in found
        for node in rule["nodes"]
    ]


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


def overflowing(page) -> list[str]:
    """What is wider than the window, and scroll containers a keyboard cannot reach, with everything folded open."""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    measured = page.evaluate(OVERFLOW)
    wide = [f"the page {measured['page']} wide"] if measured["page"] > measured["view"] else []
    return [*wide, *measured["wide"], *(f"{name} is out of reach" for name in page.evaluate(UNREACHABLE))]


@both_shells
@pytest.mark.behaviour(1, 14)
@pytest.mark.parametrize("page_name", PAGES)
def test_a_page_is_whole_at_320_pixels_and_accessible_in_both_themes(open_context, page_name):
    """One visit, from a phone to a desk in the dark. Requests, errors and policy are checked when the test ends."""
    page = open_context(viewport={"width": 320, "height": 640}).open(page_name)
    assert page.locator("h1").count() == 1
    assert page.title()
    found = [f"at 320 pixels: {wide}" for wide in overflowing(page)]
    page.set_viewport_size({"width": 1280, "height": 800})
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.wait_for_load_state("networkidle")
    for theme, scheme in (("light", "default"), ("dark", "slate")):
        page.emulate_media(color_scheme=theme)
        page.wait_for_selector(f"body[data-md-color-scheme={scheme}]")
        found += [f"{theme}: {violation}" for violation in violations(page)]
    assert found == []


@pytest.mark.behaviour(14)
def test_sliders_are_native_inputs_with_names_values_and_steps(visit):
    page = visit.open(CHAPTER)
    sliders = page.locator("edu-widget input[type=range]")
    assert sliders.count() >= 1
    for slider in sliders.all():
        for attribute in ("min", "max", "step", "aria-valuetext"):
            assert slider.get_attribute(attribute), f"a slider without {attribute}"
        assert page.locator(f"label[for='{slider.get_attribute('id')}']").text_content().strip()  # hidden ones too
