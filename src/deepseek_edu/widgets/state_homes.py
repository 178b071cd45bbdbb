"""Widget `state-homes`: where the numbers of a model live, found by changing one thing and running it again.

Mechanism: functions of `reference` that make what the homes hold (report, sections 2.1 and 2.3). Three views: all
tensors of the tiny model before and after a change, one key and one value by hand, and a walk of three words.
"""

import numpy as np

from deepseek_edu.drawing.numbers import grouped, percent, show
from deepseek_edu.reference import toy_attention

from . import state_homes_runs as runs
from .contract import Choice, Numbers, Slider, View, widget
from .parts import Metric, Metrics, Prose, Table
from .state_homes_drawing import TITLES, Homes, counted, homes_picture, product_picture
from .state_homes_walk import walk_view

TOKEN, WEIGHT, SIZE = ({"part": "change", "change": value} for value in ("token", "weight", "window"))


STOPS = ("1 Ids", "2 Embedding", "3 Window KV", "4 Engram", "5 Encoder output", "6 Global KV")


@widget(
    "state-homes",
    title="Change one thing and see what follows",
    mechanism={
        "reference.attention": ("shared_entry",),
        "reference.window": ("window_table",),
        "reference.compressor": ("latents",),
        "reference.engram": ("hash_rows",),
        "reference.toy_attention": ("project",),
    },
    source="report §2.1, §2.3",
    chapter="02_weights_states_caches",
    grid=("part", "change", "to", "weight", "window"),
)
def state_homes(
    part: Choice(
        {"change": "Change one thing", "product": "One key, one value", "walk": "The tide rose"},
        "View",
        look="segments",
    ) = "change",
    change: Choice(
        {"token": "A token", "weight": "A weight", "window": "The window"},
        "Change",
        look="segments",
        when={"part": "change"},
    ) = "token",
    position: Slider(0, runs.LENGTH - 1, 1, "Position of the token", when=TOKEN) = 5,
    to: Choice(
        {"other": "another token", "twin": "its twin, with the same compressed id"}, "Put in its place", when=TOKEN
    ) = "other",
    weight: Choice(runs.WEIGHTS, "Add 1 to one number of", when=WEIGHT) = "window",
    window: Choice({"2": "2 tokens", "8": "8 tokens"}, "Window of 4 becomes", look="segments", when=SIZE) = "2",
    hidden: Numbers(-8, 8, 0.5, "Hidden state h", length=2, names=("h₁", "h₂"), when={"part": "product"}) = (2.0, 3.0),
    keys: Numbers(-8, 8, 0.5, "Key weights", length=2, names=("h₁ →", "h₂ →"), when={"part": "product"}) = (1.0, 2.0),
    values: Numbers(-8, 8, 0.5, "Value weights", length=2, names=("h₁ →", "h₂ →"), when={"part": "product"}) = (
        -1.0,
        1.0,
    ),
    step: Slider(1, 6, 1, "Step", look="steps", names=STOPS, when={"part": "walk"}) = 1,
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "product":
        return _product(hidden, {"Key": keys, "Value": values})
    if part == "walk":
        return walk_view(int(step))
    return _change(change, int(position), to == "twin", weight, int(window))


# Change one thing


def _change(what: str, position: int, twin: bool, weight: str, window: int) -> View:
    before, after = runs.base(), runs.changed(what, position, twin, weight, window)
    changes, parameters = runs.changes(before, after), runs.changed_parameters(before, after)
    addresses = runs.changed_addresses(before, after)
    homes = Homes(
        changes,
        parameters,
        after.ids,
        position if what == "token" else None,
        window if what == "window" else runs.WINDOW,
        what == "token",
    )
    counts = counted(changes)
    every = sum(array.size for array in before.parameters.values())
    metrics = Metrics(
        (
            Metric("Parameters", sum(parameters.values()), note=f"of {grouped(every)} numbers"),
            *(Metric(TITLES[home][0], changed, note=f"of {total} rows") for home, changed, total in counts),
            Metric("Engram addresses", sum(addresses), note=f"of {before.addresses.size}"),
        ),
        "What changed",
    )
    name = _named(what, before, after, position, weight, window)
    summary = f"{name}: " + ", ".join(
        f"{TITLES[home][0].lower().replace('kv', 'KV').replace('engram', 'Engram')} {changed} of {total}"
        for home, changed, total in counts
    )
    summary += f"; parameters {'unchanged' if not parameters else 'one number'}."
    return View(
        (
            homes_picture(homes),
            metrics,
            _explained(what, changes, addresses, parameters, position),
            _tensors(changes),
        ),
        summary,
    )


def _named(what, before, after, position, weight, window) -> str:
    if what == "token":
        return f"Token {before.ids[position]} at position {position} becomes {after.ids[position]}"
    if what == "window":
        return f"The window of {runs.WINDOW} becomes {window}"
    return f"1 is added to one number of {runs.WEIGHTS[weight]}"


def _explained(what, changes, addresses, parameters, position) -> Prose:
    """What the comparison shows, with the places read off it."""
    if what == "token":
        earlier = sum(bool(size) for c in changes for i, size in enumerate(c.sizes) if (i + 1) * c.ratio <= position)
        rows = [index for index, count in enumerate(addresses) if count]
        words = (
            "The first token has changed, and every later one may look back at it. "
            if not position
            else f"No row before position {position} has changed: nothing reads ahead. "
            if not earlier
            else (f"{earlier} rows before position {position} have changed: something reads ahead. ")
        )
        if rows:
            places = f"position {rows[0]}" if len(rows) == 1 else f"positions {rows[0]} to {rows[-1]}"
            words += f"Other Engram rows are read at {places}, whose n-grams hold the token. "
        else:
            words += "The same Engram rows are read, because both ids have the same compressed id. "
        return Prose(words + "What has changed is state of this request; no parameter has changed.")
    firsts = [c for c in changes if c.first is not None]
    if what == "weight":
        if not firsts:
            return Prose("The parameter has changed, and nothing that this prompt makes depends on it.")
        lead = {"hidden": "hidden states", "local": "window KV", "global": "global KV", "engram": "Engram rows read"}
        moved = ", ".join(dict.fromkeys(lead[c.home] for c in firsts))
        return Prose(
            f"One number of {', '.join(parameters)} has changed, and it stays changed for every prompt. What this "
            f"prompt makes with it follows: {moved}. The state is computed anew each time; the weight is just kept."
        )
    untouched = [f"{TITLES[c.home][0]}, {c.name}" for c in changes if not c.count and c.home in ("hidden", "local")]
    first = min(c.first for c in firsts)
    return Prose(
        f"No parameter and no token has changed, only how far a query looks back. The first difference is at position "
        f"{first}, where a query first sees more or less than before. Unchanged: {'; '.join(untouched)}. These come "
        "from each token alone."
    )


def _tensors(changes) -> Table:
    rows, text = [], []
    for c in changes:
        largest = max(c.sizes)
        rows.append(
            (f"{TITLES[c.home][0]}, {c.name}", len(c.sizes), c.count, -1 if c.first is None else c.first, largest)
        )
        text.append(("", "", "", "none" if c.first is None else "", percent(largest, 1)))
    return Table(
        "Every tensor that was compared",
        ("Tensor", "Rows", "Changed", "First changed position", "Largest relative change"),
        tuple(rows),
        tuple(text),
        folded=True,
    )


# One key, one value


def _product(hidden: tuple, weights: dict[str, tuple]) -> View:
    row = np.array([hidden])
    results = {name: float(toy_attention.project(row, np.array(w)[:, None])[0, 0]) for name, w in weights.items()}
    key, value = results["Key"], results["Value"]
    metrics = Metrics((Metric("Key", key, role="result"), Metric("Value", value, role="result")), "What is kept")
    prose = Prose(
        "The weights are parameters: the same for every token of every prompt. The hidden state belongs to this pass, "
        "then it is forgotten. The key and the value are made from both; they are kept, because later tokens read them."
    )
    summary = f"h = [{', '.join(map(show, hidden))}] gives key {show(key)} and value {show(value)}."
    return View((product_picture(hidden, weights, results), metrics, prose), summary)
