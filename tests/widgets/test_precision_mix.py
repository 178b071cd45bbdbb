"""The precision-mix widget: attention in plain loops over values rounded by hand, bytes, and wrong mechanisms."""

import json
import math

import numpy as np
import pytest

from deepseek_edu import widgets
from deepseek_edu.widgets import live
from deepseek_edu.widgets import precision_mix_runs as runs

E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
E4M3 = [m / 512 for m in range(8)] + [(1 + m / 8) * 2.0**e for e in range(-6, 9) for m in range(8)][:-1]
START = runs.Setting("gaussian", "both", 1)


def nearest(x: float, levels: list[float]) -> float:
    """The nearest level with the sign of x; of two equally near ones the one with the even code."""
    size = min(abs(x), levels[-1])
    best = min(range(len(levels)), key=lambda code: (abs(levels[code] - size), code % 2))
    return math.copysign(levels[best], x)


def stored(row, block: int, levels: list[float], scale) -> list[float]:
    """A row of float32 numbers, block by block: divided by the scale, rounded, read back."""
    back = []
    for start in range(0, len(row), block):
        part = [float(v) for v in np.float32(row[start : start + block])]
        by = scale(max(map(abs, part)))
        back += [nearest(v / by, levels) * by for v in part]
    return back


def power_above(x: float) -> float:
    return 2.0 ** math.ceil(math.log2(x))


FP8 = (32, E4M3, lambda amax: power_above(amax / 448))
FP4_LATENT = (16, E2M1, lambda amax: nearest(amax / 6, E4M3))
FP4_INDEX = (32, E2M1, lambda amax: power_above(amax / 6))


def attention(queries, rows) -> list[list[float]]:
    """Heads of one query over rows that are keys and values, with a sink of score 0."""
    heads = []
    for q in queries:
        scores = [sum(a * b for a, b in zip(q, row, strict=True)) / 8 for row in rows]
        weights = [math.exp(score) for score in scores]
        total = 1 + sum(weights)
        columns = zip(*rows, strict=True)
        heads.append([sum(w * v for w, v in zip(weights, column, strict=True)) / total for column in columns])
    return heads


def best(d, query: int, keys, queries) -> list[int]:
    """The 32 entries with the highest sums of weighted, rectified products."""
    scores = [
        sum(
            weight * max(0.0, sum(a * b for a, b in zip(head, key, strict=True)))
            for weight, head in zip(d.head_weights[query], queries, strict=True)
        )
        for key in keys
    ]
    return sorted(sorted(range(len(keys)), key=lambda entry: (-scores[entry], entry))[:32])


@pytest.mark.parametrize("query", [0, 7])
def test_the_released_mix_in_plain_loops(query):
    d = runs.drawn(START)
    index_keys = [stored(key, *FP4_INDEX) for key in d.keys]
    index_queries = [stored(head, *FP4_INDEX) for head in d.index_queries[query]]
    chosen = best(d, query, index_keys, index_queries)
    assert runs.selection(START, "fp4")[query].tolist() == chosen
    rows = [stored(row, *FP8) for row in d.window] + [stored(d.entries[entry], *FP4_LATENT) for entry in chosen]
    expected = attention(d.queries[query].tolist(), rows)
    assert np.allclose(runs.output(START, runs.RELEASED)[query], expected, rtol=1e-9, atol=1e-12)


def test_without_rounding_it_is_plain_attention_over_the_best_entries():
    d = runs.drawn(START)
    chosen = best(d, 3, d.keys.tolist(), d.index_queries[3].tolist())
    assert runs.selection(START, "exact")[3].tolist() == chosen
    rows = d.window.tolist() + [d.entries[entry].tolist() for entry in chosen]
    assert np.allclose(runs.output(START, ("exact",) * 3)[3], attention(d.queries[3].tolist(), rows), rtol=1e-9)


def test_the_error_is_relative_to_the_size_of_the_exact_output():
    exact, released = runs.output(START, ("exact",) * 3), runs.output(START, runs.RELEASED)
    expected = math.sqrt(((released - exact) ** 2).sum() / (exact**2).sum())
    raw = widgets.evaluate("precision-mix").parts[0].raw
    assert raw["together"]["Your mix"] == raw["together"]["Released"] == pytest.approx(expected, rel=1e-12)
    assert raw["alone"]["index"]["exact"] == 0


