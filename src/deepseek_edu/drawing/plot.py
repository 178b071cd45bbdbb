"""The static drawing of a `Chart`: axes, grid, series, and a legend that wraps on a phone."""

from .axes import Place, linear, log_ticks, logarithmic, nice_ticks
from .chart import Axis, Chart, Series
from .numbers import show, superscript
from .svg import SMALL, Canvas, Drawing

_LETTER = 6.7  # mean width of a letter at 13 units, for legends and margins


def plot(chart: Chart, width: float, height: float) -> Drawing:
    """Draw `chart` on a canvas of this size (the legend may add a few rows of height)."""
    bars = [s for s in chart.series if s.kind == "bar"]
    names = _categories(chart) if chart.x.kind == "category" else []
    y_values = [v for s in chart.series for v in s.y]
    if chart.stacked:
        y_values += [sum(column) for column in zip(*(s.y for s in bars), strict=True)]
    y_low, y_high = _limits(chart.y, y_values, with_zero=bool(bars) and chart.y.kind == "linear")
    y_ticks = _ticks(chart.y, y_low, y_high, 5)
    left = 14 + max(len(_tick_text(chart.y, t)) for t in y_ticks) * _LETTER
    rows = _legend_rows(chart, width)
    top = 26 + 22 * len(rows)
    height += 22 * len(rows)
    right = width - 16
    slot = (right - left) / max(1, len(names))
    lines = max((len(_wrap(name, slot)) for name in names), default=1)
    bottom = height - (46 if chart.x.label else 28) - 13 * (lines - 1)
    canvas = Canvas(width, height)
    _legend(canvas, chart, rows)
    canvas.text(2, top - 12, chart.y.label, "k-label k-muted", "start", SMALL)
    y_place = _place(chart.y, y_low, y_high, bottom, top)
    for tick in y_ticks:
        canvas.line(left, y_place(tick), right, y_place(tick), "k-grid")
        canvas.text(left - 8, y_place(tick) + 4, _tick_text(chart.y, tick), "k-muted", "end", SMALL)
    if names:
        x_place: Place = lambda index: left + slot * (index + 0.5)  # noqa: E731
        for index, name in enumerate(names):
            for line, words in enumerate(_wrap(name, slot)):
                canvas.text(x_place(index), bottom + 18 + 13 * line, words, "k-label", size=SMALL)
    else:
        x_values = [v for s in chart.series for v in s.x]
        x_low, x_high = _limits(chart.x, x_values)
        x_place = _place(chart.x, x_low, x_high, left, right)
        for tick in _ticks(chart.x, x_low, x_high, 4 if canvas.narrow else 8):
            canvas.line(x_place(tick), bottom, x_place(tick), bottom + 5, "k-axis")
            canvas.text(x_place(tick), bottom + 19, _tick_text(chart.x, tick), "k-muted", size=SMALL)
    base = y_place(0) if y_low <= 0 <= y_high and chart.y.kind == "linear" else bottom
    for index, s in enumerate(chart.series):
        style = chart.token(index)
        positions = [x_place(names.index(v) if names else v) for v in s.x]
        if s.kind == "bar":
            below = [0.0] * len(s.y)
            if chart.stacked:
                for other in bars[: bars.index(s)]:
                    below = [a + b for a, b in zip(below, other.y, strict=True)]
            share = (0, 1) if chart.stacked else (bars.index(s), len(bars))
            _bars(canvas, s, style, positions, y_place, base, below, *share, slot if names else 12)
        else:
            _curve(canvas, s, style, positions, [y_place(v) for v in s.y])
    canvas.line(left, bottom, right, bottom, "k-axis", 1.25)
    if base != bottom:
        canvas.line(left, base, right, base, "k-axis")
    if chart.x.label:
        canvas.text((left + right) / 2, height - 8, chart.x.label, "k-label k-muted", size=SMALL)
    return Drawing(canvas.width, canvas.height, canvas.markup())


