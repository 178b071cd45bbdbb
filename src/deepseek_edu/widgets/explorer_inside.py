"""Pictures beside the explorer's map: the inside of a layer, the work of a prefill, the values of a followed token."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import counted, grouped, show


@dataclass(frozen=True)
class Box:
    """A step inside a layer; `part` is what a click on it picks."""

    title: str
    note: str
    part: str
    kind: str = "parameters"
    there: bool = True


def boxes(config, plan) -> list[Box]:
    """What happens in a layer, in order."""
    c, v4, draft = config, config.generation == "v4", plan.side == "draft"
    makes, chooses = plan.mode in ("full", "csa", "hca"), plan.mode in ("full", "reindex", "csa")
    read = (
        c.window_size
        if draft or not plan.ratio
        else f"{c.window_size} + {'all' if plan.mode == 'hca' else c.index_topk}"
    )
    rows = (c.engram_max_ngram_size - 1) * c.engram_n_heads
    routed, k = (
        (c.dspark_n_routed_experts, c.dspark_n_activated_experts)
        if draft
        else (c.n_routed_experts, c.n_activated_experts)
    )
    group = "1 per token" if plan.ratio == 1 else f"1 per {plan.ratio} tokens"
    first = Box("Engram", f"{rows} rows of {c.engram_head_dim}", "engram", "engram", plan.engram is not None)
    if v4:
        first = Box("Streams", f"{c.hc_mult} × {grouped(c.dim)}", "mhc", "hidden")
    collapse = Box("Collapse", f"{c.hc_mult} × {grouped(c.dim)} to {grouped(c.dim)}", "mhc", "hidden")
    expand = Box("Expand", f"back to {c.hc_mult} × {grouped(c.dim)}", "mhc", "hidden")
    return [
        first,
        collapse,
        Box("Query", f"{c.n_heads} heads of {c.head_dim}", "attention"),
        Box("Compressor", group if makes else "none here", "compressor", "global", makes),
        Box("Indexer", f"picks {grouped(c.index_topk)}" if chooses else "none here", "indexer", "selected", chooses),
        Box("Attention", f"reads {read}" + (f" + {c.dspark_block_size}" if draft else ""), "attention", "local"),
        Box("Output", f"{c.o_groups} × {grouped(c.o_lora_rank)} to {grouped(c.dim)}", "attention"),
        expand,
        collapse,
        Box(
            "Router" if not plan.hash_routed else "Expert table",
            f"{routed} scores" if not plan.hash_routed else f"{k} per id",
            "router",
        ),
        Box("Experts", f"{k} + {c.n_shared_experts} shared", "experts"),
        expand,
    ]


def inside_picture(config, plan, control: str, title: str) -> Picture:
    """The steps of a layer in reading order, six or three to a row; dashed ones are not there."""
    steps = boxes(config, plan)

    def paint(width: float) -> Canvas:
        across = 3 if width < 500 else 6
        gap, tall, lead = 14.0, 44.0, 16.0
        step = (width - 2 + gap) / across
        canvas = Canvas(width, 26 + (tall + lead) * len(steps) / across - lead + 2)
        with canvas.group():
            kit.heading(canvas, 0, 0, title, "" if canvas.narrow else "inside, in order; dashed: not in this layer")
        with canvas.group():
            for index, box in enumerate(steps):
                x, y = 1 + index % across * step, 26 + index // across * (tall + lead)
                wide = step - gap
                if box.kind == "selected" and box.there:
                    canvas.rect(x, y, wide, tall, "k-selected", 5)
                    canvas.text(x + wide / 2, y + tall / 2 - 2, box.title, "k-text--strong")
                    canvas.text(
                        x + wide / 2, y + tall / 2 + 13, kit.fit(box.note, wide - 2, SMALL), "k-muted", size=SMALL
                    )
                else:
                    kit.box(
                        canvas,
                        x,
                        y,
                        wide,
                        tall,
                        box.title,
                        box.note,
                        box.kind if box.there else "",
                        "" if box.there else "off",
                    )
                if index % across < across - 1:
                    canvas.arrow(x + wide + 2, y + tall / 2, x + step - 2, y + tall / 2, "k-hidden", 1.5, 6)
                kit.hit(canvas, control, box.part, x, y, wide, tall)
        return canvas

    there = ", ".join(f"{box.title.lower()} ({box.note})" for box in steps if box.there)
    return draw(paint, f"Inside {title}", f"In order: {there}.", [[box.title, box.note, box.there] for box in steps])


def prefill_picture(counts: dict[str, int], prompt: int) -> Picture:
    """Layer-tokens of a prefill with and without skipping the decoder."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 84)
        y = kit.heading(canvas, 0, 0, "Layers × tokens of this prefill", f"prompt of {counted(prompt, 'token')}")
        items = [
            (name.capitalize(), count, grouped(count), "k-parameters" if index else "k-negative")
            for index, (name, count) in enumerate(counts.items())
        ]
        canvas.height = kit.bars(canvas, 0, y + 2, width, items, 126) + 2
        return canvas

    words = "; ".join(f"{name}: {grouped(count)}" for name, count in counts.items())
    return draw(paint, "Work of a prefill", f"Two bars. {words}.", dict(counts))


