"""How far off the logits of the `replay` widget are: token by token below the grid, and by replay length as a chart."""

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import logarithmic
from deepseek_edu.drawing.numbers import counted, show, superscript

from .replay_runs import NEW, Replayed, Setting, mean

LOWEST, HIGHEST = 1e-12, 1.0  # of the chart
FLOOR = 1e-6  # of the bars: what is smaller, but not nothing, is a line
_HEIGHT = 84


def band(canvas: Canvas, scene, x, cell: float, y: float) -> float:
    """Bars on the columns of the grid: the divergence of each token's logits. Returns the y below."""
    s, run = scene.setting, scene.run
    end = s.hit + NEW
    with canvas.group():
        y = kit.heading(canvas, 0, y + 2, "Logits: how far off", "KL divergence from the exact run, in nats") + 6
    floor = y + _HEIGHT
    place = logarithmic(FLOOR, HIGHEST, floor, y)
    with canvas.group():
        for power in (0, -2, -4, -6):
            canvas.line(x(0), place(10.0**power), x(end), place(10.0**power), "k-grid" if power > -6 else "k-axis")
            words = f"10{superscript(power)}" if power else "1"
            canvas.text(x(0) - 5, place(10.0**power) + 4, words, "k-muted", "end", SMALL)
    with canvas.group():
        first = end - len(run.divergences)
        for position, value in enumerate(run.divergences, first):
            left, width = x(position) + 2, cell - 4
            if not value:
                canvas.line(left, floor, left + width, floor, "k-level", 3)
                continue
            top = min(floor - 2.5, place(value))
            canvas.rect(left, top, width, floor - top, "k-error", 1, 1 if position >= s.hit else 0.4)
    with canvas.group():
        for position, value in enumerate(scene.cut, end - len(scene.cut)):
            at = min(floor, place(max(value, FLOOR)))
            canvas.line(x(position) + 1, at, x(position + 1) - 1, at, "k-level", 2, "4 2")
    with canvas.group():
        cut, replayed = (
            at if v else floor for v, at in ((v, place(max(v, FLOOR))) for v in (mean(scene.cut), run.divergence))
        )
        middle = max((cut + replayed) / 2, cut + 7)
        cut, replayed = min(cut, middle - 7), max(replayed, middle + 7)
        left = x(end) + 8
        canvas.text(left, cut + 4, "cut" if canvas.narrow else "prompt cut", "", "start", SMALL)
        canvas.text(left, replayed + 4, "replay" if canvas.narrow else "replayed", "k-error", "start", SMALL)
        canvas.text(x(s.hit) - 4, floor + 16, "replayed tokens, fainter" if run.tokens else "", "k-muted", "end", SMALL)
        canvas.text(x(end), floor + 16, f"{NEW} new" if canvas.narrow else "new tokens", "k-error", "end", SMALL)
    return floor + 24


def curve_picture(setting: Setting, points: list, chosen: Replayed, needed: int, cut: float) -> Picture:
    """Divergence of the next tokens' logits from the exact ones by tokens replayed; points (tokens, divergence)."""
    reach = points[-1][0]

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 262)
        left, right, top, bottom, floor = 46, width - 16, 46, 190, 212
        place = logarithmic(LOWEST, HIGHEST, bottom, top)

        def x(tokens: float) -> float:
            return left + (right - left) * tokens / max(1, reach)

        def y(value: float) -> float:
            return floor if not value else max(top, min(bottom, place(value)))

        with canvas.group():
            kit.heading(canvas, 0, 0, "Every replay length", f"KL divergence of the {NEW} new tokens, in nats")
            for power in range(0, -13, -4):
                canvas.line(left, place(10.0**power), right, place(10.0**power), "k-grid")
                words = "1" if not power else f"10{superscript(power)}"
                canvas.text(left - 8, place(10.0**power) + 4, words, "k-muted", "end", SMALL)
            canvas.rect(left, floor - 10, right - left, 20, "k-ground")
            canvas.text(left - 8, floor + 4, "exact", "", "end", SMALL)
            for tokens in range(0, reach + 1, 1 if reach <= 10 else 2):
                canvas.text(x(tokens), 238, tokens, "k-muted", size=SMALL)
            canvas.text((left + right) / 2, 256, "tokens replayed", "k-label", size=SMALL)
        with canvas.group():
            words = f"prompt cut to its last {min(setting.window, setting.hit)} tokens: "
            if not cut:
                canvas.text(right, top + 14, words + "exact too", "", "end", SMALL)
            else:
                canvas.line(left, y(cut), right, y(cut), "k-level", 2, "6 4")
                canvas.text(right, y(cut) - 6, words + show(cut, 2), "", "end", SMALL)
        with canvas.group():
            _marks(canvas, needed, x, floor)
            canvas.polyline([(x(t), y(v)) for t, v in points], "k-error", 2)
            for t, v in points:
                canvas.circle(x(t), y(v), 3.5, "k-error" if v else "k-level")
        with canvas.group(x(chosen.tokens)):
            canvas.line(0, y(chosen.divergence), 0, floor + 10, "k-selected", 2)
            canvas.circle(0, y(chosen.divergence), 6.5, "k-result")
        with canvas.group():
            half = (right - left) / max(1, reach) / 2
            for tokens in range(reach + 1):
                kit.hit(canvas, "tokens", tokens, x(tokens) - half, top, 2 * half, floor + 10 - top)
        return canvas

    description = (
        f"The divergence falls from {show(points[0][1], 2)} without replay to {show(points[-1][1], 2)} with {reach} "
        f"tokens. The windows are exact from {counted(needed, 'token')} on. Cutting the prompt instead gives "
        f"{show(cut, 2)}."
    )
    raw = {"tokens": [t for t, _ in points], "divergence": [v for _, v in points], "cut": cut, "needed": needed}
    return draw(paint, "Error by replay length", description, raw)


def _marks(canvas: Canvas, needed: int, x, floor: float) -> None:
    """Where the measured exact length lies."""
    words = f"all windows exact from {needed}"
    end = min(canvas.width - 16, x(needed) + 8 + kit.text_width(words, SMALL))
    canvas.line(x(needed), 100, x(needed), floor, "k-level", 1.5, "3 3")
    canvas.text(end, 94, words, "", "end", SMALL)
