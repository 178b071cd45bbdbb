"""Widget `owners`: a memory calculator. Eight layers read caches of equal size; how many of them keep one of their own?

Mechanism: `accounting.choices` and `accounting.caches`. The eight layers are invented; the entry formats are the
model's.
"""

from deepseek_edu.accounting import caches, choices
from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import grouped, percent

from .accounting_real import binary, config_of
from .contract import Choice, Slider, View, widget
from .parts import Metric, Metrics, Prose, Table

LAYERS = 8
EXPONENTS = range(7, 21)


@widget(
    "owners",
    title="Memory calculator: who keeps a cache?",
    mechanism={"accounting.choices": ("owner_of",), "accounting.caches": ("entry_bytes",)},
    source="report §2.3",
    chapter="04_design_choices",
)
def owners(
    owners: Slider(1, LAYERS, 1, "Layers that own a cache", unit=f"of {LAYERS}") = 4,
    context: Slider(EXPONENTS[0], EXPONENTS[-1], 1, "Tokens", names=tuple(grouped(2**k) for k in EXPONENTS)) = 17,
    entry: Choice(
        {"bf16": "BF16", "window": "FP8", "main": "FP4"},
        "A latent for each token, in",
        look="segments",
    ) = "main",
) -> View:
    """Evaluate the widget for checked control values."""
    count, tokens = int(owners), 2 ** int(context)
    size = _entry(config_of("v41"), entry)
    read = tuple(choices.owner_of(layer, LAYERS, count) for layer in range(LAYERS))
    one = tokens * size
    stored, every = len(set(read)) * one, LAYERS * one
    metrics = Metrics(
        (
            Metric("Stored", stored, binary(stored), role="result", note=f"{len(set(read))} × {binary(one)}"),
            Metric("Of eight caches", stored / every, percent(stored / every, digits=4)),
            Metric("Times as many conversations", every / stored, f"× {every / stored:.3g}", note="in the same memory"),
            Metric("One cache", one, binary(one), note=f"{grouped(tokens)} entries of {grouped(size)} bytes"),
        ),
        "Memory",
    )
    table = Table(
        "For every count of owners",
        ("Owners", "Bytes", "Of eight caches", "Conversations"),
        tuple((n, n * one, n / LAYERS, LAYERS / n) for n in range(1, LAYERS + 1)),
        tuple(
            ("", binary(n * one), percent(n / LAYERS, digits=4), f"× {LAYERS / n:.3g}") for n in range(1, LAYERS + 1)
        ),
        selected=(count - 1,),
        folded=True,
    )
    summary = (
        f"{count} of {LAYERS} layers own a cache of {binary(one)}: {binary(stored)} instead of {binary(every)}, "
        f"{percent(stored / every, digits=4)}; all {LAYERS} layers still read."
    )
    return View((_picture(read, one), metrics, _remark(count, one), table), summary)


def _entry(config: ModelConfig, kind: str) -> int:
    """Bytes of one latent with its scales."""
    return 2 * config.head_dim if kind == "bf16" else caches.entry_bytes(config)[kind]


def _remark(count: int, one: int) -> Prose:
    """What one owner more or less is worth."""
    if count == LAYERS:
        return Prose(
            f"Every layer keeps its own. The first owner you take away saves {binary(one)}, and so does every other: "
            f"but as a share it is one of {LAYERS} now, and one of two at the end."
        )
    words = (
        f"{LAYERS - count} of {LAYERS} layers compute no entries: they read those of another layer, made from another "
        "layer’s input. "
    )
    words += f"Each of the {LAYERS} layers still reads: the bytes stored shrink, and the bytes read do not."
    if LAYERS % count:
        words += f" {count} does not divide {LAYERS}: some owners serve more layers than others."
    return Prose(words)


def _picture(read: tuple[int, ...], one: int) -> Picture:
    """The layers with whose cache they read, and the bytes for every count of owners."""
    count = len(set(read))

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        with canvas.group():
            items = [("k-box k-hidden", "layer"), ("k-box k-global", "cache of an owner")]
            y = kit.legend(canvas, items) + 6
        cell = canvas.width / LAYERS
        with canvas.group():
            for layer in range(LAYERS):
                kit.box(
                    canvas, layer * cell + 3, y, cell - 6, 34, f"{layer}" if narrow else f"layer {layer}", "", "hidden"
                )
        with canvas.group():
            for owner in sorted(set(read)):
                group = [layer for layer, whose in enumerate(read) if whose == owner]
                left, right = group[0] * cell + 3, (group[-1] + 1) * cell - 3
                for layer in group:
                    middle = (layer + 0.5) * cell
                    own = layer == owner
                    if own:
                        canvas.arrow(middle - 6, y + 34, middle - 6, y + 62, "k-global")
                        canvas.arrow(middle + 6, y + 62, middle + 6, y + 34, "k-arrow")
                    else:
                        canvas.arrow(middle, y + 62, middle, y + 34, "k-arrow")
                canvas.rect(left, y + 62, right - left, 34, "k-box k-global k-box--selected", 5)
                canvas.text((left + right) / 2, y + 83, f"{owner}" if narrow else f"cache {owner}", "k-text--strong")
        y += 116
        with canvas.group():
            words = "an owner writes and reads, the others read"
            canvas.arrow(8, y + 2, 8, y - 12, "k-arrow")
            canvas.text(20, y, words, "k-muted", "start", SMALL)
        y = kit.heading(canvas, 0, y + 16, "Bytes by owners") + (14 if narrow else 4)
        with canvas.group():
            for n in range(1, LAYERS + 1):
                x, height = (n - 1) * cell, 96 * n / LAYERS
                canvas.rect(x + 6, y + 112 - height, cell - 12, height, "k-global", 2, 0.45 if n != count else 1)
                canvas.text(x + cell / 2, y + 130, n, "k-label")
                _above(canvas, x + cell / 2, y + 106 - height, n * one)
                kit.hit(canvas, "owners", n, x, y, cell, 116)
        with canvas.group((count - 1) * cell, y):
            canvas.rect(1, -4, cell - 2, 140, "k-mark", 5)
        canvas.height = y + 142
        return canvas

    groups = {owner: [layer for layer, whose in enumerate(read) if whose == owner] for owner in sorted(set(read))}
    words = "; ".join(f"cache {owner} serves layers {', '.join(map(str, group))}" for owner, group in groups.items())
    raw = {"read": list(read), "bytes": [n * one for n in range(1, LAYERS + 1)]}
    return draw(paint, "Owners and readers", f"{words}. {binary(count * one)} are stored.", raw)


def _above(canvas: Canvas, x: float, y: float, size: int) -> None:
    """Bytes above a column; number and unit in two lines on a phone."""
    words = binary(size, 3)
    for line, part in enumerate(reversed(words.split(" ")) if canvas.narrow else (words,)):
        canvas.text(x, y - 11 * line, part, "k-label", size=SMALL)
