"""The colour roles of the style sheet keep their contrast in both schemes (WCAG 2.2, 1.4.3 and 1.4.11)."""

import re
from pathlib import Path

import pytest

STYLES = Path(__file__).resolve().parents[2] / "assets" / "css"
GROUNDS = ("--edu-paper", "--edu-card", "--edu-wash")
TEXT = (
    *("--edu-ink", "--edu-muted", "--edu-accent", "--edu-good", "--edu-bad", "--edu-warn", "--k-parameters"),
    *("--k-hidden", "--k-local", "--k-global", "--k-engram", "--k-selected", "--k-changed", "--k-error"),
)
# text on a coloured ground: what the badges, outcomes and buttons use
PAIRS = (
    ("--edu-on-accent", "--edu-accent"),
    ("--edu-ink", "--edu-accent-wash"),
    ("--edu-accent", "--edu-accent-wash"),
    ("--edu-ink", "--edu-good-wash"),
    ("--edu-good", "--edu-good-wash"),
    ("--edu-ink", "--edu-bad-wash"),
    ("--edu-bad", "--edu-bad-wash"),
    ("--edu-ink", "--edu-warn-wash"),
    ("--edu-warn", "--edu-warn-wash"),
    ("--k-selected", "--edu-accent-wash"),
)
GRAPHICS = ("--edu-line-strong",)  # borders of controls, tick marks


def schemes() -> dict[str, dict[str, str]]:
    """Return scheme → role → colour as written in tokens.css."""
    text = (STYLES / "tokens.css").read_text(encoding="utf-8")
    found = {}
    for selector, body in re.findall(r"([^{}]+)\{([^}]*)\}", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)):
        for scheme in re.findall(r'data-md-color-scheme="(\w+)"', selector):
            found[scheme] = dict(re.findall(r"(--[\w-]+):\s*(#[0-9a-f]{6});", body))
    return found


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour `#rrggbb`."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_known_pairs():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the grey that just fails


@pytest.mark.behaviour(14)
@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_text_roles_are_readable_on_every_ground(scheme):
    colours = schemes()[scheme]
    pairs = [(role, ground) for role in TEXT for ground in GROUNDS] + list(PAIRS)
    weak = {pair: round(contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}


@pytest.mark.behaviour(14)
@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_edges_of_controls_stand_out(scheme):
    colours = schemes()[scheme]
    ratios = {(role, ground): contrast(colours[role], colours[ground]) for role in GRAPHICS for ground in GROUNDS}
    assert {pair: round(ratio, 2) for pair, ratio in ratios.items() if ratio < 3} == {}


def test_both_schemes_define_the_same_roles():
    found = schemes()
    assert set(found) == {"default", "slate"}
    assert set(found["default"]) == set(found["slate"])


def test_colours_are_written_in_one_file_only():
    """Other files name roles, so that one change reaches every part; the dark footer is the one ground of its own."""
    allowed = {"tokens.css", "print.css", "shell.css"}
    written = {
        path.name: re.findall(r"#[0-9a-fA-F]{3,8}\b", path.read_text(encoding="utf-8"))
        for path in STYLES.glob("*.css")
        if path.name not in allowed
    }
    assert {name: values for name, values in written.items() if values} == {}