def _curve(canvas: Canvas, s: Series, style: str, xs: list[float], ys: list[float]) -> None:
    if s.kind == "points":
        for x, y in zip(xs, ys, strict=True):
            canvas.circle(x, y, 3.5, style)
    else:
        points = list(zip(xs, ys, strict=True))
        if s.kind == "step":
            corners = [(xs[i + 1], ys[i]) for i in range(len(xs) - 1)]
            points = [p for pair in zip(points, [*corners, points[-1]], strict=True) for p in pair][:-1]
        canvas.polyline(points, style, 2, "6 4" if s.dash else "")
    for x, y, label in zip(xs, ys, s.text, strict=False):
        if label:
            canvas.text(x, y - 8, label, "k-label", size=SMALL)


def _bars(
    canvas: Canvas,
    s: Series,
    style: str,
    xs: list[float],
    place: Place,
    base: float,
    below: list[float],
    rank: int,
    count: int,
    slot: float,
) -> None:
    """Bars that start at `below` (all zero unless stacked; `base` is where zero or the axis lies)."""
    thick = min(56.0, slot * 0.74 / count)
    for i, (x, value) in enumerate(zip(xs, s.y, strict=True)):
        start = x - thick * count / 2 + thick * rank
        foot, end = place(below[i]) if below[i] else base, place(below[i] + value)
        tall = abs(foot - end)
        if tall:
            canvas.rect(start + 1, min(foot, end), thick - 2, tall, style, radius=min(2, tall / 2))
        if s.text and s.text[i]:
            canvas.text(start + thick / 2, min(foot, end) - 6, s.text[i], "k-text--strong", size=SMALL)


def _categories(chart: Chart) -> list:
    return list(dict.fromkeys(v for s in chart.series for v in s.x))


def _limits(axis: Axis, values: list[float], with_zero: bool = False) -> tuple[float, float]:
    low = min(values) if axis.low is None else axis.low
    high = max(values) if axis.high is None else axis.high
    if axis.kind == "log":
        return (low, high) if high > low else (low / 2, high * 2)
    if with_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    pad = (high - low) * 0.06
    return low if axis.low is not None or low == 0 else low - pad, high if axis.high is not None else high + pad


def _ticks(axis: Axis, low: float, high: float, count: int) -> list[float]:
    if axis.ticks is not None:
        return [t for t in axis.ticks if low <= t <= high]
    return log_ticks(low, high, count) if axis.kind == "log" else nice_ticks(low, high, count)


def _place(axis: Axis, low: float, high: float, start: float, end: float) -> Place:
    return (logarithmic if axis.kind == "log" else linear)(low, high, start, end)


def _tick_text(axis: Axis, tick: float) -> str:
    if axis.kind == "log":
        mantissa, _, power = f"{tick:.0e}".partition("e")
        if mantissa == "1" and not -3 < int(power) < 5:
            return f"10{superscript(int(power))}"
    return show(tick, 4).replace("−0", "0", 1) if tick == 0 else show(tick, 4)


def _legend_rows(chart: Chart, width: float) -> list[list[int]]:
    """Series indices per row; none for a single series, whose name the title and the axis already say."""
    if len(chart.series) < 2:
        return []
    rows: list[list[int]] = [[]]
    used = 0.0
    for index, s in enumerate(chart.series):
        needed = 40 + len(s.name) * _LETTER
        if rows[-1] and used + needed > width:
            rows.append([])
            used = 0.0
        rows[-1].append(index)
        used += needed
    return rows


def _legend(canvas: Canvas, chart: Chart, rows: list[list[int]]) -> None:
    for line, row in enumerate(rows):
        x, y = 2.0, 14.0 + 22 * line
        for index in row:
            s, style = chart.series[index], chart.token(index)
            if s.kind == "bar":
                canvas.rect(x, y - 9, 12, 10, style, radius=2)
            elif s.kind == "points":
                canvas.circle(x + 8, y - 4, 4, style)
            else:
                canvas.polyline([(x, y - 4), (x + 16, y - 4)], style, 2.5, "6 4" if s.dash else "")
            canvas.text(x + 22, y, s.name, "k-label", "start")
            x += 40 + len(s.name) * _LETTER


def _wrap(name: object, slot: float) -> list[str]:
    """Words of a category name in lines that fit its slot."""
    room = max(4, int(slot / 6))
    lines = [""]
    for word in str(name).split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines[:3]
