"""Run the site shell, Material for MkDocs or Zensical, over the staged pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from deepseek_edu.site.api import INDEX
from deepseek_edu.site.errors import SiteError
from deepseek_edu.site.locate import staged_line, where
from deepseek_edu.site.prepare import Staged

SHELLS = ("material", "zensical")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
LINKED = re.compile(r"Doc file '(?P<page>[^']+)' contains an? [\w ]*link '(?P<link>[^']+)'")
PLACED = re.compile(r"\[ (?P<page>[^\]\s]+):(?P<line>\d+):\d+ \]")
EXTENSION = "deepseek_edu.site.markdown"


class ShellError(SiteError):
    """The shell refused a page for another reason than our own syntax, for example a dead link."""


def render(root: Path, work: Path, staged: Staged, shell: str) -> Path:
    """Return the folder with the shell's output.

    Raises:
        SiteError: the shell failed or warned; the message holds our own error if there is one, else its output.
    """
    out = work / f"shell-{shell}"
    config = work / f"{shell}.yml"
    config.write_text(_config(root, staged, out), encoding="utf-8")
    command = [sys.executable, "-m"]
    if shell == "material":
        command += ["mkdocs", "build", "--strict", "--clean", "--config-file", str(config)]
    else:
        command += ["zensical", "build", "--strict", "--clean", "--config-file", str(config)]
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "0",
        "SOURCE_DATE_EPOCH": "0",
        "NO_COLOR": "1",
        "NO_MKDOCS_2_WARNING": "1",
    }
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if ours := re.search(r"(?:SourceError|SiteError): (?P<message>.+)", said):
        raise SiteError(ours["message"].strip())
    if done.returncode != 0 or not (out / "index.html").exists():
        told = _in_sources(_relevant(said), root, staged.docs)
        raise ShellError(f"{shell} stopped with exit code {done.returncode}:\n{told}")
    return out


def _in_sources(said: str, root: Path, docs: Path) -> str:
    """Name the author's file and line where the shell names a staged page.

    Material says which page contains which link; Zensical gives the line of the staged page.
    """

    def linked(found: re.Match[str]) -> str:
        place = where(root, docs, found["page"], found["link"])
        return f"{place}: {found.group()}" if place else found.group()

    def placed(found: re.Match[str]) -> str:
        place = staged_line(docs, found["page"], int(found["line"]))
        return f"[ {place.file}:{place.line} ]" if place else found.group()

    said = LINKED.sub(linked, said)
    return PLACED.sub(placed, said)


def _relevant(said: str) -> str:
    """Return the warnings and errors of the shell, with the lines that belong to them."""
    kept: list[str] = []
    told = False
    said = ANSI.sub("", said)
    for line in said.splitlines():
        if re.match(r"(WARNING|ERROR|INFO|DEBUG|Aborted|Error|Caused by)", line):
            told = not line.startswith(("INFO", "DEBUG"))
        if told and line.strip():
            kept.append(line)
    without_trace = said.partition("Traceback (most recent call last)")[0].strip()
    return "\n".join(kept or (without_trace or said).splitlines()[-60:])


def _config(root: Path, staged: Staged, out: Path) -> str:
    """Return `mkdocs.yml` with folders, the API reference, the glossary and our extension's options filled in."""
    config: dict[str, Any] = yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))
    # relative to the file they stand in: Zensical takes no others
    config["docs_dir"], config["site_dir"] = staged.docs.name, out.name
    config["nav"] = _filled(config.get("nav", []), staged.reference)
    options = {EXTENSION: {"root": str(root), "manifest": str(staged.manifest)}}
    if staged.abbreviations:
        options["abbr"] = {"glossary": staged.abbreviations}
    extensions = []
    for extension in config["markdown_extensions"]:
        name = extension if isinstance(extension, str) else next(iter(extension))
        extensions.append({name: options.pop(name)} if name in options else extension)
    config["markdown_extensions"] = extensions
    return yaml.safe_dump(config, sort_keys=False, allow_unicode=True)


def _filled(nav: Any, reference: list[Any]) -> Any:
    """Return the navigation with the pages of the API reference in place of the entry that stands for them."""
    if isinstance(nav, list):
        return [_filled(entry, reference) for entry in nav]
    if isinstance(nav, dict):
        return {title: reference if entry == INDEX else _filled(entry, reference) for title, entry in nav.items()}
    return nav
