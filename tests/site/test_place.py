"""No build replaces anything that a build did not make. Every case plays in a folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepseek_edu.cli import app
from deepseek_edu.site import build as building
from deepseek_edu.site.build import build
from deepseek_edu.site.errors import PlaceError
from deepseek_edu.site.place import replace, settled


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A repository by its folders alone: a place is judged before any source is read."""
    root = tmp_path / "parent" / "root"
    for name in ("course", "src/deepseek_edu", "labs", "notebooks", "assets", "tests", ".git"):
        (root / name).mkdir(parents=True)
        (root / name / "kept.txt").write_text("kept", encoding="utf-8")
    (root / "mkdocs.yml").write_text("site_name: x\n", encoding="utf-8")
    return root


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def a_file(root: Path) -> Path:
    (root / "notes").write_text("mine", encoding="utf-8")
    return root / "notes"


def a_link(root: Path) -> Path:
    (root.parent / "real").mkdir()
    (root / "link").symlink_to(root.parent / "real")
    return root / "link"


def a_full_folder(root: Path) -> Path:
    (root / "photos").mkdir()
    (root / "photos" / "index.html").write_text("mine", encoding="utf-8")
    return root / "photos"


def a_listing_that_is_none(root: Path) -> Path:
    (root / "other" / "edu").mkdir(parents=True)
    (root / "other" / "edu" / "offline.json").write_text("[]", encoding="utf-8")
    return root / "other"


REFUSED: list[tuple[str, Callable[[Path], Path]]] = [
    ("a file", a_file),
    ("a link", a_link),
    ("a folder with other contents", a_full_folder),
    ("a folder with other contents", a_listing_that_is_none),
    ("holds", lambda root: root),
    ("holds", lambda root: root.parent),
    ("holds", lambda root: root / "src"),
    ("holds", lambda root: root / "course"),
    ("holds", lambda root: root / ".git"),
    ("inside", lambda root: root / "course" / "site"),
    ("inside", lambda root: root / "src" / "deepseek_edu" / "site"),
    ("inside", lambda root: root / "course" / ".." / "labs" / "site"),
    ("holds", lambda root: root / "build" / "docs"),
    ("make it first", lambda root: root / "a" / "b" / "c"),
]


@pytest.mark.parametrize(("told", "make"), REFUSED)
@pytest.mark.parametrize("command", ["build", "serve"])
def test_what_no_build_made_is_refused_with_exit_code_2_and_left_alone(
    course: Path, monkeypatch: pytest.MonkeyPatch, command: str, told: str, make: Callable[[Path], Path]
) -> None:
    out = make(course)
    before = contents(course.parent)
    monkeypatch.chdir(course)
    done = CliRunner().invoke(app, [command, "--out", str(out)])
    assert done.exit_code == 2, done.output
    assert told in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert contents(course.parent) == before
    assert not (course / "a").exists()


def test_a_folder_that_cannot_be_written_is_told_in_one_sentence(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**where: object) -> str:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("deepseek_edu.site.place.tempfile.mkdtemp", refused)
    with pytest.raises(PlaceError, match="cannot be written \\(Read-only file system\\); name another folder"):
        settled(course / "site", course, course / "build")


def test_a_site_is_replaced_but_not_one_with_a_file_of_someone_else(small_site: Path, tmp_path: Path) -> None:
    out, root = tmp_path / "out", tmp_path / "root"
    root.mkdir()
    shutil.copytree(small_site, out)
    assert settled(out, root, root / "build") == out
    (out / "CNAME").write_text("example.org", encoding="utf-8")
    with pytest.raises(PlaceError, match="CNAME, which no build wrote"):
        settled(out, root, root / "build")
    (out / "CNAME").unlink()
    (out / ".git").mkdir()
    (out / ".git" / "HEAD").write_text("ref: refs/heads/pages", encoding="utf-8")
    with pytest.raises(PlaceError, match=r"\.git/HEAD, which no build wrote"):
        settled(out, root, root / "build")


def test_neighbours_with_the_names_of_drafts_stay(small_site: Path, tmp_path: Path) -> None:
    for name in (".out.new", ".out.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text("mine", encoding="utf-8")
    shutil.copytree(small_site, tmp_path / "new")
    shutil.copytree(small_site, tmp_path / "out")
    (tmp_path / "new" / "index.html").write_text("newer", encoding="utf-8")
    replace(tmp_path / "new", tmp_path / "out")
    assert (tmp_path / "out" / "index.html").read_text(encoding="utf-8") == "newer"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.new", ".out.old", "out"]
    assert (tmp_path / ".out.old" / "mine.txt").read_text(encoding="utf-8") == "mine"


def test_a_place_that_changes_while_the_site_is_built_is_left_alone(
    course: Path, small_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = course / "site"

    def meanwhile(root: Path, place: Path, *rest: object) -> None:
        place.mkdir()
        (place / "mine.txt").write_text("mine", encoding="utf-8")
        shutil.copytree(small_site, tmp_path / "new")
        replace(tmp_path / "new", place)

    monkeypatch.setattr(building, "_build", meanwhile)
    with pytest.raises(PlaceError, match="other contents"):
        build(course, out)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_a_place(course: Path) -> None:
    (course / "public").mkdir()
    assert settled(course / "public", course, course / "build") == course / "public"
    assert list((course / "public").iterdir()) == []
