"""The explorer against the schedule written out by hand, the published totals, and the model's own forward pass."""

import importlib
import json
import re

import numpy as np
import pytest

from deepseek_edu import accounting, widgets
from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import v4_model, weights
from deepseek_edu.widgets import explorer_facts, explorer_trace, explorer_walk, live
from deepseek_edu.widgets.explorer_layout import Layout
from deepseek_edu.widgets.explorer_parts import PARTS
from tests.widgets.text_boxes import boxes

# layer: (mode, ratio, owner, chooser), from the table of the report: section 4.2.1
SCHEDULE = {0: ("window", 0, None, None), 1: ("window", 0, None, None)}
for _start in (2, 8, 14):
    SCHEDULE[_start] = ("full", 2, _start, _start)
    SCHEDULE.update({layer: ("reuse", 2, _start, _start) for layer in range(_start + 1, _start + 6)})
for _start in range(20, 40, 4):
    SCHEDULE[_start] = ("full" if _start == 20 else "reindex", 1, 20, _start)
    SCHEDULE.update({layer: ("reuse", 1, 20, _start) for layer in range(_start + 1, _start + 4)})


def view(**values) -> widgets.View:
    return widgets.evaluate("explorer", values)


def metrics(shown: widgets.View) -> dict:
    part = next(part for part in shown.parts if isinstance(part, widgets.Metrics))
    return {item.label: item.value for item in part.items}


