"""The contract of a widget: a pure function of its controls that returns a `View`.

    @widget("fp4", title="Store numbers in four bits", mechanism=("deepseek_edu.reference.quant", ("nearest_code",)))
    def fp4(value: Slider(-8, 8, 0.05, "Value") = 3.2, ...) -> View: ...

Controls are the annotations of the parameters (so a widget file does not postpone annotations), start values their
defaults. A control with `when={"part": "block"}` is shown only while `part` is "block"; while it is hidden its value
counts as the default, which is what makes settings that look the same the same state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .controls import Choice, Control, ControlError, Numbers, Slider, Toggle
from .parts import View

__all__ = ["REGISTRY", "Choice", "Control", "ControlError", "Numbers", "Slider", "Toggle", "View", "Widget", "widget"]


@dataclass(frozen=True)
class Widget:
    """A registered widget.

    Attributes:
        id: its name, in pages and files.
        title: heading.
        function: the pure function.
        controls: by name, in the order they are shown.
        defaults: start value of each control, checked.
        module, names: the mechanism a reader may edit: functions of one module of `reference`.
        source: where the mechanism is described.
        chapter: the chapter it belongs to.
    """

    id: str
    title: str
    function: Callable[..., View]
    controls: Mapping[str, Control]
    defaults: Mapping[str, object]
    module: str = ""
    names: tuple[str, ...] = ()
    source: str = ""
    chapter: str = ""

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


def widget(
    id: str, title: str, mechanism: tuple[str, tuple[str, ...]] = ("", ()), source: str = "", chapter: str = ""
) -> Callable[[Callable[..., View]], Callable[..., View]]:
    """Register a function as a widget; it stays a plain function. Raises when its signature is no widget's."""

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
            if not isinstance(control, (Slider, Choice, Toggle, Numbers)):
                raise TypeError(
                    f"widget {id!r}: parameter {name!r} is annotated with {control!r}, "
                    "expected Slider(…), Choice(…), Toggle(…) or Numbers(…)"
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
        REGISTRY[id] = Widget(id, title, function, controls, defaults, *mechanism, source=source, chapter=chapter)
        return function

    return register
