"""The released sizes in the `engram` widget: 24 rows of a table with hundreds of millions, for five compressed ids."""

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import grouped
from deepseek_edu.reference import engram

from .memo import remembered
from .parts import Metric, Metrics, Prose, Table, View

PAD = 2
IDS = (0.0, 17.0, 4242.0, 99091.0, 5.0)


@remembered(1)
def released() -> tuple[ModelConfig, dict]:
    """The released configuration and its primes."""
    config = ModelConfig.v41_flash()
    return config, engram.prime_moduli(config)


def real_view(ids: tuple[float, ...], layer: int, token: int) -> View:
    """The rows of one position, counted from 1, in the table of one layer."""
    config, all_primes = released()
    compressed = np.array([round(number) for number in ids])
    size, primes = config.engram_max_ngram_size, all_primes[layer]
    history = engram.ngram_history(compressed, [engram.NO_TOKEN] * (size - 1), size, PAD)
    multipliers = engram.hash_multipliers(layer, config)
    rows = engram.hash_rows(history, multipliers, primes)[token - 1].tolist()
    flat = [prime for heads in primes for prime in heads]
    total = sum(flat)
    starts = [sum(flat[:index]) for index in range(len(flat))]
    window = history[token - 1].tolist()
    width = config.engram_head_dim
    metrics = Metrics(
        (
            Metric(f"Rows in layer {layer}", total, grouped(total), note=f"sum of {len(flat)} primes", role="result"),
            Metric("Lookups for a token", len(flat), note=f"{len(primes)} orders × {len(primes[0])} heads"),
            Metric("Numbers read", len(flat) * width, grouped(len(flat) * width), note=f"{len(flat)} rows × {width}"),
            Metric("Compressed ids", config.engram_compressed_vocab_size, grouped(config.engram_compressed_vocab_size),
                   note=f"of {grouped(config.vocab_size)} token ids"),
        ),
        "Released sizes",
    )  # fmt: skip
    factors = ", ".join(grouped(int(m)) for m in multipliers)
    different = sum(len(heads) for one in all_primes.values() for heads in one)
    prose = Prose(
        f"The multipliers of layer {layer}, newest token first: {factors}. They are odd, and so small that no product "
        f"leaves 64 bits. The primes of both layers are {different} different ones, taken in order from "
        f"{grouped(all_primes[min(all_primes)][0][0])} up. The tables themselves are not here: this one holds "
        f"{total * width / 1e9:.1f} billion numbers."
    )
    table = Table(
        "The rows of this token",
        ("Group", "Head", "Prime", "Remainder", "Offset", "Row"),
        tuple(
            (f"{index // len(primes[0]) + 2}-gram", index % len(primes[0]) + 1, flat[index], row - starts[index],
             starts[index], row)
            for index, row in enumerate(rows)
        ),
        folded=True,
    )  # fmt: skip
    picture = real_picture(compressed.tolist(), token - 1, window, primes, rows, starts, layer, size)
    return View(
        (picture, metrics, prose, table),
        f"Layer {layer}, token {token}: ids {', '.join(map(grouped, reversed(window)))} (oldest first) read "
        f"{len(rows)} "
        f"of {grouped(total)} rows; the first are {', '.join(grouped(row) for row in rows[:3])}.",
    )


def real_picture(ids, at: int, window, primes, rows, starts, layer: int, size: int) -> Picture:
    """The window over the ids, and for each order the rows of its heads with their place in the head's stretch."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        with canvas.group():
            y = kit.legend(canvas, ["engram", ("k-selected", "place in the head’s stretch")]) + 6
        cell = min(72.0, canvas.width / (len(ids) + size - 1))
        shown = [""] * (size - 1) + [grouped(number) for number in ids]
        for index, word in enumerate(shown):
            used = at <= index < at + size
            back = at + size - 1 - index
            words = grouped(window[back]) if used else word
            kind = "engram" if used else ""
            place = index - size + 2
            with canvas.group(index * cell, y) if place < 1 else canvas.pick("token_real", place, index * cell, y):
                off = (0,) if not word else ()
                kit.cells(canvas, 0, 0, [words if word else "pad"], cell, 30, kind, off=off, size=SMALL)
                if index == at + size - 1:
                    canvas.rect(1, 0, cell - 2, 30, "k-mark", 3)
        y += 44
        heads = len(primes[0])
        columns = 4 if narrow else heads
        left, wide = 0.0 if narrow else 56.0, 83.0
        for order in range(len(primes)):
            with canvas.group(0, y):
                note = f"{grouped(primes[order][0])} rows and more for each head" if narrow else ""
                if narrow:
                    kit.heading(canvas, 0, 0, f"{order + 2}-gram", note)
                else:
                    canvas.text(0, 19, f"{order + 2}-gram", "k-label", "start")
            y += 24 if narrow else 0
            places = [(left + head % columns * wide, head // columns * 44.0) for head in range(heads)]
            with canvas.group(0, y):
                for x, down in places:
                    canvas.rect(x + 1, down, wide - 2, 28, "k-box k-engram", 3)
                    canvas.rect(x + 4, down + 32, wide - 8, 4, "k-ground", 1)
            with canvas.group(0, y):
                for head, (x, down) in enumerate(places):
                    index = order * heads + head
                    part = (rows[index] - starts[index]) / primes[order][head]
                    canvas.text(x + wide / 2, down + 18, grouped(rows[index]), size=SMALL)
                    canvas.rect(round(x + 4 + (wide - 12) * part), down + 30, 4, 8, "k-selected", 1)
            y += 44 * -(-heads // columns) + 6
        canvas.height = y
        return canvas

    description = (
        f"Compressed ids {', '.join(map(grouped, ids))}; the window at position {at + 1} holds, newest first, "
        f"{', '.join(map(grouped, window))}. Layer {layer} reads {len(rows)} rows, the first at {grouped(rows[0])}."
    )
    raw = {"window": window, "rows": rows, "primes": primes, "sum": sum(map(sum, primes))}
    return draw(paint, "Rows at the released size", description, raw)
