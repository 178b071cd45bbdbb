"""A built site, a server over it, and a Chromium that reports every request, error and policy violation.

The site comes in the frame of Material for MkDocs; tests marked `both_shells` see it in that of Zensical as well.
`visit` opens pages in a fresh browser context. When a test ends, its context must not have asked another origin for
anything, thrown an error or broken the Content-Security-Policy, whatever the test itself was about.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from deepseek_edu.site import server as site_server
from deepseek_edu.site.render import SHELLS
from tests.browser import chromium
from tests.site_build import built_site

CHAPTER = "04b_fp4_cache.html"
both_shells = pytest.mark.parametrize("shell", SHELLS, indirect=True)

WATCH_POLICY = """
window.__violations = [];
document.addEventListener('securitypolicyviolation', e =>
  window.__violations.push(`${e.violatedDirective} ${e.blockedURI || 'inline'} ${e.sourceFile}:${e.lineNumber}`));
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here drives the browser."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@dataclass
class Address:
    """A running server: its origin (`http://127.0.0.1:PORT`) and the prefix the site lies under."""

    origin: str
    prefix: str

    def url(self, path: str = "") -> str:
        return f"{self.origin}{self.prefix}{path}"


@contextmanager
def serving(directory: Path, prefix: str = "/") -> Iterator[Address]:
    """Serve a folder on a free port of the loopback address while the block runs."""
    server = site_server.make_server(directory, port=0, prefix=prefix)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield Address(f"http://127.0.0.1:{server.server_address[1]}", prefix)
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[Path, Address]]]:
    """Return a function from a shell to its site and the address it is served at, once for each shell.

    Each site is a copy of the finished one, so that a build during the run changes nothing under the tests.
    """
    with ExitStack() as servers:

        @cache
        def serve(shell: str) -> tuple[Path, Address]:
            copy = Path(shutil.copytree(built_site(shell), tmp_path_factory.mktemp(shell) / "site"))
            return copy, servers.enter_context(serving(copy))

        yield serve


@pytest.fixture
def shell(request: pytest.FixtureRequest) -> str:
    """The frame of the site: Material for MkDocs, unless the test is marked `both_shells`."""
    return getattr(request, "param", SHELLS[0])


@pytest.fixture
def site(served: Callable[[str], tuple[Path, Address]], shell: str) -> Path:
    """The folder of the finished site; tests that change files work on a copy."""
    return served(shell)[0]


@pytest.fixture
def address(served: Callable[[str], tuple[Path, Address]], shell: str) -> Address:
    return served(shell)[1]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium.find(), args=list(chromium.ARGUMENTS))
        yield started
        started.close()


@dataclass
class Watched:
    """What one browser context did, and what a test allows it to do."""

    context: BrowserContext
    address: Address
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    allowed_errors: tuple[str, ...] = ()

    def open(self, path: str = CHAPTER, *, settle: bool = True) -> Page:
        """Open a page of the site in a new tab and, unless told otherwise, wait until its script runs."""
        page = self.context.new_page()
        page.goto(self.address.url(path))
        if settle:
            page.wait_for_selector("html[data-edu-ready]", timeout=15_000, state="attached")
        return page

    def foreign_requests(self) -> list[str]:
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme in ("http", "https", "ws", "wss") and not url.startswith(self.address.origin + "/")
        ]

    def check(self) -> None:
        violations = [
            violation
            for page in self.context.pages
            if not page.is_closed() and page.url.startswith("http")
            for violation in page.evaluate("window.__violations || []")
        ]
        errors = [error for error in self.errors if not any(part in error for part in self.allowed_errors)]
        assert self.foreign_requests() == [], "the page asked another origin"
        assert violations == [], "the Content-Security-Policy was broken"
        assert errors == [], "the page reported errors"


def watch(browser: Browser, address: Address, **options: object) -> Watched:
    """Make a browser context that notes every request, error and violation of its pages."""
    options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **options}
    context = browser.new_context(**options)
    context.set_default_timeout(15_000)
    watched = Watched(context, address)
    context.on("request", lambda request: watched.requests.append(request.url))
    context.on("weberror", lambda error: watched.errors.append(f"page error: {error.error}"))
    context.on(
        "console",
        lambda message: watched.errors.append(f"console: {message.text}") if message.type == "error" else None,
    )
    context.add_init_script(WATCH_POLICY)
    return watched


@pytest.fixture
def open_context(browser: Browser, address: Address) -> Iterator[Callable[..., Watched]]:
    """Make watched contexts; each is checked and closed when the test ends."""
    made: list[Watched] = []

    def make(*, at: Address | None = None, **options: object) -> Watched:
        made.append(watch(browser, at or address, **options))
        return made[-1]

    yield make
    try:
        for watched in made:
            if watched.context.pages or watched.requests:
                watched.check()
    finally:
        for watched in made:
            watched.context.close()


@pytest.fixture
def visit(open_context: Callable[..., Watched]) -> Watched:
    """One desktop context: the usual reader."""
    return open_context()
