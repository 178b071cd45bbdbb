"""What the course promises about the site: bytes of a first view, live results, Stop, builds.

What is compared with something else is measured in turn with it, pair by pair, and the median of the ratios counts, so
that a change in the machine's speed does not.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from playwright.sync_api import Browser, Page, sync_playwright

from deepseek_edu.site.build import build
from tests.bench.rows import Row
from tests.browser import chromium
from tests.browser.conftest import CHAPTER, Address, serving
from tests.site_build import ROOT, built_site

HERE = Path(__file__).parent
PAIRS = 7
MOVES = 60
SETTINGS = {"pairs": PAIRS, "moves of a live widget": MOVES, "window": "1280 × 800"}


@contextmanager
def fresh_page(browser: Browser, url: str) -> Iterator[Page]:
    """A page in a context of its own: nothing cached, nothing stored."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(url)
    page.wait_for_load_state("networkidle")
    yield page
    context.close()


def first_live_result(browser: Browser, address: Address) -> Row:
    """Click to first result, against a bare page with the same Pyodide and numpy."""

    def bare() -> float:
        with fresh_page(browser, address.url("bare/bare.html")) as page:
            page.click("button")
            page.wait_for_function("() => document.body.dataset.took", timeout=60_000)
            return float(page.evaluate("document.body.dataset.took"))

    def ours() -> float:
        with fresh_page(browser, address.url(CHAPTER)) as page:
            return page.evaluate(
                """() => new Promise(resolve => {
                  const widget = document.querySelector('edu-widget');
                  new MutationObserver(() => {
                    if (widget.dataset.state !== 'live') return;
                    requestAnimationFrame(() => resolve(performance.now() - began));
                  }).observe(widget, {attributeFilter: ['data-state']});
                  const began = performance.now();
                  widget.querySelector('[data-action=live]').click();
                })"""
            )

    bare(), ours()  # the first of each warms the server and the disk
    pairs = [(ours(), bare()) for _ in range(PAIRS)]
    ratio = statistics.median(mine / other for mine, other in pairs)
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Row(
        "click to first live result", ratio, "× bare", 1.15, f"{mine:.0f} ms, bare {other:.0f} ms, {PAIRS} pairs"
    )


def further_interaction(page: Page) -> Row:
    """One move of a live widget: from the input event until the new picture is in the page."""
    times = page.evaluate(
        """async moves => {
          const widget = document.querySelector('edu-widget'), slider = widget.querySelector('input[type=range]');
          const times = [];
          for (let i = 0; i < moves; i++) {
            const done = new Promise(resolve => widget.addEventListener('edu:answer', () => setTimeout(resolve)));
            slider.value = String(-7 + 0.2 * i);
            const began = performance.now();
            slider.dispatchEvent(new Event('input', {bubbles: true}));
            await done;
            times.push(performance.now() - began);
          }
          return times;
        }""",
        MOVES,
    )
    spread = statistics.quantiles(times, n=20)[-1]
    return Row(
        "one further live interaction",
        statistics.median(times),
        "ms",
        40,
        f"{MOVES} moves, 95 % within {spread:.0f} ms",
    )


def stop_to_usable(page: Page) -> Row:
    """From pressing Stop in an endless loop until Python answers again."""
    times = []
    for _ in range(5):
        page.evaluate(
            """async () => {
              const lab = document.querySelector('edu-lab');
              lab.work.box.text = lab.data.starter + '\\nwhile True: pass\\n';
              lab.run();
              await new Promise(done => setTimeout(done, 600));
            }"""
        )
        times.append(
            page.evaluate(
                """async () => {
                  const lab = document.querySelector('edu-lab');
                  const began = performance.now();
                  lab.querySelector('[data-action=stop]').click();
                  await lab.ready();
                  return performance.now() - began;
                }"""
            )
        )
    return Row(
        "Stop to usable again", max(times), "ms", 2000, f"worst of {len(times)}, median {statistics.median(times):.0f}"
    )


def transferred(browser: Browser, url: str, act: Callable[[Page], None] = lambda page: None) -> tuple[int, int]:
    """Compressed bytes of a first view, and of everything that `act` causes after it."""
    sizes = {"view": 0, "act": 0}
    phase = "view"
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    finished: list[tuple[str, object]] = []
    context.on("requestfinished", lambda request: finished.append((phase, request)))
    page = context.new_page()
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    phase = "act"
    act(page)
    page.wait_for_timeout(500)
    for when, request in finished:
        sizes[when] += request.sizes()["responseBodySize"]
    context.close()
    return sizes["view"], sizes["act"]