def edited(old: str, new: str, **values) -> dict:
    source = live.mechanism_source(widgets.get("explorer"))
    assert source.count(old) == 1, old
    answer = json.loads(live.evaluate_json("explorer", json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer


@pytest.mark.parametrize("layer", SCHEDULE)
def test_every_layer_shows_its_mode_and_whose_memory_it_reads(layer):
    mode, ratio, owner, chooser = SCHEDULE[layer]
    raw = view(layer=f"layer-{layer}").parts[0].raw
    assert (raw["mode"], raw["ratio"], raw["owner"], raw["chooser"]) == (mode, ratio, owner, chooser)
    assert raw["side"] == ("encoder" if layer < 20 else "decoder")
    assert raw["engram"] is (layer in (1, 14))
    assert raw["readers"] == [i for i, plan in SCHEDULE.items() if plan[2] == layer and i != layer]


def test_memory_layers_keep_the_published_bytes():
    kept = {layer: metrics(view(layer=f"layer-{layer}"))["Global KV"] for layer in (2, 8, 14, 20, 26)}
    assert kept == {2: 178, 8: 178, 14: 178, 20: 356, 26: 0}
    assert view(layer="layer-0").parts[0].raw["window_bytes"] == 128 * (512 + 16)


def test_parameters_of_a_layer_are_the_sizes_of_its_tensors():
    config = ModelConfig.v41_flash()
    shapes = weights.weight_shapes(config)
    for layer in (0, 2, 20, 24, 27):
        names = [name for name in shapes if name.startswith(f"layers.{layer}.") and ".engram." not in name]
        whole = sum(int(np.prod(shapes[name])) for name in names)
        shown = view(layer=f"layer-{layer}")
        assert metrics(shown)["Parameters"] == whole
        assert whole - shown.parts[0].raw["activated"] == (384 - 6) * 3 * 5120 * 2304


@pytest.mark.parametrize("model", ["v41", "v4"])
def test_the_shapes_are_those_of_the_released_tensors(model):
    config = explorer_facts.config_of(model)
    whole = weights.weight_shapes(config) if model == "v41" else v4_model.v4_weight_shapes(config)
    for layer in (0, 1, 2, 3, 14, 20):
        shown = explorer_facts.shapes(config, config.schedule()[layer])
        for name, shape in shown.items():
            assert whole[f"layers.{layer}.{name}"] == shape
        left = {n.removeprefix(f"layers.{layer}.") for n in whole if n.startswith(f"layers.{layer}.")} - set(shown)
        assert all(".experts." in f".{name}" and ".experts.0." not in f".{name}" for name in left)


def test_work_grows_with_the_context_only_where_something_is_scanned():
    reuse, full = (metrics(view(layer=f"layer-{layer}")) for layer in (21, 20))
    thin = "\u202f"
    short, long = f"FLOPs at 4{thin}096", f"FLOPs at 1{thin}048{thin}576"
    assert reuse[short] == reuse[long]
    assert full[long] - full[short] == 2 * 32 * 128 * (2**20 - 4096)  # 32 heads of 128 for each index key


def test_the_work_of_all_layers_and_the_head_is_that_of_the_model():
    for make in (ModelConfig.v41_flash, ModelConfig.v4_flash_0731):
        config = make()
        layers = sum(explorer_facts.flops(config, plan, 5000) for plan in config.schedule()[: config.n_layers])
        collapse = 2 * 16 * 4096 if config.generation == "v4" else 0  # V4 collapses the last streams by a matrix
        whole = 2 * sum(work.multiply_adds for work in accounting.decode_work(config, 5000))
        assert layers + 2 * config.vocab_size * config.dim + collapse == whole
    with pytest.raises(ValueError, match="backbone layer"):
        accounting.layer_work(config, config.schedule()[-1], 5000)


@pytest.mark.parametrize(("prompt", "tokens"), [(0, 1), (7, 128), (12, 4096), (20, 2**20)])
def test_a_prefill_counts_layer_tokens(prompt, tokens):
    parts = view(phase="prefill", layer="layer-30", prompt=prompt).parts
    raw = next(part.raw for part in parts if getattr(part, "title", "") == "Work of a prefill")
    assert raw == {"all layers": 40 * tokens, "encoder–decoder": 20 * tokens + 20 * min(tokens, 128)}
    limits = next(part.text for part in parts if getattr(part, "role", "") == "warn")
    for left_out in ("projects", "operations", "time", "cache hits", "images", "kernels"):
        assert left_out in limits


def test_what_runs_in_which_phase_is_said():
    def runs(layer: int, phase: str) -> str:
        words = (part.text for part in view(layer=f"layer-{layer}", phase=phase).parts if hasattr(part, "role"))
        return next(words).partition(". ")[0]

    assert [runs(layer, "decode") for layer in (0, 20, 39)] == ["In decode it runs for every new token"] * 3
    assert runs(19, "prefill") == "In prefill it runs for every token of the prompt"
    assert runs(21, "prefill") == "In prefill it runs for the last 128 tokens of the prompt"
    assert "entries: every token" in runs(20, "prefill")


def test_a_layer_has_six_numbers_and_its_parts_stand_in_the_picture():
    """Mode, ratio, Engram and indexer are boxes and headings, not figures under the map."""
    shown = view(layer="layer-24")
    assert len(next(part for part in shown.parts if isinstance(part, widgets.Metrics)).items) == 6
    inside = shown.parts[1]
    assert inside.title == "Inside Layer 24: reindex, ratio 1, candidate pool"
    there = {title: there for title, _, there in inside.raw}
    assert (there["Engram"], there["Compressor"], there["Indexer"]) == (False, False, True)


def test_what_is_read_has_the_colour_of_what_it_is():
    """Layer 26 reads entries of 20 (global KV) chosen by 24 (Top-k); a draft stage reads streams of three layers."""
    rings = view(layer="layer-26").parts[0].wide.markup
    box = 'class="k-ring {}" rx="6" stroke-width="2"/>'
    assert rings.count(box.format("k-global")) == 2, "the memory of 20, and 20"
    assert rings.count(box.format("k-result")) == 2, "the choice of 24, and 24"
    assert view(layer="draft-1").parts[0].wide.markup.count(box.format("k-hidden")) == 3


def test_the_tour_takes_four_steps_with_the_published_numbers():
    first, second, third, fourth = (metrics(view(look="tour", step=step)) for step in (1, 2, 3, 4))
    assert round(first["Parameters a prompt token meets"] / 1e9, 2) == 7.58
    assert second["Global KV"] == 890
    assert third["Numbers in the tables"] == (384_006_168 + 384_016_682) * 256
    assert third["Rows a token reads"] == 48
    assert round(fourth["Parameters a decoded token meets"] / 1e9, 2) == 15.82


def test_v4_shares_nothing_and_its_map_says_so():
    config = ModelConfig.v4_flash_0731()
    for layer in range(43):
        raw = view(model="v4", v4_layer=f"layer-{layer}").parts[0].raw
        assert raw["mode"] == ("window" if layer < 2 else "csa" if layer % 2 == 0 else "hca")
        assert raw["readers"] == []
    total = sum(metrics(view(model="v4", v4_layer=f"layer-{layer}"))["Global KV"] for layer in range(43))
    assert total == pytest.approx(21 * 652 / 4 + 20 * 584 / 128)  # 3514.25 bytes per token
    assert len(config.schedule()) == 46


def test_the_list_says_everything_the_map_says():
    table = view().parts[-1]
    assert [row[0] for row in table.rows] == list(range(43))
    for row in table.rows[:40]:
        mode, ratio, owner, chooser = SCHEDULE[row[0]]
        assert row[2:6] == (mode, ratio, -1 if owner is None else owner, -1 if chooser is None else chooser)
    assert sum(row[11] for row in table.rows) == 890
    assert [row[0] for row in table.rows if row[8]] == [1, 14]
    assert len(view(model="v4").parts[-1].rows) == 46


@pytest.mark.parametrize("model", ["v41", "v4"])
def test_everything_on_the_map_can_be_searched_and_is_told_somewhere(model):
    control = widgets.get("explorer").controls["layer" if model == "v41" else "v4_layer"]
    config = explorer_facts.config_of(model)
    for width in (720, 344):
        assert {name for name, *_ in Layout(config, width).boxes()} <= set(control.options)
    shown = view(model=model).parts[0].wide.markup
    named = dict(re.findall(r'data-set="\w+=([\w-]+)"><title>([^<]+)<', shown))
    assert named == {name: control.options[name] for name, *_ in Layout(config, 720).boxes()}
    places = [part.place for part in PARTS[model].values()]
    places += [explorer_facts.place_of(config, plan) for plan in config.schedule()]
    for place in places:
        assert hasattr(importlib.import_module(f"deepseek_edu.reference.{place.module}"), place.function), place


@pytest.mark.parametrize("model", ["v41", "v4", "tiny"])
@pytest.mark.parametrize("width", [720, 344])
def test_boxes_of_the_map_lie_inside_it_and_apart(model, width):
    layout = Layout(explorer_facts.config_of(model), width)
    boxes = [place for _, *place in layout.boxes()]
    for i, (x, y, wide, high) in enumerate(boxes):
        assert x >= 0
        assert x + wide <= width
        assert y + high <= layout.height
        for other in boxes[i + 1 :]:
            apart = x + wide <= other[0] or other[0] + other[2] <= x or y + high <= other[1] or other[1] + other[3] <= y
            assert apart


def test_texts_in_boxes_of_the_map_are_whole():
    for values in ({}, {"model": "v4"}, {"look": "new"}, {"phase": "prefill"}, {"layer": "draft-1"}):
        for drawing in (view(**values).parts[0].wide, view(**values).parts[0].narrow):
            assert "…" not in "".join(box.words for box in boxes(drawing.markup)[0])


def test_the_followed_token_is_the_models_own():
    model = explorer_walk.tiny_model()
    for token in (37, 5):
        cache = model.new_cache()
        model.prefill(np.array(explorer_walk.PROMPT), cache)
        expected = model.decode([token], cache).logits[0]
        np.testing.assert_allclose(explorer_trace.logits_of(token), expected, rtol=0, atol=1e-12)
        best = view(look="new", stop=14, token=[token]).parts[1].raw[0]["values"][0]
        assert best == expected.max()


def test_the_scores_shown_are_those_the_choices_were_made_of():
    walk = explorer_walk.Walk(37, explorer_walk.LATE)
    plans = walk.config.schedule()[: walk.config.n_layers]
    for plan in plans:
        walk.layer(plan)
    assert [plan.index for plan in plans if "index scores" in walk.seen[plan.index]] == [1, 3, 5]
    for layer in (1, 3, 5):
        scores, chosen = walk.seen[layer]["index scores"], walk.published.choices[layer][0]
        free = [i for i in range(len(scores)) if layer != 5 or walk.published.pool[0][i]]
        assert sorted(sorted(free, key=lambda i: (-scores[i], i))[:4]) == chosen.tolist()


def test_the_map_marks_what_the_token_reads_and_the_layers_behind_it():
    names = explorer_walk.NEW
    stops = explorer_trace.new_token(37)[0]
    assert stops[names.index("Layer 2: reuse")].reads == (2, 1, 1)
    assert stops[names.index("Layer 4: reuse")].reads == (4, 3, 3)
    assert stops[names.index("Layer 5: reindex")].reads == (5, 3, 5)
    assert stops[names.index("Layer 1: compressor")].writes == (1,)

    def passed(stop: int) -> int:
        return view(look="new", stop=stop).parts[0].wide.markup.count('class="k-hidden" rx="5" fill-opacity="0.35"')

    behind = {0: 0, 2: 1, 7: 3, 13: 8, 14: 9, 15: 10}  # boxes: the embedding, layers below, at 7 the layer's own stops
    assert {stop: passed(stop) for stop in behind} == behind


def test_drafted_tokens_are_those_of_the_drafter():
    from deepseek_edu.reference import dspark

    model = explorer_walk.tiny_model()
    cache = model.new_cache()
    model.prefill(np.array(explorer_walk.PROMPT), cache)
    following = int(np.argmax(model.decode([37], cache).logits[0]))
    drafted = dspark.draft(following, len(explorer_walk.PROMPT) + 1, model, cache)
    stop = explorer_trace.new_token(37)[0][-1]
    assert stop.rows[0].words == tuple(str(i) for i in drafted.ids[1:])


def test_a_prompt_token_leaves_the_entry_that_a_whole_prefill_leaves():
    model = explorer_walk.tiny_model()
    cache = model.new_cache()
    model.prefill(np.array(explorer_walk.PROMPT), cache)
    position = explorer_walk.EARLY
    stops = explorer_trace.prompt_token(explorer_walk.PROMPT[position])
    entry = cache.entries[3].read(np.array([position]))[0]
    np.testing.assert_allclose(stops[9].rows[0].values, entry, atol=1e-12)
    assert stops[-1].rows == ()
    assert "does not run the decoder" in stops[-1].text


def test_stops_name_every_part_and_stand_on_the_map():
    boxes = {name for name, *_ in Layout(explorer_facts.config_of("tiny"), 720).boxes()}
    new, early = explorer_trace.new_token(37)[0], explorer_trace.prompt_token(37)
    assert tuple(stop.name for stop in new) == explorer_walk.NEW
    assert tuple(stop.name for stop in early) == explorer_walk.EARLIER
    assert {stop.box for stop in (*new, *early)} <= boxes


def test_an_edited_plan_redraws_the_map():
    """Layers that reuse nothing but choose for themselves: layer 26 is no longer a reader of 24's choice."""
    answer = edited("source for source in config.index_source_layers if source <= layer", "[layer]", layer="layer-26")
    raw = answer["data"]["parts"][0]["raw"]
    assert (raw["mode"], raw["chooser"]) == ("reindex", 26)


def test_a_prefill_that_forgets_the_window_is_seen():
    answer = edited("min(prompt, c.window_size)", "min(prompt, 1)", phase="prefill")
    raw = next(part["raw"] for part in answer["data"]["parts"] if part.get("title") == "Work of a prefill")
    assert raw["encoder–decoder"] == 20 * 4096 + 20 != 84480


def test_a_block_that_drops_the_experts_changes_the_logits():
    honest = view(look="new", stop=14).parts[1].raw[0]["values"]
    answer = edited("feed(u), experts)", "0 * feed(u), experts)", look="new", stop=14)
    assert np.max(np.abs(np.array(answer["data"]["parts"][1]["raw"][0]["values"]) - honest)) > 0.1
