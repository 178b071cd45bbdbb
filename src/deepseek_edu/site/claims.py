"""The ledger of claims: read `course/claims.toml` and `course/claims/*.toml`, verify every entry, write their page.

A claim is verified by a function of the package (`check`), by the record of an experiment (`run`, with or without a
check), or it says what was read (`read`) where only its source can know.
"""

from __future__ import annotations

import functools
import html
import importlib
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepseek_edu.site.errors import SourceError, one_of
from deepseek_edu.site.source import source_text

LEDGER = "course/claims.toml"
LABELS = ("report", "code", "measured", "illustrative", "third party")
KEYS = {"text": str, "label": str, "source": str, "value": object, "check": str, "run": str, "read": str}
RELATIVE_TOLERANCE = 1e-12  # checks recompute closed forms in float64; only the last bits may differ


@dataclass(frozen=True)
class Claim:
    """One entry of the ledger, its text with the verified value filled in."""

    id: str
    text: str
    label: str
    source: str
    value: Any = True
    check: str = ""
    run: str = ""
    read: str = ""
    line: int = 1
    file: str = LEDGER

    @property
    def verified_by(self) -> str:
        """How the entry was verified, in words, with the function or record named."""
        if self.run:
            return f"recorded run {self.run}" + (f", checked by {self.check}" if self.check else "")
        return f"recomputed by {self.check}" if self.check else self.read


def load_ledger(root: Path) -> dict[str, Claim]:
    """Read the ledger: what several chapters share in its main file, then a file for each chapter.

    Raises:
        SourceError: a malformed entry, or an id that an earlier file has, with file and line.
    """
    claims: dict[str, Claim] = {}
    for path in (root / LEDGER, *sorted((root / LEDGER).with_suffix("").glob("*.toml"))):
        for claim in _load_file(root, path):
            if claim.id in claims:
                first = claims[claim.id]
                where = f"one entry; {first.file}:{first.line} has it"
                raise SourceError(claim.file, claim.line, f"the claim {claim.id} again", where)
            claims[claim.id] = claim
    return claims


def _load_file(root: Path, path: Path) -> list[Claim]:
    text, name = source_text(root, path), path.relative_to(root).as_posix()
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise SourceError(name, int(line[1]) if line else None, f"malformed TOML ({error})", "TOML tables") from error
    lines = {found[1]: text.count("\n", 0, found.start()) + 1 for found in re.finditer(r"(?m)^\[([^\]\n]+)\]", text)}
    return [_claim(id, entry, name, lines.get(id, 1)) for id, entry in entries.items()]


def _claim(id: str, entry: Any, file: str, line: int) -> Claim:
    def wrong(found: str, allowed: str) -> SourceError:
        return SourceError(file, line, f"{found} in claim {id}", allowed)

    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id) or not isinstance(entry, dict):
        raise wrong(f"the id {id!r}", "a table [id] of lower-case words joined by hyphens")
    for key, value in entry.items():
        if key not in KEYS:
            raise wrong(f"the unknown key {key}", one_of(KEYS, key))
        if KEYS[key] is str and (not isinstance(value, str) or not value.strip()):
            raise wrong(f"{key} = {value!r}", f"{key} = a text")
    for key in ("text", "label", "source"):
        if key not in entry:
            raise wrong(f"no {key}", "every claim has text, label and source")
    if entry["label"] not in LABELS:
        raise wrong(f"the label {entry['label']!r}", one_of(LABELS, entry["label"]))
    ways = [key for key in ("check", "run", "read") if key in entry]
    if not ways or ("read" in ways and len(ways) > 1):
        raise wrong(" and ".join(ways) or "no way to verify it", "check, run (with or without check), or read")
    if entry["label"] == "measured" and "run" not in entry:
        raise wrong("the label measured without a run", "measured claims name the record of their run")
    return Claim(id=id, file=file, line=line, **entry)


@functools.cache
def verified_ledger(root: Path) -> dict[str, Claim]:
    """Read the ledger and verify every entry. The answer is kept for the life of the process.

    Raises:
        SourceError: the first entry whose verification fails, with what it returned.
    """
    return {id: verify(claim, root) for id, claim in load_ledger(root).items()}


