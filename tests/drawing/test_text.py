"""The width of text: estimated in Python, against what Chromium measures with the site's fonts at 100 units."""

import pytest

from deepseek_edu.drawing.text import fit, text_width

MEASURED = {
    # text: (regular, bold, code font)
    "Engram rows read": (860, 878, 960),
    "WWWWWWWW": (805, 839, 480),
    "illicit": (211, 228, 420),
    "V4.1-Flash": (485, 507, 600),
    "10⁻²": (201, 208, 240),
    "51.6\u202f%": (301, 312, 330),
    "16\u202f384 tokens →": (776, 792, 870),
    "Σ min(P, Q)": (527, 535, 660),
    "layers.0.attn": (578, 612, 780),
}
STYLES = ("", "k-text--strong", "k-label k-text--mono")


@pytest.mark.parametrize("text", MEASURED)
def test_an_estimate_is_a_little_too_wide_and_never_too_narrow(text):
    for style, measured in zip(STYLES, MEASURED[text], strict=True):
        assert measured <= text_width(text, 100, style) + 25 <= 1.12 * measured + 25


def test_ideographs_and_emoji_take_a_full_size_and_combining_marks_none():
    assert text_width("中文", 10) == text_width("😀😀", 10) >= 20
    assert text_width("é", 10) == text_width("e\u0301", 10) == text_width("e", 10)


@pytest.mark.parametrize(
    "text", ["W" * 60, "i" * 60, "中" * 30, "compressor of layer 12", "👩‍👩‍👧 family 👩‍👩‍👧 family"]
)
@pytest.mark.parametrize("width", [30, 60, 131.5])
def test_a_text_that_is_cut_fits_and_says_that_it_was_cut(text, width):
    cut = fit(text, width)
    assert text_width(cut) <= width
    assert cut.endswith("…") and text.startswith(cut[:-1])


def test_as_much_of_a_text_stays_as_fits():
    width = text_width("compr…")
    assert fit("compressor", width) == "compr…"
    assert fit("compressor", width - 0.1) == "comp…"
    assert fit("compressor", text_width("compressor")) == "compressor"
