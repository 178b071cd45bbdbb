"""Charts: one description, a static SVG picture and a Plotly figure.

The static picture is what a page shows first and what paper and a blocked script leave; the Plotly dictionary holds the
same data without colours. Every trace names its colour role in `meta.token` (`k-series-1` …): the page's script
reads that custom property of the current theme.
"""

import json
from dataclasses import asdict, dataclass, field

from .numbers import show
from .svg import NARROW, WIDE, Drawing, Picture, element, escape, svg_root

KINDS = ("line", "step", "points", "bar")


@dataclass(frozen=True)
class Axis:
    """One axis: its label with the unit, its kind, and limits where the data alone would mislead.

    `kind` is "linear", "log" or "category" (bars; the x values are names).
    """

    label: str
    kind: str = "linear"
    low: float | None = None
    high: float | None = None
    ticks: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("linear", "log", "category"):
            raise ValueError(f"Axis {self.label!r}: kind is {self.kind!r}, expected 'linear', 'log' or 'category'")


@dataclass(frozen=True)
class Series:
    """One set of points. `text` holds a short label per point, written beside it; `token` its colour role."""

    name: str
    x: tuple
    y: tuple
    kind: str = "line"
    token: str = ""
    text: tuple[str, ...] = ()
    dash: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", tuple(_plain(v) for v in self.x))
        object.__setattr__(self, "y", tuple(_plain(v) for v in self.y))
        object.__setattr__(self, "text", tuple(self.text))
        if self.kind not in KINDS:
            raise ValueError(f"Series {self.name!r}: kind is {self.kind!r}, expected one of {', '.join(KINDS)}")
        if len(self.x) != len(self.y) or (self.text and len(self.text) != len(self.x)):
            raise ValueError(
                f"Series {self.name!r}: x has {len(self.x)} values, y {len(self.y)}, text {len(self.text)}; "
                "expected equal lengths (text may be empty)"
            )


@dataclass(frozen=True)
class Chart:
    """A chart: words for those who cannot see it, two axes, and its series; `stacked` puts bars on top of each other.

    Raises `ValueError` when there is nothing to draw, or a log axis meets a value that is not positive.
    """

    title: str
    description: str
    x: Axis
    y: Axis
    series: tuple[Series, ...] = field(default_factory=tuple)
    stacked: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", tuple(self.series))
        if not any(s.x for s in self.series):
            raise ValueError(f"Chart {self.title!r}: got no points, expected at least one series with data")
        for axis, name in ((self.x, "x"), (self.y, "y")):
            if axis.kind == "log":
                for s in self.series:
                    bad = next((v for v in getattr(s, name) if not v > 0), None)
                    if bad is not None:
                        raise ValueError(
                            f"Chart {self.title!r}: series {s.name!r} has {name} = {bad} on a log axis; "
                            "expected positive values, so drop or floor it"
                        )

    def token(self, index: int) -> str:
        """Colour role of series `index`: its own, or the next of the four series colours."""
        return self.series[index].token or f"k-series-{index % 4 + 1}"

    def picture(self) -> Picture:
        """The static drawing for both widths."""
        from .plot import plot

        raw = {"series": [{"name": s.name, "x": list(s.x), "y": list(s.y)} for s in self.series]}
        wide, narrow = plot(self, WIDE, 400), plot(self, NARROW, 320)
        return Picture(wide, self.title, self.description, narrow, raw)

    def svg(self, prefix: str | None = None, standalone: bool = False) -> str:
        """The static picture as one `<svg>`; `standalone` adds a style of its own, for use outside our pages."""
        from .plot import plot

        drawing: Drawing = plot(self, WIDE, 400)
        if not standalone:
            return svg_root(drawing, self.title, self.description, prefix)
        style = element("style", STANDALONE, class_="edu-standalone")
        return svg_root(drawing, self.title, self.description, prefix or "chart", "edu-svg edu-svg--standalone", style)

    def plotly(self) -> dict:
        """Plotly data and layout, without colours and fonts."""
        data = []
        for index, s in enumerate(self.series):
            trace: dict = {
                "name": s.name,
                "x": list(s.x),
                "y": list(s.y),
                "type": "bar" if s.kind == "bar" else "scatter",
                "meta": {"token": self.token(index)},
            }
            if s.kind != "bar":
                trace["mode"] = "markers" if s.kind == "points" else "lines"
            if s.kind == "step":
                trace["line"] = {"shape": "hv"}
            if s.dash:
                trace.setdefault("line", {})["dash"] = "dash"
            if s.text:
                trace["text"] = list(s.text)
            data.append(trace)
        layout = {
            "title": {"text": self.title},
            "xaxis": _plotly_axis(self.x),
            "yaxis": _plotly_axis(self.y),
            "showlegend": len(self.series) > 1,
            "barmode": "stack" if self.stacked else "group",
            "meta": {"description": self.description, "axes": [asdict(self.x), asdict(self.y)]},
        }
        return {"data": data, "layout": layout}

    @classmethod
    def from_plotly(cls, figure: dict) -> "Chart":
        """The chart that `plotly` made this figure of, also after a journey through JSON (a notebook's output)."""
        layout = figure["layout"]
        series = []
        for trace in figure["data"]:
            line = trace.get("line", {})
            lines = "step" if line.get("shape") == "hv" else "line"
            kind = "bar" if trace["type"] == "bar" else "points" if trace["mode"] == "markers" else lines
            words, token = tuple(trace.get("text", ())), trace["meta"]["token"]
            series.append(Series(trace["name"], trace["x"], trace["y"], kind, token, words, line.get("dash") == "dash"))
        x, y = (Axis(**{**axis, "ticks": axis["ticks"] and tuple(axis["ticks"])}) for axis in layout["meta"]["axes"])
        title, description = layout["title"]["text"], layout["meta"]["description"]
        return cls(title, description, x, y, tuple(series), layout["barmode"] == "stack")

    def html(self, prefix: str | None = None) -> str:
        """Markup for a page: the static picture, a button and the data of the interactive figure."""
        return (
            '<edu-chart class="edu-chart">'
            f'<div class="edu-chart__static">{self.picture().html(prefix)}</div>'
            '<button class="edu-chart__open" type="button" hidden>Show interactive figure</button>'
            f'<script type="application/json">{json_for_script(self.plotly())}</script>'
            "</edu-chart>"
        )

    def text(self) -> str:
        """Title and description as plain text."""
        return f"{self.title}\n{self.description}"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict:
        return {
            "application/vnd.plotly.v1+json": self.plotly(),
            "image/svg+xml": self.svg(standalone=True),
            "text/plain": self.text(),
        }


