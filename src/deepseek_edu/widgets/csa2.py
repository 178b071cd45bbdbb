"""Widget `csa2`: layers that share entries and choices, and who may read an entry.

Mechanism: `reference.csa2` with the compressor, the indexer and the attention it calls (report, section 2.3.1). One
view runs a group of four layers in the modes that the reader gives them and says what changed against the start; the
other shows compression by 1 and by 2 and the positions that may read an entry.
"""

import numpy as np

from deepseek_edu.drawing.numbers import fixed, listed
from deepseek_edu.reference import compressor

from .contract import Choice, Slider, View, widget
from .csa2_drawing import group_picture, visible_picture
from .csa2_group import LAYERS, MODES, QUERIES, TOKENS, TOP, Layer, complete_entries, run
from .memo import remembered
from .parts import Metric, Metrics, Prose, Table
from .parts import View as Answer

GROUP, VISIBLE = {"part": "group"}, {"part": "visible"}
_KINDS = {"full": "Full", "reindex": "Reindex", "reuse": "Reuse"}
VALUES = (3, 5, 2, 8, 6, 4, 1, 7, 9, 5, 2, 6)
GATES = (0, 0, 1, 0, -1, 1, 0, 2, 0, 0, 1, -1)


@widget(
    "csa2",
    title="One memory, four layers that read it",
    mechanism={
        "reference.csa2": ("store_global", "choose", "attend"),
        "reference.compressor": ("visible_entries", "split_groups", "pool"),
        "reference.indexer": ("index_scores", "top_k"),
        "reference.attention": ("sink_attention",),
    },
    source="report §2.3.1",
    chapter="05_sharing_selecting",
    grid=("part", "c", "who", "ratio"),
)
def csa2(
    part: Choice({"group": "Four layers", "visible": "Who may read what"}, "Show", look="segments") = "group",
    b: Choice(_KINDS, "Layer B", look="segments", when=GROUP) = MODES[0],
    c: Choice(_KINDS, "Layer C", look="segments", when=GROUP) = MODES[1],
    d: Choice(_KINDS, "Layer D", look="segments", when=GROUP) = MODES[2],
    who: Choice(
        {name: name for name in LAYERS}, "Turn the query of layer", look="segments", when=GROUP, more=True
    ) = "A",
    turn: Slider(-180, 180, 20, "Turn it by", unit="°", when=GROUP, more=True) = 0,
    position: Slider(0, 11, 1, "Position of the token", stops=12, when=GROUP) = 11,
    ratio: Choice(
        {"1": "1, as in the decoder", "2": "2, as in the encoder"}, "Tokens in an entry", look="segments", when=VISIBLE
    ) = "2",
    at: Slider(0, 11, 1, "Query at position", look="steps", when=VISIBLE) = 4,
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "visible":
        return _visible(int(ratio), int(at))
    turned = tuple(q + turn if name == who else q for name, q in zip(LAYERS, QUERIES, strict=True))
    return _group(("full", b, c, d), turned, int(position), who if turn else "")


@remembered(16)
def _start(position: int) -> tuple[Layer, ...]:
    return run(("full", *MODES), QUERIES, position)


def _group(modes: tuple[str, ...], queries: tuple[float, ...], position: int, turned: str) -> View:
    layers, before = run(modes, queries, position), _start(position)
    choice = [now.chosen != old.chosen or now.owner != old.owner for now, old in zip(layers, before, strict=True)]
    output = [bool(np.abs(now.output - old.output).max() > 1e-9) for now, old in zip(layers, before, strict=True)]
    owners = sorted({layer.owner for layer in layers})
    choosers = sorted({layer.chooser for layer in layers})
    stored, scored = len(owners) * (position + 1), len(choosers) * (position + 1)
    each = f"{stored} stored; a set for each layer would be {len(layers) * (position + 1)}"
    moved = "value" if any(output) else ""
    metrics = Metrics(
        (
            Metric("Sets of entries", len(owners), note=each),
            Metric("Choices made", len(choosers), note=f"{scored} index keys scored for this token"),
            Metric("Outputs", len(layers), _outputs(sum(output), len(layers)), note=_OWN_OUTPUT, role=moved),
        ),
        "Four layers",
    )
    table = Table(
        "Each layer",
        ("Layer", "Mode", "Entries of", "Choice of", "Reads", "Output x", "Output y"),
        tuple(
            (
                LAYERS[i],
                _KINDS[layer.mode],
                LAYERS[layer.owner],
                LAYERS[layer.chooser],
                listed(layer.chosen),
                *map(float, layer.output),
            )
            for i, layer in enumerate(layers)
        ),
        tuple(("", "", "", "", "", *(fixed(float(v), 3) for v in layer.output)) for layer in layers),
        folded=True,
    )
    reads = "; ".join(f"{name} reads {listed(layer.chosen)}" for name, layer in zip(LAYERS, layers, strict=True))
    summary = f"At position {position}: {reads}. {_changes(choice, output)}"
    words = Prose(_modes(layers) + (f" {_changes(choice, output)}" if any(choice) or any(output) else ""))
    return Answer((group_picture(layers, choice, output, position, turned), metrics, words, table), summary)


_OWN_OUTPUT = "one for each layer, always"


def _outputs(changed: int, layers: int) -> str:
    return f"{layers}, {changed} changed" if changed else str(layers)


def _modes(layers: tuple[Layer, ...]) -> str:
    """Who makes, who chooses anew, who keeps a choice; and that none shares its output."""
    by_mode = {mode: [n for n, layer in zip(LAYERS, layers, strict=True) if layer.mode == mode] for mode in _KINDS}
    said = {"full": "make", "reindex": "choose", "reuse": "keep"}
    rest = {"full": "entries and choose", "reindex": "anew among entries made below", "reuse": "the choice made below"}
    words = [f"{listed(names)} {_do(names, said[mode])} {rest[mode]}" for mode, names in by_mode.items() if names]
    words[0] = words[0].replace("entries and choose", f"entries and {_do(by_mode['full'], 'choose')}")
    few = any(len(layer.chosen) < TOP for layer in layers)
    tail = f" No more than {len(layers[0].chosen)} can be read at this position." if few else ""
    return "; ".join(words) + f". Each weighs what it reads with its own query.{tail}"


def _changes(choice: list[bool], output: list[bool]) -> str:
    """Which choices and outputs differ from those of the start."""
    if not any(choice) and not any(output):
        return "Nothing differs from the start."
    chosen = [name for name, changed in zip(LAYERS, choice, strict=True) if changed]
    moved = [name for name, changed in zip(LAYERS, output, strict=True) if changed]
    same = [name for name, changed in zip(LAYERS, output, strict=True) if not changed]
    first = f"What {listed(chosen)} {_do(chosen, 'read')} changed" if chosen else "No layer reads other entries"
    second = f"; changed output: {listed(moved)}" if moved else "; no output changed"
    return f"{first}{second}" + (f"; as before: {listed(same)}." if same else ".")


def _do(names: list[str], verb: str) -> str:
    return f"{verb}s" if len(names) == 1 else verb


def _visible(ratio: int, at: int) -> View:
    _, waiting = complete_entries(ratio, VALUES[: at + 1], GATES[: at + 1])
    all_entries, _ = complete_entries(ratio, VALUES, GATES)
    counts = [int(n) for n in compressor.visible_entries(np.arange(TOKENS), ratio)]
    count = counts[at]
    metrics = Metrics(
        (
            Metric("Entries it may read", count, note=f"⌊({at} + 1) / {ratio}⌋", role="result"),
            Metric("Tokens that wait", waiting, note="in a group that is not complete"),
            Metric("Entries of all 12 tokens", len(all_entries)),
        ),
        "Who may read what",
    )
    if waiting:
        words = (
            f"Token {at} is the first of its group. The entry comes into being with token {at + 1}; until then token "
            f"{at} is seen through the window only, and what was projected of it waits."
        )
    elif ratio == 1:
        words = (
            f"With ratio 1 every token is an entry at once: position {at} reads entries 0 to {at}, its own included."
        )
    else:
        words = (
            f"Token {at} completes entry {count - 1}, and the query at the same position may read it at once. An entry "
            "that mixed in a later token would tell the future."
        )
    mix = ""
    if ratio == 2 and count:
        j = min(count, len(all_entries)) - 1
        mix = (
            f" Entry {j} is {fixed(float(all_entries[j, 0]), 2)}: tokens {2 * j} and {2 * j + 1} hold {VALUES[2 * j]} "
            f"and {VALUES[2 * j + 1]}, and the softmax of their gates, {fixed(GATES[2 * j], 0)} and "
            f"{fixed(GATES[2 * j + 1], 0)}, says how much of each."
        )
    picture = visible_picture(ratio, at, VALUES, all_entries, counts, waiting)
    tail = f"{waiting} token waits for its group to be complete." if waiting else "No token waits."
    summary = f"Ratio {ratio}: the query at position {at} may read {count} of {len(all_entries)} entries. {tail}"
    return Answer((picture, metrics, Prose(words + mix)), summary)
