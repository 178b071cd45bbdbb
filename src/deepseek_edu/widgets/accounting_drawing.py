"""Pictures of the released models for the `accounting` widget. Areas and lengths are to scale, except on log axes."""

import math
from collections.abc import Callable, Mapping

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import linear, logarithmic
from deepseek_edu.drawing.numbers import grouped, show

GROUPS = (("k-parameters", "matrices"), ("k-hidden", "attention over entries"), ("k-global", "scan of index keys"))


def spaced(number: float) -> str:
    """A count with at most two decimals."""
    return grouped(number, 2, trim=True)


def squares_picture(per_token: Mapping[str, float]) -> Picture:
    """Bytes per token of each model as squares of that area."""
    names = list(per_token)
    largest = max(per_token.values())

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        side = 120.0 if canvas.narrow else 190.0
        y = kit.heading(canvas, 0, 0, "Cache for one token", "area is bytes") + 4
        floor = y + side
        sides = [side * math.sqrt(per_token[name] / largest) for name in names]
        room = (canvas.width - sides[0]) / (len(names) - 1)
        for index, name in enumerate(names):
            here = sides[index]
            left = 0.0 if not index else sides[0] + (index - 0.5) * room - here / 2 + 12
            last = index == len(names) - 1
            canvas.rect(left, floor - here, here, here, "k-selected" if last else "k-global", 2, 1 if last else 0.75)
            middle, size = left + here / 2, SMALL if canvas.narrow else 13
            middle = min(middle, canvas.width - kit.text_width(name, size, "k-text--strong") / 2)
            canvas.text(middle, floor + 18, name, "k-text--strong", size=size)
            canvas.text(middle, floor + 34, spaced(per_token[name]), "k-label", size=SMALL)
            if index:
                ratio = per_token[names[index - 1]] / per_token[name]
                canvas.text(middle, floor - here - 8, f"÷ {ratio:.3g}", "k-muted", size=SMALL)
        canvas.height = floor + 42
        return canvas

    words = ", ".join(f"{name} {spaced(size)}" for name, size in per_token.items())
    return draw(paint, "Cache bytes per token", f"Squares with the area of the bytes: {words}.", dict(per_token))


def context_picture(
    held: Mapping[str, float], windows: int, tokens: int, per_token: Mapping[str, float], words: Callable[[float], str]
) -> Picture:
    """Bytes by context on logarithmic axes, with the chosen context marked.

    Args:
        held: {model: bytes at this context}.
        windows: bytes of the windows of V4.1.
        tokens: the context.
        per_token: {model: bytes per token}.
        words: bytes as text.
    """
    low, high = 32, 2**20

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 300)
        narrow = canvas.narrow
        left, right, top, bottom = 52, width - (118 if narrow else 170), 44, 260
        x, y = logarithmic(low, high, left, right), logarithmic(2**13, 2**39, bottom, top)
        with canvas.group():
            kit.heading(canvas, 0, 0, "Cache of one conversation", "both axes are logarithmic")
            for power, label in ((13, "8 KiB"), (20, "1 MiB"), (30, "1 GiB")):
                canvas.line(left, y(2**power), right, y(2**power), "k-grid")
                canvas.text(left - 6, y(2**power) + 4, label, "k-muted", "end", SMALL)
            for power in (5, 10, 15, 20) if narrow else (5, 8, 11, 14, 17, 20):
                canvas.text(x(2**power), bottom + 18, spaced(2**power), "k-muted", size=SMALL)
            canvas.text((left + right) / 2, bottom + 36, "tokens", "k-label", size=SMALL)
            for name, size in per_token.items():
                style = "k-result" if name == "V4.1-Flash" else "k-global"
                start = max(low, 2**13 / size)
                canvas.polyline(
                    [(x(start), y(size * start)), (right, y(size * high))], style, 2.5 if "4.1" in name else 1.5
                )
            canvas.line(left, y(windows), right, y(windows), "k-local", 2, "5 4")
        with canvas.group(x(tokens)):
            canvas.line(0, top - 4, 0, bottom, "k-selected", 1.5)
            for name, size in held.items():
                if size >= 2**13:
                    canvas.circle(0, y(size), 3.5, "k-result" if name == "V4.1-Flash" else "k-global")
        for name, size in held.items():
            with canvas.group(right + 8, y(per_token[name] * high)):
                title = name.removesuffix("-Flash") if narrow else name
                canvas.text(0, 4, title, "k-text--strong", "start", SMALL)
                shown = words(size)
                canvas.text(
                    width - right - 8, 4, shown, "k-result k-text--strong" if "4.1" in name else "", "end", SMALL
                )
        with canvas.group():
            canvas.text(right + 8, y(windows) + 4, "Windows", "k-local k-text--strong", "start", SMALL)
            canvas.text(width, y(windows) + 4, words(windows), "k-local", "end", SMALL)
        return canvas

    description = f"With {spaced(tokens)} tokens: " + ", ".join(f"{name} {words(size)}" for name, size in held.items())
    description += f"; the windows of V4.1-Flash {words(windows)} at any length."
    return draw(paint, "Cache by context", description, {"tokens": tokens, "bytes": dict(held), "windows": windows})


