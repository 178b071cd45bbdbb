"""Every public function of the model says what it takes, gives and refuses; and the audit that asks for it can fail."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import griffe
import pytest

from deepseek_edu.site.api.docstring import conventions
from deepseek_edu.site.api.parts import Module
from deepseek_edu.site.api.read import packages, read_module
from tests.docstring_audit import by_name, findings

ROOT = Path(__file__).resolve().parents[1]


@cache
def audited() -> dict[str, tuple[Module, dict[str, str]]]:
    """Path → module and the arguments that its package tells about; grading is not part of the model."""
    found = {m.path: (m, conventions(package.doc)) for package in packages(ROOT) for m in package.modules}
    found.pop("grading")
    return found


@pytest.mark.parametrize("path", sorted(audited()))
def test_every_docstring_says_what_a_caller_needs(path: str) -> None:
    module, common = audited()[path]
    others = by_name(module for module, _ in audited().values())
    assert findings(module, others, common) == []


# ── the audit itself ────────────────────────────────────────────────────────────────────────────────────────────────
GOOD = '''"""A small file.

Source: report, section 1.
"""

import numpy as np


def scaled(x, weight, factor, offset):
    """Return x times weight.

    Args:
        x: [T C].
        weight: [D C].
        factor: number; offset: number.

    Returns:
        [T D].

    Raises:
        ValueError: the widths differ.
    """
    if x.shape[-1] != weight.shape[-1]:
        raise ValueError("other widths")
    return x @ weight.T * factor + offset


def again(x, weight, factor, offset):
    """Do it twice; arguments as in `scaled`, and [T D] is returned."""
    return scaled(x, weight, factor, offset)


def total(x):
    """Return the sum of x (any shape)."""
    return x.reshape(-1).sum()


class Rows:
    """Stored rows.

    Args:
        width: numbers in a row.
        spare: rows.
        block: numbers that share a scale.
        kind: of scale.
    """

    def __init__(self, width, spare, block, kind):
        self.width = width

    def read(self, first, last):
        """Return the rows first … last − 1, [n width]."""
        return self.width[first:last]
'''


def audit(code: str, common: dict[str, str] | None = None) -> list[str]:
    tree = griffe.visit("small", filepath=ROOT / "small.py", code=code)
    return findings(read_module(ROOT, tree, "small", code), {}, common)


def test_a_file_that_says_everything_passes() -> None:
    assert audit(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("\n\nSource: report, section 1.\n", "", "the module docstring names no source"),
        ('    """Return the sum of x (any shape)."""\n', "", "total: no summary"),
        ("        x: [T C].\n", "", "scaled: no word about the parameter x"),
        ("number; offset: number", "number", "scaled: no word about the parameter offset"),
        ("        weight: [D C].\n", "        weight: of rows.\n", "scaled: no shape of the array weight"),
        ("        [T D].\n", "        what was asked for.\n", "scaled: no shape of what is returned"),
        ("        ValueError: the widths differ.\n", "        KeyError: never.\n", "scaled: raises ValueError"),
        (" as in `scaled`, and [T D]", "; it", "again: no word about the parameter factor"),
        ("Return the sum of x (any shape).", "Return the sum of x.", "total: no shape of the array x"),
        ("        spare: rows.\n", "", "Rows: no word about the parameter spare"),
        (" the rows first … last − 1, [n width].", " them.", "Rows.read: no word about the parameter first"),
        ('    """Stored rows.\n', '    """\n', "Rows: no summary"),
    ],
)
def test_what_is_missing_is_found(old: str, new: str, told: str) -> None:
    assert GOOD.count(old) == 1
    found = audit(GOOD.replace(old, new))
    assert any(told in line for line in found), found


def test_arguments_that_a_package_tells_about_need_no_word() -> None:
    code = GOOD.replace("        x: [T C].\n", "")
    assert audit(code, {"x": "[T C], inputs"}) == []


def test_a_field_without_a_word_is_found() -> None:
    code = (
        '"""A file.\n\nSource: our own.\n"""\n\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Pair:\n'
        '    """Two."""\n\n    low: int  # the smaller\n    high: int\n'
    )
    assert audit(code) == ["Pair: no word about the field high"]
