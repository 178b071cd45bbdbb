"""Figure of the page "How to read the pictures": each kind of thing as the drawing kit draws it, and its states."""

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit

from . import figure

_EXAMPLES = {
    "parameters": "a matrix",
    "hidden": "a token’s numbers",
    "local": "the last 128 tokens",
    "global": "the whole context",
    "engram": "of pairs and triples",
    "selected": "what is read",
    "changed": "by you, or after it",
    "error": "far from exact",
}


@figure("picture-language")
def language() -> Picture:
    """All kinds as boxes, then the states a box can be in and the shades of numbers."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        across, gap, tall = (2 if canvas.narrow else 4), 10, 46
        cell = (width - gap * (across - 1)) / across
        y = kit.heading(canvas, 0, 0, "Kinds", "one colour each, in every picture")
        for index, (kind, words) in enumerate(kit.KINDS.items()):
            row, column = divmod(index, across)
            kit.box(canvas, column * (cell + gap), y + row * (tall + gap), cell, tall, words, _EXAMPLES[kind], kind)
        y += (tall + gap) * -(-len(kit.KINDS) // across) + 10
        y = kit.heading(canvas, 0, y, "States", "of a thing of any kind")
        for index, (state, words) in enumerate((("", "there"), ("selected", "in use"), ("off", "not there"))):
            third = (width - 2 * gap) / 3
            kit.box(canvas, index * (third + gap), y, third, 34, words, kind="hidden", state=state)
        y = kit.heading(canvas, 0, y + 54, "Numbers", "colour above zero, grey below; stronger is larger")
        values = [(index - 5) / 5 for index in range(11)]
        step = width / len(values)
        y = kit.heat(canvas, 0, y, [values], step, "hidden", height=24)
        for place, words in ((0, "−1"), (5, "0"), (10, "1")):
            canvas.text((place + 0.5) * step, y + 15, words, "k-muted", size=SMALL)
        canvas.height = y + 22
        return canvas

    kinds = ", ".join(kit.KINDS.values())
    description = f"Boxes of the kinds {kinds}; a box that is there, in use, not there; shades of numbers from −1 to 1."
    return draw(paint, "What colours and frames mean", description, {"kinds": list(kit.KINDS)})
