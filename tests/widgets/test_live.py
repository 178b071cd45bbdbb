"""Live evaluation: JSON in and out, the edited mechanism, its faults, and that it leaves nothing behind."""

import json

import pytest

from deepseek_edu import widgets
from deepseek_edu.reference import quant
from deepseek_edu.widgets import live, states
from deepseek_edu.widgets.render import render_parts

FP4 = widgets.get("fp4")


def run(values=None, source=None) -> dict:
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(live.evaluate_json("fp4", json.dumps(values or {}), source), parse_constant=refuse)


def edited(old: str, new: str) -> str:
    source = live.mechanism_source(FP4)
    assert source.count(old) == 1
    return source.replace(old, new)


def test_an_answer_is_the_view():
    values = {"value": 2.5, "scale": "e4m3"}
    view = widgets.evaluate("fp4", values)
    answer = run(values)
    assert answer["ok"] is True
    assert answer["summary"] == view.summary
    assert answer["parts"] == render_parts(view)
    assert answer["data"] == json.loads(json.dumps(view.data()))


def test_every_random_setting_gets_an_answer():
    for values in states.random_values(FP4, 60, seed=1):
        assert run(values)["ok"] is True


def test_the_mechanism_in_the_editor_is_short_and_is_the_mechanism():
    source = live.mechanism_source(FP4)
    assert all(f"def {name}(" in source for name in FP4.names)
    assert len(source.splitlines()) < 60
    for values in states.random_values(FP4, 20, seed=2):
        assert run(values, source) == run(values)


def test_another_tie_rule_in_the_source_moves_the_result_and_the_picture():
    before = run({"value": 2.5})
    source = edited("return below % 2 == 1", "return below % 2 == 0")
    after = run({"value": 2.5}, source)
    assert before["data"]["parts"][1]["values"]["Stored level"] == 2
    assert after["data"]["parts"][1]["values"]["Stored level"] == 3
    assert after["parts"][0] != before["parts"][0]


def test_another_rounding_moves_the_bands():
    source = edited("halfway = (levels[below] + levels[above]) / 2", "halfway = levels[above]")
    edges = run({}, source)["data"]["parts"][0]["raw"]["boundaries"]
    levels = [0.5, 1, 1.5, 2, 3, 4]  # everything goes down, so a band begins at its own level; 6 itself is clipped away
    assert edges == [*(-m for m in reversed(levels)), *levels]


def test_another_scale_and_another_nibble_order_reach_the_block():
    up = edited("return round_to_e4m3(amax / np.float32(FP4_MAX))", "return np.float32(2.0) + 0 * amax")
    assert run({"part": "block"}, up)["data"]["parts"][1]["values"]["Scale"] == 2
    swapped = edited("codes[..., 0::2] | codes[..., 1::2] << 4", "codes[..., 1::2] | codes[..., 0::2] << 4")
    before = run({"part": "block", "preset": "own"})["data"]["parts"][0]["raw"]["bytes"]
    after = run({"part": "block", "preset": "own"}, swapped)["data"]["parts"][0]["raw"]["bytes"]
    assert after == [byte // 16 + byte % 16 * 16 for byte in before] != before


def test_nothing_stays_of_an_edited_mechanism():
    namespace = dict(vars(quant))
    before = run({"value": 2.5})
    run({"value": 2.5}, edited("return below % 2 == 1", "return below % 2 == 0") + "\nnew_name = 1\n")
    run({}, "raise ValueError('stop')")
    run({}, "del nearest_code")
    run({}, "import os\nFP4_MAX = 3\n")
    assert run({"value": 2.5}) == before
    assert vars(quant) == namespace
    assert list(vars(quant)) == list(namespace)


@pytest.mark.parametrize(
    ("source", "kind", "line"),
    [
        ("x = 1\ndef broken(:\n", "SyntaxError", 2),
        ("x = 1\n\ny = undefined_name\n", "NameError", 3),
        ("def nearest_code(magnitude, levels, ties='even'):\n    pass\n    return 1 / 0\n", "ZeroDivisionError", 3),
        (
            "def deep():\n    raise RuntimeError\n\ndef nearest_code(m, levels, ties='even'):\n    return deep()\n",
            "RuntimeError",
            2,
        ),
        ("def nearest_code(m, levels, ties='even'):\n    return nearest_code(m, levels)\n", "RecursionError", 2),
        ("raise SystemExit(3)", "SystemExit", 1),
        ("if True:\nx = 1\n", "IndentationError", 2),
        ("x = 1\n\ty = 2\n", "IndentationError", 2),
    ],
)
def test_a_fault_in_the_source_is_named_with_its_line(source, kind, line):
    error = run({}, source)["error"]
    assert (error["type"], error["line"]) == (kind, line)
    assert error["message"] or kind == "RuntimeError"
    assert kind in error["traceback"]
    assert run({})["ok"] is True


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise SystemExit(3)", "the code ended Python with exit code 3"),
        ("raise SystemExit", "the code ended Python"),
        ("raise MemoryError", "the memory limit was reached"),
        ("raise RuntimeError", ""),
    ],
)
def test_a_fault_without_words_gets_some_or_none(source, message):
    assert run({}, source)["error"]["message"] == message


