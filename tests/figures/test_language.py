"""The legend page shows every kind of the drawing kit, and its page explains each."""

from pathlib import Path

from deepseek_edu import figures
from deepseek_edu.drawing import kit

PAGE = Path(__file__).parents[2] / "course" / "pictures.md"


def test_every_kind_is_drawn_in_its_own_colour():
    picture = figures.get("picture-language").html()
    for kind, words in kit.KINDS.items():
        assert f"k-box k-{kind}" in picture
        assert words in picture


def test_the_page_says_what_each_kind_means():
    text = PAGE.read_text(encoding="utf-8").lower()
    for words in kit.KINDS.values():
        assert f"- **{words.lower()}**" in text
