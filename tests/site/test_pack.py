"""The archive for a USB stick."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepseek_edu.cli import app
from deepseek_edu.site.errors import SiteError
from deepseek_edu.site.pack import pack


@pytest.mark.behaviour(2)
def test_the_archive_runs_with_nothing_but_python(small_site: Path, tmp_path: Path) -> None:
    pack(small_site, tmp_path / "course.zip")
    with zipfile.ZipFile(tmp_path / "course.zip") as archive:
        archive.extractall(tmp_path / "stick")
    folder = tmp_path / "stick" / "deepseek-edu"
    assert {path.name for path in folder.iterdir()} == {"README.txt", "serve.py", "site", "start.bat", "start.sh"}
    # -I -S: neither this environment's packages nor its settings
    command = [sys.executable, "-I", "-S", "-u", "serve.py", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            line = server.stdout.readline()
            address = next(word for word in line.split() if word.startswith("http://"))
            with urllib.request.urlopen(f"{address}chapter.html", timeout=10) as answer:
                assert "A chapter" in answer.read().decode()
        finally:
            server.terminate()


def test_the_same_site_gives_the_same_archive(small_site: Path, tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        pack(small_site, tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_every_file_of_the_site_is_in_the_archive(small_site: Path, tmp_path: Path) -> None:
    pack(small_site, tmp_path / "course.zip")
    with zipfile.ZipFile(tmp_path / "course.zip") as archive:
        names = {name.removeprefix("deepseek-edu/site/") for name in archive.namelist() if "/site/" in name}
        assert archive.testzip() is None
    assert names == {path.relative_to(small_site).as_posix() for path in small_site.rglob("*") if path.is_file()}


def test_a_folder_without_site_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="deepseek-edu build"):
        pack(tmp_path, tmp_path / "a.zip")


def test_a_packed_archive_is_replaced(small_site: Path, tmp_path: Path) -> None:
    size = pack(small_site, tmp_path / "a.zip")
    assert pack(small_site, tmp_path / "a.zip") == size
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def other_zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "backup.zip", "w") as archive:
        archive.writestr("photo.txt", "mine")
    return folder / "backup.zip"


def no_zip(folder: Path) -> Path:
    (folder / "text.zip").write_text("mine", encoding="utf-8")
    return folder / "text.zip"


def other_name(folder: Path) -> Path:
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    return folder / "notes.txt"


@pytest.mark.parametrize(
    ("told", "make"),
    [
        ("did not write", other_zip),
        ("did not write", no_zip),
        ("does not end in .zip", other_name),
        ("found a folder", lambda folder: folder),
        ("make it first", lambda folder: folder / "a" / "b" / "c.zip"),
        ("inside the site", lambda folder: folder / "site" / "c.zip"),
    ],
)
def test_a_path_that_is_none_for_an_archive_is_refused_in_one_sentence(tmp_path: Path, told: str, make) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("x", encoding="utf-8")
    archive = make(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = CliRunner().invoke(app, ["pack", str(archive), "--site", str(tmp_path / "site")])
    assert done.exit_code == 2, done.output
    assert told in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "a").exists()
