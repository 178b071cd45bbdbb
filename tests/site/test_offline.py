"""The list that readers keep the course by: complete, true, and the same for the same site."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from deepseek_edu.site.check import check
from deepseek_edu.site.offline import LISTING, differences, write_listing
from tests.site_build import ROOT, built_site


def listing(site: Path) -> dict:
    return json.loads((site / LISTING).read_text(encoding="utf-8"))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    (folder / "edu").mkdir(parents=True)
    (folder / "notebooks").mkdir()
    (folder / "index.html").write_text("<h1>Start</h1>" * 100, encoding="utf-8")
    (folder / "notebooks" / "one.ipynb").write_text("{}", encoding="utf-8")
    (folder / "numpy.whl").write_bytes(b"x" * 1000)
    write_listing(ROOT, folder)
    return folder


@pytest.mark.behaviour(1)
def test_the_built_site_lists_every_file_but_the_list_itself() -> None:
    site = built_site()
    found = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    listed = listing(site)
    assert found - set(listed["files"]) == {LISTING}
    assert set(listed["files"]) <= found
    assert {"sw.js", "sitemap.xml", "edu/runtime/pyodide-lock.json"} <= found
    assert listed["stored"] == sum((site / name).stat().st_size for name in listed["files"])
    assert listed["stored"] / 4 < listed["loaded"] < listed["stored"]


def test_hash_and_size_are_those_of_the_file(site: Path) -> None:
    data = (site / "notebooks" / "one.ipynb").read_bytes()
    assert listing(site)["files"]["notebooks/one.ipynb"] == [hashlib.sha256(data).hexdigest(), 2]


def test_archives_are_loaded_whole_and_text_compressed(site: Path) -> None:
    files = listing(site)["files"]
    others = sum(size for name, (_, size) in files.items() if name != "numpy.whl")
    assert 1000 < listing(site)["loaded"] < 1000 + others - 1000


def test_the_version_follows_names_and_contents_alone(site: Path) -> None:
    before = (site / LISTING).read_bytes()
    (site / "index.html").touch()
    write_listing(ROOT, site)
    assert (site / LISTING).read_bytes() == before
    versions = {listing(site)["version"]}
    (site / "notebooks" / "one.ipynb").write_text("[]", encoding="utf-8")
    write_listing(ROOT, site)
    versions.add(listing(site)["version"])
    (site / "notebooks" / "one.ipynb").rename(site / "notebooks" / "two.ipynb")
    write_listing(ROOT, site)
    versions.add(listing(site)["version"])
    assert len(versions) == 3


def test_changed_lost_and_added_files_are_found(site: Path) -> None:
    assert differences(site) == []
    (site / "index.html").write_text("<h1>Other</h1>", encoding="utf-8")
    (site / "numpy.whl").unlink()
    (site / "added.css").write_text("", encoding="utf-8")
    assert differences(site) == ["added.css", "index.html", "numpy.whl"]
    problems = [problem for problem in check(site, ROOT) if LISTING in problem.problem]
    assert [problem.file for problem in problems] == ["added.css", "index.html", "numpy.whl"]


@pytest.mark.behaviour(5)
def test_the_sitemap_names_pages_by_relative_addresses() -> None:
    site = built_site()
    places = re.findall(r"<loc>(.*?)</loc>", (site / "sitemap.xml").read_text(encoding="utf-8"))
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert set(places) == {"./", *pages} - {"404.html"}