def path_picture(steps: Mapping[str, float], owners: Mapping[int, tuple[float, float]], readers: int) -> Picture:
    """Bytes per token after each choice, and whose they are in the end; owners {layer: (entries, all)}."""
    names = {
        "a latent per layer": (f"{readers} latents, BF16", "each layer its own"),
        "compress": ("Compress", "encoder: 2 tokens, 1 entry"),
        "share": ("Share", f"{len(owners)} layers own entries"),
        "four bits": ("Four bits", "and a scale for 16"),
        "index keys": ("Index keys", "so that a query can select"),
    }

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        y = kit.heading(canvas, 0, 0, "V4.1-Flash, bytes per token", "after each choice") + 4
        left, row, before = (126, 34, 0.0) if narrow else (290, 30, 0.0)
        room = canvas.width - left - 58
        top = max(steps.values())
        for name, value in steps.items():
            title, note = names[name]
            canvas.text(0, y + 15, title, "k-text--strong", "start")
            if not narrow:
                canvas.text(128, y + 15, note, "k-muted", "start", SMALL)
            length = max(1.5, room * value / top)
            if before > value:
                canvas.rect(left, y + 3, room * before / top, 16, "k-box k-box--off", 2)
            canvas.rect(left, y + 3, length, 16, "k-selected" if name == "index keys" else "k-global", 2)
            canvas.text(canvas.width, y + 15, spaced(value), "k-text--strong", "end")
            before, y = value, y + row
        y = kit.heading(canvas, 0, y + 12, f"The {spaced(steps['index keys'])} bytes, by owner") + 2
        total = sum(size for _, size in owners.values())
        x, unit = 0.0, canvas.width / total
        for layer, (main, size) in owners.items():
            canvas.rect(x + 1, y, main * unit - 1, 34, "k-box k-global", 3)
            canvas.rect(x + main * unit, y, (size - main) * unit - 1, 34, "k-global", 3, kit.READABLE)
            canvas.text(x + main * unit / 2, y + 21, f"layer {layer}" if not narrow else layer, "k-text--strong")
            canvas.text(x + size * unit / 2, y + 50, spaced(size), "k-muted", size=SMALL)
            x += size * unit
        with canvas.group():
            items = [("k-box k-global", "entries"), ("k-global", "index keys")]
            canvas.height = kit.legend(canvas, items, 0, y + 58)
        return canvas

    description = "Bytes per token: " + ", ".join(f"{name} {spaced(value)}" for name, value in steps.items()) + "."
    raw = {"steps": dict(steps), "owners": {str(layer): list(sizes) for layer, sizes in owners.items()}}
    return draw(paint, f"The path to {spaced(steps['index keys'])} bytes", description, raw)


def prefill_picture(config, tokens: int, run: int, counts: Mapping[str, int], shares: Mapping[int, float]) -> Picture:
    """Layers by tokens: what runs, with all layers and with the decoder on the last window."""
    encoder, layers = config.decoder_start, config.n_layers

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        with canvas.group():
            y = kit.legend(canvas, [("k-hidden", "a layer meets a token"), ("k-box k-box--off", "skipped")]) + 6
        left, gap = (62, 16) if narrow else (96, 40)
        block = (canvas.width - left - gap) / 2
        names = [("every layer", "all layers", tokens), ("decoder skipped", "encoder–decoder", run)]
        tall = 74
        for index, (title, key, decoded) in enumerate(names):
            x = left + index * (block + gap)
            with canvas.group():
                canvas.text(x, y + 13, title, "k-text--strong", "start")
                if not index:
                    for place, words in enumerate((f"layers 0–{encoder - 1}", f"layers {encoder}–{layers - 1}")):
                        name = words.removeprefix("layers ") if narrow else words
                        canvas.text(0, y + 28 + place * (tall + 4) + tall / 2, name, "k-label", "start", SMALL)
                        role = ("encoder", "decoder")[place]
                        canvas.text(0, y + 43 + place * (tall + 4) + tall / 2, role, "k-muted", "start", SMALL)
                canvas.rect(x, y + 22, block, tall, "k-hidden", 3, 0.8)
                if decoded < tokens:
                    canvas.rect(x, y + 26 + tall, block, tall, "k-box k-box--off", 3)
            with canvas.group():
                strip = max(1.5, block * decoded / tokens)
                canvas.rect(x + block - strip, y + 26 + tall, strip, tall, "k-hidden", min(3, strip / 2), 0.8)
                bottom = y + 26 + 2 * tall
                canvas.text(x, bottom + 17, f"{spaced(tokens)} tokens →", "k-muted", "start", SMALL)
                canvas.text(x + block, bottom + (34 if narrow else 17), spaced(counts[key]), "k-text--strong", "end")
        y += 26 + 2 * tall + (47 if narrow else 30)
        canvas.height = _shares(canvas, y, tokens, shares)
        return canvas

    description = (
        f"{spaced(tokens)} tokens by {layers} layers. With all layers {spaced(counts['all layers'])} pairs are "
        f"evaluated; with the decoder on the last {run} tokens {spaced(counts['encoder–decoder'])}."
    )
    raw = {**counts, "shares": {str(context): share for context, share in shares.items()}}
    return draw(paint, "Prefill, block by block", description, raw)


