"""What the explorer shows of one layer or one part, and the list of all layers."""

import math

from deepseek_edu import accounting
from deepseek_edu.drawing.numbers import counted, grouped, show

from .explorer_facts import (
    CONTEXTS,
    MODES,
    NAMES,
    WHAT,
    activated,
    amount,
    config_of,
    cost,
    flops,
    indexer_words,
    key_of,
    name_of,
    place_of,
    readers,
    runs,
    shapes,
    spans,
)
from .explorer_inside import inside_picture
from .explorer_layout import plans_of
from .explorer_map import Marks, map_picture
from .explorer_parts import PARTS
from .memo import remembered
from .parts import Metric, Metrics, Prose, Table


def look_up(model: str, name: str, phase: str, control: str) -> tuple[list, str]:
    """Parts of the view of a layer or a part, and its sentence; the list of all layers comes last."""
    config = config_of(model)
    plans = {key_of(config, plan): plan for plan in plans_of(config)}
    if name in plans:
        return _layer(model, plans[name], phase, control)
    return _part(model, name, phase, control)


def _layer(model: str, plan, phase: str, control: str) -> tuple[list, str]:
    config = config_of(model)
    c, name = config, name_of(config, plan)
    draft, own = plan.side == "draft", plan.owner == plan.index
    others = readers(c, plan.index)
    marks = Marks(
        picked=(key_of(c, plan),),
        readers=tuple(sorted({*others, plan.index})) if own else (plan.index,) if plan.owner is not None else (),
        choosers=() if plan.chooser is None else (plan.chooser,),
        memories=() if plan.owner is None else (plan.owner,),
        sources=_sources(c, plan),
    )
    what = WHAT[plan.mode].format(
        window=c.window_size, k=c.index_topk, owner=plan.owner, chooser=plan.chooser, ratio=plan.ratio
    )
    if draft:
        what = (
            f"It reads its window of {c.window_size} entries, made from what the backbone computed, and the "
            f"{c.dspark_block_size} rows of the block it drafts."
        )
    if plan.pool == "source":
        size = c.candidate_topk_blocks * c.candidate_block_size
        what += f" It also keeps a pool of {grouped(size)} candidates for each query."
    if plan.pool == "restricted":
        what += f" It looks only inside the pool of layer {c.candidate_source_layer}."
    counts = accounting.layer_parameters(c, plan)
    grows = accounting.caches.global_bytes_by_layer(c).get(plan.index, 0.0)
    window = accounting.window_bytes(c)["backbone"] // c.n_layers
    memory = "its window" if plan.owner is None else "its own" if own else f"layer {plan.owner}"
    count = counted(len(others), "other layer")
    read_by = count if others else "no other layer"
    total, active = sum(counts.values()), activated(c, plan)
    items = [
        Metric("Reads memory of", -1 if plan.owner is None else plan.owner, memory),
        Metric("Its memory is read by", len(others), read_by, note=spans(others)),
        Metric("Parameters", total, amount(total), note=f"a token meets {amount(active)}"),
        Metric(
            "Global KV",
            grows,
            show(round(grows, 1), 5),
            "bytes per token",
            note=f"and a window of {grouped(window)} bytes",
        ),
    ]
    for context in () if draft else CONTEXTS:
        read, scored = (f(c, plan, context) for f in (accounting.work.entries_read, accounting.work.entries_scored))
        note = f"reads {grouped(read)} entries" + (f", scores {grouped(scored)}" if scored else "")
        work = flops(c, plan, context)
        items.append(Metric(f"FLOPs at {grouped(context)}", work, cost(work), note=note))
    when = runs(c, plan, phase)
    often = when if draft else f"for {when}" if ":" not in when else f"for its {when}"
    of_prompt = " of the prompt" if phase == "prefill" and c.generation != "v4" and not draft else ""
    drawing = map_picture(c, marks, phase, control, _seen(c, plan, others), _raw(c, plan, others), names_of(model))
    parts = [
        drawing,
        inside_picture(c, plan, control, name),
        Metrics(tuple(items), name),
        Prose(f"In {phase} it runs {often}{of_prompt}. {place_of(c, plan).words}."),
        _shapes_table(model, plan),
        _all_layers(model),
    ]
    said = [f"{name}, {NAMES[model]}, {phase}: {what}"]
    if plan.ratio:
        said.append(f"It reads {memory}; {read_by} read{'s' * (read_by[:2] in ('no', '1 '))} its entries.")
    said.append(
        f"{amount(total)} parameters, {amount(active)} of them for a token; {show(round(grows, 1), 5)} bytes per token."
    )
    return [part for part in parts if part is not None], " ".join(said)


@remembered(2)
def names_of(model: str) -> dict[str, str]:
    """What can be picked, and how it is called: layers, stages and parts."""
    config = config_of(model)
    return {
        **{key_of(config, plan): name_of(config, plan) for plan in plans_of(config)},
        **{name: part.label for name, part in PARTS[model].items()},
    }


def _seen(config, plan, others: tuple[int, ...]) -> str:
    """What is marked on the map."""
    words = f"{config.n_layers} layers in rows; {plan.index} is marked"
    if plan.owner is None:
        return words + "."
    words += f", with the memory of {plan.owner}"
    words += f" and the choice of {plan.chooser}" if plan.chooser is not None else ""
    return words + (f"; read by {spans(others)}." if others else ".")


