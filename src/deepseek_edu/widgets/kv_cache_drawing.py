"""Pictures of the `kv-cache` widget: which keys and values are new or reused, and how the two runs compare."""

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import grouped, percent
from deepseek_edu.drawing.svg import FONT

ROW = 34


def steps_picture(steps: tuple, number: int) -> Picture:
    """Steps from top to bottom, positions from left to right; below, where the current token looks."""
    count = sum(len(step.ids) for step in steps)

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        left = 78 if canvas.narrow else 132
        side = 88 if canvas.narrow else 190
        cell = (width - left - side) // count
        with canvas.group():
            items = [("k-changed", "made in this step"), ("k-local", "kept"), ("k-box k-box--off", "not there yet")]
            y = kit.legend(canvas, items)
        y = _head(canvas, steps, number, left, cell, y + 4)
        for index, step in enumerate(steps, 1):
            y = _step(canvas, step, index, number, count, left, cell, y)
        y = _attention(canvas, steps[number - 1], count, left, cell, y + 8)
        canvas.height = y
        return canvas

    now = steps[number - 1]
    description = (
        f"Step {number} of {len(steps)}: keys and values of positions {now.first} to {now.end - 1} are made, "
        f"{now.first} are reused. " + ("Logits agree." if now.equal else f"Logits differ by up to {now.gap:.3f}.")
    )
    raw = {
        "steps": [
            {
                "new": list(range(step.first, step.end)),
                "given": step.given,
                "reused": step.first,
                "bytes": step.nbytes,
                "gap": step.gap,
            }
            for step in steps[:number]
        ],
        "attention": {"cached": list(now.taken), "full": list(now.taken_full)},
    }
    return draw(paint, "Keys and values, step by step", description, raw)


def _head(canvas: Canvas, steps: tuple, number: int, left: float, cell: float, y: float) -> float:
    """The ids, which of them are the prompt, and the position that each was given; a wrong one is marked."""
    ids, prompt = tuple(id for step in steps for id in step.ids), len(steps[0].ids)
    with canvas.group():
        for first, end, words, style in ((0, prompt, "prompt", "k-axis"), (prompt, len(ids), "chosen", "k-axis")):
            x1, x2 = left + first * cell + 2, left + end * cell - 2
            canvas.text((x1 + x2) / 2, y + 13, words, "k-label", size=SMALL)
            canvas.line(x1, y + 19, x2, y + 19, style, 2)
        canvas.text(0, y + 43, "id", "k-label", "start")
        kit.cells(canvas, left, y + 25, ids, cell, 28)
        side = left + len(ids) * cell + 12
        canvas.text(side, y + 13, "against the" if canvas.narrow else "cached against", "k-muted", "start", SMALL)
        canvas.text(side, y + 27, "whole prefix", "k-muted", "start", SMALL)
        canvas.text(0, y + 69, "position", "k-label", "start")
    for step in steps[:number]:
        for offset in range(len(step.ids)):
            with canvas.group(left + (step.first + offset + 0.5) * cell, y + 69):
                right = step.given == step.first
                instead = "" if right or canvas.narrow else f", not {step.first + offset}"
                style = "k-muted" if right else "k-error k-text--strong"
                canvas.text(0, 0, f"{step.given + offset}{instead}", style, size=SMALL if instead else FONT)
    return y + 80


def _step(canvas, step, index: int, number: int, count: int, left: float, cell: float, y: float) -> float:
    """One step: its cells, and whether its logits agree."""
    done = index <= number
    name = "prefill" if index == 1 else f"decode {step.ids[0]}"
    with canvas.pick("step", index):
        canvas.text(0, y + 19, name, "k-text--strong" if index == number else "k-label", "start")
        for position in range(count):
            x = left + position * cell + 1
            new, old = step.first <= position < step.end, position < step.first
            if not done or not (new or old):
                canvas.rect(x, y, cell - 2, ROW - 6, "k-box k-box--off", 3)
                continue
            if new:
                style = "k-box k-changed k-box--selected" if index == number else "k-box k-changed"
                canvas.rect(x, y, cell - 2, ROW - 6, style, 3)
            else:
                canvas.rect(x, y, cell - 2, ROW - 6, "k-local", 3, 0.4)
            canvas.text(x + cell / 2 - 1, y + 18, "new" if new else "kept", size=SMALL)
    side = left + count * cell + 12
    if done:
        with canvas.group():
            words = "equal" if step.equal else f"off by {step.gap:.2f}"
            canvas.text(side, y + 19, words, f"{'k-local' if step.equal else 'k-error'} k-text--strong", "start")
            if not canvas.narrow:
                canvas.text(side + 90, y + 19, f"{grouped(step.nbytes)} bytes", "k-muted", "start", SMALL)
    return y + ROW


def _attention(canvas, step, count: int, left: float, cell: float, y: float) -> float:
    """What the last token of this step takes from each key, on the cache and on the whole prefix."""
    with canvas.group():
        y = kit.heading(canvas, 0, y, f"Where token {step.ids[-1]} looks", "share of each key")
    for name, taken in (("on the cache", step.taken), ("whole prefix", step.taken_full)):
        with canvas.group():
            short = name.split()[-1] if canvas.narrow else name
            canvas.text(0, y + 18, short, "k-label", "start")
            words = [percent(share) for share in taken] + [""] * (count - len(taken))
            shades = [min(1.0, share / 0.6) for share in taken] + [0.0] * (count - len(taken))
            size = SMALL if canvas.narrow else FONT
            kit.cells(canvas, left, y, words, cell, 26, "hidden", shades, off=range(len(taken), count), size=size)
        y += 32
    return y


def doubling_picture(sizes: tuple, bytes_: tuple, totals: dict) -> Picture:
    """Bytes and multiplications at a context and at twice that context."""
    blocks = (
        ("Cache", "bytes", bytes_, "local"),
        ("One more token, with the cache", "multiplications", totals[True], "hidden"),
        ("One more token, without it", "multiplications", totals[False], "hidden"),
    )

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        y = 0.0
        behind = max(kit.text_width(grouped(value)) for _, _, pair, _ in blocks for value in pair)
        for name, unit, pair, kind in blocks:
            with canvas.group():
                y = kit.heading(canvas, 0, y, name, f"{unit}, × {pair[1] / pair[0]:.2f}")
            with canvas.group():
                items = [
                    (f"{grouped(tokens)} tokens", float(value), grouped(value), kind)
                    for tokens, value in zip(sizes, pair, strict=True)
                ]
                y = kit.bars(canvas, 0, y, width, items, 112 if canvas.narrow else 150, behind=behind) + 12
        canvas.height = y - 8
        return canvas

    said = (f"{name}: {' and '.join(map(grouped, pair))} {unit}" for name, unit, pair, _ in blocks)
    description = "; ".join(said) + "."
    raw = {
        "tokens": list(sizes),
        "bytes": list(bytes_),
        "work": {"cached": list(totals[True]), "whole": list(totals[False])},
    }
    return draw(paint, "Twice the context", description, raw)
