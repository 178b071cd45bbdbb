"""What a widget answers with: plain data, no markup. `render` makes HTML from it, `View.data` raw values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from deepseek_edu.drawing.numbers import shown
from deepseek_edu.drawing.svg import Picture


@dataclass(frozen=True)
class Metric:
    """One named number (or short text).

    Attributes:
        label: what it is.
        value: the raw value, unrounded.
        text: what the reader sees; by default `value` with five significant digits.
        unit: written after the text.
        note: a few words under it.
        role: colour role from the visual language ("value", "result", "error", "clip") or "".
    """

    label: str
    value: object
    text: str = ""
    unit: str = ""
    note: str = ""
    role: str = ""

    @property
    def shown(self) -> str:
        """The text a reader sees."""
        return self.text or shown(self.value)


@dataclass(frozen=True)
class Metrics:
    """A row of named numbers."""

    items: tuple[Metric, ...]
    label: str = ""


@dataclass(frozen=True)
class Table:
    """A table. `rows` hold raw values, `text` (same shape) what is shown; a cell without text shows its value.

    `selected` are the indices of the rows that are in use; `folded` puts the table behind its caption.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple, ...]
    text: tuple[tuple[str, ...], ...] = ()
    selected: tuple[int, ...] = ()
    folded: bool = False

    def __post_init__(self) -> None:
        for row in (*self.rows, *self.text):
            if len(row) != len(self.columns):
                raise ValueError(f"Table {self.caption!r}: a row has {len(row)} cells, expected {len(self.columns)}")
        if self.text and len(self.text) != len(self.rows):
            raise ValueError(f"Table {self.caption!r}: text has {len(self.text)} rows, expected {len(self.rows)}")


@dataclass(frozen=True)
class Prose:
    """One paragraph of plain text; `role` "warn" marks what the reader must not miss."""

    text: str
    role: str = ""


@dataclass(frozen=True)
class Steps:
    """Numbered steps of a computation, in plain text."""

    items: tuple[str, ...]
    label: str = ""


@dataclass(frozen=True)
class View:
    """The answer of a widget: its parts in reading order and one sentence that says it all."""

    parts: tuple
    summary: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.summary.strip():
            raise ValueError("View: summary is empty, expected one plain sentence for those who cannot see the parts")
        for part in self.parts:
            if kind_of(part) is None:
                raise TypeError(
                    f"View: got a part of type {type(part).__name__}, "
                    "expected Metrics, Table, Prose, Steps, Picture or Chart"
                )

    def data(self) -> dict:
        """Raw values of all parts, ready for JSON; a float JSON cannot hold is written `{"$float": "nan"}`."""
        return {"summary": self.summary, "parts": [_part_data(part) for part in self.parts]}


_KINDS = {Metrics: "metrics", Table: "table", Prose: "prose", Steps: "steps", Picture: "picture"}


def kind_of(part: object) -> str | None:
    """The kind of a part, or `None` if it is none. Charts are recognised without importing their module."""
    if type(part) in _KINDS:
        return _KINDS[type(part)]
    return "chart" if type(part).__name__ == "Chart" and hasattr(part, "plotly") else None


def plain(value: object) -> object:
    """A value as JSON-able data: NumPy scalars and arrays become Python values, non-finite floats are tagged."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _part_data(part: object) -> dict:
    kind = kind_of(part)
    if kind == "metrics":
        return {"kind": kind, "values": {item.label: plain(item.value) for item in part.items}}
    if kind == "table":
        return {"kind": kind, "columns": list(part.columns), "rows": plain(part.rows)}
    if kind == "prose":
        return {"kind": kind, "text": part.text}
    if kind == "steps":
        return {"kind": kind, "items": list(part.items)}
    if kind == "chart":
        series = [{"name": s.name, "x": plain(s.x), "y": plain(s.y)} for s in part.series]
        return {"kind": kind, "title": part.title, "series": series}
    return {"kind": kind, "title": part.title, "raw": plain(part.raw)}
