"""Small parts: pruning of styles, formulas, notices, examples in docstrings, the commands' words."""

from __future__ import annotations

import doctest
import gzip
import importlib
import json
import pkgutil
import re
import zlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepseek_edu import site as package
from deepseek_edu import widgets
from deepseek_edu.cli import app
from deepseek_edu.site import edu
from deepseek_edu.site.errors import SiteError
from deepseek_edu.site.formulas import typeset
from deepseek_edu.site.notices import page, shipped
from deepseek_edu.site.prune import prune, words_of
from deepseek_edu.widgets import states
from tests.site_build import ROOT

MODULES = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.name != "__main__")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    module = importlib.import_module(f"deepseek_edu.site.{name}")
    assert doctest.testmod(module).failed == 0


def test_pruning_keeps_what_any_page_could_use() -> None:
    css = (
        "a,b{top:0}.used,.gone{top:1px}.used>.also:not(.gone){top:2px}"
        "@media (min-width:1px){.gone{top:0}.used{top:3px}}"
        "@font-face{font-family:X}@keyframes k{0%{top:0}}[data-md-color-primary=red]{top:4px}.a\\:b .gone{top:0}"
    )
    kept = prune(css, {"used", "also", "primary=custom"})
    assert kept == (
        "a,b{top:0}.used{top:1px}.used>.also:not(.gone){top:2px}@media (min-width:1px){.used{top:3px}}"
        "@font-face{font-family:X}@keyframes k{0%{top:0}}"
    )


def test_formulas_are_typeset_once_and_kept(tmp_path: Path) -> None:
    pages = {"a.html": r'<span class="arithmatex">\(a &lt; b\)</span>'}
    first = typeset(pages, ROOT, tmp_path)
    assert 'class="katex"' in first["a.html"]
    assert r"a &lt; b</annotation>" in first["a.html"]
    kept = json.loads((tmp_path / "katex.json").read_text(encoding="utf-8"))
    assert len(kept) == 1
    (tmp_path / "katex.json").write_text(json.dumps(dict.fromkeys(kept, "from the cache")), encoding="utf-8")
    assert "from the cache" in typeset(pages, ROOT, tmp_path)["a.html"]


def test_a_malformed_formula_names_page_and_formula(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"a\.html: found the formula '\\\\frac\{1\}'"):
        typeset({"a.html": r'<span class="arithmatex">\(\frac{1}\)</span>'}, ROOT, tmp_path)


def test_everything_that_is_shipped_has_a_notice_with_its_licence() -> None:
    notices = {notice.name: notice for notice in shipped(ROOT)}
    assert {"pyodide", "numpy", "katex", "plotly.js-basic-dist-min", "@codemirror/view", "mkdocs-material"} <= set(
        notices
    )
    assert "esbuild" not in notices  # builds the site, is not part of it
    for notice in notices.values():
        assert notice.version and notice.licence and len(notice.text) > 300, notice.name
    assert "Mozilla Public License" in page(ROOT)


def test_each_command_explains_itself_with_an_example() -> None:
    runner = CliRunner()
    for command in ("build", "serve", "check", "pack", "new", "widgets", "run"):
        shown = runner.invoke(app, [command, "--help"])
        assert shown.exit_code == 0
        assert re.search(rf"Example:\s+deepseek-edu {command}", shown.output), shown.output


def test_check_reports_problems_and_exits_with_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "index.html").write_text("<html><head></head><body></body></html>", encoding="utf-8")
    shown = CliRunner().invoke(app, ["check", str(tmp_path)])
    assert shown.exit_code == 1
    assert "index.html: no Content-Security-Policy: build with" in shown.output


def test_run_lists_and_refuses_unknown_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert CliRunner().invoke(app, ["run"]).output.split() == ["baseline", "fp4_error", "kv_time"]
    refused = CliRunner().invoke(app, ["run", "nothing"])
    assert refused.exit_code == 2
    assert "fp4_error" in refused.output


def test_a_widget_that_fails_is_named_with_its_error(tmp_path):
    target = tmp_path / "gone-1.json"
    with pytest.raises(SiteError, match=r"the widget gone fails [\s\S]*no widget 'gone'"):
        edu._compute(["gone"], {"gone": target}, lambda line: None)
    assert not target.exists()


def test_states_are_those_of_the_widget_and_older_ones_go(tmp_path):
    said, target = [], tmp_path / "owners-2.json"
    (tmp_path / "owners-1.json").write_text("{}")
    edu._compute(["owners"], {"owners": target}, said.append)
    assert target.read_bytes() == states.states_bytes(widgets.get("owners"))
    assert not (tmp_path / "owners-1.json").exists()
    assert said == ["computing the first moves of owners"]


def test_states_are_shipped_packed_under_an_ending_of_their_own(tmp_path):
    (written,) = edu._states(
        ROOT, tmp_path / "edu" / "widgets", ["owners"], tmp_path / "kept", lambda line: None
    ).values()
    shipped = tmp_path / "edu" / written
    assert shipped.suffix == ".states"
    assert [path.name for path in shipped.parent.iterdir()] == [shipped.name]
    assert zlib.decompress(shipped.read_bytes(), 16 + zlib.MAX_WBITS) == states.states_bytes(widgets.get("owners"))


def test_words_of_packed_states_keep_their_rules(tmp_path):
    (tmp_path / "edu" / "widgets").mkdir(parents=True)
    (tmp_path / "index.html").write_text("<p>word</p>", encoding="utf-8")
    packed = gzip.compress(b'{"fragments": ["<g class=\\"k-rare\\">"]}')
    (tmp_path / "edu" / "widgets" / "a-1.states").write_bytes(packed)
    assert {"word", "k-rare"} <= words_of(tmp_path)
