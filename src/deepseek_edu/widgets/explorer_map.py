"""The map of a model: its layers in rows, under them who chooses and whose memory is read.

Drawn from `config.schedule()` alone, for any configuration. Under the layers of a row run two bands: the upper one is
a Top-k choice and reaches over the layers that use it; the lower one is a memory of compressed entries and reaches over
the layers that read it, as thick as its bytes per token. A plug leads down from the layer that makes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import counted, grouped

from .explorer_layout import CELL, CHIP, CHOICE, GAP, PLUG, Layout, Row, Span, choices, memories
from .memo import remembered


@dataclass(frozen=True)
class Marks:
    """What is strong on the map.

    Attributes:
        picked: names of boxes in the reader's colour.
        readers: layers whose reading is drawn as an arrow.
        choosers: layers whose choices are framed.
        memories: owners whose memories are framed.
        sources: boxes something is read from, each with the style of what that is.
        path: boxes the token has passed.
        rows: whether every layer is meant; the rows are framed then.
    """

    picked: tuple[str, ...] = ()
    readers: tuple[int, ...] = ()
    choosers: tuple[int, ...] = ()
    memories: tuple[int, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    path: tuple[str, ...] = ()
    rows: bool = False


def map_picture(
    config, marks: Marks, phase: str, control: str, words: str, raw: object, names: Mapping[str, str] | None = None
) -> Picture:
    """Draw the map. `control` is what a click sets, or ""; `phase` says which parts run; `names` are of boxes."""

    def paint(width: float) -> Canvas:
        layout, ground = _ground(config, width, phase)
        canvas = Canvas(width, layout.height)
        canvas.add(ground)
        _marks(canvas, layout, marks)
        if control:
            with canvas.group():
                for name, *place in layout.boxes():
                    kit.hit(canvas, control, name, *place, (names or {}).get(name, ""))
        return canvas

    return draw(paint, "Map of the model", words, raw)


@remembered(12)
def _ground(config, width: float, phase: str) -> tuple[Layout, str]:
    """Layout and drawing of everything that no choice of the reader moves."""
    layout = Layout(config, width)
    canvas = Canvas(width, layout.height)
    with canvas.group():
        _legend(canvas, config)
        _flow(canvas, layout)
        _bands(canvas, layout)
    for row in layout.rows:
        with canvas.group(0, row.y):
            _layers(canvas, layout, row, phase)
    with canvas.group():
        _ends(canvas, layout, phase)
    return layout, canvas.markup()


def _legend(canvas: Canvas, config) -> None:
    items = [
        ("k-box k-parameters", "layer"),
        "local",
        ("k-selected", "Top-k choice"),
        ("k-global", "global KV"),
        ("k-hidden", "path of a token"),
        ("k-changed", "picked"),
    ]
    kit.legend(canvas, [*items[:-1], "engram", items[-1]] if config.engram_layer_ids else items)


def _flow(canvas: Canvas, layout: Layout) -> None:
    """The token's path: input, row after row, output."""
    style, left, right = "k-hidden", 3.0, layout.width - 3.0
    x, y, width, height = layout.end("embedding")
    first = layout.rows[0]
    below = y + height + 8
    canvas.polyline(
        [(x + width / 2, y + height), (x + width / 2, below), (left, below), (left, first.y + CELL / 2)], style, 2
    )
    _into(canvas, left, first)
    for row, following in zip(layout.rows, [*layout.rows[1:], None], strict=True):
        for plan in row.plans[:-1]:
            edge = row.x(plan.index) + row.width
            canvas.line(edge, row.y + CELL / 2, edge + 6, row.y + CELL / 2, style, 2)
        edge, turn = row.x(row.plans[-1].index) + row.width, row.bottom + 10
        target = following.y + CELL / 2 if following else layout.bottom + 20
        points = [(edge, row.y + CELL / 2), (right, row.y + CELL / 2), (right, turn), (left, turn), (left, target)]
        canvas.polyline(points, style, 2)
        if following:
            _into(canvas, left, following)
        else:
            canvas.arrow(left - 1, target, layout.margin + 1, target, style, 2, 7)


def _into(canvas: Canvas, left: float, row: Row) -> None:
    canvas.arrow(left - 1, row.y + CELL / 2, row.x(row.plans[0].index) + 1, row.y + CELL / 2, "k-hidden", 2, 7)


def _label(words: Sequence[str], room: float) -> str:
    return next((text for text in words if kit.text_width(text, SMALL) <= room), "")


