"""What holds for every widget, whatever it shows."""

import json
import re
from pathlib import Path

import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets import live, states
from deepseek_edu.widgets.parts import kind_of
from deepseek_edu.widgets.render import render_parts, render_widget

COURSE = Path(__file__).resolve().parents[2] / "course"
SETTINGS = 24

every_widget = pytest.mark.parametrize("id", widgets.names())


def settings(id: str, count: int = SETTINGS):
    """The start values, then random ones."""
    chosen = widgets.get(id)
    return [dict(chosen.defaults), *states.random_values(chosen, count, seed=7)]


def sabotaged(id: str, name: str) -> str:
    """The mechanism with one function that fails with words of its own."""
    source = live.mechanism_source(widgets.get(id))
    start = re.search(rf"^(?:@\w.*\n)*(def|class) {name}\b", source, re.MULTILINE)
    failing = f"def {name}(*args, **kwargs):\n    raise RuntimeError('sabotaged on purpose')\n\n\n"
    rest = source[start.start() :].split("\n", 1)
    end = re.search(r"^(?=[^\s#)])", rest[1], re.MULTILINE)
    after = rest[1][end.start() :] if end else ""
    return source[: start.start()] + failing + after


@every_widget
def test_every_setting_gets_a_view_with_words_and_the_same_one_again(id):
    for values in settings(id):
        view, again = widgets.evaluate(id, values), widgets.evaluate(id, values)
        assert json.dumps(view.data(), allow_nan=False) == json.dumps(again.data(), allow_nan=False)
        assert render_parts(view) == render_parts(again)
        assert view.summary.rstrip().endswith((".", "?", "!")), "a summary is a sentence"
        assert len(view.summary) <= 400, "a summary is read out at every move"


@every_widget
def test_pictures_say_what_they_show_and_carry_their_numbers(id):
    for values in settings(id, 6):
        for part in widgets.evaluate(id, values).parts:
            if kind_of(part) == "picture":
                assert part.title and len(part.description) > 20
                assert part.raw is not None, "copy as data needs the numbers behind a picture"
                assert part.narrow is not None or part.wide.width <= 344, "readable at 360 pixels"
            markup = part.html() if kind_of(part) in ("picture", "chart") else ""
            assert "style=" not in markup and "<text></text>" not in markup


@every_widget
def test_folded_settings_stand_under_a_picture(id):
    chosen = widgets.get(id)
    if any(control.more for control in chosen.controls.values()):
        for values in settings(id):
            assert kind_of(widgets.evaluate(id, chosen.canonical(values)).parts[0]) in ("picture", "chart"), values
    assert sum(not control.more and chosen.shown(name, chosen.defaults) for name, control in chosen.controls.items())


@every_widget
@pytest.mark.behaviour(3)
def test_first_moves_are_computed_in_advance_within_sixty_thousand_bytes(id):
    chosen = widgets.get(id)
    data = states.states_bytes(chosen)
    assert states.compressed_size(data) < 60_000
    known = json.loads(data)
    assert states.state_key(chosen, {}) in known["states"]
    assert len(known["states"]) > 1, "no move is answered without Python"
    keys = list(known["states"])
    planned = {states.state_key(chosen, values): values for values in states.planned(chosen)}
    for key in keys[:: max(1, len(keys) // 12)]:
        view = chosen.view(chosen.canonical(planned[key]))
        assert states.parts_of(known, key) == render_parts(view)
        assert known["summaries"][key] == view.summary


@pytest.mark.parametrize(
    ("id", "chosen", "steps"),
    [
        ("engram", {"sentence": "spelling"}, "token"),
        ("mhc", {"part": "sinkhorn", "spread": "6"}, "iterations"),
        ("one-token", {"edit": "mhc.A"}, "stop"),
        ("toy-attention", {"run": "changed", "which": "0"}, "step"),
    ],
)
def test_a_reader_can_go_on_stepping_after_a_choice_without_python(id, chosen, steps):
    widget = widgets.get(id)
    known = {states.state_key(widget, values) for values in states.planned(widget)}
    control = widget.controls[steps]
    for index in range(control.count + 1):
        assert states.state_key(widget, {**chosen, steps: control.at(index)}) in known


@every_widget
def test_every_function_of_the_mechanism_takes_part(id):
    chosen = widgets.get(id)
    assert chosen.mechanism and chosen.source and chosen.chapter
    for name in chosen.names:
        source = sabotaged(id, name)
        answers = (live.evaluate_json(id, json.dumps(values), source) for values in settings(id))
        assert any("sabotaged on purpose" in text for text in answers), f"{name} can be edited but is never called"


@every_widget
def test_an_edit_of_the_mechanism_leaves_nothing_behind(id):
    chosen = widgets.get(id)
    before = live.evaluate_json(id, "{}")
    live.evaluate_json(id, "{}", sabotaged(id, chosen.names[0]))
    assert live.evaluate_json(id, "{}") == before


@every_widget
def test_the_widget_stands_on_its_chapter(id):
    chosen = widgets.get(id)
    text = (COURSE / f"{chosen.chapter}.md").read_text(encoding="utf-8")
    assert re.search(rf"^```widget\n(?:.*\n)*?id: {re.escape(id)}$", text, re.MULTILINE), "no widget block on the page"


@every_widget
def test_the_start_state_is_in_the_page_without_scripts(id):
    html = render_widget(id)
    view = widgets.evaluate(id)
    for part in render_parts(view):
        assert part in html
    assert html.count("<h3") == 1
