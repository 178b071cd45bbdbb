"""What every widget promises: time of an evaluation in CPython and of a live move in Chromium, bytes in advance.

Settings are random, the same ones for both; a live move is timed from the new values until the new picture is in the
page. The first answer of a widget, which also imports what it computes with, is told beside the median.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator

from playwright.sync_api import Page, sync_playwright

from deepseek_edu import widgets
from deepseek_edu.widgets import states
from tests.bench.rows import Row
from tests.bench.site import fresh_page
from tests.browser import chromium
from tests.browser.conftest import serving
from tests.site_build import built_site

MOVES = 30
NATIVE = 200
SEED = 7
SETTINGS = {"live moves": MOVES, "native evaluations": NATIVE, "seed": SEED, "window": "1280 × 800"}

LIVE = """
async ([selector, settings]) => {
  const widget = document.querySelector(selector), times = [];
  for (const values of settings) {
    const answered = new Promise(go =>
      widget.addEventListener('edu:answer', event => setTimeout(() => go(event.detail)), {once: true}));
    const began = performance.now();
    widget.set(values);
    const answer = await answered;
    if (!answer.ok) throw new Error(answer.error.message);
    times.push(performance.now() - began);
  }
  return times;
}
"""


def rows() -> Iterator[Row]:
    """Measure every widget."""
    try:
        executable = chromium.find()
    except chromium.NoChromium as error:
        sys.exit(str(error))
    site = built_site()
    for id in widgets.names():
        times = widgets.bench(id, NATIVE, SEED)
        worst = f"95 % within {times['p95_ms']:.0f} ms, worst {times['max_ms']:.0f} ms"
        yield Row(f"{id} in CPython", times["median_ms"], "ms", 16, worst)
    for id in widgets.names():
        chosen = widgets.get(id)
        data = states.states_bytes(chosen)
        count = len(list(states.planned(chosen)))
        yield Row(f"{id}: states", states.compressed_size(data) / 1000, "KB", 60, f"{count} settings planned")
    with sync_playwright() as playwright, serving(site) as address:
        browser = playwright.chromium.launch(executable_path=executable, args=list(chromium.ARGUMENTS))
        SETTINGS["chromium"] = browser.version
        for id in widgets.names():
            with fresh_page(browser, address.url(f"{widgets.get(id).chapter}.html")) as page:
                yield live_moves(page, id)
        browser.close()


def live_moves(page: Page, id: str) -> Row:
    """Live moves of one widget at random settings."""
    selector = f"edu-widget[data-widget={id}]"
    page.locator(f"{selector} [data-action=live]").first.click()
    page.wait_for_selector(f"{selector}[data-state=live]", timeout=60_000)
    settings = [
        {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        for values in states.random_values(widgets.get(id), MOVES, SEED)
    ]
    times = page.evaluate(LIVE, [selector, settings])
    detail = f"first {times[0]:.0f} ms, worst {max(times):.0f} ms, {MOVES} moves"
    return Row(f"{id} live", statistics.median(times), "ms", 60, detail)
