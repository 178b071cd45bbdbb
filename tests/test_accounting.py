"""Parameters in closed form against the recorded model's arrays, the released shapes, and the published totals.

Shapes and sizes are written out here; nothing is taken from the code under test but what is compared.
"""

import doctest
import importlib
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import deepseek_edu.accounting as accounting
from deepseek_edu.accounting import choices, model_size
from deepseek_edu.config import ModelConfig
from deepseek_edu.reference.v4_model import v4_weight_shapes
from deepseek_edu.reference.weights import weight_shapes
from tests.reference.strategies import configurations

FLASH, TINY, V4 = ModelConfig.v41_flash(), ModelConfig.tiny(), ModelConfig.v4_flash_0731()


def billions(count):
    return f"{count / 1e9:.2f}"


# Parameters


@cache
def recorded_sizes():
    with np.load(Path(__file__).parent / "oracles" / "v41_tiny.npz") as file:
        return {name[2:]: file[name].size for name in file.files if name.startswith("w/")}


def own_component(name):
    """Where this test counts a tensor: by its place in the released name."""
    first, *_ = words = name.split(".")
    if first in ("vision", "aligner"):
        return "vision", {"vision": "tower", "aligner": "aligner"}[first]
    if first.startswith("image"):
        return "vision", "delimiters"
    if first not in ("layers", "mtp"):
        return "backbone", {"embed": "embedding", "head": "head", "norm": "norms"}.get(first, "hyper-connections")
    part, inner = ("backbone" if first == "layers" else "draft"), words[2:]
    if inner[0] == "engram":
        place = {"embed.weight": ("engram", "tables"), "embed.scale": ("stored", "row scales")}
        return place.get(".".join(inner[1:]), ("engram", "readers"))
    if inner[0] == "attn" and inner[1] in ("compressor", "indexer"):
        if inner[1] == "compressor":
            return part, "compressor"
        return part, "index queries" if inner[2] in ("wq_b", "weights_proj") else "index keys"
    if inner[0] == "ffn":
        if inner[-1] == "tid2eid":
            return "stored", "expert tables"
        return part, {"gate": "router", "experts": "routed experts", "shared_experts": "shared experts"}[inner[1]]
    if inner[0].startswith("hc_"):
        return part, "hyper-connections"
    rest = {
        "attn": "attention",
        "main_proj": "main projection",
        "markov_head": "Markov head",
        "confidence_head": "confidence head",
    }
    return part, rest.get(inner[0], "norms")


def counted(sizes):
    found = {part: {} for part in ("backbone", "engram", "draft", "vision", "stored")}
    for name, size in sizes.items():
        part, component = own_component(name)
        found[part][component] = found[part].get(component, 0) + size
    return found


def without_zeros(table):
    return {part: {name: count for name, count in components.items() if count} for part, components in table.items()}


def sizes_of(shapes):
    return {name: math.prod(shape) for name, shape in shapes.items()}


def test_the_recorded_model_has_the_counted_parameters_component_by_component():
    assert without_zeros(model_size.parameters(TINY)) == counted(recorded_sizes())


@given(configurations())
@settings(max_examples=60)
def test_any_model_has_the_counted_parameters(config):
    assert without_zeros(model_size.parameters(config)) == without_zeros(counted(sizes_of(weight_shapes(config))))


def test_v4_has_the_counted_parameters():
    table = without_zeros(model_size.parameters(V4))
    found = without_zeros(counted(sizes_of(v4_weight_shapes(V4))))
    assert {part: table[part] for part in table if part != "draft"} == {p: found[p] for p in table if p != "draft"}


def test_tensors_are_found_under_the_component_that_counts_them():
    names = [*recorded_sizes(), *v4_weight_shapes(V4)]
    assert [model_size.component_of(name) for name in names] == [own_component(name) for name in names]
    with pytest.raises(ValueError, match=r"released tensor name.*'layers\.0\.nothing'"):
        model_size.component_of("layers.0.nothing")