def json_for_script(value: object) -> str:
    """JSON that is safe inside a `<script>` element: no `<`, `>` or `&` is written literally."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plotly_axis(axis: Axis) -> dict:
    result: dict = {"title": {"text": axis.label}, "type": axis.kind}
    if axis.kind == "category":
        result["type"] = "category"
    if axis.ticks and axis.kind != "category":
        result["tickmode"] = "array"
        result["tickvals"] = list(axis.ticks)
        result["ticktext"] = [show(t) for t in axis.ticks]
    if axis.low is not None and axis.high is not None and axis.kind == "linear":
        result["range"] = [axis.low, axis.high]
    return result


def _plain(value: object) -> object:
    """A NumPy scalar as a Python number; text stays text."""
    return value.item() if hasattr(value, "item") else value


STANDALONE = escape(
    ".edu-svg--standalone{font-family:system-ui,sans-serif;background:#fff;color:#1b1f24}"
    ".edu-svg--standalone .k-text{fill:#1b1f24}.edu-svg--standalone .k-muted{fill:#5b6470}"
    ".edu-svg--standalone .k-text--strong{font-weight:600}"
    ".edu-svg--standalone .k-axis{stroke:#5b6470}.edu-svg--standalone .k-grid{stroke:#e3e7ec}"
    ".edu-svg--standalone .k-series-1{fill:#2f5fd0}.edu-svg--standalone .k-series-2{fill:#c2571a}"
    ".edu-svg--standalone .k-series-3{fill:#1d7f5f}.edu-svg--standalone .k-series-4{fill:#7a4bb5}"
    ".edu-svg--standalone polyline.k-series-1{stroke:#2f5fd0;fill:none}"
    ".edu-svg--standalone polyline.k-series-2{stroke:#c2571a;fill:none}"
    ".edu-svg--standalone polyline.k-series-3{stroke:#1d7f5f;fill:none}"
    ".edu-svg--standalone polyline.k-series-4{stroke:#7a4bb5;fill:none}"
    "@media (prefers-color-scheme:dark){.edu-svg--standalone{background:#14171c;color:#e8ebf0}"
    ".edu-svg--standalone .k-text{fill:#e8ebf0}.edu-svg--standalone .k-muted{fill:#a3acb8}"
    ".edu-svg--standalone .k-axis{stroke:#a3acb8}.edu-svg--standalone .k-grid{stroke:#2c323b}}"
)