def _shares(canvas: Canvas, y: float, tokens: int, shares: Mapping[int, float]) -> float:
    """Share of the evaluations that is left, for every length of the slider. Returns the y below."""
    y = kit.heading(canvas, 0, y, "Evaluations left", "% of all layers on all tokens")
    cell = canvas.width / len(shares)
    axis = linear(0, 1, 0, 56)
    floor = y + 76
    for index, (context, share) in enumerate(shares.items()):
        x = index * cell
        with canvas.group():
            canvas.rect(x + 2, floor - axis(share), cell - 4, axis(share), "k-hidden", 2, 0.8)
            if not canvas.narrow or index % 3 == 0:
                canvas.text(x + cell / 2, floor - axis(share) - 5, f"{100 * share:.0f}", "k-label", size=SMALL)
            _under(canvas, index, len(shares), context, x + cell / 2, floor + 16)
            kit.hit(canvas, "context", context.bit_length() - 1, x, floor - 72, cell, 74)
    with canvas.group(list(shares).index(tokens) * cell):
        canvas.rect(0, floor - 74, cell, 78, "k-mark", 4)
    return floor + 22


def decode_picture(table: Mapping[int, Mapping[str, float]], tokens: int, name: str) -> Picture:
    """Operations of one token for every context of the slider, stacked by what they are for."""
    stacks = {context: stack_of(parts) for context, parts in table.items()}
    top = 65e9

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        y = kit.heading(canvas, 0, 0, f"One token of {name}", "GFLOP in BF16 equivalents") + 2
        with canvas.group():
            y = kit.legend(canvas, list(GROUPS), 0, y)
        left, floor = 26, y + 216
        axis = linear(0, top, 0, 200)
        cell = (canvas.width - left) / len(stacks)
        with canvas.group():
            for giga in (0, 20, 40, 60):
                canvas.line(left, floor - axis(giga * 1e9), canvas.width, floor - axis(giga * 1e9), "k-grid")
                canvas.text(left - 6, floor - axis(giga * 1e9) + 4, giga, "k-muted", "end", SMALL)
        with canvas.group():
            for index, (context, stack) in enumerate(stacks.items()):
                x, base = left + index * cell, floor
                for (style, _), value in zip(GROUPS, stack, strict=True):
                    canvas.rect(x + 2, base - axis(value), cell - 4, axis(value), style, 1)
                    base -= axis(value)
                if not canvas.narrow or index % 3 == 0:
                    canvas.text(x + cell / 2, base - 5, f"{sum(stack) / 1e9:.0f}", "k-label", size=SMALL)
                _under(canvas, index, len(stacks), context, x + cell / 2, floor + 16)
                kit.hit(canvas, "context", context.bit_length() - 1, x, y + 10, cell, floor - y - 10)
        with canvas.group(left + list(stacks).index(tokens) * cell):
            canvas.rect(0, floor - axis(sum(stacks[tokens])) - 20, cell, axis(sum(stacks[tokens])) + 24, "k-mark", 4)
        canvas.text((left + canvas.width) / 2, floor + 34, "tokens of context", "k-label", size=SMALL)
        canvas.height = floor + 42
        return canvas

    now = stacks[tokens]
    description = f"With {spaced(tokens)} tokens of context: " + ", ".join(
        f"{words} {show(value / 1e9, 3)}" for (_, words), value in zip(GROUPS, now, strict=True)
    )
    raw = {"tokens": list(stacks), "stacks": [list(stack) for stack in stacks.values()]}
    return draw(paint, "Arithmetic of a decoded token", description + " GFLOP.", raw)


def _under(canvas: Canvas, index: int, count: int, context: int, x: float, y: float) -> None:
    """Some of the contexts under their columns; the last one ends at the edge."""
    last = index == count - 1
    if index % (5 if canvas.narrow else 3) == 0:
        canvas.text(canvas.width if last else x, y, spaced(context), "k-muted", "end" if last else "middle", SMALL)


def stack_of(parts: Mapping[str, float]) -> tuple[float, float, float]:
    """Operations of the matrices, of attention over entries, and of the index scan."""
    core, scan = parts["attention core"], parts["index scan"]
    return sum(parts.values()) - core - scan, core, scan