def _sources(config, plan) -> tuple[tuple[str, str], ...]:
    """Boxes that something is read from, and what: entries of the owner, a choice, streams for the drafter."""
    if plan.side == "draft":
        return tuple((f"layer-{layer}", "k-hidden") for layer in config.dspark_target_layer_ids)
    found = {plan.chooser: "k-result", plan.owner: "k-global"}
    return tuple((f"layer-{n}", style) for n, style in found.items() if n not in (None, plan.index))


def _raw(config, plan, others: tuple[int, ...]) -> dict:
    return {
        "layer": plan.index,
        "side": plan.side,
        "mode": plan.mode,
        "ratio": plan.ratio,
        "owner": plan.owner,
        "chooser": plan.chooser,
        "readers": list(others),
        "engram": plan.engram is not None,
        "activated": activated(config, plan),
        "window_bytes": accounting.window_bytes(config)["backbone"] // config.n_layers,
        "parameters": accounting.layer_parameters(config, plan),
    }


def _part(model: str, name: str, phase: str, control: str) -> tuple[list, str]:
    config, part = config_of(model), PARTS[model][name]
    plans = [plan for plan in plans_of(config) if part.has(plan)]
    text = part.text.format(**{key: grouped(v) if type(v) is int else v for key, v in config.to_dict().items()})
    table = accounting.parameters(config)[part.counted[0]]
    count = sum(table.get(component, 0) for component in part.counted[1])
    everywhere = len([plan for plan in plans if plan.side != "draft"]) == config.n_layers
    drafts = (key_of(config, plan) for plan in plans if plan.side == "draft" or not everywhere)
    marks = Marks(
        picked=(*drafts, *part.boxes),
        rows=everywhere,
        choosers=tuple(p.index for p in plans if p.chooser == p.index) if name in ("indexer", "pool") else (),
        memories=tuple(p.index for p in plans) if name == "compressor" else (),
    )
    where = spans(plan.index for plan in plans if plan.side != "draft")
    items = [Metric("Found in", len(plans), counted(len(plans), "layer") if plans else "one place", note=where)]
    if count:
        items.append(
            Metric(
                "Parameters",
                count,
                amount(count),
                note="stored, not trained" if part.counted[0] == "stored" else "in all of them" if plans else "",
            )
        )
    for context in CONTEXTS:
        work = accounting.decode_work(config, context)
        total = 2 * sum(w.multiply_adds for w in work if w.component in part.work)
        if total:
            items.append(Metric(f"FLOPs at {grouped(context)}", total, cost(total), note="of a decoded token"))
    words = f"{config.n_layers} layers in rows; those with this part are marked."
    raw = {"part": name, "layers": [plan.index for plan in plans], "parameters": count}
    parts = [
        map_picture(config, marks, phase, control, words, raw, names_of(model)),
        Metrics(tuple(items), part.label),
        Prose(f"{part.place.words}."),
        _all_layers(model),
    ]
    found = f"In {len(plans)} layers ({where})." if where else ""
    summary = f"{part.label}, {NAMES[model]}: {text} {found}"
    return parts, summary.strip() if len(summary) <= 400 else f"{part.label}, {NAMES[model]}: {text}"


def _shapes_table(model: str, plan) -> Table | None:
    found = shapes(config_of(model), plan)
    if not found:
        return None
    rows = tuple((name, " × ".join(map(grouped, shape)), math.prod(shape)) for name, shape in found.items())
    return Table(
        "Shapes of its tensors, by released name (one expert stands for all)",
        ("Tensor", "Shape", "Numbers"),
        rows,
        tuple(("", text, grouped(size)) for _, text, size in rows),
        folded=True,
    )


@remembered(2)
def _all_layers(model: str) -> Table:
    """The list that says what the map shows."""
    config = config_of(model)
    by_layer = accounting.caches.global_bytes_by_layer(config)
    rows, text = [], []
    for plan in plans_of(config):
        total, active = sum(accounting.layer_parameters(config, plan).values()), activated(config, plan)
        others = readers(config, plan.index)
        known = plan.side != "draft"
        far = accounting.work.entries_read(config, plan, CONTEXTS[1]) if known else 0
        work = flops(config, plan, CONTEXTS[1]) if known else 0
        grows = by_layer.get(plan.index, 0.0)
        rows.append(
            (
                plan.index,
                plan.side,
                plan.mode,
                plan.ratio,
                -1 if plan.owner is None else plan.owner,
                -1 if plan.chooser is None else plan.chooser,
                len(others),
                indexer_words(plan),
                plan.engram is not None,
                total,
                active,
                grows,
                far,
                work,
                runs(config, plan, "prefill"),
            )
        )
        text.append(
            (
                str(plan.index),
                "" if model == "v41" or not known else "–",
                MODES[plan.mode] if known else "draft",
                str(plan.ratio or "–"),
                "–" if plan.owner is None else str(plan.owner),
                "–" if plan.chooser is None else str(plan.chooser),
                spans(others) or "–",
                "",
                "yes" if plan.engram is not None else "no",
                amount(total),
                amount(active),
                show(round(grows, 1), 5),
                grouped(far) if known else "–",
                cost(work) if known else "–",
                "",
            )
        )
    return Table(
        f"All {len(rows)} layers and stages of {NAMES[model]} as a list",
        (
            "Layer",
            "Side",
            "Mode",
            "Ratio",
            "Entries of",
            "Choice of",
            "Read by",
            "Indexer",
            "Engram",
            "Parameters",
            "Activated",
            "Bytes per token",
            "Entries read at 2²⁰",
            "FLOPs at 2²⁰",
            "In prefill it runs for",
        ),
        tuple(rows),
        tuple(text),
        folded=True,
    )
