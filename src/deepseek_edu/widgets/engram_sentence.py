"""The sentence part of the `engram` widget as a view: numbers, words and the picture."""

import numpy as np

from deepseek_edu.drawing.numbers import counted, fixed, percent

from .engram_sentence_drawing import sentence_picture
from .engram_words import WIDTH, Read, read
from .parts import Metric, Metrics, Prose, Table, View


def sentence_view(text: str, image: bool, token: int) -> View:
    """Follow the token at a position, counted from 1; beyond the end it is the last one."""
    run = read(text, image)
    at = min(token, len(run.words)) - 1
    orders = range(2, run.history.shape[1] + 1)
    padded, best = int(run.blocked[at].sum()), int(np.argmax(run.gates[at]))
    metrics = Metrics(
        (
            Metric("Compressed id", None if at == run.image else int(run.compressed[at]), _id(run, at), role="result"),
            Metric("Padding in its groups", padded, note=f"of {run.history.shape[1]} places"),
            Metric("Rows read", run.rows.shape[1], note=f"{len(orders)} orders × {len(run.primes[0])} heads"),
            Metric(
                "Largest gate", float(run.gates[at, best]), fixed(float(run.gates[at, best]), 2), note=f"stream {best}"
            ),
        ),
        "This token",
    )
    parts = [sentence_picture(run, at), metrics, *_beyond(run, token), Prose(_words(run, at)), *_warning(run, at)]
    return View((*parts, _merged(run)), _summary(run, at, token))


def _id(run: Read, at: int) -> str:
    return "none" if at == run.image else str(int(run.compressed[at]))


def twin(run: Read, at: int) -> int | None:
    """An earlier or later position that reads the same rows for its pair, but stands in another longer group."""
    pair = run.history[at, :2]
    for other in range(len(run.words)):
        if other != at and not run.blocked[[at, other], :2].any() and (run.history[other, :2] == pair).all():
            return other
    return None


def _beyond(run: Read, token: int) -> tuple[Prose, ...]:
    """That the sentence ends before the word that is asked for."""
    if token <= len(run.words):
        return ()
    many = counted(len(run.words), "word")
    return (Prose(f"The sentence has {many}, so there is no word {token}: this is the last one.", "warn"),)


def _words(run: Read, at: int) -> str:
    """What there is to see at this position."""
    if at == run.image:
        return (
            "A position inside an image has no text: every id of its groups is padding, and whatever the rows hold, "
            "its gates are 0. Nothing is added."
        )
    heads = len(run.primes[0])
    said = f"“{run.words[at]}” and up to three words before it make the groups. "
    other = twin(run, at)
    if other is not None:
        same = int((run.rows[at] == run.rows[other]).sum())
        longer = ", the longer groups differ" if same == heads else ""
        said += (
            f"The pair also stands at word {other + 1}: {same} of {run.rows.shape[1]} rows are the same there{longer}. "
            "The gates differ too: they compare with the state, which knows more of the sentence. "
        )
    best = int(np.argmax(run.gates[at]))
    return said + (
        f"Stream {best} lets most of the value in, {percent(float(run.gates[at, best]), digits=3)}. "
        f"Agreement is √{WIDTH} times the cosine of the angle between state and "
        "key, but for gains close to 1."
    )


def _warning(run: Read, at: int) -> tuple[Prose, ...]:
    if run.image is None or at == run.image or not run.blocked[at].any() or at < run.image:
        return ()
    return (
        Prose(
            f"Word {run.image + 1} is now part of an image. It blocks the view: it and everything before it count as "
            "padding in the groups of later words.",
            "warn",
        ),
    )


def _merged(run: Read) -> Table:
    """The ids of the sentence, before and after compression."""
    rows = tuple(
        (word, int(run.ids[i]), "none" if i == run.image else int(run.compressed[i]))
        for i, word in enumerate(run.words)
    )
    return Table("Token ids and compressed ids", ("Word", "Token id", "Compressed id"), rows, folded=True)


def _summary(run: Read, at: int, token: int) -> str:
    named = f"Word {at + 1}" if token == at + 1 else f"There is no word {token}. Word {at + 1}, the last,"
    if at == run.image:
        return f"{named} is part of an image: its groups are all padding, its gates are 0, nothing is added."
    groups = run.text(at)
    shown = ", ".join(" ".join(groups[-order:]) for order in range(2, len(groups) + 1))
    gates = ", ".join(fixed(float(g), 2) for g in run.gates[at])
    rows = ", ".join(map(str, run.rows[at].tolist()))
    return f"{named.rstrip(',')}: groups {shown} read rows {rows}; the gates of the streams are {gates}."
