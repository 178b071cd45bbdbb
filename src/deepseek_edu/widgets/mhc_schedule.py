"""The `mhc` widget between two sub-blocks: which coefficient exists when a tile arrives, and what is read and written.

A token's streams pass in tiles. Each tile is written back from the output of the sub-block that just ended and has to
be collapsed for the next one. One rule makes both schedules: a tile is collapsed on arrival if the A it needs exists,
and otherwise read again once it does. What is counted this way is compared with `reference.mhc.traffic`.
"""

from dataclasses import dataclass

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import show
from deepseek_edu.reference import mhc

from .parts import Metric, Metrics, Prose, View

TILES = 4
STEPS = 8  # before, four tiles, coefficients, second read, sub-block
KINDS = ("read X", "read y", "write X′", "read X′ again", "write x")
TITLES = {
    "original": ("Original, in two passes", "A is made from the same streams that it collapses"),
    "single": ("Single pass", "A comes from the sub-block before"),
}


@dataclass(frozen=True)
class Lane:
    """One schedule at one step."""

    name: str
    arrived: int  # tiles of the new streams that were written
    collapsed: int  # tiles of the next input that exist
    again: int  # tiles read a second time
    own: bool  # whether A, B and C of the next sub-block exist
    moved: dict[str, float]  # numbers moved so far by KINDS, in multiples of d

    @property
    def total(self) -> float:
        return sum(self.moved.values())


def lane(name: str, streams: int, step: int) -> Lane:
    """Run one schedule up to a step: 1 before anything, 2 to 5 one tile each, 6 coefficients, 7 second read, 8 all."""
    exist = {"previous"}
    needed = "previous" if name == "single" else "own"
    moved = dict.fromkeys(KINDS, 0.0)
    arrived, collapsed, waiting = 0, 0, 0
    for _ in range(min(TILES, step - 1)):
        arrived += 1
        moved["read X"] += streams / TILES
        moved["read y"] += 1 / TILES
        moved["write X′"] += streams / TILES
        if needed in exist:
            collapsed += 1
            moved["write x"] += 1 / TILES
        else:
            waiting += 1
    if step >= TILES + 2:
        exist.add("own")
    again = waiting if step >= TILES + 3 and needed in exist else 0
    moved["read X′ again"] += again * streams / TILES
    moved["write x"] += again / TILES
    return Lane(name, arrived, collapsed + again, again, "own" in exist, moved)


def schedule(streams: int, step: int) -> View:
    """The part of the widget that walks through both schedules."""
    lanes = [lane(name, streams, step) for name in TITLES]
    totals = {
        "three kernels": mhc.traffic(streams, 1, "three-kernel"),
        "two passes": mhc.traffic(streams, 1, "two-pass"),
        "single pass": mhc.traffic(streams, 1, "single"),
    }
    original, single = lanes
    metrics = Metrics(
        (
            Metric("Original so far", original.total, f"{show(original.total)}d", note=f"of {totals['two passes']}d"),
            Metric("Single pass so far", single.total, f"{show(single.total)}d", note=f"of {totals['single pass']}d"),
            Metric(
                "Of three kernels, the single pass moves",
                totals["single pass"] / totals["three kernels"],
                f"{100 * totals['single pass'] / totals['three kernels']:.0f} %",
            ),
            Metric(
                "Of two passes, it moves",
                totals["single pass"] / totals["two passes"],
                f"{100 * totals['single pass'] / totals['two passes']:.0f} %",
            ),
        ),
        "Numbers moved",
    )
    summary = (
        f"Step {step} of {STEPS} with {streams} streams: the original has collapsed {original.collapsed} of {TILES} "
        f"tiles and moved {show(original.total)}d numbers, the single pass {single.collapsed} and "
        f"{show(single.total)}d."
    )
    return View((_picture(lanes, streams, step, totals), metrics, Prose(_words(lanes, step))), summary)


def _words(lanes: list[Lane], step: int) -> str:
    """What happens in a step, for both schedules."""
    original, single = lanes
    if step == 1:
        return (
            "A sub-block has ended. Its output y and the streams X lie in memory, and its B and C are known: nothing "
            "keeps the first tile from being written back. In the single pass its A is kept too, for the next one."
        )
    if step <= TILES + 1:
        kept = "has to leave again" if original.collapsed < original.arrived else "is collapsed at once"
        taken = "collapses it at once" if single.collapsed == single.arrived else "has to let it go"
        return (
            f"Tile {original.arrived} arrives and is written back with the known B and C. The next A depends on all "
            f"{TILES} tiles, and {original.arrived} are in its sums. Original: the tile {kept}. Single pass: the A it "
            f"needs exists, so it {taken}."
        )
    if step == TILES + 2:
        return (
            "All tiles are in the sums: A, B and C of the next sub-block exist now. The original can begin to "
            f"collapse. In the single pass {single.collapsed} of {TILES} tiles are collapsed already, and the new A is "
            "put aside."
        )
    if step == TILES + 3:
        return (
            f"Original: {original.again} tiles are read a second time, now that A exists. Single pass: "
            f"{single.again or 'none'}. That second read is the whole difference."
        )
    return (
        "The next sub-block runs on x. Its B and C are used afterwards, when its output y is there: by then they exist "
        "in both schedules, so only A is shifted. Which A collapses a tile is part of the model, which was "
        "trained with it."
    )


