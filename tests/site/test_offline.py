"""The list that readers keep the course by: complete, true, and the same for the same site."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
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
    assert all((site / name).stat().st_size == size >= kept for name, (_, size, kept) in listed["files"].items())
    assert listed["stored"] == sum(kept for _, _, kept in listed["files"].values())
    # Python itself is 8 MB; widgets, pages, notebooks and the reference are kept packed
    assert listed["stored"] <= 15_000_000


def test_hash_and_size_are_those_of_the_file(site: Path) -> None:
    data = (site / "notebooks" / "one.ipynb").read_bytes()
    # two bytes are kept as they are: packed they would be more
    assert listing(site)["files"]["notebooks/one.ipynb"] == [hashlib.sha256(data).hexdigest(), 2, 2]


def test_archives_are_kept_as_they_are_and_text_packed(site: Path) -> None:
    files = listing(site)["files"]
    assert files["numpy.whl"][1:] == [1000, 1000]
    page = (site / "index.html").read_bytes()
    packer = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)  # gzip, as servers and browsers pack
    assert files["index.html"][1:] == [len(page), len(packer.compress(page) + packer.flush())]
    assert listing(site)["stored"] == sum(kept for _, _, kept in files.values())


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