@dataclass(frozen=True)
class Shown:
    """Numbers of a followed token at a stop.

    Attributes:
        name: what they are.
        tiny, real: shape in the tiny model and in V4.1-Flash.
        values: the numbers, one row.
        kind: one of `kit.KINDS`.
        marks: indices that were chosen.
        words: content of the cells, where they are few.
        off: indices that cannot be chosen.
        columns: whether the values stand as columns, numbered from 0, instead of shades.
    """

    name: str
    tiny: str
    real: str
    values: tuple[float, ...]
    kind: str = "hidden"
    marks: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    off: tuple[int, ...] = ()
    columns: bool = False


_AREA, _TALL = 328.0, 44.0


def values_picture(title: str, rows: Sequence[Shown]) -> Picture:
    """Shapes and values of a followed token: a strip of shades for each, its first numbers, and what was chosen."""

    def paint(width: float) -> Canvas:
        narrow = width < 500
        canvas = Canvas(width, 10)
        with canvas.group():
            y = kit.heading(canvas, 2, 0, title) + 8
        for shown in rows:
            with canvas.group(2, y):
                canvas.text(0, 12, shown.name, "k-text--strong", "start")
                canvas.text(0, 29, f"tiny {shown.tiny}, V4.1-Flash {shown.real}", "k-muted", "start", SMALL)
            with canvas.group(2, y + (42 if shown.columns else 36)):
                _columns(canvas, shown) if shown.columns else _strip(canvas, shown)
            numbers = _first_numbers(shown)
            if shown.columns:
                y += _TALL + 74
            elif not numbers:
                y += 78
            elif narrow:
                canvas.text(2, y + 82, numbers, "k-label", "start", SMALL)
                y += 98
            else:
                canvas.text(_AREA + 24, y + 53, numbers, "k-label", "start", SMALL)
                y += 78
        canvas.height = y
        return canvas

    words = "; ".join(f"{shown.name}, {shown.tiny}" for shown in rows) or "nothing is computed here"
    raw = [{"name": s.name, "values": list(s.values), "marks": list(s.marks), "off": list(s.off)} for s in rows]
    return draw(paint, title, f"Values of the tiny model: {words}.", raw)


def _strip(canvas: Canvas, shown: Shown) -> None:
    count = max(1, len(shown.values))
    cell = min(52.0 if shown.words else 40.0, _AREA / count)
    if shown.words:
        top = max(map(abs, shown.values), default=1.0) or 1.0
        strengths = [round(abs(value) / top, 1) for value in shown.values]
        kind = "" if shown.kind == "selected" else shown.kind
        inside = _fits(shown, cell)
        kit.cells(canvas, 0, 0, shown.words if inside else [""] * count, cell, 28, kind, strengths if kind else ())
        for index, word in enumerate(() if inside else shown.words):
            canvas.text((index + 0.5) * cell, 41, word, "k-muted", size=SMALL) if word else None
    else:
        kit.heat(canvas, 0, 0, [_steps(shown.values)], cell, shown.kind, 1.0, 28)
    for index in shown.marks:
        kit.ring(canvas, index * cell + 1, 0, cell - 2, 28, "k-selected", 2.5)


def _fits(shown: Shown, cell: float) -> bool:
    """Whether the words have room in their cells; if not they stand below."""
    return all(kit.text_width(word, SMALL) <= cell - 6 for word in shown.words)


def _columns(canvas: Canvas, shown: Shown) -> None:
    """Values as columns, negative ones downwards; chosen ones in frames, those that cannot be chosen faint."""
    count = max(1, len(shown.values))
    cell = min(40.0, _AREA / count)
    high = max(0.0, *shown.values)
    low = min(0.0, *shown.values)
    scale = _TALL / ((high - low) or 1.0)
    zero = high * scale
    for index, value in enumerate(shown.values):
        top = zero - max(0.0, value) * scale
        strength = 0.25 if index in shown.off else 1
        canvas.rect(index * cell + 2, top, cell - 4, max(1.0, abs(value) * scale), f"k-{shown.kind}", 1, strength)
        every = 1 if cell > 18 else 4
        if index % every == 0:
            canvas.text((index + 0.5) * cell, _TALL + 16, index, "k-muted", size=SMALL)
    canvas.line(0, zero, count * cell, zero, "k-axis")
    for index in shown.marks:
        kit.ring(canvas, index * cell, -3, cell, _TALL + 6, "k-selected", 2)


def _steps(values: Sequence[float]) -> list[float]:
    """Values against the largest of them, in tenths: more shades no eye can tell apart."""
    top = float(np.max(np.abs(values))) or 1.0
    return [round(float(value) / top, 1) for value in values]


def _first_numbers(shown: Shown) -> str:
    if shown.words or shown.columns:
        return ""
    first = ", ".join(show(float(value) + 0.0, 3) for value in shown.values[:5])  # + 0.0: no sign before a zero
    return first + (", …" if len(shown.values) > 5 else "")


__all__ = ["Box", "Shown", "boxes", "inside_picture", "prefill_picture", "values_picture"]
