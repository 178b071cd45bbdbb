"""Where the text of a drawing stands, estimated from the markup alone: what runs out of it, what touches what."""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from deepseek_edu.drawing import Drawing
from deepseek_edu.drawing.text import text_width

_TAG = re.compile(r"<g\b([^>]*)>|(</g>)|<text\b([^>]*)>([^<]*)</text>|<rect\b([^>]*)/>")
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
ABOVE, BELOW = 0.70, 0.02  # of the font size: from the baseline to the top of a capital, and the little that hangs
APART = 2  # units, the least between two texts side by side
ESTIMATE = 0.96  # the widths are a little too wide on purpose; a fault is one that is there with this part of them


class Box(NamedTuple):
    """A text and its place in the units of the drawing."""

    words: str
    left: float
    top: float
    right: float
    bottom: float


def boxes(markup: str) -> tuple[list[Box], list[Box]]:
    """Every text and every drawn rectangle of a drawing, with the shifts of their groups added."""
    shifts, texts, frames = [(0.0, 0.0)], [], []
    for group, end, text, words, frame in (found.groups() for found in _TAG.finditer(markup)):
        if end:
            shifts.pop()
        elif group is not None:
            moved = re.search(r"translate\(([-\d.]+)[ ,]([-\d.]+)", group)
            x, y = (float(moved[1]), float(moved[2])) if moved else (0.0, 0.0)
            shifts.append((shifts[-1][0] + x, shifts[-1][1] + y))
        elif text is not None:
            texts.append(_box(dict(_ATTRIBUTE.findall(text)), html.unescape(words), *shifts[-1]))
        elif "k-hit" not in frame:
            given = dict(_ATTRIBUTE.findall(frame))
            x, y = float(given["x"]) + shifts[-1][0], float(given["y"]) + shifts[-1][1]
            frames.append(Box("", x, y, x + float(given["width"]), y + float(given["height"])))
    return [box for box in texts if box.words.strip()], frames


def _box(attributes: dict[str, str], words: str, right: float, down: float) -> Box:
    size = float(attributes.get("font-size", 13))
    wide = text_width(words, size, attributes["class"])
    x, y = float(attributes["x"]) + right, float(attributes["y"]) + down
    x -= {"start": 0, "middle": wide / 2, "end": wide}[attributes.get("text-anchor", "start")]
    spare = wide * (1 - ESTIMATE) / 2
    return Box(words, x + spare, y - ABOVE * size, x + wide - spare, y + BELOW * size)


def faults(drawing: Drawing) -> Iterator[tuple[str, str, str, float]]:
    """What is wrong: (kind, words, other words or "", by how many units).

    "outside" runs out of the drawing, "touch" stands nearer than APART to another text in its line, "box" is wider
    than the smallest rectangle that it is centred in.
    """
    texts, frames = boxes(drawing.markup)
    for box in texts:
        over = max(-box.left, box.right - drawing.width, -box.top, box.bottom - drawing.height)
        if over > 1:
            yield "outside", box.words, "", round(over, 1)
        frame = _frame(box, frames)
        if frame and box.right - box.left > frame.right - frame.left + 1:
            yield "box", box.words, "", round(box.right - box.left - (frame.right - frame.left), 1)
    texts.sort(key=lambda box: box.top)
    for index, a in enumerate(texts):
        for b in texts[index + 1 :]:
            if b.top >= a.bottom - 1:
                break
            shared = min(a.right, b.right) - max(a.left, b.left)
            if shared > -APART and a != b:  # the same words at the same place: drawn anew over what was there
                yield "touch", a.words, b.words, round(shared, 1)


def _frame(text: Box, frames: list[Box]) -> Box | None:
    """The smallest rectangle that a text stands in, if it is centred there."""
    x, y = (text.left + text.right) / 2, (text.top + text.bottom) / 2
    around = [f for f in frames if f.left < x < f.right and f.top < y < f.bottom]
    around = [f for f in around if f.right - f.left > 10 and f.bottom - f.top > 8]
    frame = min(around, key=lambda f: (f.right - f.left) * (f.bottom - f.top), default=None)
    return frame if frame and abs((frame.left + frame.right) / 2 - x) < 3 else None
