"""The picture of the `mhc` widget's schedules: two timelines over the same tiles, and what each of them moves.

Time runs from left to right: the tiles arrive, the sums are complete, what was let go is read again, the next sub-block
runs. A bar shows while the A that a tile needs exists; a tile is collapsed only under it.
"""

from collections.abc import Mapping, Sequence

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import counted, show

_ROW = 26.0
READS = ("read X", "read y", "read X′ again")


class _Time:
    """Where things lie from left to right.

    Attributes:
        left: the beginning, behind the names on a wide canvas.
        tile: width of a tile.
        made: left edge of the column in which the coefficients are made; `again`: of the second read; `after`: of the
            next sub-block; `end`: its right edge.
    """

    def __init__(self, canvas: Canvas, tiles: int) -> None:
        self.left = 0.0 if canvas.narrow else 122.0
        self.tile, column, block = (29.0, 40.0, 62.0) if canvas.narrow else (54.0, 62.0, 88.0)
        self.made = self.left + tiles * self.tile
        self.again = self.made + column
        self.after = self.again + tiles * self.tile + 8
        self.end = self.after + block


def schedule_picture(
    lanes: Sequence, notes: Mapping[str, tuple[str, tuple[str, ...]]], streams: int, step: int, totals
) -> Picture:
    """Both lanes (`mhc_schedule.Lane`) at a step, and the numbers that all three schedules move.

    Args:
        lanes: the original, then the single pass.
        notes: title of a lane and the lines of its note, by its name.
        streams: n.
        step: 1 to 8.
        totals: numbers moved in the end by schedule, in multiples of d.
    """
    tiles = lanes[0].tiles

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        time = _Time(canvas, tiles)
        with canvas.group():
            kinds = [
                ("k-box k-hidden", "written"),
                ("k-box k-selected", "collapsed"),
                ("k-error", "read a second time"),
            ]
            y = kit.legend(canvas, kinds) + 8
        y = _header(canvas, y, time, tiles, step)
        for one in lanes:
            y = _lane(canvas, y, one, *notes[one.name], time) + 18
        with canvas.group():
            y = kit.heading(canvas, 0, y, "Numbers moved per token", f"n = {counted(streams, 'stream')} of width d")
        y = _traffic(canvas, y, lanes, totals)
        canvas.height = y + 4
        return canvas

    states = "; ".join(
        f"{notes[one.name][0]}: {one.arrived} of {tiles} tiles written, {one.collapsed} collapsed, {one.again} read a "
        f"second time, {show(one.total)}d moved"
        for one in lanes
    )
    raw = {
        "step": step,
        "lanes": {one.name: {**one.moved, "collapsed": one.collapsed} for one in lanes},
        "totals": dict(totals),
    }
    return draw(paint, "Two schedules", f"Step {step}. {states}.", raw)


def _header(canvas: Canvas, y: float, time: _Time, tiles: int, step: int) -> float:
    """What happens when; the moment of the step stands in bold over a mark."""
    moments = [
        (time.left, time.made - 6, "tiles of X′ arrive", range(2, tiles + 2)),
        (time.made, time.again - 6, "A ready" if canvas.narrow else "sums done", (tiles + 2,)),
        (time.again, time.after - 14, "second read", (tiles + 3,)),
        (time.after, time.end, "sub-block" if canvas.narrow else "next sub-block", (tiles + 4,)),
    ]
    for left, right, words, steps in moments:
        now = step in steps
        with canvas.group():
            style = "k-changed k-text--strong" if now else "k-muted"
            canvas.text((left + right) / 2, y + 10, words, style, size=SMALL)
            canvas.line(left, y + 17, right, y + 17, "k-grid", 2)
            if now:
                at = left + (step - 2) * time.tile if steps[0] == 2 else left
                wide = time.tile - 2 if steps[0] == 2 else right - left
                canvas.line(at, y + 17, at + wide, y + 17, "k-changed", 4)
    return y + 26


