"""The archive for a USB stick."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

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
