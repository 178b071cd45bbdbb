"""Widget `two-reads`: two queries read the same keys and values and take different things from them.

Mechanism: the attention of `reference.toy_attention`, softmax(QKᵀ/√2)V. Both memories are invented.
"""

import math

import numpy as np

from deepseek_edu.drawing.numbers import fixed
from deepseek_edu.reference import toy_attention

from .contract import Choice, Numbers, Slider, View, widget
from .parts import Metric, Metrics, Prose, Table
from .parts import View as Answer
from .two_reads_drawing import Read, reads_picture

ROOT = math.sqrt(2)
MEMORIES = {
    "two": (((1, 0), (0, 1)), ((2, 0), (0, 2))),
    "three": (((2, 0), (0, 2), (1, 1)), ((1, 0), (0, 1), (0.5, 0.5))),
}
_SAME = 1e-5  # directions are rounded to six digits
QUERIES = {"two": ((ROOT, 0), (0, ROOT)), "three": ((0, 1), (1, 0))}


@widget(
    "two-reads",
    title="Same memory, two reads",
    mechanism={
        "reference.toy_attention": ("attention_scores", "attention_weights", "project"),
        "reference.activations": ("softmax",),
    },
    source="textbook attention; what is shared: report §2.3.1",
    chapter="05_sharing_selecting",
    grid=("memory", "queries"),
)
def two_reads(
    memory: Choice({"two": "Two entries", "three": "Three entries"}, "Memory", look="segments") = "two",
    queries: Choice({"given": "As given", "turn": "Turn B", "own": "Type both"}, "Queries", look="segments") = "given",
    angle: Slider(-180, 180, 5, "Direction of query B", unit="°", stops=73, when={"queries": "turn"}) = 45,
    typed: Numbers(
        -9, 9, 0.1, "Queries", length=4, columns=2, names=("x", "y"), rows=("A", "B"), when={"queries": "own"}
    ) = (1.4, 0.0, 0.5, 1.0),
) -> View:
    """Evaluate the widget for checked control values."""
    keys, values = (np.array(rows, float) for rows in MEMORIES[memory])
    a, b = QUERIES[memory]
    if queries == "turn":
        length = math.hypot(*b)
        b = tuple(round(length * part(math.radians(angle)), 6) for part in (math.cos, math.sin))
    elif queries == "own":
        a, b = typed[:2], typed[2:]
    reads = tuple(_read(name, np.array(query, float), keys, values) for name, query in (("A", a), ("B", b)))
    first, second = reads
    gap = float(np.abs(first.output - second.output).max())
    metrics = Metrics(
        (
            Metric("Largest difference", gap, fixed(gap, 3), note="between the two outputs", role="result"),
            Metric("Stored", keys.size + values.size, unit="numbers", note="however many queries read them"),
        ),
        "Two reads",
    )
    same = np.allclose(first.query, second.query, rtol=0, atol=_SAME)
    words = (
        "Both queries are the same, so the shares and the outputs are the same."
        if same
        else "The outputs agree although the queries differ: here both take the same shares."
        if gap < _SAME
        else "Keys and values are the same for both. The queries differ, so the shares differ, so the outputs differ."
    )
    tail = " Sharing a memory shares what can be read. It does not share what is found there."
    table = Table(
        "From scores to shares",
        ("Query", "Entry", "q·k / √2", "Share"),
        rows := tuple((r.name, j, float(r.scores[j]), float(r.shares[j])) for r in reads for j in range(len(keys))),
        tuple((row[0], str(row[1]), fixed(row[2], 3), fixed(row[3], 3)) for row in rows),
        folded=True,
    )
    summary = (
        f"Query A ({_short(first.query)}) reads ({_short(first.output)}), query B ({_short(second.query)}) reads "
        f"({_short(second.output)}) from the same {len(keys)} entries."
    )
    return Answer((reads_picture(keys, values, reads), metrics, Prose(words + tail), table), summary)


def _read(name: str, query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> Read:
    """One query over the whole memory: every entry stands before it."""
    shares = toy_attention.attention_weights(query[None], keys, len(keys))
    scores = toy_attention.attention_scores(query[None], keys)
    return Read(name, query, scores[0], shares[0], toy_attention.project(shares, values)[0])


def _short(vector) -> str:
    return ", ".join(fixed(float(v), 2) for v in vector)
