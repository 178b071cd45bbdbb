"""States computed at build time, so that a reader's first moves need no Python.

Which states: for every combination of the choices and switches in the widget's grid (all, unless it says otherwise),
the start values; from each, along every other choice and every slider alone, a bounded number of stops: all of them
where the choices are those of the start, fewer elsewhere, except where a reader goes step by step. Typed text and
numbers need Python.
A part is stored as pieces (groups of a drawing, single metrics, rows of a table), and each piece once.
"""

import gzip
import json
import random
import re
from collections.abc import Iterator, Mapping

from .contract import Choice, Slider, Text, Toggle, Widget
from .render import render_parts

VERSION = 1
STOPS_ELSEWHERE = (33, 9, 5)
"""Stops along a slider where 1, 2, 3 or more choices differ from the start; those of steps count as one."""

_PIECE = re.compile(r'(<g [^>]*>)|(?=<g>)|(?<=</g>)|(?=<div class="edu-metric)|(?=<tr)')


def state_key(widget: Widget, values: Mapping[str, object]) -> str:
    """The name of a state: `control=value` for every control in order, joined by `;`.

    A slider's value is its step index, a choice its option, a switch 0 or 1, a list its step indices joined by commas,
    where `~7.125` stands for a number that lies between two steps; a text is itself, with `%`, `;` and line ends as
    percent codes.
    A hidden control counts as its default, whatever it was set to.
    """
    canonical = widget.canonical(values)
    return ";".join(f"{name}={control.key(canonical[name])}" for name, control in widget.controls.items())


def planned(widget: Widget) -> Iterator[dict[str, object]]:
    """Control values worth computing in advance, the start first; some may be the same state."""
    yield dict(widget.defaults)
    switches = {
        name: list(control.options) if isinstance(control, Choice) else [False, True]
        for name, control in widget.controls.items()
        if isinstance(control, (Choice, Toggle))
    }
    grid = {name: options for name, options in switches.items() if name in widget.grid}
    for base in _combinations(widget, grid):
        yield base
        changed = sum(base[name] != widget.defaults[name] for name in grid)
        for name, control in widget.controls.items():
            if not widget.shown(name, base):
                continue
            if isinstance(control, Slider):
                few = 1 if control.look == "steps" else min(changed, len(STOPS_ELSEWHERE))
                elsewhere = STOPS_ELSEWHERE[few - 1]
                stops = min(control.stops, elsewhere) if changed else control.stops
                for index in _spread(control.count, stops):
                    yield {**base, name: control.at(index)}
            elif name in switches and name not in grid:
                for option in switches[name]:
                    yield {**base, name: option}


def _combinations(widget: Widget, grid: Mapping[str, list]) -> Iterator[dict[str, object]]:
    """Every setting of the grid's controls, the last moving fastest; one that is hidden stays at its default.

    What a control's visibility depends on comes before it, so it is decided when the control's turn comes.
    """
    known = [dict(widget.defaults)]
    for name, options in grid.items():
        known = [
            {**base, name: option}
            for base in known
            for option in (options if widget.shown(name, base) else [widget.defaults[name]])
        ]
    yield from known


def _spread(count: int, stops: int) -> list[int]:
    """Indices 0 … count, thinned evenly to at most `stops`."""
    stride = -(-count // (stops - 1))
    return sorted({*range(0, count + 1, stride), count})


def precompute(widget: Widget) -> dict:
    """All planned states: `{"version", "fragments": [html], "states": {key: parts}, "summaries": {key: text}}`.

    A state lists its parts; a part is the index of one fragment, or a list of indices whose fragments are joined.
    Fragments are sorted: those that begin alike lie side by side, which compresses a fifth better.
    """
    fragments: dict[str, int] = {}
    states: dict[str, list] = {}
    summaries: dict[str, str] = {}
    for values in planned(widget):
        key = state_key(widget, values)
        if key in states:
            continue
        view = widget.view(widget.canonical(values))
        states[key] = []
        for html in render_parts(view):
            pieces = [fragments.setdefault(piece, len(fragments)) for piece in _PIECE.split(html) if piece]
            states[key].append(pieces if len(pieces) > 1 else pieces[0])
        summaries[key] = view.summary
    ordered = sorted(fragments)
    place = {fragments[piece]: index for index, piece in enumerate(ordered)}
    for parts in states.values():
        parts[:] = [place[part] if isinstance(part, int) else [place[index] for index in part] for part in parts]
    return {"version": VERSION, "fragments": ordered, "states": states, "summaries": summaries}


def parts_of(states: Mapping, key: str) -> list[str]:
    """HTML of the parts of one precomputed state, put together as the page's script does it."""
    fragments = states["fragments"]
    return [
        fragments[part] if isinstance(part, int) else "".join(fragments[index] for index in part)
        for part in states["states"][key]
    ]


def states_bytes(widget: Widget) -> bytes:
    """The JSON file of the precomputed states; the same bytes every time."""
    text = json.dumps(precompute(widget), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def packed(data: bytes) -> bytes:
    """The file as the site ships it: gzip at its best; the same bytes every time."""
    return gzip.compress(data, 9, mtime=0)


def compressed_size(data: bytes) -> int:
    """Bytes of the file as the site ships it."""
    return len(packed(data))


def random_values(widget: Widget, count: int, seed: int) -> Iterator[dict[str, object]]:
    """`count` settings with every control at random, the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        values: dict[str, object] = {}
        for name, control in widget.controls.items():
            if isinstance(control, Slider):
                values[name] = control.at(chance.randint(0, control.count))
            elif isinstance(control, Choice):
                values[name] = chance.choice(list(control.options))
            elif isinstance(control, Toggle):
                values[name] = chance.random() < 0.5
            elif isinstance(control, Text):
                values[name] = chance.choice((widget.defaults[name], *control.samples))
            else:
                values[name] = tuple(control.at(chance.randint(0, control.count)) for _ in range(control.length))
        yield values


def main() -> None:
    """Write the states of one widget to a file: `python -m deepseek_edu.widgets.states ID FILE`."""
    import sys
    from pathlib import Path

    from deepseek_edu import widgets

    id, file = sys.argv[1:]
    Path(file).write_bytes(states_bytes(widgets.get(id)))


if __name__ == "__main__":
    main()