def test_released_layers_have_the_released_shapes():
    """Specification of the shapes, written out: out × in."""
    attention = 1280 * 5120 + 1280 + 32768 * 1280 + 512 * 5120 + 512 + 8192 * 4096 + 5120 * 8192 + 64
    common = {
        "attention": attention,
        "routed experts": 384 * 3 * 2304 * 5120,
        "shared experts": 3 * 2304 * 5120,
        "router": 384 * 5120 + 384 + 384,
        "hyper-connections": 2 * (24 * 20480 + 24 + 3),
        "norms": 2 * 5120,
    }
    queries, keys = {"index queries": 4096 * 1280 + 32 * 5120}, {"index keys": 128 * 512 + 128}
    full = {**common, **queries, **keys}
    plans = FLASH.schedule()
    layers = [model_size.layer_parameters(FLASH, plan) for plan in plans]
    assert attention == 126_617_408
    for layer in (2, 8, 14):
        assert layers[layer] == {**full, "compressor": 2 * 512 * 5120 + 512}
    assert layers[20] == {**full, "compressor": 512 * 5120 + 512}
    for layer in (24, 28, 32, 36):
        assert layers[layer] == {**common, **queries}
    for layer in {*range(40)} - {2, 8, 14, 20, 24, 28, 32, 36}:
        assert layers[layer] == common
    draft = {**common, "routed experts": 128 * 3 * 2304 * 5120, "router": 128 * 5120 + 128 + 128}
    assert layers[40:] == [draft] * 3


def test_the_published_totals():
    assert billions(model_size.backbone_parameters(FLASH)) == "551.57"
    assert model_size.engram_table_parameters(FLASH) == (384_006_168 + 384_016_682) * 256
    assert billions(model_size.engram_table_parameters(FLASH)) == "196.61"
    readers = 2 * (25600 * 6144 + 2 * 4 * 5120)
    assert model_size.parameters(FLASH)["engram"]["readers"] == readers
    assert billions(model_size.total_parameters(FLASH, "backbone") + readers) == "551.88"
    assert f"{model_size.total_parameters(FLASH, 'draft') / 1e9:.1f}" == "14.2"
    vision = model_size.parameters(FLASH)["vision"]
    assert (f"{vision['tower'] / 1e9:.3f}", f"{vision['aligner'] / 1e9:.3f}") == ("0.412", "0.073")
    everything = ("backbone", "engram", "draft", "vision")
    assert model_size.total_parameters(FLASH) == model_size.total_parameters(FLASH, *everything)


def test_v4_flash_has_284_billion_parameters_and_13_activated():
    assert f"{model_size.backbone_parameters(V4) / 1e9:.0f}" == "284"
    assert f"{sum(model_size.activated_parameters(V4, 'decode').values()) / 1e9:.0f}" == "13"
    assert model_size.parameters(V4)["engram"] == model_size.parameters(V4)["vision"] == {}


@pytest.mark.parametrize(
    ("phase", "conventions", "expected"),
    [
        ("decode", {}, "15.82"),
        ("decode", {"engram": True}, "16.13"),
        ("decode", {"embedding": True}, "16.48"),
        ("prefill", {}, "7.58"),
        ("prefill", {"engram": True}, "7.90"),
        ("prefill", {"embedding": True}, "8.24"),
        ("prefill", {"skip_decoder": False}, "15.15"),  # decode without the output matrix of 0.66 B
    ],
)
def test_activated_parameters_under_each_convention(phase, conventions, expected):
    assert billions(sum(model_size.activated_parameters(FLASH, phase, **conventions).values())) == expected