def test_functions_the_text_does_not_define_are_named_and_the_original_ones_run():
    source = live.mechanism_source(FP4)
    first = source.index("def scale_e4m3_for_fp4")
    shorter = source[:first] + source[source.index("def scale_e8m0_for_fp4") :]
    answer = run({"part": "block"}, shorter)
    assert answer["missing"] == ["scale_e4m3_for_fp4"]
    assert answer["parts"] == run({"part": "block"})["parts"]
    for text in ("", "\n", "x = 1", "# def nearest_code(): ..."):
        assert run({}, text)["missing"] == list(FP4.names)
    assert "missing" not in run({}, source)
    assert "missing" not in run({})


def test_the_traceback_shows_the_edited_line():
    error = run({}, "def nearest_code(m, levels, ties='even'):\n    return not_there\n")["error"]
    assert "return not_there" in error["traceback"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("result", ["None", "levels", "magnitude * np.nan", "'text'", "np.full(3, 99)", "-1"])
def test_a_mechanism_that_returns_nonsense_gets_an_answer_either_way(result):
    for values in ({}, {"part": "block"}, {"scale": "e8m0"}):
        answer = run(values, f"def nearest_code(magnitude, levels, ties='even'):\n    return {result}\n")
        assert answer["ok"] is True or answer["error"]["type"]
    assert run({})["ok"] is True


def test_a_scale_its_format_cannot_hold_is_drawn_without_a_byte():
    source = edited("return power_of_two_at_least(amax * np.float32(1 / FP4_MAX))", "return amax / np.float32(FP4_MAX)")
    rows = run({"amax": 7}, source)["data"]["parts"][3]["rows"]
    assert rows[1][2] == -1


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ('{"value": 99}', "ControlError"),
        ('{"nope": 1}', "ControlError"),
        ("[", "JSONDecodeError"),
        ("[]", "ControlError"),
    ],
)
def test_bad_control_values_are_an_answer_and_not_a_crash(values, kind):
    answer = json.loads(live.evaluate_json("fp4", values))
    assert (answer["ok"], answer["error"]["type"], answer["error"]["line"]) == (False, kind, None)


def test_an_unknown_widget_is_an_answer():
    assert json.loads(live.evaluate_json("nope", "{}"))["error"]["type"] == "KeyError"


def test_what_the_edited_source_prints_is_kept_within_limits():
    assert run({}, "print('hello')")["stdout"] == "hello\n"
    assert "stdout" not in run({})
    assert len(run({}, "print('x' * 10**6)")["stdout"]) <= 4000
