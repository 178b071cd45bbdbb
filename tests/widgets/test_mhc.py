"""The numbers of the mhc widget in fractions and plain Python: mixing, Sinkhorn, both schedules; wrong mechanisms."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets import live, mhc_compare


def view(**values) -> widgets.View:
    return widgets.evaluate("mhc", values)


def raw(**values) -> dict:
    return view(**values).parts[0].raw


def edited(old: str, new: str, **values) -> dict:
    """Raw numbers of the picture when one place of the mechanism is written otherwise."""
    source = live.mechanism_source(widgets.get("mhc"))
    assert old in source, old
    answer = json.loads(live.evaluate_json("mhc", json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer["data"]["parts"][0]["raw"]


def test_quarter_and_three_quarters_give_a_half_and_three():
    assert raw()["x"].tolist() == [0.5, 3.0]
    assert raw(weight=0.5)["x"].tolist() == [1.0, 2.0]
    assert "x = [0.5, 3]" in view().summary


@pytest.mark.parametrize("weight", [0, 0.25, 0.85, 1])
@pytest.mark.parametrize("exchange", [0, 0.15, 0.5])
@pytest.mark.parametrize("written", [0, 0.7, 2])
def test_the_streams_after_a_sub_block_in_exact_fractions(weight, exchange, written):
    streams = [[Fraction(3), Fraction(-1)], [Fraction(1, 2), Fraction(4)]]
    a, b, c = (Fraction(str(v)) for v in (weight, exchange, written))
    x = [a * p + (1 - a) * q for p, q in zip(*streams, strict=True)]
    y = [x[1] / 2, x[0] / 2]
    first = [c * v + (1 - b) * p + b * q for v, p, q in zip(y, *streams, strict=True)]
    second = [v + b * p + (1 - b) * q for v, p, q in zip(y, *streams, strict=True)]
    got = raw(streams=[float(v) for s in streams for v in s], weight=weight, exchange=exchange, written=written)
    assert got["x"].tolist() == pytest.approx([float(v) for v in x], abs=1e-12)
    assert got["after"].ravel().tolist() == pytest.approx([float(v) for v in (*first, *second)], abs=1e-12)


def sinkhorn(scores: list[list[float]], iterations: int, eps: float) -> list[list[float]]:
    """Row softmax, then columns and rows in turn, columns last."""
    size = range(len(scores))
    rows = [[math.exp(v - max(row)) for v in row] for row in scores]
    mix = [[v / math.fsum(row) + eps for v in row] for row in rows]
    for turn in range(iterations):
        if turn:
            mix = [[v / (math.fsum(row) + eps) for v in row] for row in mix]
        sums = [math.fsum(mix[i][j] for i in size) + eps for j in size]
        mix = [[mix[i][j] / sums[j] for j in size] for i in size]
    return mix


SCORES = [[0.9, -0.3, 0.2, -0.8], [0.1, 1.1, -0.6, 0.4], [-0.5, 0.6, 0.3, 0.2], [0.4, -0.9, 1.2, -0.1]]


@pytest.mark.parametrize("spread", ["0.5", "2", "6"])
def test_sinkhorn_by_iteration_columns_last(spread):
    scaled = [[float(spread) * v for v in row] for row in SCORES]
    for iterations in (1, 2, 7, 20):
        got = raw(part="sinkhorn", spread=spread, iterations=iterations)
        assert got["mix"] == pytest.approx(np.array(sinkhorn(scaled, iterations, 1e-6)), rel=1e-12)
    assert len(got["rows"]) == len(got["columns"]) == 20
    assert max(got["columns"][1:]) < 2e-6, "columns are within eps after every iteration"
    assert got["rows"][-1] < got["rows"][0]
    if spread != "0.5":
        assert all(a > b for a, b in zip(got["rows"][:10], got["rows"][1:], strict=False)), "rows only approach 1"


@pytest.mark.parametrize("streams", range(1, 9))
def test_the_walk_moves_what_the_formulas_say(streams):
    got = raw(part="schedule", count=streams, step=8)
    moved = {name: sum(v for k, v in one.items() if k != "collapsed") for name, one in got["lanes"].items()}
    assert moved == {"original": 3 * streams + 2, "single": 2 * streams + 2}
    assert got["totals"] == {
        "three kernels": 4 * streams + 4,
        "two passes": 3 * streams + 2,
        "single pass": 2 * streams + 2,
    }


def test_twenty_fourteen_ten_at_four_streams_and_half_only_against_three_kernels():
    shown = view(part="schedule", step=8)
    assert list(shown.parts[0].raw["totals"].values()) == [20, 14, 10]
    numbers = {item.label: item.value for item in shown.parts[1].items}
    assert numbers["Of three kernels, the single pass moves"] == 0.5
    assert numbers["Of two passes, it moves"] == pytest.approx(5 / 7)


def test_in_eight_steps_only_the_original_reads_again():
    collapsed = {
        name: [raw(part="schedule", step=step)["lanes"][name]["collapsed"] for step in range(1, 9)]
        for name in ("original", "single")
    }
    assert collapsed == {"original": [0, 0, 0, 0, 0, 0, 4, 4], "single": [0, 1, 2, 3, 4, 4, 4, 4]}
    again = [raw(part="schedule", step=step)["lanes"]["original"]["read X′ again"] for step in range(1, 9)]
    assert again == [0, 0, 0, 0, 0, 0, 4, 4]
    assert raw(part="schedule", step=8)["lanes"]["single"]["read X′ again"] == 0


def test_the_timeline_shows_a_second_read_only_where_a_tile_had_to_leave():
    def seen(step: int) -> tuple[int, int, int]:
        markup = view(part="schedule", step=step).parts[0].wide.markup
        again = markup.count('class="k-error" rx="3" fill-opacity="0.45"')
        return (
            markup.count(">✗<"),
            again,
            markup.count(">A exists<") - markup.count('k-muted" text-anchor="middle" font-size="11">A exists<'),
        )

    assert [seen(step) for step in range(1, 9)] == [
        (0, 0, 1), (1, 0, 1), (2, 0, 1), (3, 0, 1), (4, 0, 1),  # only the single pass has its A from the start
        (4, 0, 2), (4, 4, 2), (4, 4, 2),
    ]  # fmt: skip


def test_what_follows_from_a_change_has_its_colour_and_nothing_else():
    def changed(**values) -> tuple[int, int]:
        markup = view(**values).parts[0].wide.markup
        return markup.count("k-ring k-changed"), markup.count('class="k-box k-changed"')

    assert changed() == (0, 0)
    assert changed(weight=0.5) == (2, 8), "A₀ and A₁; both numbers of x, y and the new streams"
    assert changed(exchange=0) == (4, 4), "all of B; the new streams, while x and y stay"
    assert changed(written=2) == (1, 2), "C₀; new stream 0"
    assert changed(streams=[3, 0, 0, 4]) == (0, 1 + 1 + 1 + 4), "a number of a stream, of x and of y; all the new ones"


def by_hand(shift: bool) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """A in use, inputs x and final streams of the toy, written without the package's functions."""
    size, used, inputs = 4, [], []
    streams = np.array([mhc_compare.weights()[0].embedding] * size)
    late = np.array([1.0, 0, 0, 0])
    for w in mhc_compare.weights():
        flat = streams.ravel()
        m = w.fn @ flat / math.sqrt(float(flat @ flat) / flat.size + 1e-20) + w.base
        own = 1 / (1 + np.exp(-m[:size])) + 1e-6
        mix = np.array(sinkhorn(m[2 * size :].reshape(size, size).tolist(), 20, 1e-6))
        a = late if shift else own
        x = a @ streams
        y = np.tanh(w.matrix @ (x / math.sqrt(float(x @ x) / x.size + 1e-20)))
        streams = np.outer(2 / (1 + np.exp(-m[size : 2 * size])), y) + mix.T @ streams
        used.append(a)
        inputs.append(x)
        late = own
    return used, inputs, streams