def test_a_decoded_token_of_the_tiny_model_meets_these_arrays():
    """All arrays of the backbone but the embedding, 3 of 8 experts."""
    sizes = {n: s for n, s in recorded_sizes().items() if own_component(n)[0] == "backbone" and n != "embed.weight"}
    idle = [n for n in sizes if ".experts." in n and int(n.split(".")[4]) >= 3]
    expected = sum(sizes.values()) - sum(sizes[n] for n in idle)
    assert sum(model_size.activated_parameters(TINY, "decode").values()) == expected


def test_a_prefilled_token_of_the_tiny_model_meets_these_arrays():
    """Layers 0 to 2 with 3 of 8 experts, and of layer 3 the norm, the compressor and what makes index keys."""
    met = 0
    for name, size in recorded_sizes().items():
        words = name.split(".")
        if words[0] != "layers" or words[2] == "engram" or (".experts." in name and int(words[4]) >= 3):
            continue
        makes = ".".join(words[2:]) in (
            "attn_norm.weight",
            "attn.compressor.wkv.weight",
            "attn.compressor.norm.weight",
            "attn.indexer.wk.weight",
            "attn.indexer.k_norm.weight",
        )
        met += size * (int(words[1]) < 3 or (words[1] == "3" and makes))
    assert sum(model_size.activated_parameters(TINY, "prefill").values()) == met


def test_other_phases_are_refused():
    with pytest.raises(ValueError, match="phase must be one of decode, prefill; got 'training'"):
        model_size.activated_parameters(FLASH, "training")


@pytest.mark.parametrize("config", [TINY, FLASH], ids=["tiny", "V4.1-Flash"])
def test_a_model_built_without_memory_has_the_counted_parameters(config):
    from deepseek_edu.model.model import Model

    built = counted({name: tensor.numel() for name, tensor in Model(config, device="meta").state_dict().items()})
    closed = without_zeros(model_size.parameters(config))
    assert {**built, "vision": {}} == {**closed, "vision": {}}  # the tower is a model of its own


# A toy cache


@pytest.mark.parametrize(
    ("toy", "message"),
    [
        ({"ratio": 0}, "ratio must be 1 or more; got 0"),
        ({"bits": 0}, "bits must be 1 or more; got 0"),
        ({"positions": -1}, "positions and selected must be 0 or more; got -1 and None"),
        ({"owners": 5}, "owners must be 1 … 4, the number of layers; got 5"),
        ({"owners": 0}, "owners must be 1 … 4"),
    ],
)
def test_a_toy_that_is_no_cache_is_refused(toy, message):
    with pytest.raises(ValueError, match=message):
        choices.Toy(**toy)


@pytest.mark.parametrize(("layer", "owners"), [(-1, 3), (8, 3), (0, 0), (0, 9)])
def test_a_layer_without_an_owner_is_refused(layer, owners):
    with pytest.raises(ValueError, match="layer must be 0 … 7; got" if owners == 3 else "owners must be 1 … 8"):
        choices.owner_of(layer, 8, owners)


# Documentation


@pytest.mark.parametrize("name", ["", ".caches", ".model_size", ".work"])
def test_examples_are_true_and_public_functions_are_described(name):
    module = importlib.import_module(f"deepseek_edu.accounting{name}")
    assert doctest.testmod(module).failed == 0
    public = [value for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    assert all(value.__doc__ for value in public)


def test_everything_public_is_exported():
    assert all(hasattr(accounting, name) for name in accounting.__all__)
    assert accounting.parameters is model_size.parameters


def test_a_model_without_n_gram_memory_stores_no_rows_of_it():
    for config in (
        ModelConfig.tiny(engram_layer_ids=()),
        ModelConfig.tiny(engram_layer_ids=(), engram_num_embeddings=()),
    ):
        assert accounting.parameters(config)["stored"]["row scales"] == 0
        assert accounting.total_parameters(config, "engram") == 0


def test_a_part_that_no_model_has_is_refused():
    with pytest.raises(ValueError, match=r"parts must be of backbone, .*; got 'nope'"):
        accounting.total_parameters(TINY, "backbone", "nope")
