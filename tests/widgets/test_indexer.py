"""The numbers of the indexer widget, derived again in plain Python; wrong mechanisms move them."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu import widgets
from deepseek_edu.widgets import indexer_examples as examples
from deepseek_edu.widgets import live


def view(part: str, **values) -> widgets.View:
    return widgets.evaluate("indexer", {"part": part, **values})


def raw(part: str, **values) -> dict:
    return view(part, **values).parts[0].raw


def said(shown: widgets.View) -> str:
    return " ".join(part.text for part in shown.parts if hasattr(part, "role"))


def edited(old: str, new: str, part: str, **values) -> dict:
    """Raw numbers of the picture when one place of the mechanism is written otherwise."""
    source = live.mechanism_source(widgets.get("indexer"))
    assert source.count(old) == 1, old
    text = live.evaluate_json("indexer", json.dumps({"part": part, **values}), source.replace(old, new))
    answer = json.loads(text)
    assert answer["ok"], answer
    return answer["data"]["parts"][0]["raw"]


def best(scores, k: int, allowed=None) -> list[int]:
    """The k best positions, lower positions first among equals, in rising order."""
    places = range(len(scores)) if allowed is None else allowed
    return sorted(sorted(places, key=lambda j: (-scores[j], j))[:k])


def pool_by_hand(scores, seen: int, blocks: int) -> list[int]:
    """Positions in the pool that the query may read: blocks of four, the newest one first of all."""
    if not seen:
        return []
    tops = {b: max(scores[4 * b : min(4 * b + 4, seen)]) for b in range((seen + 3) // 4)}
    newest = (seen - 1) // 4
    order = [newest, *sorted((b for b in tops if b != newest), key=lambda b: (-tops[b], b))]
    kept = set(order[:blocks])
    return [j for j in range(seen) if j // 4 in kept]


def test_the_indexer_returns_positions_1_and_3_whose_values_are_20_and_40():
    shown = raw("addresses")
    assert shown["scores"] == [0.2, 0.9, 0.1, 0.8]
    assert (shown["chosen"], shown["values"]) == ([1, 3], [20, 40])


def test_position_0_raised_to_95_hundredths_gives_10_and_20():
    shown = raw("addresses", zero=0.95)
    assert (shown["chosen"], shown["values"]) == ([0, 1], [10, 20])


def test_of_equal_scores_the_lower_position_is_chosen_and_the_tie_is_said():
    shown = view("addresses", zero=0.8)
    assert shown.parts[0].raw["chosen"] == [0, 1]
    assert "Positions 0 and 3 have the same score" in said(shown) and "3 is left out" in said(shown)
    assert "same score" not in said(view("addresses", zero=0.8, k=3)), "both fit: nothing to decide"
    assert raw("addresses", scores="own", typed=[1, 1, 1, 1], k=3)["chosen"] == [0, 1, 2]


@settings(max_examples=60, deadline=None)
@given(typed=st.lists(st.integers(-20, 20), min_size=4, max_size=4), k=st.integers(1, 4))
def test_any_scores(typed, k):
    scores = [n / 20 for n in typed]
    shown = raw("addresses", scores="own", typed=scores, k=k)
    assert shown["chosen"] == best(scores, k)
    assert shown["values"] == [10 * (j + 1) for j in best(scores, k)]


@settings(max_examples=60, deadline=None)
@given(
    own=st.lists(st.integers(-20, 20), min_size=4, max_size=4),
    a=st.integers(-10, 10),
    b=st.integers(-10, 10),
    k=st.integers(1, 8),
)
def test_a_score_is_the_signed_sum_of_rectified_products(own, a, b, k):
    queries = [n / 10 for n in own]
    shown = raw("score", queries="own", own=queries, weight_a=a / 10, weight_b=b / 10, best=k)
    products = [[queries[2 * h] * x + queries[2 * h + 1] * y for x, y in examples.KEYS] for h in (0, 1)]
    scores = [a / 10 * max(0, p) + b / 10 * max(0, q) for p, q in zip(*products, strict=True)]
    assert shown["scores"] == pytest.approx(scores, abs=1e-12)
    assert shown["chosen"] == best([round(s, 9) + 0.0 for s in scores], k)
    assert shown["counted"].tolist() == [pytest.approx([max(0, p) for p in row], abs=1e-12) for row in products]


def test_a_negative_weight_makes_scores_negative_and_only_where_the_head_fires():
    shown = raw("score", weight_a=0, weight_b=-1)
    fires = [0.8 * x - 0.6 * y > 1e-9 for x, y in examples.KEYS]
    assert [score < -1e-9 for score in shown["scores"]] == fires and any(fires) and not all(fires)


def test_24_positions_become_8_candidates_and_two_later_layers_choose_their_own_three():
    shown = raw("blocks")
    assert [j + 1 for j in shown["pool"]] == [5, 6, 7, 8, 17, 18, 19, 20]
    choices = [[j + 1 for j in layer["chosen"]] for layer in shown["layers"]]
    assert choices[1:] == [[5, 7, 18], [6, 19, 20]]
    assert "The second layer reads 5, 7 and 18" in view("blocks", step=5).summary
    assert "The third layer reads 6, 19 and 20" in view("blocks", step=6).summary


def test_an_entry_outside_the_pool_is_lost_and_named():
    shown = view("blocks")
    assert [j + 1 for j in shown.parts[0].raw["layers"][2]["lost"]] == [11]
    assert "Lost: 11." in said(shown) and "6 is read instead" in said(shown)
    everything = raw("blocks", kept=6)
    assert all(not layer["lost"] for layer in everything["layers"])


def test_the_first_layer_may_read_outside_the_pool_that_it_makes():
    assert [j + 1 for j in raw("blocks")["layers"][0]["chosen"]] == [6, 8, 11]
    assert "Outside the pool lies 11" in view("blocks", step=4).summary


@pytest.mark.parametrize(
    ("blocks", "pool"),
    [(1, {12, 13}), (2, {12, 13, 4, 5, 6, 7}), (3, {12, 13, 4, 5, 6, 7, 0, 1, 2, 3}), (4, set(range(14)))],
)
def test_the_toy_vector_of_the_specification(blocks, pool):
    scores = [0.9, -1, 0.3, 0.2, 5, 4, 0.1, 0, 0.8, 0.7, -2, -3, 1, 1.5]
    assert list(examples.HIERARCHIES["16"].first[:14]) == scores
    assert set(raw("blocks", example="16", kept=blocks)["pool"]) == pool


def test_every_pool_of_both_examples():
    for example, toy in examples.HIERARCHIES.items():
        name = "seen" if example == "24" else "seen16"
        for seen in range(len(toy.first) + 1):
            for kept in range(1, 7):
                shown = raw("blocks", example=example, kept=kept, **{name: seen})
                pool = pool_by_hand(toy.first, seen, kept)
                assert shown["pool"] == pool
                for index, scores in enumerate((toy.first, *toy.later)):
                    layer, free = shown["layers"][index], best(scores, 3, range(seen))
                    chosen = best(scores, 3, pool) if index else free
                    assert layer["chosen"] == chosen and layer["true"] == free
                    assert layer["lost"] == [j for j in free if j not in chosen]


def by_hand() -> tuple[list, dict]:
    """Scores of all queries at 128 positions."""
    scores = examples.many_scores()
    return scores["first"].tolist(), {a: [layer.tolist() for layer in scores[a]] for a in examples.LIKENESS}


def test_128_positions_8_blocks_top_8_and_what_later_layers_lose():
    first, later = by_hand()
    for likeness in examples.LIKENESS:
        for blocks in (1, 3, 8, 20, 32):
            shown = raw("many", pool=blocks, likeness=str(likeness))
            pool = pool_by_hand(first[0], 128, blocks)
            assert shown["pool"] == pool and len(pool) == 4 * blocks
            assert {124, 125, 126, 127} <= set(pool), "the newest block is pinned"
            assert shown["layers"][0]["chosen"] == best(first[0], 8)
            for layer, scores in zip(shown["layers"][1:], later[likeness], strict=True):
                assert layer["chosen"] == best(scores[0], min(8, len(pool)), pool)
                assert layer["true"] == best(scores[0], 8)


def test_recall_rises_with_the_pool_to_one_and_is_a_mean_over_queries():
    first, later = by_hand()
    curves = view("many").parts[1].raw["recall"]
    for likeness in examples.LIKENESS:
        curve = curves[str(likeness)]
        assert all(a <= b for a, b in itertools.pairwise(curve)) and curve[-1] == 1
        for blocks in (1, 8):
            found = [
                len(set(best(scores[q], 8)) & set(pool_by_hand(first[q], 128, blocks)))
                for scores in later[likeness]
                for q in range(examples.QUERIES)
            ]
            assert curve[blocks - 1] == pytest.approx(math.fsum(found) / len(found) / 8, abs=1e-12)
    assert curves["0.95"][7] > curves["0.8"][7] > curves["0.5"][7]


def test_work_counted_at_128_positions_and_at_real_sizes():
    numbers = {item.label: item.value for item in view("many").parts[2].items}
    assert numbers["Keys scored"] == 128 + 2 * 32
    for index in range(11):
        context = 1024 * 2**index
        rows = {row[0]: row[3:] for row in raw("real", context=index)["layers"]}
        assert sorted(rows) == [2, 8, 14, 20, 24, 28, 32, 36]
        for layer, (readable, scored, read) in rows.items():
            assert readable == (context // 2 if layer < 20 else context)
            assert scored == (min(context, 2048 * 8) if layer > 20 else readable), "the first scan stays full range"
            assert read == min(512, readable)
    assert raw("real")["pool"] == 16_384


def test_the_pool_of_the_reference_never_holds_more_than_the_count_says():
    from deepseek_edu.reference import indexer

    scores = np.random.default_rng(0).normal(size=(1, 20_000))
    assert indexer.candidate_pool(scores, [20_000], 2048, 8).sum() == 16_384


def test_wrong_mechanisms_move_numbers_that_are_checked_here():
    first_ones = edited("np.argsort(-masked,", "np.argsort(0 * masked,", "addresses")
    assert first_ones["chosen"] != [1, 3]
    backwards = 'np.argsort(-masked[:, ::-1], axis=-1, kind="stable")'
    last_wins = edited(
        'np.argsort(-masked, axis=-1, kind="stable")', f"(count - 1 - {backwards})", "addresses", zero=0.8
    )
    assert last_wins["chosen"] == [1, 3]
    linear = edited("np.maximum(products, 0)", "products", "score")
    assert linear["chosen"] != raw("score")["chosen"]
    unpinned = edited("= np.inf\n", "+= 0\n", "blocks", example="16", kept=1)
    assert unpinned["pool"] == [4, 5, 6, 7]
    ahead = edited("np.arange(count) < visible[:, None], scores", "np.arange(count) < count, scores", "blocks", kept=3)
    assert ahead["pool"] != raw("blocks", kept=3)["pool"]