def test_both_schedules_on_the_same_weights():
    original, single = by_hand(False), by_hand(True)
    for block in range(1, 9):
        got = raw(part="compare", block=block)
        assert got["original"]["a"] == pytest.approx(original[0][block - 1], rel=1e-9)
        assert got["other"]["a"] == pytest.approx(single[0][block - 1], rel=1e-9)
    end = np.linalg.norm(original[2] - single[2]) / np.linalg.norm(original[2])
    assert got["streams"][-1] == pytest.approx(float(end), rel=1e-9)


def test_only_a_is_late_and_the_first_sub_block_cannot_tell():
    first = raw(part="compare", block=1)
    assert first["outputs"][0] < 1e-9 < 1e-3 < min(first["outputs"][1:])
    assert first["other"]["a"].tolist() == [1, 0, 0, 0]
    assert first["other"]["b"].tolist() == first["original"]["b"].tolist()
    assert first["other"]["c"].tolist() == first["original"]["c"].tolist()
    wrong = raw(part="compare", block=1, shift="abc")
    assert wrong["other"]["b"].tolist() == np.eye(4).tolist()
    assert view(part="compare", shift="abc").parts[2].role == "warn"


def test_wrong_mechanisms_move_numbers_that_are_checked_here():
    rows_last = "        mix = mix / (mix.sum(axis=-2, keepdims=True) + eps)\n    return mix"
    swapped = edited(rows_last, "        pass\n    return mix", part="sinkhorn", iterations=3)
    assert max(swapped["columns"][1:]) > 1e-3
    second_index = edited("tij,tic->tjc", "tji,tic->tjc", part="compare")
    assert second_index["streams"] != pytest.approx(raw(part="compare")["streams"], abs=1e-3)
    no_post = edited("coefficients.post[..., None] * output", "output", written=0.5)
    assert no_post["after"][0] != pytest.approx(raw()["after"][0].tolist(), abs=0.1)
    assert edited("2 * streams + 2", "2 * streams + 3", part="schedule")["totals"]["single pass"] == 11
