"""Picture of the toy in the `accounting` widget: every stored vector as a box whose area is its bytes."""

from deepseek_edu.accounting import choices
from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import grouped

ROW = 52
TALL = 34  # of a vector in 16 bits


def toy_picture(toy: choices.Toy, chosen: tuple[int, ...], counted: list[tuple[str, str, int, int]]) -> Picture:
    """Layers by positions, then what each choice leaves.

    Args:
        toy: with all choices made.
        chosen: entries that the query reads.
        counted: (choice, setting, bytes stored, bytes read) of every step.
    """
    stored, read = counted[-1][2:]

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            items = [("k-box k-global", "stored, in bytes"), ("k-box k-box--off", "read from an owner")]
            y = kit.legend(canvas, [*items, ("k-result", "read for one query")]) + 4
        y = _grid(canvas, toy, chosen, y)
        y = _bars(canvas, counted, y + 10)
        canvas.height = y
        return canvas

    description = (
        f"{toy.layers} layers by {toy.positions} positions. Owners: {toy.owners}, with "
        f"{choices.entries_stored(toy)} entries each; {len(chosen)} of these are read in every layer. Stored after "
        "each choice: "
        + ", ".join(f"{name.lower()} {grouped(after)} bytes" for name, _, after, _ in counted)
        + f". Read: {grouped(read)} bytes."
    )
    steps = [{"choice": name, "stored": after, "read": moved} for name, _, after, moved in counted]
    return draw(paint, "The cache of a toy", description, {"steps": steps, "stored": stored, "chosen": list(chosen)})


def _grid(canvas: Canvas, toy: choices.Toy, chosen: tuple[int, ...], y: float) -> float:
    left, right = (54, 50) if canvas.narrow else (70, 104)
    column = (canvas.width - left - right) / toy.positions
    side = min(30.0, column / 2 - 2)
    with canvas.group():
        canvas.text(0, y + 12, "position", "k-muted", "start", SMALL)
        for position in range(toy.positions):
            canvas.text(left + (position + 0.5) * column, y + 12, position, "k-muted", size=SMALL)
        canvas.text(canvas.width, y + 12, "stored", "k-muted", "end", SMALL)
    y += 20
    size = choices.vector_bytes(toy.values, toy.bits)
    height = TALL * size / (2 * toy.values)
    bytes_of_owner = choices.stored_bytes(toy) // toy.owners
    for layer in range(toy.layers):
        owner = choices.owner_of(layer, toy.layers, toy.owners)
        mine = owner == layer
        with canvas.group(0, y):
            canvas.text(0, 22, f"layer {layer}", "k-label", "start")
            words = f"{bytes_of_owner} B" if mine else f"0 B, reads layer {owner}"
            if canvas.narrow and not mine:
                canvas.text(canvas.width, 15, "0 B, reads", "k-muted", "end", SMALL)
                canvas.text(canvas.width, 30, f"layer {owner}", "k-muted", "end", SMALL)
            else:
                canvas.text(canvas.width, 22, words, "k-text--strong" if mine else "k-muted", "end")
            canvas.line(left, ROW - 1, canvas.width, ROW - 1, "k-grid")
        with canvas.group(left, y):
            _entries(canvas, toy, chosen, column, side, height, size, mine)
        y += ROW
    return y


def _entries(
    canvas: Canvas,
    toy: choices.Toy,
    chosen: tuple[int, ...],
    column: float,
    side: float,
    height: float,
    size: int,
    mine: bool,
) -> None:
    """The entries of one layer: boxes side by side for key and value, one for a latent."""
    wide = toy.ratio * column
    for entry in range(choices.entries_stored(toy)):
        middle = (entry + 0.5) * wide
        if toy.ratio > 1:
            canvas.line(entry * wide + 8, 5, (entry + 1) * wide - 8, 5, "k-tick", 2)
        start = middle - toy.vectors * side / 2
        for vector in range(toy.vectors):
            style = "k-box k-global" if mine else "k-box k-box--off"
            top = 5 + TALL - height
            canvas.rect(start + vector * side + 1, top, side - 2, height, style, 2)
            if mine and height > 13 and side > 22:
                canvas.text(start + (vector + 0.5) * side, top + height / 2 + 4, size, size=SMALL)
        if entry in chosen:
            canvas.circle(middle, ROW - 7, 3.5, "k-result")


def _bars(canvas: Canvas, counted: list[tuple[str, str, int, int]], y: float) -> float:
    """Stored and read after every choice, side by side; under each other on a phone."""
    narrow = canvas.narrow
    left = 76 if narrow else 220
    half = (canvas.width - left) / 2
    top = max(max(stored, read) for _, _, stored, read in counted)
    with canvas.group():
        canvas.text(0, y + 14, "After each choice" if not narrow else "Choice", "k-text--strong", "start")
        canvas.text(left, y + 14, "bytes stored", "k-global k-text--strong", "start")
        canvas.text(
            left + half,
            y + 14,
            "bytes read" if narrow else "bytes read for one query",
            "k-result k-text--strong",
            "start",
        )
    y += 26
    before = None
    for name, words, stored, read in counted:
        with canvas.group(0, y):
            canvas.text(0, 15, name, "k-text--strong", "start")
            if not narrow:
                canvas.text(84, 15, words, "k-muted", "start", SMALL)
        for place, (value, style, old) in enumerate(
            ((stored, "k-global", before and before[0]), (read, "k-result", before and before[1]))
        ):
            _bar(canvas, left + place * half, y, half - (36 if narrow else 60), value, old, top, style)
        before = (stored, read)
        y += 26
    return y


def _bar(canvas: Canvas, x: float, y: float, room: float, value: int, old: int | None, top: int, style: str) -> None:
    """One bar with its number; where the last choice left more, the difference is dashed."""
    with canvas.group(x, y):
        length = max(1.5, room * value / top)
        if old and old > value:
            canvas.rect(length, 4, room * old / top - length, 14, "k-box k-box--off", 2)
        canvas.rect(0, 4, length, 14, style, 2)
        after = max(length, room * old / top if old else 0) + 5
        canvas.text(after, 15.5, value, "k-text--strong" if value != old else "k-muted", "start", SMALL)
