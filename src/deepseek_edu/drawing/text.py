"""How wide a text is before a browser has set it, so that pictures can be laid out in Python.

Widths are the advances of the site's sans serif (Inter), in hundredths of the font size; letters that lie close share
the widest of them. What the font does not have comes from a font of the reader's: ideographs, kana, hangul and emoji
count as a full size, anything else as a wide letter.
"""

import unicodedata
from functools import lru_cache

from .svg import FONT

_CLASSES = {
    15: "\u202f",
    19: "\u2009",
    27: "ijlI‘’′",
    30: " .,:;!'·¹\u00a0",
    38: "frt()[]/\\|`‐ᵀ⌈⌉",
    46: "1-{}°²³⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉ⁿτ“”",
    52: '"^*_?–∂λγε',
    58: "7acksvxyzLJ⁻≈≠≤≥√χρθαμµβδ•",
    63: "0235689bdeghnopquEFZßσΣ«»●○■□",
    66: "4$#&BPRST+−=<>~±×÷φΔ∆Α",
    70: "AKVXYπ∞∑",
    77: "CDGHNOQU∪∩",
    88: "mw↑↓…✓✗∈⟂⊙",
    98: "M%@",
    101: "W—←→▲▼★",
}
_ADVANCES = {letter: hundredths for hundredths, letters in _CLASSES.items() for letter in letters}
_OTHER, _FULL, _MONO = 77, 104, 60
STRONG = 1.04  # bold text against regular text


def _advance(letter: str) -> int:
    known = _ADVANCES.get(letter)
    if known:
        return known
    if letter.isascii():
        return _OTHER
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    plain = unicodedata.normalize("NFD", letter)[0]
    if plain != letter and plain in _ADVANCES:
        return _ADVANCES[plain]
    if unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF:
        return _FULL
    return _OTHER


@lru_cache(8192)
def text_width(text: str, size: float = FONT, style: str = "") -> float:
    """How wide a text is, in units; a little too wide rather than too narrow.

    Args:
        text: one line.
        size: of the font.
        style: the classes it is written with; "k-text--strong" is wider, every letter of "k-text--mono" alike.

    >>> round(text_width("illicit", 10)), round(text_width("WWWWWWW", 10))
    (23, 71)
    """
    if "k-text--mono" in style:
        return sum(_FULL if _advance(letter) == _FULL else _MONO for letter in text) * size / 100
    wide = sum(map(_advance, text)) * size / 100
    return wide * STRONG if "k-text--strong" in style else wide


def fit(text: str, width: float, size: float = FONT, style: str = "") -> str:
    """The text, cut with an ellipsis if it would be wider than `width`; at least one letter stays.

    >>> fit("compressor", 52), fit("WWWW", 40)
    ('compr…', 'WW…')
    """
    if text_width(text, size, style) <= width:
        return text
    room = width - text_width("…", size, style)
    most = len(text) - 1
    while most > 1 and text_width(text[:most], size, style) > room:
        most -= 1
    return text[:most].rstrip() + "…"