def _bands(canvas: Canvas, layout: Layout) -> None:
    for row in layout.rows:
        for plan in row.plans:
            if plan.owner is not None:
                canvas.line(
                    row.x(plan.index) + row.width / 2,
                    row.y + CELL,
                    row.x(plan.index) + row.width / 2,
                    row.memory,
                    "k-global",
                    1,
                )
        for span in choices(layout.config):
            place = row.span(span.first, span.last)
            if place:
                x, width, begins = place
                inset = _inset(layout.config, span, begins)
                canvas.rect(x + inset, row.choice, width - inset, CHOICE, "k-selected", 3)
                text = _label(span.words, width - inset - 6)
                canvas.text(
                    x + inset + (width - inset) / 2, row.choice + 12, text, "k-label", size=SMALL
                ) if text else None
                if begins:
                    canvas.rect(x + inset + 4, row.y + CELL, 4, GAP, "k-result")
        for span in memories(layout.config):
            place = row.span(span.first, span.last)
            if place:
                x, width, begins = place
                canvas.rect(x, row.memory, width, span.thickness, "k-box k-global", 3)
                if begins:
                    canvas.rect(x, row.y + CELL, PLUG, row.memory - row.y - CELL + 2, "k-global", 1)
                text = _label(span.words, width - 4) if span.thickness > 12 else ""
                canvas.text(
                    x + width / 2, row.memory + span.thickness / 2 + 4, text, "k-label", size=SMALL
                ) if text else None


def _heading(row: Row, config) -> tuple[str, str]:
    first, last = row.plans[0], row.plans[-1]
    span = f"layers {first.index} to {last.index}"
    if config.generation == "v4":
        return span.capitalize(), ""
    if first.side != last.side:
        return "Encoder, then decoder", f"the decoder begins at layer {config.decoder_start}"
    return first.side.capitalize(), span


def _layers(canvas: Canvas, layout: Layout, row: Row, phase: str) -> None:
    """The boxes of a row, in a group at its top."""
    config, window = layout.config, layout.config.window_size
    skips = phase == "prefill" and config.generation == "v4.1"
    title, note = _heading(row, config)
    if skips and row.plans[-1].side == "decoder":
        note = f"{note}; prefill runs it for the last {window} tokens only"
        if layout.narrow:
            note = f"prefill: last {window} tokens only"
    head = -6 - (CHIP if any(p.engram is not None for p in row.plans) else 0)
    canvas.text(layout.margin + 3, head, title, "k-text--strong", "start")
    after = layout.margin + 10 + kit.text_width(title, style="k-text--strong") // 1
    canvas.text(after, head, note, "k-muted", "start", SMALL)
    for plan in row.plans:
        x = row.x(plan.index)
        off = skips and plan.side == "decoder"
        canvas.rect(x, 0, row.width, CELL, "k-box k-box--off" if off else "k-box k-parameters", 5)
        canvas.rect(x + 4, CELL - 8, row.width - 8, 5, "k-local", 1.5, 0.45 if off else 1)
        canvas.text(x + row.width / 2, 18, plan.index, "k-muted" if off else "k-text--strong")
        if off and plan.mode == "full":
            canvas.rect(x, 3, PLUG / 2, CELL - 3, "k-global", 1)
    _engrams(canvas, row)


def _engrams(canvas: Canvas, row: Row) -> None:
    """Above the boxes: layers with an n-gram memory; neighbours share a box."""
    layers = [plan.index for plan in row.plans if plan.engram is not None]
    for layer in layers:
        middle = row.x(layer) + row.width / 2
        canvas.line(middle, -CHIP + 19, middle, 0, "k-engram", 2)
        if layer - 1 not in layers:
            last = layer + 1 if layer + 1 in layers else layer
            end = row.x(last) + row.width / 2
            canvas.rect(middle - 27, -CHIP, end - middle + 54, 19, "k-box k-engram", 5)
            canvas.text((middle + end) / 2, -CHIP + 13.5, "Engram", "k-label", size=SMALL)


