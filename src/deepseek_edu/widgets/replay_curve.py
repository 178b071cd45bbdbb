"""The chart of the `replay` widget: how far off the next tokens are, by the number of replayed ones."""

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.axes import logarithmic
from deepseek_edu.drawing.numbers import show, superscript

from .replay_runs import NEW, Replayed, Setting

LOWEST, HIGHEST = 1e-10, 1.0


def curve_picture(setting: Setting, points: list, chosen: Replayed, needed: int | None, cut: float) -> Picture:
    """Divergence of the next tokens' logits from the exact ones by tokens replayed; points (tokens, divergence)."""
    reach = points[-1][0]

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 262)
        left, right, top, bottom, floor = 46, width - 16, 40, 190, 212
        place = logarithmic(LOWEST, HIGHEST, bottom, top)

        def x(tokens: float) -> float:
            return left + (right - left) * tokens / max(1, reach)

        def y(value: float) -> float:
            return floor if not value else max(top, min(bottom, place(value)))

        with canvas.group():
            canvas.text(0, 14, "How far off the next tokens are", "k-text--strong", "start")
            note = "KL divergence from exact" + ("" if canvas.narrow else f", nats, mean of {NEW} tokens")
            canvas.text(*((0, 30) if canvas.narrow else (216, 14)), note, "k-muted", "start", SMALL)
            for power in range(0, -11, -2):
                canvas.line(left, place(10.0**power), right, place(10.0**power), "k-grid")
                words = "1" if not power else f"10{superscript(power)}"
                canvas.text(left - 8, place(10.0**power) + 4, words, "k-muted", "end", SMALL)
            canvas.rect(left, floor - 10, right - left, 20, "k-ground")
            canvas.text(left - 8, floor + 4, "exact", "k-local", "end", SMALL)
            step = 1 if reach <= 10 else 2
            for tokens in range(0, reach + 1, step):
                canvas.text(x(tokens), 238, tokens, "k-muted", size=SMALL)
            canvas.text((left + right) / 2, 256, "tokens replayed", "k-label", size=SMALL)
        with canvas.group():
            words = f"prompt cut to its last {min(setting.window, setting.hit)} tokens instead: "
            if not cut:
                canvas.text(right, top + 14, words + "exact too", "k-changed", "end", SMALL)
            else:
                canvas.line(left, y(cut), right, y(cut), "k-changed", 2, "6 4")
                canvas.text(right, y(cut) - 6, words + show(cut, 2), "k-changed", "end", SMALL)
        with canvas.group():
            _marks(canvas, setting, needed, x, floor)
            canvas.polyline([(x(t), y(v)) for t, v in points], "k-error", 2)
            for t, v in points:
                exact = not v
                canvas.circle(x(t), y(v), 4 if exact else 3.5, "k-local" if exact else "k-error")
        with canvas.group(x(chosen.tokens)):
            canvas.line(0, y(chosen.divergence), 0, floor + 10, "k-selected", 2)
            canvas.circle(0, y(chosen.divergence), 6.5, "k-selected")
        return canvas

    description = (
        f"The divergence falls from {show(points[0][1], 2)} without replay to {show(points[-1][1], 2)} with {reach} "
        f"tokens. The windows are exact from {needed} tokens on. Cutting the prompt instead gives {show(cut, 2)}."
    )
    raw = {"tokens": [t for t, _ in points], "divergence": [v for _, v in points], "cut": cut, "needed": needed}
    return draw(paint, "Error by replay length", description, raw)


def _marks(canvas: Canvas, setting: Setting, needed: int | None, x, floor: float) -> None:
    """Where the window, and where the measured exact length lie."""
    if needed is not None:
        words = f"all windows exact from {needed}"
        end = min(canvas.width - 16, x(needed) + 8 + kit.text_width(words, SMALL))
        canvas.line(x(needed), 90, x(needed), floor, "k-local", 1.5, "3 3")
        canvas.text(end, 84, words, "k-local", "end", SMALL)
