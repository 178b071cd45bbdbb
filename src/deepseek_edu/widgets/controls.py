"""The controls of widgets: what a reader can set, and the check of every value that comes in.

A control is the annotation of a parameter; the parameter's default is the start value. `check` returns the value in
its one canonical form, so that equal settings are equal values, and raises `ControlError` otherwise. A slider value is
exactly `min + k·step`, rounded to the decimals of the step; a typed number is the number itself, wherever it lies.
A control with `more=True` stands under the picture, folded: what a reader needs for the first moves stays above it.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from deepseek_edu.drawing.numbers import MINUS, fixed


class ControlError(ValueError):
    """A control got a value it cannot take. Attributes: `control`, `got`, `allowed`."""

    def __init__(self, control: str, got: object, allowed: str) -> None:
        self.control = control
        self.got = got
        self.allowed = allowed
        super().__init__(f"control {control!r}: got {got!r}, allowed: {allowed}")


@cache
def _decimals(step: float) -> int:
    return len(f"{step:.10f}".rstrip("0").partition(".")[2])


@dataclass(frozen=True)
class _Grid:
    """Numbers from `min` to `max` in steps."""

    min: float
    max: float
    step: float
    label: str

    @property
    def places(self) -> int:
        """Decimals of the step, and so of every value."""
        return max(_decimals(self.step), _decimals(self.min))

    @property
    def count(self) -> int:
        """How many steps there are; values are indices 0 … count."""
        return round((self.max - self.min) / self.step)

    def at(self, index: int) -> float:
        """The value of a step index."""
        return round(self.min + index * self.step, self.places) + 0.0

    def index(self, value: float) -> int:
        """The step index of a value."""
        return round((value - self.min) / self.step)

    def number(self, name: str, value: object) -> float:
        """Check one number; `name` says whose it is in the error."""
        allowed = f"a number from {self.min:g} to {self.max:g} in steps of {self.step:g}"
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ControlError(name, value, allowed)
        if not self.min - 1e-9 <= value <= self.max + 1e-9:
            raise ControlError(name, value, allowed)
        exact = self.at(self.index(value))
        if abs(exact - value) > 1e-9 * max(1.0, abs(value)):
            raise ControlError(name, value, allowed)
        return exact


@dataclass(frozen=True)
class Slider(_Grid):
    """A number on a slider.

    `unit` follows it in the read-out and in the value text of screen readers; `names`, one for each value, stand in its
    place. `look="steps"` is for the steps of a procedure: buttons back, next and play beside the slider. `stops` bounds
    how many of its values are computed in advance where all choices are those of the start.
    """

    unit: str = ""
    help: str = ""
    stops: int = 65
    when: Mapping[str, str] = field(default_factory=dict)
    more: bool = False
    look: str = ""
    names: tuple[str, ...] = ()
    kind = "slider"

    def __post_init__(self) -> None:
        if self.look not in ("", "steps"):
            raise ValueError(f"Slider {self.label!r}: look is {self.look!r}, expected '' or 'steps'")
        if self.names and len(self.names) != self.count + 1:
            raise ValueError(f"Slider {self.label!r}: {len(self.names)} names, expected {self.count + 1}")

    def check(self, name: str, value: object) -> float:
        return self.number(name, value)

    def key(self, value: float) -> str:
        return str(self.index(value))

    def text(self, value: float) -> str:
        """The value as it is read out."""
        if self.names:
            return self.names[self.index(value)]
        return fixed(value, self.places) + ("" if self.unit in ("", "°") else " ") + self.unit

    def spec(self) -> dict:
        spec = {"min": self.min, "max": self.max, "step": self.step, "unit": self.unit}
        return {**spec, "look": self.look, "names": list(self.names)} if self.names or self.look else spec


@dataclass(frozen=True)
class Choice:
    """One of a few options, `{value: label}`.

    `look` is "select", "segments" (radio buttons side by side) or "search": a field that finds an option by any part of
    its label, for long lists.
    """

    options: Mapping[str, str]
    label: str
    help: str = ""
    look: str = "select"
    when: Mapping[str, str] = field(default_factory=dict)
    more: bool = False
    kind = "choice"

    def __post_init__(self) -> None:
        if self.look not in ("select", "segments", "search"):
            raise ValueError(f"Choice {self.label!r}: look is {self.look!r}, expected 'select', 'segments' or 'search'")
        if self.look == "search" and len(set(self.options.values())) != len(self.options):
            raise ValueError(f"Choice {self.label!r}: two options have the same label; a search needs one each")

    def check(self, name: str, value: object) -> str:
        if not isinstance(value, str) or value not in self.options:
            raise ControlError(name, value, "one of " + ", ".join(self.options))
        return value

    def key(self, value: str) -> str:
        return value

    def text(self, value: str) -> str:
        return self.options[value]

    def spec(self) -> dict:
        return {"options": dict(self.options), "look": self.look}


@dataclass(frozen=True)
class Toggle:
    """A switch: true or false."""

    label: str
    help: str = ""
    when: Mapping[str, str] = field(default_factory=dict)
    more: bool = False
    kind = "toggle"

    def check(self, name: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise ControlError(name, value, "true or false")
        return value

    def key(self, value: bool) -> str:
        return str(int(value))

    def text(self, value: bool) -> str:
        return "on" if value else "off"

    def spec(self) -> dict:
        return {}


@dataclass(frozen=True)
class Numbers(_Grid):
    """A list of exactly `length` numbers, each with an input of its own: any finite number from `min` to `max`.

    The step is what arrow keys move by, and names the numbers on its grid in keys; nothing is rounded to it. With
    `whole`, for numbers that are ids, one with a fraction is refused. `names` label the inputs, by default their index.
    With `columns` > 0 the inputs stand in a table of so many columns, row by row, labelled by `names` (one for each
    column) and `rows` (one for each row).
    """

    length: int = 16
    unit: str = ""
    help: str = ""
    when: Mapping[str, str] = field(default_factory=dict)
    more: bool = False
    names: tuple[str, ...] = ()
    columns: int = 0
    rows: tuple[str, ...] = ()
    whole: bool = False
    kind = "numbers"

    def __post_init__(self) -> None:
        if self.whole and not all(float(number).is_integer() for number in (self.min, self.max, self.step)):
            raise ValueError(
                f"Numbers {self.label!r}: from {self.min:g} to {self.max:g} in steps of {self.step:g}, expected whole "
                "numbers where whole=True"
            )
        wanted = self.columns or self.length
        if self.names and len(self.names) != wanted:
            raise ValueError(f"Numbers {self.label!r}: {len(self.names)} names, expected {wanted}")
        if self.columns and (not self.names or self.length != self.columns * len(self.rows)):
            raise ValueError(
                f"Numbers {self.label!r}: {self.columns} columns and {len(self.rows)} rows for {self.length} numbers, "
                "expected a name for each column and each row"
            )

    def name_of(self, index: int) -> str:
        """What the input of this index is called."""
        if self.columns:
            return f"{self.rows[index // self.columns]}, {self.names[index % self.columns]}"
        return self.names[index] if self.names else str(index)

    def check(self, name: str, value: object) -> tuple[float, ...]:
        if not isinstance(value, (list, tuple)) or len(value) != self.length:
            raise ControlError(
                name,
                value if not isinstance(value, (list, tuple)) else f"{len(value)} numbers",
                f"{self.length} numbers",
            )
        return tuple(self.number(f"{name}[{i}]", item) for i, item in enumerate(value))

    def number(self, name: str, value: object) -> float:
        """Check one number and keep it exactly; only a zero loses its sign, which a typed number cannot carry."""
        finite = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not finite or not self.min <= value <= self.max or (self.whole and not float(value).is_integer()):
            kind = "whole number" if self.whole else "number"
            raise ControlError(name, value, f"a {kind} from {self.min:g} to {self.max:g}")
        return float(value) + 0.0

    def key(self, value: tuple[float, ...]) -> str:
        return ",".join(self._name(item) for item in value)

    def _name(self, value: float) -> str:
        """The step index of a number on the grid, the number itself after `~` elsewhere."""
        index = self.index(value)
        return str(index) if self.at(index) == value else f"~{value!r}"

    def text(self, value: tuple[float, ...]) -> str:
        return ", ".join(repr(item).replace("-", MINUS) for item in value)

    def spec(self) -> dict:
        spec = {"min": self.min, "max": self.max, "step": self.step, "unit": self.unit, "length": self.length}
        if self.names:
            spec["fields"] = [self.name_of(index) for index in range(self.length)]
        return {**spec, "whole": True} if self.whole else spec


@dataclass(frozen=True)
class Text:
    """Text a reader types: one line, or `lines` of it; code is shown in a code font.

    Attributes:
        max_length: most characters it can have.
        lines: height of the field.
        code: whether it is Python.
        pattern: regular expression every text has to match as a whole, or "".
        expected: the pattern in words, after "it has to be".
        samples: other texts that tests and measurements try.
    """

    max_length: int
    label: str
    lines: int = 1
    code: bool = False
    pattern: str = ""
    expected: str = ""
    samples: tuple[str, ...] = ()
    help: str = ""
    when: Mapping[str, str] = field(default_factory=dict)
    more: bool = False
    kind = "text"

    def __post_init__(self) -> None:
        if bool(self.pattern) != bool(self.expected):
            raise ValueError(
                f"Text {self.label!r}: pattern {self.pattern!r} with the words {self.expected!r}, expected both or none"
            )

    @property
    def allowed(self) -> str:
        """What a text has to be, in words."""
        words = f"at most {self.max_length} characters"
        return f"{words}, {self.expected}" if self.expected else words

    def check(self, name: str, value: object) -> str:
        if not isinstance(value, str):
            raise ControlError(name, value, f"text of {self.allowed}")
        text = value.replace("\r\n", "\n").replace("\r", "\n")
        if self.lines == 1:
            text = text.replace("\n", " ")
        if len(text) > self.max_length:
            raise ControlError(name, f"{len(text)} characters", f"text of {self.allowed}")
        if self.pattern and re.fullmatch(self.pattern, text, re.DOTALL) is None:
            raise ControlError(name, text, f"text of {self.allowed}")
        return text

    def key(self, value: str) -> str:
        """The text itself, with the characters that separate controls written as percent codes."""
        return "".join(f"%{ord(c):02X}" if c in "%;\n" else c for c in value)

    def text(self, value: str) -> str:
        return value

    def spec(self) -> dict:
        return {
            "maxLength": self.max_length,
            "lines": self.lines,
            "code": self.code,
            "pattern": self.pattern,
            "expected": self.expected,
        }


Control = Slider | Choice | Toggle | Numbers | Text