def verify(claim: Claim, root: Path) -> Claim:
    """Return the claim with its text completed, or raise SourceError."""

    def wrong(found: str, allowed: str) -> SourceError:
        return SourceError(claim.file, claim.line, f"{found} in claim {claim.id}", allowed)

    record = None
    if claim.run:
        path = root / "assets" / "runs" / f"{claim.run}.json"
        if not path.exists():
            raise wrong(
                f"the run {claim.run}, which has no record",
                f"a record in assets/runs/ (deepseek-edu run {claim.run} writes it); there are: "
                + one_of((known.stem for known in path.parent.glob("*.json")), claim.run),
            )
        record = json.loads(path.read_text(encoding="utf-8"))
    if claim.check:
        module_name, _, function_name = claim.check.rpartition(".")
        try:
            function = getattr(importlib.import_module(module_name), function_name)
        except (ImportError, AttributeError, ValueError) as error:
            raise wrong(f"the check {claim.check} ({error})", "module.function of deepseek_edu.claims") from error
        try:
            got = function(record) if claim.run else function()
        except Exception as error:
            raise wrong(
                f"the check {claim.check}, which fails with {type(error).__name__}: {error}", "a check that returns"
            ) from error
        if not _agree(got, claim.value):
            raise wrong(f"value {claim.value!r}, but {claim.check} returns {got!r}", "the value that the check returns")
    try:
        text = claim.text.format(value=claim.value)
    except (KeyError, IndexError, ValueError) as error:
        raise wrong(f"the text {claim.text!r} ({error!r})", "a text with {value} at most") from error
    return Claim(**{**vars(claim), "text": text})


def _agree(got: Any, stated: Any) -> bool:
    if isinstance(stated, bool) or isinstance(got, bool):
        return got is stated
    if isinstance(stated, float):
        return isinstance(got, int | float) and math.isclose(got, stated, rel_tol=RELATIVE_TOLERANCE)
    return type(got) is type(stated) and got == stated


def badge(claim: Claim, ledger_url: str) -> str:
    """Return the evidence badge: the label, linked to the entry of the ledger."""
    kind = claim.label.replace(" ", "-")
    title = html.escape(f"{claim.label.capitalize()}: {claim.text} ({claim.source})", quote=True)
    return (
        f'<a class="edu-claim edu-claim--{kind}" href="{ledger_url}#claim-{claim.id}" title="{title}" '
        f"data-search-exclude>{html.escape(claim.label)}</a>"
    )


@dataclass(frozen=True)
class Use:
    """Where a page uses a claim."""

    page: str  # file of the page, relative to the staged docs
    title: str


LABEL_MEANINGS = {
    "report": "said by the technical report",
    "code": "seen in the released reference code or configuration",
    "measured": "run by this repository: command, seed, machine and file of results are recorded",
    "illustrative": "numbers invented to show an idea",
    "third party": "said by another public source, which is named",
}


def ledger_page(ledger: Mapping[str, Claim], uses: Mapping[str, Sequence[Use]]) -> str:
    """Return the Markdown page `claims.md`: every claim with an anchor, its source, its verification and its uses."""
    parts = [
        "---\ntitle: Ledger of claims\n"
        "description: Every claim of the course, its source, and how the build verified it.\n---\n",
        "# Ledger of claims\n",
        "Each badge in the text leads here. An entry says where a statement comes from and how it was verified when "
        "this site was built. If a check had failed, this site would not exist.\n",
        "| label | meaning | claims |\n|---|---|---:|",
    ]
    counts = {label: sum(claim.label == label for claim in ledger.values()) for label in LABELS}
    parts.append("\n".join(f"| {label} | {LABEL_MEANINGS[label]} | {counts[label]} |" for label in LABELS) + "\n")
    for label in LABELS:
        if counts[label]:
            parts.append(f"## {label.capitalize()}\n")
            parts += [_entry(claim, uses.get(id, ())) for id, claim in ledger.items() if claim.label == label]
    return "\n".join(parts) + "\n"


def _entry(claim: Claim, uses: Sequence[Use]) -> str:
    kind = claim.label.replace(" ", "-")
    links = ", ".join(f'<a href="{use.page.removesuffix(".md")}.html">{html.escape(use.title)}</a>' for use in uses)
    rows = [("Source", html.escape(claim.source))]
    if claim.read:
        rows.append(("Not recomputed", html.escape(claim.read)))
    else:
        rows.append(("Verified", _code_names(claim.verified_by)))
    rows.append(("Used in", links or "not used on a page"))
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows)
    return (
        f'<section class="edu-ledger" id="claim-{claim.id}">'
        f'<p class="edu-ledger__text"><span class="edu-claim edu-claim--{kind}">{claim.label}</span> '
        f"{html.escape(claim.text)}</p>"
        f'<dl class="edu-ledger__facts" data-search-exclude>{listed}</dl></section>\n'
    )


def _code_names(text: str) -> str:
    return re.sub(r"(deepseek_edu\.[\w.]+)", r"<code>\1</code>", html.escape(text))