def _picture(lanes: list[Lane], streams: int, step: int, totals: dict[str, int]) -> Picture:
    top = max(totals.values())

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        with canvas.group():
            items = [
                ("k-hidden", "read"),
                ("k-box k-hidden", "written"),
                ("k-changed", "read again"),
                ("k-box k-selected", "collapsed"),
            ]
            y = kit.legend(canvas, items) + 6
        for one in lanes:
            y = _lane(canvas, y, one, streams, top) + 16
        with canvas.group():
            y = kit.heading(canvas, 0, y, "Numbers moved per token and sub-block", f"n = {streams} streams of width d")
            rows = [(name, total, f"{total}d", "hidden") for name, total in totals.items()]
            canvas.height = kit.bars(canvas, 0, y, width, rows, 110) + 4
        return canvas

    states = "; ".join(
        f"{TITLES[one.name][0]}: {one.arrived} of {TILES} tiles written, {one.collapsed} collapsed, "
        f"{show(one.total)}d moved"
        for one in lanes
    )
    raw = {
        "step": step,
        "lanes": {one.name: {**one.moved, "collapsed": one.collapsed} for one in lanes},
        "totals": totals,
    }
    return draw(paint, "Two schedules", f"Step {step}. {states}.", raw)


def _lane(canvas: Canvas, y: float, one: Lane, streams: int, top: float) -> float:
    """Tiles, coefficients and the traffic of one schedule."""
    narrow = canvas.narrow
    title, note = TITLES[one.name]
    with canvas.group():
        y = kit.heading(canvas, 0, y, title, note)
    left, cell = 88.0, (34.0 if narrow else 46.0)
    names = [str(tile + 1) for tile in range(TILES)]
    with canvas.group(0, y):
        canvas.text(0, 18, "streams X′", "k-label", "start")
        missing = list(range(one.arrived, TILES))
        kit.cells(canvas, left, 1, names, cell, 26, "hidden", off=missing)
        if one.again:
            for tile in range(one.again):
                canvas.line(left + tile * cell + 3, 30, left + (tile + 1) * cell - 3, 30, "k-changed", 4)
        canvas.text(0, 50, "next input x", "k-label", "start")
        missing = list(range(one.collapsed, TILES))
        kit.cells(
            canvas,
            left,
            33,
            ["Σ" if t < one.collapsed else "" for t in range(TILES)],
            cell,
            26,
            "selected",
            off=missing,
        )
    boxes = (0.0, 68.0, (canvas.width - 10) / 2) if narrow else (left + TILES * cell + 24, 1.0, 196.0)
    single = one.name == "single"
    with canvas.group(boxes[0], y + boxes[1]):
        used = "A, B and C in use" if single else "B and C in use"
        kit.box(
            canvas,
            0,
            0,
            boxes[2],
            44,
            "Previous sub-block",
            used,
            "parameters",
            "selected" if one.arrived < TILES else "",
        )
    with canvas.group(boxes[0] + boxes[2] + 10, y + boxes[1]):
        note = "A, B, C exist" if one.own else f"sums over {one.arrived} of {TILES} tiles"
        kit.box(canvas, 0, 0, boxes[2], 44, "Next sub-block", note, "parameters", "" if one.own else "off")
    y += 124 if narrow else 70
    scale = (canvas.width - 70) / top
    x = 0.0
    styles = ("k-hidden", "k-hidden", "k-box k-hidden", "k-changed", "k-box k-hidden")
    with canvas.group(0, y):
        canvas.rect(0, 0, top * scale, 18, "k-ground", 2)
        for kind, style in zip(KINDS, styles, strict=True):
            amount = one.moved[kind]
            if amount:
                canvas.rect(x + 0.5, 0, amount * scale - 1, 18, style, 2)
                word = kind.split(" ", 1)[1]
                if kit.text_width(word, SMALL) < amount * scale + 2:
                    canvas.text(x + amount * scale / 2, 31, word, "k-muted", size=SMALL)
            x += amount * scale
        canvas.text(canvas.width, 14, f"{show(one.total)}d", "k-text--strong", "end")
    return y + 36