def _ends(canvas: Canvas, layout: Layout, phase: str) -> None:
    c = layout.config
    size = f"{grouped(c.vocab_size)} × {grouped(c.dim)}"
    kit.box(canvas, *layout.end("embedding"), "Embedding", size, "parameters")
    if c.vision_n_layers:
        kit.box(
            canvas,
            *layout.end("vision"),
            "Vision tower",
            counted(c.vision_n_layers, "layer"),
            "parameters",
        )
        (x, y, _, height), (_, _, reach, _) = layout.end("vision"), layout.end("embedding")
        canvas.arrow(x - 4, y + height / 2, layout.margin + reach + 4, y + height / 2, "k-hidden", 2, 7)
        if not layout.narrow:
            middle = (x + layout.margin + reach) / 2
            canvas.text(middle, y + height / 2 - 6, "vectors of images", "k-muted", size=SMALL)
    prefill = phase == "prefill"
    kit.box(canvas, *layout.end("head"), "Head", "last token only" if prefill else size, "parameters")
    for stage in range(c.n_mtp_layers):
        off = "off" if prefill else ""
        kit.box(canvas, *layout.end(f"draft-{stage}"), f"Draft {stage}", kind="" if off else "parameters", state=off)
    if c.n_mtp_layers:
        x, y, _, height = layout.end("draft-0")
        reads = ", ".join(map(str, c.dspark_target_layer_ids))
        what = "output of" if c.generation == "v4" else "input of"
        words = f"reads the {what} layers {reads}; drafts {c.dspark_block_size} tokens"
        if layout.narrow:
            words = f"reads {reads}; drafts {c.dspark_block_size} tokens"
        canvas.text(x, y + height + 15, "only fills its windows" if prefill else words, "k-muted", "start", SMALL)
        hx, _, width, _ = layout.end("head")
        if not layout.narrow:
            canvas.text((hx + width + x) / 2 - 3, y + 16, "next token", "k-muted", size=SMALL)
        canvas.arrow(hx + width + 3, y + height / 2, x - 4, y + height / 2, "k-hidden", 2, 7)


def _marks(canvas: Canvas, layout: Layout, marks: Marks) -> None:
    """Everything strong; each mark is a group of its own that is moved to its place, so that states share them."""
    places = {name: place for name, *place in layout.boxes()}
    for spans, kept, style in (
        (memories(layout.config), marks.memories, "k-global"),
        (choices(layout.config), marks.choosers, "k-result"),
    ):
        for span in spans:
            if span.first not in kept:
                continue
            for row in layout.rows:
                place = row.span(span.first, span.last)
                if place:
                    x, width, begins = place
                    y = row.memory if style == "k-global" else row.choice
                    inset = _inset(layout.config, span, begins) if style != "k-global" else 0
                    with canvas.group(x + inset, y):
                        if style == "k-global":
                            canvas.rect(0, 0, width, span.thickness, style, 3, 0.18)
                        kit.ring(canvas, 0, 0, width - inset, span.thickness, style, 2)
    if marks.rows:
        with canvas.group():
            for row in layout.rows:
                first, last = row.x(row.plans[0].index), row.x(row.plans[-1].index) + row.width
                kit.ring(canvas, first - 3, row.y - 3, last - first + 6, CELL + 6, "k-changed", 3)
    tops = []
    for reader in marks.readers:
        row = layout.row_of(reader)
        tops.append((row.x(reader) + row.width / 2, row.y + CELL))

    def read(x, y):
        foot = y + GAP + CHOICE + GAP
        canvas.line(x, foot, x, foot - GAP, "k-global", 3)
        canvas.polygon([(x - 6, y + GAP), (x + 6, y + GAP), (x, y - 1)], "k-global")

    _each(canvas, tops, read)
    reads = [(tuple(name for name, of in marks.sources if of == style), style, 2, 0) for style in _READ]
    for names, style, line, strength in (
        *reads,
        (marks.path, "k-hidden", 0, 0.35),
        (marks.picked, "k-changed", 3, 0.12),
    ):

        def mark(x, y, width, height, style=style, line=line, strength=strength):
            if strength:
                canvas.rect(x, y, width, height, style, 5, strength)
            if line:
                kit.ring(canvas, x - 1, y - 1, width + 2, height + 2, style, line)

        _each(canvas, [places[name] for name in names], mark)


_READ = ("k-hidden", "k-global", "k-result")


def _each(canvas: Canvas, places: Sequence[Sequence[float]], paint) -> None:
    """Paint something at each place: one in a group that is moved there, several in one group."""
    if len(places) == 1:
        x, y, *size = places[0]
        with canvas.group(x, y):
            paint(0, 0, *size)
    elif places:
        with canvas.group():
            for place in places:
                paint(*place)


def _inset(config, span: Span, begins: bool) -> float:
    """Room for the plug of the memory, where the layer that chooses makes entries too."""
    return PLUG + 2 if begins and span.first in config.kv_source_layers else 0
