"""The contract of a widget: a pure function of its controls that returns a `View`.

    @widget("fp4", title="Store numbers in four bits", mechanism={"reference.quant": ("nearest_code",)})
    def fp4(value: Slider(-8, 8, 0.05, "Value") = 3.2, ...) -> View: ...

Controls are the annotations of the parameters (so a widget file does not postpone annotations), start values their
defaults. A control with `when={"part": "block"}` is shown only while `part` is "block"; while it is hidden its value
counts as the default, which is what makes settings that look the same the same state. Three or four controls above the
picture are enough on a phone; one with `more=True` stands under it, folded, with its value on the folded line.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .controls import Choice, Control, ControlError, Numbers, Slider, Text, Toggle
from .parts import View

__all__ = [
    "REGISTRY",
    "Choice",
    "Control",
    "ControlError",
    "Numbers",
    "Slider",
    "Text",
    "Toggle",
    "View",
    "Widget",
    "widget",
]


@dataclass(frozen=True)
class Widget:
    """A registered widget.

    Attributes:
        id: its name, in pages and files.
        title: heading.
        function: the pure function.
        controls: by name, in the order they are shown.
        defaults: start value of each control, checked.
        mechanism: what a reader may edit: {module of the package: its functions}.
        source: where the mechanism is described.
        chapter: the chapter it belongs to.
        grid: choices and switches whose combinations are all computed in advance; along the others only one at a time.
    """

    id: str
    title: str
    function: Callable[..., View]
    controls: Mapping[str, Control]
    defaults: Mapping[str, object]
    mechanism: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""
    chapter: str = ""
    grid: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All functions of the mechanism."""
        return tuple(name for names in self.mechanism.values() for name in names)

    def check(self, values: Mapping[str, object]) -> dict[str, object]:
        """All control values in canonical form; missing ones are the defaults. Raises `ControlError`."""
        if not isinstance(values, Mapping):
            raise ControlError(self.id, values, "an object of control values")
        for name in values:
            if name not in self.controls:
                raise ControlError(str(name), values[name], "controls " + ", ".join(self.controls))
        return {
            name: control.check(name, values[name]) if name in values else self.defaults[name]
            for name, control in self.controls.items()
        }

    def shown(self, name: str, values: Mapping[str, object]) -> bool:
        """Whether the control is visible with these values."""
        return all(values[other] == wanted for other, wanted in self.controls[name].when.items())

    def canonical(self, values: Mapping[str, object]) -> dict[str, object]:
        """Checked values with every hidden control at its default."""
        checked = self.check(values)
        return {name: v if self.shown(name, checked) else self.defaults[name] for name, v in checked.items()}

    def view(self, values: Mapping[str, object]) -> View:
        """Evaluate the widget."""
        view = self.function(**self.check(values))
        if not isinstance(view, View):
            raise TypeError(f"widget {self.id!r}: returned {type(view).__name__}, expected View")
        return view


REGISTRY: dict[str, Widget] = {}
_PACKAGE = __package__.partition(".")[0]


def widget(
    id: str,
    title: str,
    mechanism: Mapping[str, tuple[str, ...]] | None = None,
    source: str = "",
    chapter: str = "",
    grid: tuple[str, ...] | None = None,
) -> Callable[[Callable[..., View]], Callable[..., View]]:
    """Register a function as a widget; it stays a plain function. Raises when its signature is no widget's.

    Args:
        id, title, source, chapter: see `Widget`.
        mechanism: {module: functions a reader may edit}, "reference.quant" for "deepseek_edu.reference.quant".
        grid: see `Widget`; by default all choices and switches.
    """

    def register(function: Callable[..., View]) -> Callable[..., View]:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        starts = dict(
            zip(names[code.co_argcount - len(function.__defaults__ or ()) :], function.__defaults__ or (), strict=False)
        )
        starts.update(function.__kwdefaults__ or {})
        controls: dict[str, Control] = {}
        for name in names:
            control = function.__annotations__.get(name)
            if not isinstance(control, Control):
                raise TypeError(
                    f"widget {id!r}: parameter {name!r} is annotated with {control!r}, "
                    "expected Slider(…), Choice(…), Toggle(…), Numbers(…) or Text(…)"
                )
            if name not in starts:
                raise TypeError(f"widget {id!r}: parameter {name!r} has no default, expected a start value")
            for other, wanted in control.when.items():
                target = controls.get(other)
                if not isinstance(target, (Choice, Toggle)):
                    raise TypeError(
                        f"widget {id!r}: {name!r} depends on {other!r}, expected an earlier Choice or Toggle"
                    )
                target.check(other, wanted)
            controls[name] = control
        defaults = {name: control.check(name, starts[name]) for name, control in controls.items()}
        switches = tuple(name for name, control in controls.items() if isinstance(control, (Choice, Toggle)))
        for name in grid or ():
            if name not in switches:
                raise TypeError(f"widget {id!r}: grid names {name!r}, expected choices and switches: {switches}")
        REGISTRY[id] = Widget(
            id,
            title,
            function,
            controls,
            defaults,
            {f"{_PACKAGE}.{module}": tuple(names) for module, names in (mechanism or {}).items()},
            source,
            chapter,
            switches if grid is None else tuple(grid),
        )
        return function

    return register
