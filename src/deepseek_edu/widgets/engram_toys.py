"""The small parts of the `engram` widget: a hash by hand, one gate by hand, and two heads packed in one table."""

import math

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing.numbers import fixed, grouped, show
from deepseek_edu.reference import engram

from .engram_toys_drawing import gate_picture, hash_picture, packed_picture
from .parts import Metric, Metrics, Prose, Table, View

ROWS = 101
STORED = (0.2, -0.5, 0.8)
"""What row 28 of the first toy table holds. The other rows hold numbers drawn at random."""

HEADS = {"A": 3, "B": 4}
CONTENT = {
    "A": ((0.7, 0.3), (0.2, -0.5), (-0.9, 0.4)),
    "B": ((-0.1, 0.8), (0.6, 0.1), (0.3, -0.7), (-0.4, -0.2)),
}


def toy_tables() -> np.ndarray:
    """Two tables of 101 rows of three numbers."""
    tables = np.random.default_rng(101).integers(-9, 10, (2, ROWS, 3)) / 10
    tables[0, 28] = STORED
    return tables


IDS, FACTORS = (72.0, 18.0, 1.0, 98.0), (31, 33)
"""Ids of the words and factors of the heads at the start."""


def _hashed(ids: tuple[float, ...], multipliers: tuple[int, ...], mixed: str) -> tuple[tuple, list]:
    """The three groups (name, first id, second id), and for each head (factor, numbers before the remainder, rows)."""
    first, second, third, fourth = (round(number) for number in ids)
    groups = (("New York", first, second), ("York New", second, first), ("ice cream", third, fourth))
    history = np.array([(last, before) for _, before, last in groups])
    found = []
    for multiplier in multipliers:
        if mixed == "xor":
            sums = [(multiplier * before) ^ last for _, before, last in groups]
            rows = engram.hash_rows(history, np.array([1, multiplier]), [[ROWS]])[:, 0].tolist()
        else:
            sums = [multiplier * before + last for _, before, last in groups]
            rows = [number % ROWS for number in sums]
        found.append((multiplier, sums, rows))
    return groups, found


def hash_view(ids: tuple[float, ...], multipliers: tuple[int, ...], mixed: str) -> View:
    """Three groups of two under two heads: the first, the same words the other way round, and another pair."""
    groups, found = _hashed(ids, multipliers, mixed)
    _, start = _hashed(IDS, FACTORS, "plus")
    tables = toy_tables()
    read = [[tables[head, rows[group]] for head, (_, _, rows) in enumerate(found)] for group in range(len(groups))]
    meets = [_pairs(rows) for _, _, rows in found]
    both = [pair for pair in meets[0] if pair in meets[1]]
    picture = hash_picture(groups, found, [rows for _, _, rows in start], read, "⊕" if mixed == "xor" else "+", ROWS)
    named = [[" and ".join(groups[g][0] for g in pair) for pair in pairs] for pairs in meets]
    items = [
        Metric(f"Collisions of head {head + 1}", len(pairs), role="error" if pairs else "")
        for head, pairs in enumerate(meets)
    ]
    items += [
        Metric("Collisions of both heads", len(both), role="error" if both else "result"),
    ]
    return View(
        (picture, Metrics(tuple(items), "Rows"), Prose(_hash_words(named, both, mixed))),
        "; ".join(
            f"{'Head' if head == 0 else 'head'} {head + 1} sends "
            + ", ".join(f"{name} to row {row}" for (name, _, _), row in zip(groups, rows, strict=True))
            for head, (_, _, rows) in enumerate(found)
        )
        + (
            f". {len(both)} of 3 pairs of groups read the same from both."
            if both
            else ". Both together keep all apart."
        ),
    )


def _pairs(rows: list[int]) -> list[tuple[int, int]]:
    return [(a, b) for a in range(len(rows)) for b in range(a + 1, len(rows)) if rows[a] == rows[b]]


def _hash_words(named: list[list[str]], both: list, mixed: str) -> str:
    words = (
        "A collision: " + "; ".join(named[0]) + " read the same row of head 1, so the same three numbers. "
        if named[0]
        else "Head 1 keeps the three apart. "
    )
    if named[0] and not both:
        words += "Head 2 tells them apart, so what is read in all differs in its second half. "
    elif both:
        words += "Head 2 does not help: both halves are the same, and nothing behind them can tell the groups apart. "
    rule = (
        "This is the model’s rule: products joined by XOR, then a remainder. In the model all heads share one mixed "
        "number and differ in their prime."
        if mixed == "xor"
        else "The toy adds; the model joins products by XOR. Order matters in both, because each place has a factor of "
        "its own."
    )
    return f"{words}{rule} Ids, factors and stored numbers are illustrative."


