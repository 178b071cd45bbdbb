"""The course kept on the reader's device: only when asked, whole or not at all, and gone when told to go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Request, TimeoutError

from deepseek_edu.site.offline import LISTING, write_listing
from tests.browser.conftest import CHAPTER, Address, Watched, serving
from tests.browser.test_lab import SOLUTION, Lab
from tests.browser.test_navigation import follow
from tests.browser.test_pages import PAGES, violations
from tests.browser.test_shell import search
from tests.site_build import ROOT

KEPT = """async () => ({
  caches: await caches.keys(),
  registrations: (await navigator.serviceWorker.getRegistrations()).map(each => each.active?.scriptURL),
})"""
ADDED = '<!doctype html><title>Added</title><link rel="icon" href="data:,"><h1>Added</h1>'
NOTHING = {"caches": [], "registrations": []}
SERVER_GONE = ("ERR_CONNECTION_REFUSED", "ERR_INTERNET_DISCONNECTED")


def kept_size(site: Path) -> str:
    """What the page has to say about the bytes of a site as it is kept: what its list adds up to."""
    listed = json.loads((site / LISTING).read_text(encoding="utf-8"))["files"]
    return f"{sum(kept for _, _, kept in listed.values()) / 1e6:.1f} MB"


class Keeper:
    """Drives the section of the progress page."""

    def __init__(self, visit: Watched) -> None:
        self.visit = visit
        self.page = visit.open("progress.html")
        self.element = self.page.locator("edu-offline")

    def press(self, action: str) -> None:
        self.element.locator(f"[data-action={action}]:visible").click()

    def wait(self, state: str) -> str:
        """Wait for a state and return what the section says."""
        try:
            self.page.wait_for_selector(f"edu-offline[data-state={state}]", timeout=60_000)
        except TimeoutError as error:
            there = self.element.get_attribute("data-state")
            raise AssertionError(f"{state} was expected; it is {there}: {self.element.inner_text()}") from error
        return self.element.inner_text()

    def keep(self) -> str:
        self.wait("idle")
        self.press("keep")
        return self.wait("kept")

    def stored(self) -> dict:
        return self.page.evaluate(KEPT)


@pytest.fixture
def changing(site: Path, tmp_path: Path) -> Path:
    """A copy of the site that a test may change."""
    return Path(shutil.copytree(site, tmp_path / "site"))


def change(site: Path, listed: bool = True) -> str:
    """Change a page, add a page, list them anew unless told otherwise; return the new version."""
    page = site / "glossary.html"
    text = page.read_text(encoding="utf-8").replace("<h1", "<p>The second edition.</p><h1", 1)
    page.write_text(text, encoding="utf-8")
    (site / "added.html").write_text(ADDED, encoding="utf-8")
    if listed:
        write_listing(ROOT, site)
    return json.loads((site / LISTING).read_text(encoding="utf-8"))["version"]


@pytest.mark.behaviour(1)
def test_without_asking_nothing_is_stored_and_no_worker_is_registered(site: Path, visit: Watched) -> None:
    keeper = Keeper(visit)
    text = keeper.wait("idle")
    assert f"{kept_size(site)} would be loaded and lie on this device" in text
    visit.open(CHAPTER)
    assert keeper.stored() == NOTHING
    assert not any("sw.js" in url for url in visit.requests)


@pytest.mark.behaviour(1)
@pytest.mark.behaviour(5)
@pytest.mark.parametrize(
    ("shell", "prefix"), [("material", "/"), ("material", "/a/b/"), ("zensical", "/")], indirect=["shell"]
)
def test_after_asking_everything_works_without_the_server(site: Path, open_context, prefix: str) -> None:
    with serving(site, prefix) as address:
        visit = open_context(at=address)
        keeper = Keeper(visit)
        assert f"Kept: {kept_size(site)}, version" in keeper.keep()
        used = keeper.page.evaluate("navigator.storage.estimate().then(known => known.usage)")
        listed = json.loads((site / LISTING).read_text(encoding="utf-8"))["stored"]
        # headers of some hundred files and the browser's own list come on top; unpacked it would be twice as much
        assert listed * 0.95 < used < listed * 1.15 + 1_000_000
        assert keeper.stored()["registrations"][0].startswith(address.url("sw.js"))
    visit.allowed_errors = SERVER_GONE
    page = keeper.page
    failures: list[Request] = []
    page.on("requestfailed", lambda request: failures.append(request))
    for name in ("", *PAGES):
        page.goto(address.url(name))
        page.wait_for_selector("html[data-edu-ready]", state="attached")
        assert page.locator("h1").count() == 1
    page.goto(address.url("progress.html"))
    keeper.wait("kept")
    search(page, "scale")
    page.goto(address.url(CHAPTER))
    page.locator("edu-widget [data-action=live]").first.click()
    page.wait_for_selector("edu-widget[data-state=live]", timeout=60_000)
    assert Lab(page).run(SOLUTION) == "passed"
    saved = page.evaluate("fetch('notebooks/04b_fp4_cache.ipynb').then(answer => answer.json())")
    assert saved["nbformat"] == 4
    failed = [request.url for request in failures if request.failure != "net::ERR_ABORTED"]  # by leaving the page
    assert {url.rpartition("/")[2].partition("?")[0] for url in failed} <= {"offline.json"}, "a file was not kept"


def test_a_changed_site_is_offered_and_taken_as_a_whole(changing: Path, open_context) -> None:
    with serving(changing) as address:
        visit = open_context(at=address)
        keeper = Keeper(visit)
        keeper.keep()
        reader = visit.open(CHAPTER)
        new = change(changing)
        keeper.page.goto(address.url("glossary.html"))
        told = keeper.page.locator(".edu-offline__changed a")
        told.wait_for()
        assert violations(keeper.page) == []
        told.click()
        assert "second edition" not in reader.evaluate("fetch('glossary.html').then(answer => answer.text())")
        text = keeper.wait("changed")
        assert new in text
        assert "Update (0.1 MB)" in text, "files that are the same are not loaded again"
        with reader.expect_navigation():  # every open page follows, so that none mixes two versions
            keeper.press("keep")
        assert new in keeper.wait("kept")
        assert [name.rpartition(" ")[2] for name in keeper.stored()["caches"]] == [new]
    visit.allowed_errors = SERVER_GONE
    keeper.page.goto(address.url("glossary.html"))
    assert keeper.page.get_by_text("The second edition.").is_visible()
    keeper.page.goto(address.url("added.html"))
    assert keeper.page.locator("h1").inner_text() == "Added"


def test_an_update_that_breaks_off_leaves_the_earlier_copy_whole(changing: Path, open_context) -> None:
    with serving(changing) as address:
        visit = open_context(at=address)
        visit.allowed_errors = ("404", *SERVER_GONE)
        keeper = Keeper(visit)
        keeper.keep()
        before = keeper.stored()
        change(changing)
        (changing / "added.html").unlink()
        keeper.page.reload()
        keeper.wait("changed")
        keeper.press("keep")
        keeper.page.get_by_text("added.html is missing from this site. Nothing new was kept.").wait_for()
        assert keeper.stored() == before
    keeper.page.goto(address.url("glossary.html"))
    assert keeper.page.get_by_text("The second edition.").count() == 0


def test_a_file_that_is_not_as_listed_is_refused(changing: Path, open_context) -> None:
    with serving(changing) as address:
        keeper = Keeper(open_context(at=address))
        keeper.wait("idle")
        change(changing, listed=False)
        keeper.press("keep")
        keeper.page.get_by_text("glossary.html is not as the site lists it").wait_for()
        assert keeper.stored() == NOTHING


def test_pages_the_copy_does_not_hold_come_whole_from_the_network(changing: Path, open_context) -> None:
    with serving(changing) as address:
        keeper = Keeper(open_context(at=address))
        keeper.keep()
        change(changing)
        keeper.page.goto(address.url("added.html"))
        text = keeper.page.evaluate("fetch('glossary.html').then(answer => answer.text())")
        assert "The second edition." in text, "a new page was given an old file"


def test_storing_can_be_stopped_and_goes_on_while_the_reader_walks_on(visit: Watched) -> None:
    keeper = Keeper(visit)
    keeper.wait("idle")
    visit.context.route("**/python_stdlib.zip?*", lambda route: None)  # a network that hangs
    keeper.press("keep")
    keeper.wait("storing")
    assert keeper.element.locator("progress").get_attribute("aria-label")
    assert keeper.page.evaluate("document.activeElement.dataset.action") == "stop", "the keyboard lost its place"
    assert violations(keeper.page) == []
    for name in ("glossary.html", "progress.html"):
        follow(keeper.page, name)
    keeper.wait("storing")
    keeper.press("stop")
    assert "Stopped. Nothing new was kept." in keeper.wait("idle")
    assert keeper.stored() == NOTHING


def test_what_a_closed_page_left_half_stored_is_removed(visit: Watched) -> None:
    keeper = Keeper(visit)
    keeper.wait("idle")
    visit.context.route("**/python_stdlib.zip?*", lambda route: None)
    keeper.press("keep")
    keeper.wait("storing")
    keeper.page.close()
    page = visit.open("glossary.html")
    page.wait_for_function("async () => (await caches.keys()).length === 0")
    assert page.evaluate(KEPT) == NOTHING


def test_removal_leaves_nothing(visit: Watched) -> None:
    keeper = Keeper(visit)
    keeper.keep()
    assert violations(keeper.page) == []
    keeper.page.reload()
    keeper.wait("kept")
    keeper.press("remove")
    keeper.wait("idle")
    assert keeper.stored() == NOTHING
    keeper.page.goto(visit.address.url("glossary.html"))
    assert keeper.page.evaluate("navigator.serviceWorker.controller") is None


HOLD = """seconds => new Promise(held => {
  const name = `deepseek-edu ${location.pathname.replace(/[^/]*$/, "")} `;
  navigator.locks.request(name, () => (held(), new Promise(end => setTimeout(end, 1000 * seconds))));
})"""


def test_a_page_that_still_tidies_up_keeps_the_copy_all_the_same(visit: Watched) -> None:
    keeper = Keeper(visit)
    keeper.wait("idle")
    keeper.page.evaluate(HOLD, 1)
    keeper.press("keep")
    keeper.wait("kept")


def test_while_another_tab_stores_the_copy_this_one_says_so(visit: Watched) -> None:
    keeper = Keeper(visit)
    keeper.wait("idle")
    keeper.page.evaluate(HOLD, 60)
    keeper.press("keep")
    keeper.page.get_by_text("Another tab of the course is busy with the copy. Nothing new was kept.").wait_for()
    assert keeper.stored() == NOTHING


@pytest.mark.behaviour(11)
def test_a_device_without_room_is_said_and_keeps_nothing(site: Path, visit: Watched) -> None:
    keeper = Keeper(visit)
    keeper.wait("idle")
    session = visit.context.new_cdp_session(keeper.page)
    session.send("Storage.overrideQuotaForOrigin", {"origin": visit.address.origin, "quotaSize": 3_000_000})
    keeper.press("keep")
    keeper.page.get_by_text("Nothing new was kept.").wait_for()
    assert f"no room for {kept_size(site)}. " in keeper.element.inner_text()
    assert keeper.stored() == NOTHING


@pytest.mark.behaviour(11)
@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("delete Navigator.prototype.serviceWorker", "This browser keeps no copies"),
        ("Object.defineProperty(window, 'isSecureContext', {value: false})", "whose address begins with https"),
        (
            "Object.defineProperty(window, 'caches', {get() { throw new DOMException('no') }})",
            "no copies",
        ),
    ],
)
def test_a_browser_that_keeps_nothing_says_so_in_one_sentence(open_context, script: str, sentence: str) -> None:
    visit = open_context()
    visit.context.add_init_script(script)
    keeper = Keeper(visit)
    assert sentence in keeper.wait("refused")
    assert keeper.element.locator("button:visible").count() == 0
    assert keeper.page.locator("edu-progress [data-action=export]").is_visible()


@pytest.mark.behaviour(11)
def test_a_browser_that_refuses_the_worker_says_so_and_keeps_nothing(open_context) -> None:
    visit = open_context()
    visit.context.add_init_script(
        "const refuse = () => Promise.reject(new DOMException('not allowed'));"
        "if (window.ServiceWorkerContainer) ServiceWorkerContainer.prototype.register = refuse"
    )
    keeper = Keeper(visit)
    keeper.wait("idle")
    keeper.press("keep")
    keeper.page.get_by_text("This browser refuses to keep a copy (not allowed).").wait_for()
    assert keeper.stored() == NOTHING


@pytest.mark.behaviour(2)
def test_a_page_opened_as_a_file_says_that_it_is_on_the_device(site: Path, open_context) -> None:
    visit = open_context(at=Address("file://", str(site) + "/"))
    assert "opened as a file" in Keeper(visit).wait("refused")
