"""The assembled runtime: a reduced lock with true hashes, our wheel without secrets, sizes within the promise."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from deepseek_edu.site import runtime
from deepseek_edu.site.runtime import assemble, build_own_wheel

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "runtime"


@pytest.fixture(scope="module")
def assembled(tmp_path_factory):
    out = tmp_path_factory.mktemp("runtime") / "runtime"
    return out, assemble(ROOT, out, CACHE)


def test_the_lock_names_two_wheels_with_the_hashes_of_the_files(assembled):
    out, _ = assembled
    lock = json.loads((out / "pyodide-lock.json").read_text())
    assert set(lock["packages"]) == {"numpy", "deepseek-edu"}
    for package in lock["packages"].values():
        assert hashlib.sha256((out / package["file_name"]).read_bytes()).hexdigest() == package["sha256"]
    upstream = json.loads((ROOT / "node_modules/pyodide/pyodide-lock.json").read_text())
    assert lock["packages"]["numpy"]["sha256"] == upstream["packages"]["numpy"]["sha256"]
    assert {key: lock["info"][key] for key in upstream["info"]} == upstream["info"]


def test_labs_need_no_numpy(assembled):
    out, info = assembled
    lock = json.loads((out / "pyodide-lock.json").read_text())
    assert lock["packages"]["deepseek-edu"]["depends"] == []
    assert info.core_bytes < info.live_bytes - 2_000_000


@pytest.mark.behaviour(3)
def test_live_mode_stays_under_ten_megabytes(assembled):
    out, info = assembled
    assert info.live_bytes <= 10_000_000
    assert info.live_bytes == sum(file.compressed for file in info.files)
    assert {file.path for file in info.files} == {
        path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()
    }


def test_nothing_that_runs_nowhere_is_shipped(assembled):
    out, _ = assembled
    assert not [path for path in out.rglob("*") if path.suffix in (".map", ".ts", ".html", ".md")]


def test_files_are_named_by_version_or_content_except_the_lock(assembled):
    from deepseek_edu.site.server import HASHED

    _, info = assembled
    assert [file.path for file in info.files if not HASHED.search("/" + file.path)] == ["pyodide-lock.json"]


def package(root):
    """A small package with the same build settings."""
    (root / "src" / "deepseek_edu").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, root / name)
    (root / "src" / "deepseek_edu" / "__init__.py").write_text("VALUE = 1\n")
    return root


def test_the_wheel_is_the_same_bytes_from_the_same_sources(tmp_path):
    root = package(tmp_path / "repository")
    first = build_own_wheel(root, tmp_path / "cache-1")
    second = build_own_wheel(root, tmp_path / "cache-2")
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_a_changed_source_changes_the_name_of_the_wheel(tmp_path, monkeypatch):
    root = package(tmp_path / "repository")
    lines = []
    first = build_own_wheel(root, tmp_path / "cache", lines.append)
    assert build_own_wheel(root, tmp_path / "cache", lines.append) == first
    assert len(lines) == 1, "an unchanged package was built again"
    (root / "src" / "deepseek_edu" / "__init__.py").write_text("VALUE = 2\n")
    second = build_own_wheel(root, tmp_path / "cache", lines.append)
    assert second.name != first.name
    assert b"VALUE = 2" in zipfile.ZipFile(second).read("deepseek_edu/__init__.py")


def test_the_browser_loads_no_more_than_a_wheel_of_this_size(assembled):
    _, info = assembled
    own = next(file for file in info.files if file.path.startswith("deepseek_edu"))
    assert own.compressed < 600_000, "every widget's Python comes with the first live run"
    assert info.live_bytes < 10_000_000


def test_a_missing_pyodide_says_what_to_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="npm ci"):
        assemble(tmp_path, tmp_path / "out", tmp_path / "cache")
    assert runtime.CORE_FILES
