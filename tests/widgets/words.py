"""Every word of a view that a reader sees or hears, as plain text."""

import html
import re
from collections.abc import Iterator

from deepseek_edu.widgets.parts import View
from deepseek_edu.widgets.render import render_parts

_CODE = re.compile(r"<(code|pre|title)\b[^>]*>.*?</\1>|<text [^>]*k-text--mono[^>]*>[^<]*</text>", re.DOTALL)


def words(view: View) -> Iterator[str]:
    """The text between the tags of its parts, code left out, then the names of pictures and the summary."""
    for part in render_parts(view):
        plain = _CODE.sub("", re.sub(r"<script\b.*?</script>", "", part, flags=re.DOTALL))
        yield from (html.unescape(text) for text in re.findall(r">([^<>]+)<", plain) if text.strip())
        yield from (html.unescape(text) for text in re.findall(r'aria-label="([^"]*)"', plain))
    yield view.summary