def weights(browser: Browser, address: Address, site: Path) -> list[Row]:
    """Bytes of the heaviest first view and of live mode."""

    def go_live(page: Page) -> None:
        page.locator("edu-widget [data-action=live]").first.click()
        page.wait_for_selector("edu-widget[data-state=live]", timeout=60_000)

    first, live = transferred(browser, address.url(CHAPTER), go_live)
    pages = {path.relative_to(site).as_posix(): path.stat().st_size for path in sorted(site.rglob("*.html"))}
    reference = max((name for name in pages if name.startswith("api/")), key=pages.get)  # of many alike the largest
    others = {
        name: transferred(browser, address.url(name))[0]
        for name in pages
        if name != "404.html" and not name.startswith("bare/") and (name == reference or not name.startswith("api/"))
    }
    heaviest = max(others, key=others.get)
    return [
        Row("first view of the chapter", first / 1e3, "KB", 300, "compressed, nothing cached"),
        Row("first view of the heaviest page", others[heaviest] / 1e3, "KB", 300, heaviest),
        Row("live Python", live / 1e6, "MB", 10, "compressed, once"),
    ]


def timed(command: list[str], **options: object) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, **options)
    return time.perf_counter() - began


def builds(folder: Path) -> list[Row]:
    """A build with empty caches, and a build with nothing to do against plain MkDocs on the same pages."""
    cold = folder / "cold"
    ignore = shutil.ignore_patterns("site", "build", ".cache", ".git", "node_modules", ".venv*", "__pycache__")
    shutil.copytree(ROOT, cold, ignore=ignore)
    (cold / "node_modules").symlink_to(ROOT / "node_modules")
    (cold / ".cache").mkdir()
    for wheel in (ROOT / ".cache").glob("numpy-*.whl"):  # a download would measure the network
        shutil.copy(wheel, cold / ".cache")
    began = time.perf_counter()
    build(cold, folder / "cold-site")
    cold_seconds = time.perf_counter() - began

    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    config["docs_dir"] = str(ROOT / "build" / "docs")
    config["site_dir"] = str(folder / "plain")
    config["markdown_extensions"] = [e for e in config["markdown_extensions"] if not str(e).startswith("deepseek_edu")]
    plain_config = folder / "mkdocs.yml"
    plain_config.write_text(yaml.safe_dump(config))
    plain = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(plain_config)]
    same = [sys.executable, "-m", "deepseek_edu.cli", "build"]
    timed(same), timed(plain)
    pairs = [(timed(same), timed(plain)) for _ in range(5)]
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    return [
        Row("build with empty caches", cold_seconds, "s", 120, "notebooks executed, everything bundled; no download"),
        Row(
            "build with nothing changed",
            statistics.median(a / b for a, b in pairs),
            "× plain MkDocs",
            1.5,
            f"{mine:.2f} s, plain {other:.2f} s, 5 pairs",
        ),
    ]


def rows() -> Iterator[Row]:
    """Measure everything."""
    try:
        executable = chromium.find()
    except chromium.NoChromium as error:
        sys.exit(str(error))
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        site = Path(shutil.copytree(built_site(), folder / "site"))
        version = next((site / "edu" / "runtime").glob("pyodide-*/")).name.removeprefix("pyodide-")
        (site / "bare").mkdir()
        for name in ("bare.html", "bare.js", "bare_worker.js"):
            (site / "bare" / name).write_text((HERE / name).read_text().replace("PYODIDE_VERSION", version))
        shutil.copy(ROOT / "node_modules" / "pyodide" / "pyodide.mjs", site / "bare")
        browser = playwright.chromium.launch(executable_path=executable, args=list(chromium.ARGUMENTS))
        SETTINGS["chromium"] = browser.version
        with serving(site) as address:
            yield from weights(browser, address, site)
            yield first_live_result(browser, address)
            with fresh_page(browser, address.url(CHAPTER)) as page:
                page.locator("edu-widget [data-action=live]").first.click()
                page.wait_for_selector("edu-widget[data-state=live]", timeout=60_000)
                yield further_interaction(page)
                page.locator("edu-lab").scroll_into_view_if_needed()
                page.wait_for_selector("edu-lab .cm-content")
                yield stop_to_usable(page)
        browser.close()
        yield from builds(folder)