@pytest.mark.parametrize(
    ("mix", "per_token", "windows"),
    [
        (("fp8", "fp4", "fp4"), 2.5 * (256 + 32 + 64 + 4), 40 * 128 * (512 + 16)),
        (("fp4", "fp4", "fp4"), 890, 40 * 128 * (256 + 32)),
        (("fp8", "fp8", "fp8"), 2.5 * (512 + 16 + 128 + 4), 40 * 128 * 528),
        (("exact", "exact", "exact"), 2.5 * (1024 + 256), 40 * 128 * 1024),
    ],
)
def test_bytes_of_a_mix_at_the_released_sizes(mix, per_token, windows):
    values = dict(zip(runs.BRANCHES, mix, strict=True))
    got = {m.label: m.value for m in widgets.evaluate("precision-mix", values).parts[2].items}
    assert (got["Global KV"], got["Windows"]) == (per_token, windows)


def test_the_start_is_the_released_mix():
    chosen = widgets.get("precision-mix")
    assert tuple(chosen.defaults[branch] for branch in runs.BRANCHES) == ("fp8", "fp4", "fp4")


@pytest.mark.parametrize("latents", ["gaussian", "heavy"])
@pytest.mark.parametrize("aim", ["recent", "both", "far"])
def test_four_bits_err_more_than_eight_in_both_latent_branches(latents, aim):
    for seed in range(1, 9):
        setting = runs.Setting(latents, aim, seed)
        for branch, times in (("window", 2), ("main", 1)):
            coarse, fine = (runs.error(setting, runs.alone(branch, form)) for form in ("fp4", "fp8"))
            assert coarse > times * fine > 0


def test_the_more_attention_a_branch_gets_the_more_its_rounding_costs():
    by_aim = [runs.Setting("gaussian", aim, 1) for aim in ("far", "both", "recent")]
    shares = [runs.window_share(setting) for setting in by_aim]
    window = [runs.error(setting, runs.alone("window", "fp4")) for setting in by_aim]
    main = [runs.error(setting, runs.alone("main", "fp4")) for setting in by_aim]
    assert shares == sorted(shares) and window == sorted(window) and main == sorted(main, reverse=True)


def test_coarse_index_keys_change_which_entries_are_read_and_finer_ones_change_fewer():
    for seed in range(1, 9):
        setting = runs.Setting("gaussian", "both", seed)
        coarse, fine, exact = (sum(runs.changed(setting, form)) for form in ("fp4", "fp8", "exact"))
        assert coarse > fine > exact == 0


def test_heavy_tails_have_larger_largest_values_at_the_same_size():
    plain, heavy = (runs.drawn(runs.Setting(kind, "both", 1)).entries for kind in ("gaussian", "heavy"))
    assert np.allclose((plain**2).mean(-1), 1, rtol=1e-4) and np.allclose((heavy**2).mean(-1), 1, rtol=1e-4)
    assert np.abs(heavy).max(-1).mean() > 1.3 * np.abs(plain).max(-1).mean()


# Wrong mechanisms move these numbers


@pytest.mark.parametrize(
    ("old", "new", "branch", "form"),
    [
        ("(clipped > halfway)", "(clipped >= levels[above])", "main", "fp4"),
        ("amax / np.float32(FP4_MAX)", "amax / np.float32(4)", "main", "fp4"),
        ("amax * np.float32(1 / FP8_MAX)", "amax * np.float32(0.25 / FP8_MAX)", "window", "fp8"),
        ("amax * np.float32(1 / FP4_MAX)", "amax * np.float32(2 / FP4_MAX)", "index", "fp4"),
        ("optimize=True) * scale", "optimize=True)", "window", "fp4"),
        ("np.maximum(products, 0)", "products", "index", "fp4"),
    ],
)
def test_a_wrong_mechanism_moves_the_error_of_its_branch(old, new, branch, form):
    source = live.mechanism_source(widgets.get("precision-mix"))
    assert source.count(old) == 1
    right = widgets.evaluate("precision-mix").parts[0].raw["alone"][branch][form]
    answer = json.loads(live.evaluate_json("precision-mix", "{}", source.replace(old, new)))
    assert answer["ok"], answer
    wrong = answer["data"]["parts"][0]["raw"]["alone"][branch][form]
    assert abs(wrong - right) > 1e-4
