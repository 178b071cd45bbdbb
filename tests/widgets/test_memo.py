"""What widgets remember: nothing of an edit reaches the mechanism as it is, and an edit is computed once."""

import json

from deepseek_edu import widgets
from deepseek_edu.widgets import live
from deepseek_edu.widgets.memo import editing, forget, remembered


def counted():
    """A remembered function of one number, and the list of its real calls."""
    calls = []

    @remembered(4)
    def double(x):
        calls.append(x)
        return 2 * x

    return double, calls


def test_a_result_is_computed_once():
    double, calls = counted()
    assert (double(3), double(3), double(4)) == (6, 6, 8)
    assert calls == [3, 4]


def test_an_edit_has_results_of_its_own_as_long_as_the_same_edit_runs():
    double, calls = counted()
    double(3)
    for edit in ("one", "one", "another", "one"):
        with editing(edit):
            double(3)
            double(3)
        double(3)
    assert calls == [3] * 4, "once as it is, and once for each change of the edit"


def test_an_edit_that_fails_leaves_the_mechanism_as_it_is():
    double, calls = counted()
    try:
        with editing("wrong"):
            double(3)
            raise ValueError
    except ValueError:
        pass
    assert double(3) == 6 and calls == [3, 3]
    forget()
    with editing("wrong"):
        double(3)
    assert calls == [3, 3, 3]


def edited(source: str | None, **values) -> dict:
    answer = json.loads(live.evaluate_json("replay", json.dumps(values), source))
    assert answer["ok"], answer
    return answer


def test_runs_of_an_edited_model_are_seen_neither_before_nor_after_the_edit():
    wrong = live.mechanism_source(widgets.get("replay")).replace("np.arange(1 - window, 1)", "np.arange(2 - window, 1)")
    before = edited(None)["data"]
    first, again = edited(wrong)["data"], edited(wrong)["data"]
    assert first == again != before
    assert edited(None)["data"] == before
    assert widgets.evaluate("replay").summary == before["summary"]


def test_code_that_prints_prints_every_time_although_its_result_is_known():
    source = live.mechanism_source(widgets.get("replay"))
    loud = source.replace(
        "    tokens = window if tokens is None", "    print('rows')\n    tokens = window if tokens is None"
    )
    assert loud != source
    shown = [edited(loud, variant="report", tokens=5)["stdout"] for _ in range(2)]
    assert shown[0] == shown[1] and "rows" in shown[0]
