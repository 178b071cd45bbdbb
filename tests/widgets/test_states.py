"""Precomputed states: their names, that each equals a fresh evaluation, and their size."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets import contract, states
from deepseek_edu.widgets.contract import Choice, Toggle
from deepseek_edu.widgets.render import render_parts

FP4 = widgets.get("fp4")


@pytest.fixture(scope="module")
def file() -> bytes:
    return states.states_bytes(FP4)


@pytest.fixture(scope="module")
def computed(file) -> dict:
    return json.loads(file)


def test_a_key_lists_every_control_by_step_index_option_or_list_of_indices():
    key = states.state_key(FP4, {})
    fields = dict(field.split("=") for field in key.split(";"))
    assert list(fields) == list(FP4.controls)
    assert (fields["part"], fields["value"], fields["amax"]) == ("one", "224", "56")
    assert fields["values16"].split(",")[:3] == ["620", "500", "410"]


def test_settings_that_look_the_same_have_the_same_key():
    hidden = states.state_key(FP4, {"part": "block", "value": -1.0, "scale": "e8m0", "values32": (0.0,) * 32})
    assert hidden == states.state_key(FP4, {"part": "block"})
    assert states.state_key(FP4, {"value": -1.0}) != states.state_key(FP4, {})


def test_numbers_between_two_steps_have_keys_of_their_own():
    def key(number):
        values = {"part": "block", "preset": "own", "values16": (number, *[0.0] * 15)}
        return states.state_key(FP4, values)

    assert "values16=~7.125,480,480" in key(7.125)
    numbers = [7.1, 7.125, 7.15, 7.12, 7.1250000000000009, 1e-3, 0.0, 620.0 / 100, 24]
    assert len({key(number) for number in numbers}) == len(numbers)


def test_a_grid_holds_the_combinations_of_what_can_be_seen_together(monkeypatch):
    monkeypatch.setattr(contract, "REGISTRY", {})
    when = {"part": "b"}

    @contract.widget("small", title="", grid=("y", "part", "x"))
    def small(
        part: Choice({"a": "A", "b": "B"}, "Part") = "a",
        x: Toggle("X", when=when) = False,
        y: Toggle("Y", when=when) = False,
    ): ...

    planned = [(v["part"], v["x"], v["y"]) for v in states.planned(contract.REGISTRY["small"])]
    assert set(planned) == {("a", False, False), *(("b", x, y) for x in (False, True) for y in (False, True))}
    assert len(planned) == 6, "the start, then each once"


@pytest.mark.behaviour(3)
def test_the_first_moves_are_there(computed):
    known = computed["states"]
    slider = FP4.controls["value"]
    assert all(states.state_key(FP4, {"value": slider.at(i)}) in known for i in range(slider.count + 1))
    for name in ("part", "scale", "ties"):
        assert all(states.state_key(FP4, {name: option}) in known for option in FP4.controls[name].options)
    for size in FP4.controls["block"].options:
        for preset in FP4.controls["preset"].options:
            for ties in FP4.controls["ties"].options:
                values = {"part": "block", "block": size, "preset": preset, "ties": ties}
                assert states.state_key(FP4, values) in known


def test_every_state_equals_a_fresh_evaluation(computed):
    seen = set()
    for values in states.planned(FP4):
        key = states.state_key(FP4, values)
        if key in seen:
            continue
        seen.add(key)
        view = FP4.view(values)
        assert states.parts_of(computed, key) == render_parts(view), key
        assert computed["summaries"][key] == view.summary
    assert seen == set(computed["states"]) == set(computed["summaries"])


def test_states_take_at_most_sixty_kilobytes_compressed(file):
    assert states.compressed_size(file) <= 60_000


def test_the_file_is_the_same_in_another_process_with_another_hash_seed(file):
    code = (
        "import hashlib; from deepseek_edu import widgets; from deepseek_edu.widgets import states; "
        "print(hashlib.sha256(states.states_bytes(widgets.get('fp4'))).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(file).hexdigest()


def test_no_fragment_holds_an_id_or_is_stored_twice(computed):
    assert len(set(computed["fragments"])) == len(computed["fragments"])
    assert not any(" id=" in fragment for fragment in computed["fragments"])


def test_random_settings_are_allowed_and_repeatable():
    first = list(states.random_values(FP4, 30, seed=5))
    assert first == list(states.random_values(FP4, 30, seed=5)) != list(states.random_values(FP4, 30, seed=6))
    for values in first:
        assert FP4.check(values) == values
