"""The numbers of the router widget, derived again in plain Python: scores, choice, weights, load, clamps; mutants."""

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu import widgets
from deepseek_edu.widgets import live, router_numbers

ROWS = ((1, 0.5, 0, -0.5), (0.5, -0.5, 0.5, 0), (-0.5, 0, 1, 0.5), (0, 0.5, -0.5, 1))
FIRST = (1.2, 0.6, -0.4, 0.8)


def view(**values) -> widgets.View:
    return widgets.evaluate("router", values)


def numbers(shown: widgets.View) -> dict:
    return {item.label: item.value for item in shown.parts[1].items}


def edited(old: str, new: str, **values) -> dict:
    """Raw numbers of the picture when one place of the mechanism is written otherwise."""
    source = live.mechanism_source(widgets.get("router"))
    assert source.count(old) == 1, old
    answer = json.loads(live.evaluate_json("router", json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer["data"]["parts"][0]["raw"]


def score(logit: float) -> float:
    return math.sqrt(math.log(1 + math.exp(logit)))


def by_hand(u, bias_of_c: float) -> tuple[list[int], list[float], list[float]]:
    """The two chosen experts, their weights, and the weights of a leak."""
    scores = [score(math.fsum(a * b for a, b in zip(u, row, strict=True))) for row in ROWS]
    sums = [s + bias_of_c * (e == 2) for e, s in enumerate(scores)]
    chosen = sorted(range(4), key=lambda e: (-sums[e], e))[:2]
    return chosen, *([1.5 * v[e] / (v[chosen[0]] + v[chosen[1]]) for e in chosen] for v in (scores, sums))


def test_the_start_state_lets_the_bias_choose_c_and_its_small_score_weigh_it():
    raw = view().parts[0].raw
    chosen, weights, leaked = by_hand(FIRST, 0.6)
    assert [int(e) for e in raw["chosen"]] == chosen == [2, 3]
    assert raw["weights"] == pytest.approx(weights, abs=1e-12)
    assert raw["leaked"] == pytest.approx(leaked, abs=1e-12)
    assert by_hand(FIRST, 0)[0] == [3, 0], "without the bias A runs instead of C"
    assert "C is chosen instead of A" in view().parts[2].text


@settings(max_examples=100, deadline=None)
@given(u=st.lists(st.floats(-4, 4), min_size=4, max_size=4), index=st.integers(-10, 10))
def test_choice_and_weights_of_any_token(u, index):
    raw = view(token="own", hidden=u, bias=index / 10).parts[0].raw
    chosen, weights, leaked = by_hand(u, index / 10)
    sums = sorted((float(s) for s in raw["sums"]), reverse=True)
    if sums[1] - sums[2] > 1e-9 and sums[0] - sums[1] > 1e-9:
        assert list(raw["chosen"]) == chosen
        assert raw["weights"] == pytest.approx(weights, abs=1e-9)
        assert raw["leaked"] == pytest.approx(leaked, abs=1e-9)
    assert math.fsum(raw["weights"]) == pytest.approx(1.5, abs=1e-12)


@pytest.mark.parametrize("index", range(-10, 11))
def test_the_bias_never_moves_a_weight_as_long_as_the_choice_stays(index):
    chosen = view(bias=index / 10).parts[0].raw
    same = {tuple(chosen["chosen"]): chosen["weights"]}
    for other in range(-10, 11):
        raw = view(bias=other / 10).parts[0].raw
        if set(raw["chosen"]) == set(chosen["chosen"]):
            assert sorted(raw["weights"]) == pytest.approx(sorted(*same.values()), abs=1e-15)


def test_the_output_is_the_weighted_sum_of_two_experts_and_the_shared_one():
    matrices, _ = router_numbers.toy_experts()

    def run(name: str) -> list[float]:
        def times(matrix, vector):
            return [math.fsum(float(a) * b for a, b in zip(row, vector, strict=True)) for row in matrix]

        w1, w2, w3 = (matrices[f"{name}.{m}.weight"] for m in ("w1", "w2", "w3"))
        inner = [
            min(g, 10) / (1 + math.exp(-min(g, 10))) * max(-10, min(10, v))
            for g, v in zip(times(w1, FIRST), times(w3, FIRST), strict=True)
        ]
        return times(w2, inner)

    chosen, weights, leaked = by_hand(FIRST, 0.6)
    raw = view(leak=True).parts[0].raw
    for name, factors in (("output", weights), ("wrong_output", leaked)):
        parts = [[f * v for v in run(f"experts.{e}")] for e, f in zip(chosen, factors, strict=True)]
        expected = [math.fsum(column) for column in zip(*parts, run("shared_experts"), strict=True)]
        assert list(raw[name]) == pytest.approx(expected, abs=1e-12)


def test_the_real_grid_has_384_boxes_six_chosen_and_weights_of_sum_one_and_a_half():
    for kind in ("text", "image"):
        for draw in (1, 2, 3):
            raw = view(part="grid", seen=kind, draw=draw).parts[0].raw
            toy = router_numbers.boxes()
            hidden, bias = toy.hidden[draw - 1], toy.text_bias if kind == "text" else toy.image_bias
            scores = [score(math.fsum(map(float, row * hidden))) for row in toy.router]
            best = sorted(range(384), key=lambda e: -(scores[e] + float(bias[e])))[:6]
            assert len(raw["scores"]) == 384
            assert list(raw["scores"]) == pytest.approx(scores, abs=1e-12)
            assert list(raw["chosen"]) == best
            total = math.fsum(scores[e] for e in best)
            assert raw["weights"] == pytest.approx([1.5 * scores[e] / total for e in best], abs=1e-12)


def test_at_384_experts_leaked_biases_scale_the_weights_and_move_no_choice():
    right, wrong = (view(part="grid", spill=spill) for spill in (False, True))
    assert [view.parts[0].raw["chosen"] for view in (right, wrong)] == [right.parts[0].raw["chosen"]] * 2
    raw = wrong.parts[0].raw
    toy = router_numbers.boxes()
    sums = [
        score(math.fsum(map(float, toy.router[e] * toy.hidden[0]))) + float(toy.text_bias[e]) for e in raw["chosen"]
    ]
    leaked = [1.5 * s / math.fsum(sums) for s in sums]
    assert raw["leaked"] == pytest.approx(leaked, abs=1e-12)
    errors = [b - a for a, b in zip(raw["weights"], leaked, strict=True)]
    assert numbers(wrong)["Largest error of a weight"] == pytest.approx(max(errors, key=abs), abs=1e-12)
    assert "Largest error of a weight" not in numbers(right)
    assert wrong.parts[2].role == "warn"


def test_the_axis_of_scores_begins_at_the_same_place_for_every_token():
    def zeros(shown) -> set[str]:
        return set(re.findall(r'<line x1="([\d.]+)" y1="20" x2="\1" y2="42" class="k-axis"', shown.parts[0].svg))

    starts = zeros(view())
    assert len(starts) == 1
    for values in ({"token": "b"}, {"token": "c", "bias": -1}, {"token": "own", "hidden": (4, 4, 4, 4)}):
        assert zeros(view(**values)) == starts


def test_text_and_image_differ_in_the_choice_and_in_no_score():
    text, image = (view(part="grid", seen=kind).parts[0].raw for kind in ("text", "image"))
    assert list(text["scores"]) == list(image["scores"])
    assert set(text["chosen"]) != set(image["chosen"])
    assert text["other"] == image["chosen"] and image["other"] == text["chosen"]


def trained(speed: float, steps: int) -> list[list[int]]:
    """Loads of all steps, in plain Python; a bias is a whole number of updates."""
    scores = [[score(math.fsum(float(a) * b for a, b in zip(u, row, strict=True))) for row in ROWS]
              for u in router_numbers.batch()]  # fmt: skip
    moves, loads = [0] * 4, []
    for _ in range(steps + 1):
        chosen = [max(range(4), key=lambda e: (s[e] + speed * moves[e], -e)) for s in scores]
        loads.append([chosen.count(e) for e in range(4)])
        moves = [m - (load > 3) + (load < 3) for m, load in zip(moves, loads[-1], strict=True)]
    return loads


@pytest.mark.parametrize("speed", ["0.02", "0.05", "0.1", "0.4"])
def test_twelve_tokens_go_from_nine_one_one_one_to_three_each_unless_the_step_is_too_large(speed):
    raw = view(part="load", speed=speed).parts[0].raw
    assert raw["loads"][0] == [9, 1, 1, 1]
    assert raw["loads"] == trained(float(speed), 24)
    settles = [3, 3, 3, 3] in raw["loads"]
    assert settles == (speed != "0.4")
    if settles:
        first = raw["loads"].index([3, 3, 3, 3])
        assert all(load == [3, 3, 3, 3] for load in raw["loads"][first:])
        assert f"even at step {first}" in view(part="load", speed=speed).parts[2].text


def test_the_tokens_shown_add_up_and_the_busiest_expert_is_named():
    for step in range(25):
        shown = view(part="load", step=step)
        raw = shown.parts[0].raw
        assert [raw["assigned"].count(e) for e in range(4)] == raw["loads"][step]
        assert numbers(shown)["Busiest expert"] == max(raw["loads"][step])


@pytest.mark.parametrize("gate", [-16, -10.25, -3, 0, 9.75, 10, 10.25, 16])
@pytest.mark.parametrize("up", [-16, -10, -1, 0, 10.25])
@pytest.mark.parametrize("limit", [0, 0.5, 10])
def test_gate_is_clamped_above_and_up_on_both_sides(gate, up, limit):
    raw = view(part="inside", gate=gate, up=up, limit=limit).parts[0].raw

    def neuron(g: float, v: float) -> float:
        return g / (1 + math.exp(-g)) * v

    cut = (min(gate, limit), max(-limit, min(limit, up))) if limit else (gate, up)
    assert raw["hidden"] == pytest.approx(neuron(*cut), abs=1e-12)
    assert raw["free"] == pytest.approx(neuron(gate, up), abs=1e-12)
    assert raw["gate_out"] == pytest.approx(neuron(cut[0], 1), abs=1e-12)
    assert raw["up_out"] == pytest.approx(cut[1], abs=1e-12)


def test_the_sizes_of_an_expert():
    assert numbers(view(part="inside"))["Numbers in one expert"] == 35_389_440


def test_a_bias_that_leaks_into_the_weights_is_seen():
    right = view().parts[0].raw
    wrong = edited("np.take_along_axis(scores,", "np.take_along_axis(scores + bias,")
    assert wrong["weights"] == pytest.approx(right["leaked"], abs=1e-12)
    assert wrong["weights"] != pytest.approx(right["weights"], abs=0.1)


def test_other_wrong_mechanisms_move_numbers_that_are_checked_here():
    assert edited("np.sqrt(activations.softplus(logits))", "activations.softplus(logits)")["weights"] != pytest.approx(
        view().parts[0].raw["weights"], abs=0.01
    )
    backwards = edited("bias - speed", "bias + speed", part="load")
    assert [3, 3, 3, 3] not in backwards["loads"]
    one_sided = edited("np.clip(up, -limit, limit)", "np.minimum(up, limit)", part="inside", gate=1, up=-16)
    assert one_sided["up_out"] == -16
    swapped = edited("bool)[:, None], image_bias, text_bias", "bool)[:, None], text_bias, image_bias", part="grid")
    assert swapped["chosen"] == list(view(part="grid", seen="image").parts[0].raw["chosen"])
