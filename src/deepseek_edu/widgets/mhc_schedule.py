"""The `mhc` widget between two sub-blocks: which coefficient exists when a tile arrives, and what is read and written.

A token's streams pass in tiles. Each tile is written back from the output of the sub-block that just ended and has to
be collapsed for the next one. One rule makes both schedules: a tile is collapsed on arrival if the A it needs exists,
and otherwise read again once it does. What is counted this way is compared with `reference.mhc.traffic`.
"""

from dataclasses import dataclass

from deepseek_edu.drawing.numbers import counted, percent, show
from deepseek_edu.reference import mhc

from .mhc_timeline import schedule_picture
from .parts import Metric, Metrics, Prose, View

TILES = 4
STEPS = 8  # before, four tiles, coefficients, second read, sub-block
KINDS = ("read X", "read y", "write X′", "read X′ again", "write x")
TITLES = {
    "original": ("Original", ("two passes: A", "is made from", "these streams")),
    "single": ("Single pass", ("A comes from the", "sub-block before")),
}


@dataclass(frozen=True)
class Lane:
    """One schedule at one step."""

    name: str
    tiles: int  # tiles of a token's streams
    early: bool  # whether the A that a tile needs exists before the first one arrives
    finished: bool  # whether the next sub-block runs
    arrived: int  # tiles of the new streams that were written
    collapsed: int  # tiles of the next input that exist
    again: int  # tiles read a second time
    own: bool  # whether A, B and C of the next sub-block exist
    moved: dict[str, float]  # numbers moved so far by KINDS, in multiples of d

    @property
    def total(self) -> float:
        return sum(self.moved.values())

    @property
    def counts_as(self) -> str:
        """Its name among the totals."""
        return "single pass" if self.name == "single" else "two passes"


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
    early, finished = needed == "previous", step == STEPS
    return Lane(name, TILES, early, finished, arrived, collapsed + again, again, "own" in exist, moved)


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
            Metric(
                "Of three kernels, the single pass moves",
                totals["single pass"] / totals["three kernels"],
                percent(totals["single pass"] / totals["three kernels"]),
            ),
            Metric(
                "Of two passes, it moves",
                totals["single pass"] / totals["two passes"],
                percent(totals["single pass"] / totals["two passes"]),
            ),
        ),
        "Numbers moved",
    )
    of_streams = counted(streams, "stream")
    summary = (
        f"Step {step} of {STEPS} with {of_streams}: the original has collapsed {original.collapsed} of {TILES} tiles "
        f"and moved {show(original.total)}d numbers, the single pass {single.collapsed} and {show(single.total)}d."
    )
    return View((schedule_picture(lanes, TITLES, streams, step, totals), metrics, Prose(_words(lanes, step))), summary)


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
