"""Widget `one-token`: one byte through every block of V4, every printed number beside the recomputed one.

The numbers of a public walk at toy width (one_token_data.py) are recomputed stop by stop with `reference`. A reader
changes one group of given numbers; everything after it follows, in the picture, in the chain and in the list.
"""

from functools import lru_cache

import numpy as np

from deepseek_edu import accounting
from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing.numbers import show, shown

from .contract import Choice, Numbers, Slider, View, widget
from .one_token_drawing import Place, Quantity, digits, letter, stop_picture
from .one_token_reads import entries_picture, visible_picture
from .one_token_stops import BLOCKS, GIVEN_LABELS, LABELS, STOPS
from .one_token_walk import INPUTS, POSITION, START, Results, printed, tolerance, walk
from .parts import Metric, Metrics, Prose, Table

NONE = "none"
NAMES = tuple(stop.name for stop in STOPS)


def _numbers(name: str) -> Numbers:
    given = INPUTS[name]
    return Numbers(
        given.low,
        given.high,
        given.step,
        given.label,
        length=len(given.names),
        names=given.names,
        whole=name == "ids",
        when={"edit": name},
    )


@widget(
    "one-token",
    title="One token through every block",
    mechanism={
        "reference.mhc": ("sinkhorn", "collapse", "expand"),
        "reference.rope": ("rotate_tail",),
        "reference.attention": ("sink_attention",),
        "reference.v4_model": ("hash_route",),
        "reference.moe": ("router_scores", "route"),
        "reference.v4_attention": ("entries_read",),
    },
    source="V4 report §2",
    chapter="09_one_token",
    grid=("edit",),
)
def one_token(
    stop: Slider(1, len(STOPS), 1, "Stop", look="steps", names=NAMES) = 2,
    edit: Choice(
        {NONE: "Nothing: the printed walk", **{name: given.label for name, given in INPUTS.items()}},
        "Change",
        help="One group of given numbers at a time. It stays changed while you step.",
    ) = NONE,
    ids: _numbers("ids") = START["ids"],
    embedding: _numbers("embedding_p") = START["embedding_p"],
    expand: _numbers("mhc.expand_weights") = START["mhc.expand_weights"],
    mixing: _numbers("mhc.exp_B_raw") = START["mhc.exp_B_raw"],
    collapse: _numbers("mhc.A") = START["mhc.A"],
    write: _numbers("mhc.C") = START["mhc.C"],
    query: _numbers("swa.q_head1") = START["swa.q_head1"],
    key: _numbers("swa.k_head1") = START["swa.k_head1"],
    score: _numbers("swa.scores") = START["swa.scores"],
    sink: _numbers("swa.sink_logit") = START["swa.sink_logit"],
    attended: _numbers("swa.F_attn") = START["swa.F_attn"],
    gates: _numbers("hash_moe.gates") = START["hash_moe.gates"],
    gate: _numbers("hash_moe.gate") = START["hash_moe.gate"],
    up: _numbers("hash_moe.up") = START["hash_moe.up"],
    expert0: _numbers("hash_moe.expert0") = START["hash_moe.expert0"],
    expert1: _numbers("hash_moe.expert1") = START["hash_moe.expert1"],
    shared: _numbers("hash_moe.shared") = START["hash_moe.shared"],
    core: _numbers("csa.core_scores") = START["csa.core_scores"],
    core_sink: _numbers("csa.core_sink_logit") = START["csa.core_sink_logit"],
    logits: _numbers("router.logits") = START["router.logits"],
    bias: _numbers("router.bias") = START["router.bias"],
) -> View:
    """Evaluate the widget for checked control values."""
    values = (
        ids, embedding, expand, mixing, collapse, write, query, key, score, sink, attended, gates, gate, up, expert0,
        expert1, shared, core, core_sink, logits, bias,
    )  # fmt: skip
    inputs = dict(zip(INPUTS, values, strict=True))
    return _view(int(stop) - 1, *walk({edit: inputs[edit]} if edit != NONE else None), edit)


