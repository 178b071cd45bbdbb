"""Pictures of the `precision-mix` widget: the error of each branch in each format, and the entries a query reads."""

from collections.abc import Mapping, Sequence

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import percent

from .precision_mix_runs import BRANCHES, CHOSEN, ENTRIES, FORMATS, RELEASED

NAMES = {"window": "Window", "main": "Global entries", "index": "Index keys"}
WORDS = {"exact": "exact", "fp8": "FP8", "fp4": "FP4"}
KINDS = {"window": "k-local", "main": "k-global", "index": "k-global"}
ROW = 48


def errors_picture(
    alone: Mapping[str, Mapping[str, float]], mix: tuple[str, str, str], totals: Mapping[str, float]
) -> Picture:
    """Error of the output: each branch alone in each format, then whole mixes.

    Args:
        alone: {branch: {format: relative error}}.
        mix: the formats chosen.
        totals: {mix: relative error}, the chosen one first.
    """
    top = max(0.02, *(error for row in alone.values() for error in row.values()), *totals.values())

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        y = kit.heading(canvas, 0, 0, "Error of the output", "one branch rounded, the others exact") + 4
        left, row = (0, 62) if canvas.narrow else (130, ROW)
        cell = (canvas.width - left) / len(FORMATS)
        for number, branch in enumerate(BRANCHES):
            with canvas.group():
                canvas.rect(0, y + (4 if canvas.narrow else 14), 11, 11, KINDS[branch], 2)
                canvas.text(18, y + (14 if canvas.narrow else 24), NAMES[branch], "k-text--strong", "start")
            y += 20 if canvas.narrow else 0
            for place, form in enumerate(FORMATS):
                with canvas.group(left + place * cell, y):
                    _cell(canvas, cell, form, alone[branch][form], top, form == RELEASED[number])
                    kit.hit(canvas, branch, form, 2, 0, cell - 4, row - 8)
            with canvas.group(left + FORMATS.index(mix[number]) * cell, y):
                canvas.rect(2, 0, cell - 4, row - 8, "k-mark", 5)
            y += row
        y = kit.heading(canvas, 0, y + 6, "All three together") + 2
        items = [
            (name, error, percent(error, 1), "k-result" if not index else "k-error")
            for index, (name, error) in enumerate(totals.items())
        ]
        with canvas.group():
            y = kit.bars(canvas, 0, y, canvas.width, items, 84 if canvas.narrow else 130, 24, top)
        canvas.height = y + 4
        return canvas

    words = "; ".join(
        f"{NAMES[branch]}: " + ", ".join(f"{WORDS[form]} {percent(error, 1)}" for form, error in row.items())
        for branch, row in alone.items()
    )
    together = ", ".join(f"{name.lower()} {percent(error, 1)}" for name, error in totals.items())
    raw = {"alone": {branch: dict(row) for branch, row in alone.items()}, "together": dict(totals), "mix": list(mix)}
    description = f"Relative error with one branch rounded. {words}. All together: {together}."
    return draw(paint, "Error by branch and format", description, raw)


def _cell(canvas: Canvas, width: float, form: str, error: float, top: float, released: bool) -> None:
    """One format of one branch: its name, the error, a bar."""
    canvas.text(10, 16, WORDS[form], "k-label", "start", SMALL)
    if released:
        beside = (10 + kit.text_width(WORDS[form], SMALL) + 5, 16)
        canvas.text(*((10, 46) if canvas.narrow else beside), "released", "k-muted", "start", SMALL)
    canvas.text(width - 10, 16, percent(error, 1) if error else "0", "k-text--strong", "end", SMALL)
    canvas.rect(10, 23, width - 20, 10, "k-ground", 2)
    if error:
        canvas.rect(10, 23, max(1.5, (width - 20) * error / top), 10, "k-error", 2)


def selection_picture(
    exact: Sequence[Sequence[int]], now: Sequence[Sequence[int]], changed: Sequence[int], query: int
) -> Picture:
    """The entries that one query reads, and how many changed for every query."""
    before, after = ({entry for entry in rows[query] if entry >= 0} for rows in (exact, now))

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        note = "with index keys as set" if narrow else f"the {CHOSEN} best scores with index queries and keys as set"
        y = kit.heading(canvas, 0, 0, f"Query {query + 1} reads {len(after)} of {ENTRIES} entries", note) + 2
        with canvas.group():
            items = [("k-global", "read"), ("k-box k-changed", "+ newly read"), ("k-box k-error", "− no longer read")]
            y = kit.legend(canvas, items, 0, y) + 2
        columns = 16 if narrow else 32
        cell = canvas.width / columns
        height = 22
        with canvas.group(0, y):
            canvas.rect(0, 0, canvas.width, -(-ENTRIES // columns) * height, "k-ground", 3)
            for entry in sorted(before | after):
                x, top = (entry % columns) * cell, (entry // columns) * height
                _entry(canvas, x, top, cell, height, entry in before, entry in after)
        y += -(-ENTRIES // columns) * height + 14
        y = kit.heading(canvas, 0, y, "Entries changed, query by query", "" if narrow else "click one to see it") + 2
        columns = 8 if narrow else len(changed)
        cell = canvas.width / columns
        for number, count in enumerate(changed):
            with canvas.pick("query", number + 1, (number % columns) * cell, y + (number // columns) * 34):
                canvas.rect(1, 0, cell - 2, 28, "k-box k-changed" if count else "k-box", 3)
                canvas.text(cell / 2, 19, count)
        with canvas.group((query % columns) * cell, y + (query // columns) * 34):
            canvas.rect(1, 0, cell - 2, 28, "k-mark", 3)
        canvas.height = y + -(-len(changed) // columns) * 34
        return canvas

    lost, found = sorted(before - after), sorted(after - before)
    words = f"entries {', '.join(map(str, lost))} are lost and {', '.join(map(str, found))} take their place"
    description = (
        f"Query {query + 1} reads {len(after)} of {ENTRIES} entries; "
        + (words if lost else "they are the same as with exact index keys")
        + f". Changed for each query: {', '.join(map(str, changed))}."
    )
    raw = {"exact": sorted(before), "now": sorted(after), "changed": list(changed)}
    return draw(paint, "Selected entries", description, raw)


def _entry(canvas: Canvas, x: float, y: float, width: float, height: float, before: bool, after: bool) -> None:
    """One entry: read, newly read, or no longer read."""
    box = (x + 1, y + 1, width - 2, height - 2)
    if before and after:
        canvas.rect(*box, "k-global", 2, kit.READABLE)
    elif after:
        canvas.rect(*box, "k-box k-changed k-box--selected", 2)
        canvas.text(x + width / 2, y + height / 2 + 4.5, "+", "k-changed k-text--strong")
    else:
        canvas.rect(*box, "k-box k-error", 2)
        canvas.text(x + width / 2, y + height / 2 + 4.5, "−", "k-error k-text--strong")
