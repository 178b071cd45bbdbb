"""Pictures of the `evidence` widget: rows of scores, claims in two columns, the checklist of an experiment."""

import textwrap
from collections.abc import Mapping, Sequence

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import linear
from deepseek_edu.drawing.numbers import fixed

from .evidence_data import ABOUT, AFTER, BEFORE, CLAIMS, ROWS, signed
from .evidence_plan import FIELDS, Check

LOW, HIGH, TICK = 40, 90, 10


def rows_picture(
    stage: str, guesses: Mapping[str, str], directions: Mapping[str, str], gaps: Mapping[str, float], band: Mapping
) -> Picture:
    """Each row as a line of scores: the old model's, and once it is revealed the new one's.

    Args:
        stage: "predict", "reveal" or "chance".
        guesses: row → what the reader says of it, "up" or "not up".
        directions: row → "up", "same" or "down".
        gaps: row → points.
        band: row → points by which chance alone could move the difference; empty unless that is shown.
    """

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        left, right = (8.0, width - 8) if narrow else (172.0, 540.0)
        place = linear(LOW, HIGH, left, right)
        y = _key(canvas, stage)
        height = 60 if narrow else 46
        with canvas.group(0, y):
            for tick in range(LOW, HIGH + 1, TICK):
                canvas.line(place(tick), 16, place(tick), 16 + height * len(ROWS), "k-grid")
                canvas.text(place(tick), 10, tick, "k-muted", size=SMALL)
        y += 18
        for key, (name, before, after) in ROWS.items():
            middle = y + (44 if narrow else 22)
            with canvas.group(0, y):
                canvas.text(0, 18, name, "k-text--strong", "start")
                if not narrow:
                    canvas.text(0, 33, ABOUT[key], "k-muted", "start", SMALL)
            if band:
                start, end = place(max(LOW, before - band[key])), place(min(HIGH, before + band[key]))
                with canvas.group(start, middle):
                    canvas.rect(0, -10, end - start, 20, "k-box k-box--off", 3)
            with canvas.group(0, middle):
                canvas.line(left, 0, right, 0, "k-axis")
                if stage != "predict":
                    canvas.arrow(place(before), 0, place(after) - (7 if after > before else -7), 0, "k-arrow", 2)
                canvas.circle(place(before), 0, 5, "k-level")
                if stage != "predict":
                    canvas.circle(place(after), 0, 6, "k-result")
            with canvas.group(0, y):
                if stage == "predict":
                    _chips(canvas, key, guesses.get(key))
                else:
                    _outcome(canvas, stage, guesses.get(key), directions[key], gaps[key], band.get(key))
            y += height
        canvas.height = y + 6
        return canvas

    if stage == "predict":
        words = "; ".join(f"{name} {before}" for name, before, _ in ROWS.values())
        description = f"Scores of {BEFORE}: {words}. Those of {AFTER} are not shown yet."
    else:
        words = "; ".join(
            f"{name} {before} to {after} ({directions[key]})" for key, (name, before, after) in ROWS.items()
        )
        description = f"From {BEFORE} to {AFTER}: {words}."
    raw = {
        "rows": [[name, before, after if stage != "predict" else None] for name, before, after in ROWS.values()],
        "guesses": dict(guesses),
        "directions": dict(directions) if stage != "predict" else {},
        "gaps": dict(gaps) if stage != "predict" else {},
        "band": dict(band),
    }
    return draw(paint, "Rows of the table", description, raw)


def _key(canvas: Canvas, stage: str) -> float:
    items = [("k-level", BEFORE)]
    if stage != "predict":
        items.append(("k-result", AFTER))
    items.append(("k-box k-box--off", "reached by chance") if stage == "chance" else ("k-changed", "you say"))
    with canvas.group():
        return kit.legend(canvas, items) + 4


def _chips(canvas: Canvas, key: str, guess: str | None) -> None:
    """What the reader can say of a row: up, or not. A click says it."""
    wide, gap = (56.0, 6.0) if canvas.narrow else (68.0, 8.0)
    for place, (control, words) in enumerate((("up", "up"), ("other", "not up"))):
        x, y = canvas.width - (2 - place) * wide - (1 - place) * gap, 0.0 if canvas.narrow else 9.0
        said = words == guess
        style = "k-box k-changed k-box--selected" if said else "k-box"
        canvas.rect(x, y, wide, 26, style, 5)
        canvas.text(x + wide / 2, y + 17, words, "k-changed k-text--strong" if said else "k-muted", size=12)
        kit.hit(canvas, control, key, x, y, wide, 26)