def _made(name: str, found: Results) -> Quantity:
    return Quantity(name, LABELS[name], found[name], _printed(name), tolerance(name))


def _given(name: str, given: Results) -> Quantity:
    old = np.reshape(START[name], given[name].shape)
    letters = tuple(map(letter, given[name])) if name == "ids" else ()
    marked = POSITION if letters else -1
    label = GIVEN_LABELS.get(name, LABELS[name])
    return Quantity(name, label, given[name], old, 1e-12, True, name, letters, marked)


def _only(name: str) -> Quantity:
    """Numbers that stand in the walk and that nothing else in it follows from."""
    return Quantity(name, LABELS[name], _printed(name), _printed(name), 1e-12, True)


def _printed(name: str) -> np.ndarray:
    return np.atleast_1d(np.asarray(printed(name), float))


def _view(number: int, given: Results, found: Results, edit: str) -> View:
    stop = STOPS[number]
    all_made = [_made(name, found) for name in found]
    agreed = _counts(all_made)
    differing = {quantity.name for quantity in all_made if quantity.differs}
    if edit != NONE and _given(edit, given).differs:
        differing.add(f"given {edit}")
    changed = [bool(differing & {*s.made, *(f"given {name}" for name in s.given)}) for s in STOPS]
    inputs = [_given(name, given) for name in stop.given]
    inputs += [_only(name) for name in stop.only]
    made = [_made(name, found) for name in stop.made]
    parts: list = [stop_picture(Place(number, NAMES, BLOCKS, changed, stop.rule), inputs, made)]
    if stop.name.startswith("What p may read"):
        kinds = {"CSA": "csa", "HCA": "hca"}
        groups = {kind: printed(f"{part}.entry_tokens") for kind, part in kinds.items()}
        seen = {kind: found[f"{part}.visible_entries_for_p"].astype(int).tolist() for kind, part in kinds.items()}
        parts.append(visible_picture(given["ids"], POSITION, groups, seen, printed("csa.index_scores")))
    if stop.name.startswith("At a million"):
        counts = {q.label: int(q.values.ravel()[0]) for q in made}
        parts.append(entries_picture(counts, max(counts.values())))
    if stop is STOPS[-1]:
        parts.append(_side_by_side())
    parts.append(_metrics(all_made, agreed, edit, sum(changed)))
    parts.append(Prose(stop.text))
    if stop.v41:
        parts.append(Prose(f"In V4.1: {stop.v41}"))
    parts.append(_all_numbers(all_made))
    return View(parts, _summary(number, made, agreed, edit))


def _counts(all_made: list[Quantity]) -> tuple[int, int]:
    """Recomputed numbers, and how many of them are the printed ones."""
    total = agree = 0
    for quantity in all_made:
        for row in quantity.rows:
            total += len(row)
            agree += sum(old is not None and abs(value - old) <= quantity.tolerance for value, old in row)
    return total, agree


def _metrics(all_made: list[Quantity], counts: tuple[int, int], edit: str, stops: int) -> Metrics:
    total, agree = counts
    gaps = [abs(v - old) for q in all_made for row in q.rows for v, old in row if old is not None]
    worst = max(gaps, default=0.0)
    note = "recomputed numbers of the whole walk"
    items = [
        Metric("As printed", agree, f"{agree} of {total}", note=note, role="result" if agree == total else "value")
    ]
    if edit != NONE:
        words = f"{stops} of {len(STOPS)}"
        note = "after your change" if stops else "nothing is changed yet"
        items.append(Metric("Stops that differ", stops, words, note=note))
    far = "four decimals were printed" if agree == total else "from the print"
    items.append(Metric("Largest difference", worst, show(worst, 2), note=far, role="" if agree == total else "error"))
    return Metrics(tuple(items), "The whole walk")