def gate_view(numbers: tuple[float, ...], aimed: float) -> View:
    """One stream, one value, one gate."""
    value, state = np.array(numbers[:2]), np.array(numbers[2:])
    logit = math.log(aimed / (1 - aimed))
    dot = math.copysign(logit * logit, logit)
    gate = float(engram.gate(np.array([dot]))[0])
    after = state + gate * value
    width = ModelConfig.v41_flash().dim
    angle = math.degrees(math.acos(dot / math.sqrt(width)))
    plain = 1 / (1 + math.exp(-dot))
    even = np.linspace(-1, 1, 41)
    dots = 9 * even * np.abs(even)
    curves = (dots, engram.gate(dots), 1 / (1 + np.exp(-dots)))
    metrics = Metrics(
        (
            Metric("State after", after.tolist(), _list(after), note="state + gate × value", role="result"),
            Metric("Gate", gate, fixed(gate, 2)),
            Metric("Agreement that makes it", dot, fixed(dot, 2), note=f"{fixed(angle, 1)}° between state and key"),
            Metric("Gate without the root", plain, fixed(plain, 3)),
        ),
        "One gate",
    )
    prose = Prose(
        f"{_list(state)} + {fixed(gate, 2)} · {_list(value)} = {_list(after)}. The gate only moves along the dashed "
        "line: it makes a row louder or quieter. A wrong row, read through a collision, stays wrong; the best a gate "
        f"can do is to keep it out. At a width of {grouped(width)} the agreement is √{grouped(width)} times the "
        f"cosine of the angle, so {fixed(angle, 1)}° is enough. The signed root keeps such large numbers from "
        "saturating the sigmoid."
    )
    summary = (
        f"State {_list(state)} plus gate {fixed(gate, 2)} times value {_list(value)} is {_list(after)}; the gate comes "
        f"from an agreement of {fixed(dot, 2)}."
    )
    return View((gate_picture(value, state, gate, dot, after, curves), metrics, prose), summary)


def packed_view(number: int, offsets: str) -> View:
    """Two heads of 3 and 4 rows in one array; `number` is the group's mixed number."""
    names = [f"{head}{row}" for head, rows in HEADS.items() for row in range(rows)]
    table = np.array([pair for rows in CONTENT.values() for pair in rows])
    history, factors = np.array([[number, 0]]), np.array([1, 1])
    right = engram.hash_rows(history, factors, [list(HEADS.values())])[0].tolist()
    own = [engram.hash_rows(history, factors, [[rows]])[0].tolist()[0] for rows in HEADS.values()]
    shifts = {"right": None, "none": (0, 0), "own": (0, HEADS["B"])}[offsets]
    used = right if shifts is None else [row + shift for row, shift in zip(own, shifts, strict=True)]
    read = [table[row].tolist() if 0 <= row < len(table) else None for row in used]
    wanted = [list(CONTENT[head][row]) for head, row in zip(HEADS, own, strict=True)]
    added = [row - small for row, small in zip(used, own, strict=True)]
    picture = packed_picture(names, table, own, added, used, read, wanted, number)
    fine = [a == b for a, b in zip(read, wanted, strict=True)]
    checks = _checks(offsets)
    metrics = Metrics(
        (
            Metric("Index of head A", used[0], note=f"{own[0]} + {added[0]}"),
            Metric("Index of head B", used[1], note=f"{own[1]} + {added[1]}", role="" if fine[1] else "error"),
            Metric(
                "Head B reads", read[1], _list(read[1]) if read[1] else "no such row", role="" if fine[1] else "error"
            ),
            Metric("Head B should read", wanted[1], _list(wanted[1]), role="result"),
        ),
        "Packed lookup",
    )
    said = (
        "Each head counts its rows from 0. The offset of a head is the sum of the rows before it."
        if all(fine)
        else f"Head B should read B{own[1]} and "
        + (
            f"gets {names[used[1]]}. No error is raised: the shape is right and the index exists."
            if read[1]
            else f"asks for index {used[1]}, which the array of {len(table)} rows does not have."
        )
    )
    return View(
        (picture, metrics, Prose(said, "" if all(fine) else "warn"), checks),
        f"Mixed number {number}: head A asks for row {own[0]}, head B for row {own[1]}; with these offsets they read "
        f"indices {used[0]} and {used[1]}, {'as they should' if all(fine) else 'which is wrong for head B'}.",
    )


def _checks(offsets: str) -> Table:
    """What four tests say of a lookup with these offsets, each tried on all twelve mixed numbers."""
    table = np.array([pair for rows in CONTENT.values() for pair in rows])
    shift = {"right": HEADS["A"], "none": 0, "own": HEADS["B"]}[offsets]
    size, seen = len(table), {"range": True, "first": True, "second": True}
    for number in range(math.prod(HEADS.values())):
        a, b = (number % rows for rows in HEADS.values())
        inside = b + shift < size
        seen["range"] &= inside
        seen["first"] &= bool((table[a] == CONTENT["A"][a]).all())
        seen["second"] &= inside and bool((table[b + shift] == CONTENT["B"][b]).all())
    rows = (
        ("Two rows are read", "passes"),
        ("Every index lies inside the array", seen["range"]),
        ("Head A reads its own row", seen["first"]),
        ("Head B reads its own row", seen["second"]),
    )
    text = tuple(
        (name, result if isinstance(result, str) else "passes" if result else "fails") for name, result in rows
    )
    caption = f"Which test notices? Each tries all {math.prod(HEADS.values())} mixed numbers"
    return Table(caption, ("A test checks that …", "With these offsets it"), text)


def _list(values) -> str:
    return f"[{', '.join(show(round(float(v), 6) + 0.0, 3) for v in values)}]"