def _outcome(canvas: Canvas, stage: str, guess: str | None, direction: str, gap: float, band: float | None) -> None:
    """What stands at the end of a revealed row: what the table says, and the reader's guess."""
    narrow, end = canvas.narrow, canvas.width
    x = end - 184 if narrow else 562.0
    ink = {"up": "k-selected", "down": "k-error", "same": ""}[direction]
    canvas.text(end, 18, f"{signed(gap)} {direction}", f"{ink} k-text--strong".strip(), "end")
    if stage == "chance" and band is not None:
        inside = "within" if abs(gap) <= band else "beyond"
        words = f"{inside} ±{fixed(band, 1)}"
        canvas.text(x if narrow else end, 18 if narrow else 35, words, "k-muted", "start" if narrow else "end", SMALL)
    elif guess:
        right = (guess == "up") == (direction == "up")
        words = f"you: {guess}, {'right' if right else 'wrong'}"
        style = "k-changed k-text--strong" if right else "k-error k-text--strong"
        canvas.text(x if narrow else end, 18 if narrow else 35, words, style, "start" if narrow else "end", SMALL)


def claims_picture(sorted_as: Mapping[str, bool], found: Mapping[str, tuple[bool, str]], check: bool) -> Picture:
    """The claims as cards on the side where the reader put them; a click moves a card to the other side.

    Args:
        sorted_as: claim → whether the reader says that the table supports it.
        found: claim → whether it does, and why.
        check: whether the cards say if they are right; the reason then stands in the place that a card left free.
    """

    truth = {key: supported for key, (supported, _) in found.items()}

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        column = (width - 16) / 2
        letters = 26 if narrow else 52
        with canvas.group():
            for index, words in enumerate(("Not supported", "Supported by the table")):
                canvas.text(index * (column + 16), 14, words, "k-text--strong", "start")
        y = 24.0
        for key, claim in CLAIMS.items():
            lines = textwrap.wrap(claim.text, letters)
            reason = textwrap.wrap(found[key][1], 26 if narrow else 56) if check else []
            height = max(15 * len(lines) + (26 if check else 14), 14 * len(reason) + 14)
            side = sorted_as[key]
            with canvas.pick(key, int(not side), (column + 16) * (not side), y):
                canvas.rect(0.5, 0, column - 1, height, "k-box k-box--off", 5)
                for number, line in enumerate(reason):
                    canvas.text(8, 17 + 14 * number, line, "k-muted", "start", SMALL)
            with canvas.group((column + 16) * side, y):
                style = "k-box"
                if check:
                    style = "k-box k-selected" if truth[key] == side else "k-box k-error"
                canvas.rect(0.5, 0, column - 1, height, style, 5)
                for number, line in enumerate(lines):
                    canvas.text(8, 18 + 15 * number, line, "", "start", SMALL if narrow else 12)
                if check:
                    words, ink = ("right", "k-selected") if truth[key] == side else ("other side", "k-error")
                    canvas.text(8, height - 7, words, f"{ink} k-text--strong", "start", SMALL)
                kit.hit(canvas, key, int(not side), 0, 0, column, height)
            y += height + 8
        canvas.height = y
        return canvas

    names = [CLAIMS[key].short for key, yes in sorted_as.items() if yes]
    description = f"{len(CLAIMS)} claims. You call supported: {'; '.join(names) or 'none'}."
    raw = {"sorted": dict(sorted_as), "supported": {}, "why": {}}
    if check:
        raw.update(supported=truth, why={key: why for key, (_, why) in found.items()})
    return draw(paint, "Claims in two columns", description, raw)


def plan_picture(fields: Mapping[str, str], found: Sequence[tuple[Check, str]]) -> Picture:
    """The four parts of an experiment, and under each what it says and what is missing."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        columns = 1 if narrow else 4
        gap = 18
        column = (width - gap * (columns - 1)) / columns
        y = tallest = 0.0
        for index, (field, title) in enumerate(FIELDS.items()):
            mine = [(check, words) for check, words in found if check.field == field]
            met = sum(bool(words) for _, words in mine)
            x = 0 if narrow else index * (column + gap)
            y = y if narrow else 0.0
            with canvas.group(x, y):
                kind = "selected" if met == len(mine) else ""
                kit.box(canvas, 0, 0, column, 42, title, f"{met} of {len(mine)}", kind)
                if index and not narrow:
                    canvas.arrow(-gap + 3, 21, -3, 21)
            y += 48
            for check, words in mine:
                with canvas.group(x, y):
                    style = "k-selected" if words else "k-box k-box--off"
                    canvas.rect(1, 5, 11, 11, style, 2)
                    for number, line in enumerate(textwrap.wrap(check.name, 60 if narrow else 21)):
                        canvas.text(18, 15 + 14 * number, line, "" if words else "k-muted", "start", SMALL)
                        y += 14 * bool(number)
                y += 22
            y += 8
            tallest = max(tallest, y)
        canvas.height = tallest
        return canvas

    missing = [check.name for check, words in found if not words]
    description = f"Checklist of the experiment. Missing: {', '.join(missing) or 'nothing'}."
    raw = {"experiment": dict(fields), "missing": missing}
    return draw(paint, "Checklist of an experiment", description, raw)
