"""Rendering one page without a shell, and one small site that many tests look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from markdown import Markdown

from tests.site.project import CLAIMS, make_project
from tests.site_build import ROOT, built_site

EXTENSIONS = ["tables", "attr_list", "pymdownx.superfences", "pymdownx.arithmatex", "abbr", "toc"]


@pytest.fixture
def render(tmp_path: Path) -> Callable[..., str]:
    """Render Markdown whose first line is line 1 of course/page.md, with the claims of the small course."""
    root = tmp_path / "root"
    (root / "course").mkdir(parents=True)
    (root / "course" / "claims.toml").write_text(CLAIMS, encoding="utf-8")
    for name in ("labs", "assets"):
        (root / name).symlink_to(ROOT / name)

    def convert(text: str, line: int = 1, **options: object) -> str:
        extensions = [*EXTENSIONS, "deepseek_edu.site.markdown"]
        settings = {
            "deepseek_edu.site.markdown": {"root": str(root)},
            "pymdownx.arithmatex": {"generic": True},
            **options,
        }
        marked = f"<!-- edu-source: course/page.md:{line} -->\n{text}"
        return Markdown(extensions=extensions, extension_configs=settings).convert(marked)

    return convert


@pytest.fixture(scope="session")
def small_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small course. The real site is built first: its bundle and browser Python come from the cache then."""
    built_site()
    return make_project(tmp_path_factory.mktemp("small") / "root")


@pytest.fixture(scope="session")
def small_site(small_project: Path) -> Path:
    """The finished small site. Tests that change files work on a copy."""
    from deepseek_edu.site.build import build

    return build(small_project, small_project / "site").site
