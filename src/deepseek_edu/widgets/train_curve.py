"""Widget `train-curve`: a recorded training run, step by step, against predictors that only count.

The run is a part of the record assets/runs/baseline.json, in train_curve.json beside this file. What it is compared
with is computed here by `reference.toy_language`, the mechanism: from the lists that the run trained on and held out.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deepseek_edu.drawing.numbers import fixed, listed, percent
from deepseek_edu.reference import toy_language as language

from .contract import Choice, Slider, View, widget
from .memo import remembered
from .parts import Metric, Metrics, Prose, Table
from .train_curve_drawing import curve_picture, sentence_picture

RECORD: dict = json.loads(Path(__file__).with_name("train_curve.json").read_text(encoding="utf-8"))
SEEDS = ("1", "2")
BEST = "the language"


@dataclass(frozen=True)
class Reference:
    """A predictor that is not trained: its loss on the held-out list, and its probabilities in the probed sentences."""

    name: str
    loss: float
    perplexity: float
    probed: tuple


@widget(
    "train-curve",
    title="A training run, and what it has to beat",
    mechanism={
        "reference.toy_language": (
            "next_token_pairs",
            "uniform",
            "unigram",
            "bigram",
            "predicted",
            "predicted_by_the_language",
            "cross_entropy",
            "perplexity",
        )
    },
    source="a run of this course, recorded in assets/runs/baseline.json",
    chapter="11_baseline",
)
def train_curve(
    step: Slider(0, 600, 25, "Training step", look="steps") = 600,
    seed: Choice({seed: f"seed {seed}" for seed in SEEDS}, "Run", look="segments") = "1",
    scale: Choice({"loss": "loss", "above": "above the best possible"}, "Height", look="segments") = "loss",
    sentence: Choice({str(i): text for i, text in enumerate(RECORD["probed"])}, "Held-out sentence to look into") = "0",
) -> View:
    """Evaluate the widget for checked control values."""
    run, other = (RECORD[f"seed {s}"] for s in (seed, SEEDS[1 - SEEDS.index(seed)]))
    at = next(index for index, figures in enumerate(run) if figures["step"] == step)
    now, found = run[at], references()
    best = next(r for r in found if r.name == BEST)
    parts = (
        curve_picture(run, other, at, found, best.loss if scale == "above" else None),
        _metrics(now),
        _said(run, at, found),
        sentence_picture(RECORD["probed"][int(sentence)], now, int(sentence), found),
        _samples(now),
        _losses(now, found),
    )
    return View(parts, _summary(now, seed, found))


@remembered(1)
def lists() -> tuple[list[str], list[str]]:
    """The sentences that the run trained on, and those held out."""
    return language.split(language.sentences(), RECORD["split_seed"])


@remembered(1)
def references() -> tuple[Reference, ...]:
    """The predictors to compare with, the worst first. Counts are of the training list, losses of the held-out one."""
    train, tokens = (language.encode(texts) for texts in lists())
    size = len(language.VOCABULARY)
    found = []
    for name, table in (
        ("uniform guess", language.uniform(size)),
        ("word counts (unigram)", language.unigram(train, size)),
        ("pair counts (bigram)", language.bigram(train, size)),
    ):
        found.append(_reference(name, language.predicted(table, tokens)))
    for name, rule in (("the language without its colour rule", False), (BEST, True)):
        everything = language.encode(language.sentences(rule))
        found.append(_reference(name, language.predicted_by_the_language(tokens, everything)))
    return tuple(found)


def _reference(name: str, shares: np.ndarray) -> Reference:
    loss = round(language.cross_entropy(shares), 9)
    places = [lists()[1].index(text) for text in RECORD["probed"]]
    rows = tuple(tuple(round(float(p), 7) for p in shares[place]) for place in places)
    return Reference(name, loss, round(language.perplexity(loss), 7), rows)


def verdict(text: str) -> str:
    """Where a sampled sentence comes from."""
    train, held_out = lists()
    if text in held_out:
        return "of the language, never seen"
    if text in train:
        return "of the language, trained on"
    return "of the language but for the colour rule" if text in language.sentences(False) else "not of the language"


# Words and numbers


def _metrics(now: dict) -> Metrics:
    gap = round(now["held_out"] - now["train"], 5)
    well = now["well_formed"]
    note = f"of {RECORD['samples']} samples; {percent(now['never_seen'])} never seen"
    return Metrics(
        (
            Metric("Loss, trained on", now["train"], fixed(now["train"], 4), note="nats per word"),
            Metric(
                "Loss, held out",
                now["held_out"],
                fixed(now["held_out"], 4),
                note=f"perplexity {language.perplexity(now['held_out']):.2f}",
                role="result",
            ),
            Metric("Gap", gap, fixed(gap, 4), note="held out − trained on"),
            Metric("Well formed", well, percent(well), note=note),
            Metric(
                "Paints in its own colour",
                now["same_colour"],
                percent(now["same_colour"]),
                note=f"in ‘move … paint it’; {percent(0.2)} is looking away",
            ),
        ),
        f"After {now['step']} steps",
    )


def beaten(now: dict, found: tuple[Reference, ...]) -> list[str]:
    """Names of the references whose loss on the held-out list is higher than the model's."""
    return [r.name for r in found if now["held_out"] < r.loss]


def _said(run: list, at: int, found: tuple[Reference, ...]) -> Prose:
    now = run[at]
    won = beaten(now, found)
    if won:
        named = listed(f"{r.name} ({fixed(r.loss, 3)})" for r in found if r.name in won)
        words = f"On sentences it never saw, its loss is below {len(won)} of {len(found)} lines: {named}. "
    else:
        words = "The model knows nothing yet: its loss is below none of the lines. "
    words += (
        f"{fixed(found[-1].loss, 3)} is the best that is possible: where the language leaves a choice, nobody can know."
    )
    lowest = min(run[: at + 1], key=lambda figures: figures["held_out"])
    if lowest is not now:
        words += f" At step {lowest['step']} the loss was lower."
    if now["step"] == RECORD["reported"]:
        words += " This step is the one that is reported; it was fixed before the run."
    elif lowest is not now:
        words += " To pick the lowest afterwards would be to choose by the held-out list."
    return Prose(words)


def _samples(now: dict) -> Table:
    rows = tuple((text, verdict(text)) for text in now["samples"])
    shown = tuple((text or "(it ended at once)", "") for text, _ in rows)
    return Table(f"The first sentences it wrote after {now['step']} steps", ("Sentence", "Found"), rows, shown)


def _losses(now: dict, found: tuple[Reference, ...]) -> Table:
    pairs = [(r.name, r.loss, r.perplexity) for r in found]
    mine = round(language.perplexity(now["held_out"]), 7)
    rows = tuple(sorted([*pairs, ("the model", now["held_out"], mine)], key=lambda row: -row[1]))
    return Table(
        "Loss and perplexity on the held-out list",
        ("Predictor", "Loss", "Perplexity"),
        rows,
        tuple((name, fixed(loss, 4), fixed(perplexity, 2)) for name, loss, perplexity in rows),
        selected=tuple(i for i, row in enumerate(rows) if row[0] == "the model"),
        folded=True,
    )


def _summary(now: dict, seed: str, found: tuple[Reference, ...]) -> str:
    return (
        f"Seed {seed}, step {now['step']}: loss {fixed(now['train'], 3)} on sentences trained on, "
        f"{fixed(now['held_out'], 3)} on held-out ones. {len(beaten(now, found))} of {len(found)} references beaten; "
        f"{percent(now['well_formed'])} of its sentences are well formed."
    )