def _all_numbers(all_made: list[Quantity]) -> Table:
    rows, text, differing = [], [], []
    for quantity in all_made:
        values = [v for row in quantity.rows for v, _ in row]
        old = [float(v) for v in np.ravel(quantity.printed)]
        gap = max((abs(a - b) for a, b in zip(values, old, strict=False)), default=0.0)
        same_length = len(values) == len(old)
        if quantity.differs:
            differing.append(len(rows))
        rows.append((quantity.label, values, old, gap if same_length else -1.0))
        text.append((
            "",
            _line(tuple(values)),
            _line(tuple(old)),
            show(gap, 2) if same_length else "another count",
        ))  # fmt: skip
    return Table(
        "Every recomputed number of the walk",
        ("What", "Recomputed", "Printed", "Largest difference"),
        tuple(rows),
        tuple(text),
        selected=tuple(differing),
        folded=True,
    )


@lru_cache(512)
def _line(values: tuple[float, ...]) -> str:
    """Numbers as the walk prints them, in a row."""
    return ", ".join(map(digits, values)) or "none"


def _side_by_side() -> Table:
    v4, v41 = ModelConfig.v4_flash_0731(), ModelConfig.v41_flash()
    both = (v4, v41)

    def row(name: str, value) -> tuple:
        return (name, *(value(config) for config in both))

    def kinds(config) -> str:
        found: dict[str, int] = {}
        for plan in config.schedule()[: config.n_layers]:
            found[plan.mode] = found.get(plan.mode, 0) + 1
        return ", ".join(f"{count} {mode.upper() if mode in ('csa', 'hca') else mode}" for mode, count in found.items())

    rows = (
        row("Layers", lambda c: c.n_layers),
        row("Width of a stream", lambda c: c.dim),
        row("Kinds of layers", kinds),
        row("Layers that keep compressed entries", lambda c: len(c.kv_source_layers)),
        row("Global KV, bytes per token", lambda c: accounting.global_bytes_per_token(c)),
        row("Groups of a compressor", lambda c: "overlap at ratio 4" if c.generation == "v4" else "do not overlap"),
        row("Index heads", lambda c: c.index_n_heads),
        row("Layers whose experts a table picks", lambda c: c.n_hash_layers),
        row("Experts, chosen of routed", lambda c: f"{c.n_activated_experts} of {c.n_routed_experts}"),
        row("Layers with Engram", lambda c: len(c.engram_layer_ids)),
        row("A of a sub-block comes from", lambda c: "the same streams" if c.generation == "v4" else "the one before"),
        row("Prefill runs", lambda c: "all layers" if c.generation == "v4" else "the decoder for a window only"),
        row("The drafter reads", lambda c: ("outputs of " if c.generation == "v4" else "inputs of ")
            + ", ".join(map(str, c.dspark_target_layer_ids))),
        row("Images", lambda c: "yes" if c.vision_n_layers else "no"),
    )  # fmt: skip
    text = tuple((name, *(show(v, 6) if isinstance(v, float) else shown(v) for v in values)) for name, *values in rows)
    return Table("What changed from V4-Flash to V4.1-Flash", ("", "V4-Flash", "V4.1-Flash"), rows, text)


def _summary(number: int, made: list[Quantity], counts: tuple[int, int], edit: str) -> str:
    total, agree = counts
    named = [f"{q.label} {', '.join(digits(v) for row in q.rows for v, _ in row)}" for q in made]
    while len(named) > 2 and len("; ".join(named)) > 150:
        named.pop(0)
    shown = "; ".join(named)
    words = f"Stop {number + 1} of {len(STOPS)}, {STOPS[number].name}"
    if shown and len(shown) < 200:
        words += f": {shown}"
    change = "" if edit == NONE else f" with “{INPUTS[edit].label}” open to change"
    return f"{words}. {agree} of {total} numbers of the walk are as printed{change}."


__all__ = ["one_token"]
