"""The `dspark` widget's survival: how far a block of drafts lasts, and how many pay at an invented cost."""

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import fixed, show
from deepseek_edu.reference import acceptance, scheduler

from .parts import Metric, Metrics, Prose, View


def survival_view(chances: tuple[float, ...], cost: float, bonus: bool, start: tuple[float, ...]) -> View:
    """The part of the widget that multiplies acceptance chances; what differs from `start` is drawn as changed."""
    survivals = [float(s) for s in scheduler.survival(chances)]
    counts = range(len(chances) + 1)
    drafts = [float(acceptance.expected_tokens(list(chances[:length]))) - 1 for length in counts]
    gains = [count + 1 if bonus else count for count in drafts]
    yields = [gain / (1 + cost * length) for length, gain in zip(counts, gains, strict=True)]
    best = max(counts, key=lambda length: (yields[length], -length))
    last = len(chances)
    counted = "and the target’s own token" if bonus else "drafts that stand"
    metrics = Metrics(
        (
            Metric("Best length L", best, note="most tokens for the cost", role="result"),
            Metric("Tokens expected", gains[best], fixed(gains[best], 2), note=f"at L = {best}; {counted}"),
            Metric("For each unit of cost", yields[best], fixed(yields[best], 2)),
            Metric(
                "All five survive",
                survivals[-1],
                fixed(survivals[-1], 4),
                note=f"Σ S = {fixed(drafts[last], 4)} drafts expected",
            ),
        ),
        "Survival",
    )
    return View(
        (
            survival_picture(chances, survivals, gains, yields, best, cost, start),
            metrics,
            Prose(_words(best, survivals, gains, yields, cost, bonus)),
        ),
        f"Survivals {', '.join(fixed(s, 4) for s in survivals)}; {fixed(drafts[last], 4)} of five drafts are expected "
        f"to stand. At a cost of 1 + {show(cost)} L the best length is {best}: {fixed(gains[best], 2)} tokens, "
        f"{fixed(yields[best], 2)} for each unit of cost.",
    )


def _words(best: int, survivals, gains, yields, cost: float, bonus: bool) -> str:
    costs = f"The cost 1 + {show(cost)} L is invented: a run of the target costs 1, each draft it checks {show(cost)}. "
    if not best:
        why = "Here no draft is worth its cost."
    elif best == len(survivals):
        why = "Here even the last draft is worth its cost."
    else:
        why = (
            f"Draft {best + 1} would add only its survival, {fixed(survivals[best], 2)}, for {show(cost)} more; the "
            f"yield would go from {fixed(yields[best], 3)} to {fixed(yields[best + 1], 3)}."
        )
    own = (
        " The target’s own token is counted: it comes in every round, with or without drafts."
        if bonus
        else " The token that the target itself adds in every round is not counted; switch it on and look again."
    )
    return costs + why + own


def survival_picture(chances, survivals, gains, yields, best: int, cost: float, start) -> Picture:
    """Five drafts in columns: their chances, how long the block survives, and what each length yields for its cost."""
    top = max(*yields, 1e-9)
    moved = [abs(a - b) > 1e-9 for a, b in zip(chances, start, strict=True)]
    first = moved.index(True) + 1 if any(moved) else len(chances) + 1  # from here on survivals follow a change

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        left = 0.0 if narrow else 118.0
        step = (width - left) / (len(chances) + 1)
        wide = min(64.0, step - 14)

        def center(length: int) -> float:
            return left + step * (length + 0.5)

        def row(y: float, words: str, note: str = "") -> float:
            """Name of a row: beside it, or above it where there is no room."""
            if narrow:
                return kit.heading(canvas, 0, y, words, note)
            canvas.text(0, y + 20, words, "k-text--strong", "start")
            if note:
                canvas.text(0, y + 35, note, "k-muted", "start", SMALL)
            return y

        with canvas.group():
            y = row(0, "Chance to stand", "if those before stand")
        for j, chance in enumerate(chances, 1):
            with canvas.group(center(j), y):
                note, kind = str(j) if narrow else f"draft {j}", "changed" if moved[j - 1] else "hidden"
                kit.box(canvas, -wide / 2, 2, wide, 40, fixed(chance, 2), note, kind)
        for j in range(1, len(chances)):
            with canvas.group((center(j) + center(j + 1)) / 2, y):
                canvas.text(0, 27, "×", "k-muted")
        y += 58
        tall = 96
        with canvas.group():
            y = row(y, "Survival S", "product so far")
            canvas.line(left, y + tall + 18, width, y + tall + 18, "k-axis")
        for j, survival in enumerate([1.0, *survivals]):
            with canvas.group(center(j), y + 18):
                height = tall * survival
                canvas.rect(-wide / 2, 0, wide, tall, "k-ground", 2)
                kind = "changed" if j >= first else "hidden"
                used = f"k-{kind}" if 0 < j <= best else f"k-box k-{kind}"
                canvas.rect(-wide / 2, tall - height, wide, height, used, 2)
                if j:
                    canvas.text(
                        0, tall - height - 5, fixed(survival, 4 if not narrow else 3), "k-text--strong", size=SMALL
                    )
                else:
                    canvas.text(0, tall / 2, "given", "k-muted", size=SMALL)
                    canvas.text(0, tall / 2 + 14, "token", "k-muted", size=SMALL)
        y += tall + 34
        with canvas.group():
            y = row(y, "Verify L drafts", f"cost 1 + {show(cost)} L")
        for length, (gain, value) in enumerate(zip(gains, yields, strict=True)):
            with canvas.group(center(length), y):
                canvas.text(0, 14, f"L = {length}", "k-selected k-text--strong" if length == best else "", size=SMALL)
                share = f"{fixed(gain, 2)} / {fixed(1 + cost * length, 2)}"
                canvas.text(0, 30, share.replace(" ", "") if narrow else share, "k-muted", size=SMALL)
                height = 60 * value / top
                canvas.rect(-wide / 2, 54, wide, 60, "k-ground", 2)
                canvas.rect(
                    -wide / 2, 114 - height, wide, height, "k-result" if length == best else "k-box k-negative", 2
                )
                style = "k-selected k-text--strong" if length == best else ""
                canvas.text(0, 50, fixed(value, 2), style)
        if not narrow:
            with canvas.group():
                canvas.text(0, y + 78, "Yield", "k-text--strong", "start")
                canvas.text(0, y + 93, "tokens ÷ cost", "k-muted", "start", SMALL)
        canvas.height = y + 120
        return canvas

    description = (
        f"Chances {', '.join(fixed(c, 2) for c in chances)} multiply to survivals "
        f"{', '.join(fixed(s, 4) for s in survivals)}. Tokens for each unit of cost at lengths 0 to {len(chances)}: "
        f"{', '.join(fixed(v, 2) for v in yields)}; the best length is {best}."
    )
    raw = {"survivals": survivals, "expected": gains, "yields": yields, "best": best}
    return draw(paint, "Survival of five drafts", description, raw)