def _lane(canvas: Canvas, y: float, one, title: str, note: tuple[str, ...], time: _Time) -> float:
    """One schedule: tiles written, the bar of A, tiles collapsed, tiles read again."""
    tiles = list(range(one.tiles))
    wide = time.tile - 2
    with canvas.group():
        if canvas.narrow:
            y = kit.heading(canvas, 0, y, title, " ".join(note))
        else:
            canvas.text(0, y + 17, title, "k-text--strong", "start")
            for row, words in enumerate(note):
                canvas.text(0, y + 36 + 14 * row, words, "k-muted", "start", SMALL)
    with canvas.group(time.left, y):
        off = tiles[one.arrived :]
        kit.cells(canvas, 0, 0, [t + 1 for t in tiles], time.tile, _ROW, "hidden", off=off)
    begin, end = (time.left, time.made) if one.early else (time.made, time.after - 8)
    with canvas.group(0, y + _ROW):
        there = one.early or one.own
        canvas.line(
            begin + 1, 13, end - 8, 13, "k-result" if there else "k-grid", 5 if there else 2, "" if there else "4 4"
        )
        words = "A exists"
        wording = kit.text_width(words, SMALL) + 6
        middle = (begin + end - 8) / 2
        canvas.rect(middle - wording / 2, 5, wording, 16, "k-cell", 3)
        canvas.text(middle, 17, words, "k-selected k-text--strong" if there else "k-muted", size=SMALL)
    with canvas.group(0, y + 2 * _ROW):
        here = one.collapsed - one.again
        for t in tiles:
            x = time.left + t * time.tile
            if t < here:
                kit.cells(canvas, x, 0, ["x"], time.tile, _ROW, "selected")
            elif t < one.arrived:
                canvas.text(x + time.tile / 2, 17, "✗", "k-error", size=SMALL)
            else:
                kit.cells(canvas, x, 0, [""], time.tile, _ROW, "selected", off=(0,))
        if not one.early:
            _second_read(canvas, one, tiles, time, wide)
        state = "" if one.collapsed == one.tiles and one.finished else "off"
        kit.box(canvas, time.after, -_ROW / 2, time.end - time.after, _ROW, "runs", "", "parameters", state)
    if not one.early and one.arrived:
        with canvas.group():
            words = "no A yet: let go" if canvas.narrow else "no A yet: the tile leaves"
            canvas.text(time.left, y + 3 * _ROW + 13, words, "k-error", "start", SMALL)
    return y + 3 * _ROW + (18 if not one.early else 0)


def _second_read(canvas: Canvas, one, tiles: list[int], time: _Time, wide: float) -> None:
    for t in tiles:
        x = time.again + t * time.tile
        if t < one.again:
            canvas.rect(x + 1, -2 * _ROW, wide, _ROW, "k-error", 3, 0.45)
            canvas.text(x + time.tile / 2, -2 * _ROW + 17, t + 1, "k-text--strong")
            kit.cells(canvas, x, 0, ["x"], time.tile, _ROW, "selected")
        else:
            kit.cells(canvas, x, -2 * _ROW, [""], time.tile, _ROW, "error", off=(0,))
            kit.cells(canvas, x, 0, [""], time.tile, _ROW, "selected", off=(0,))


def _traffic(canvas: Canvas, y: float, lanes: Sequence, totals: Mapping[str, float]) -> float:
    """A bar for each schedule, of what it has read and written so far, on the ground of what it will."""
    left = 88.0 if canvas.narrow else 122.0
    scale = (canvas.width - left - (50 if canvas.narrow else 66)) / max(totals.values())
    for name, total in totals.items():
        one = next((lane for lane in lanes if lane.counts_as == name), None)
        with canvas.group(0, y):
            canvas.text(0, 16, name, "k-label", "start")
            canvas.rect(left, 2, total * scale, 20, "k-ground", 2)
            done = one.total if one else total
            if one is None:
                canvas.rect(left, 2, total * scale, 20, "k-negative", 2, 0.35)
            x = left
            for kind, amount in one.moved.items() if one else ():
                _segment(canvas, x, kind, amount * scale)
                x += amount * scale
            strong = f"{show(done)}d" if done == total else f"{show(done)} of {total}d"
            canvas.text(canvas.width, 16, strong, "k-text--strong", "end", 11 if done != total else 13)
        y += 28
    return y


def _segment(canvas: Canvas, x: float, kind: str, wide: float) -> None:
    if not wide:
        return
    if kind.endswith("again"):
        canvas.rect(x + 0.5, 2, wide - 1, 20, "k-error", 2, 0.45)
    elif kind in READS:
        canvas.rect(x + 0.5, 2, wide - 1, 20, "k-hidden", 2, 0.45)
    else:
        canvas.rect(x + 1, 2.5, wide - 2, 19, "k-box k-hidden", 2)
    for words in (kind, kind.split(" ")[1]):
        if kit.text_width(words, SMALL) < wide - 2:
            canvas.text(x + wide / 2, 16, words, size=SMALL)
            return
