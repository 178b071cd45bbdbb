"""verify on files of other sizes, written by a plain model of its own: layouts and boundaries."""

from dataclasses import replace

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.verify import verify

from .plain_model import PlainModel
from .recordings import SMALL, only, random_config, record, released, rows_of, small_file, token_map
from .reference.tiny import recorded


def assert_reproduced(outputs, config, implementations=("numpy", "torch")):
    for implementation in implementations:
        report = verify(outputs, released(config), implementation)
        assert report.passed, report.text()
        assert report.unknown == []
        inputs = {n for n in outputs if n == "ids" or ("/image" in n and n.endswith(("/ids", "/types")))}
        assert set(rows_of(report)) == {n for n in outputs if not n.startswith("w/")} - inputs


def test_the_plain_model_itself_gives_the_recorded_outputs():
    """The oracle of this file against the oracle of all: the released code run in float32."""
    outputs = recorded()
    weights = {name[2:]: array for name, array in outputs.items() if name.startswith("w/")}
    for kind in ("noquant", "quant"):
        model = PlainModel(ModelConfig.tiny(), weights, np.arange(96) // 2, kind == "quant")
        logits = [model.step(token) for token in outputs["ids"][1, :33]]
        assert np.abs(logits - outputs[f"{kind}/prefill33/logits"][1]).max() < 5e-5
        ids, draft, confidence = PlainModel.draft(model, outputs[f"{kind}/draft/ids"][1, 8, 0])
        np.testing.assert_array_equal(ids, outputs[f"{kind}/draft/ids"][1, 8])
        assert np.abs(draft - outputs[f"{kind}/draft/logits"][1, 8]).max() < 1e-4
        assert np.abs(confidence - outputs[f"{kind}/draft/conf"][1, 8]).max() < 1e-4


def test_a_file_with_outputs_of_every_kind_is_reproduced():
    kinds = {name.split("/", 1)[1] for name in small_file() if name.startswith("quant/")}
    assert len(kinds) == 12, kinds
    assert_reproduced(small_file(), SMALL)


@pytest.mark.parametrize("seed", range(12))
def test_random_sizes_are_reproduced(seed):
    """Layers, owners, ratios, pools, modules, stages, heads, streams, score functions: all drawn."""
    rng, config = np.random.default_rng(seed), random_config(seed)
    tokens = int(rng.integers(2, 16))
    steps = int(rng.integers(0, min(4, tokens)))
    lengths = sorted({1, tokens, *rng.integers(1, tokens + 1, 2).tolist()})
    stale, image = bool(steps and config.kv_source_layers), tokens if tokens > 8 else None
    outputs = record(config, seed, 1 + seed % 3, tokens, lengths, steps, image=image, stale=stale)
    assert_reproduced(outputs, config)


SHAPES = {
    "no compression, no memory, no drafts": {
        "compress_ratios": (0, 0, 0, 0),
        "kv_source_layers": (),
        "index_source_layers": (),
        "candidate_source_layer": -1,
        "engram_layer_ids": (),
        "n_mtp_layers": 0,
        "dspark_block_size": 0,
        "dspark_target_layer_ids": (),
    },
    "three modules and bigrams only": {"engram_layer_ids": (0, 1, 3), "engram_max_ngram_size": 2},
    "order five, one hash": {"engram_max_ngram_size": 5, "engram_n_heads": 1},
    "no pool": {"candidate_source_layer": -1},
    "two owners of one ratio, the pool of the first": {
        "compress_ratios": (1, 1, 1, 1, 0),
        "candidate_source_layer": 0,
        "candidate_topk_blocks": 3,
    },
    "every layer chooses": {"index_source_layers": (0, 1, 2, 3)},
    "three stages, blocks of six": {
        "n_mtp_layers": 3,
        "compress_ratios": (2, 2, 1, 1, 0, 0, 0),
        "dspark_block_size": 6,
    },
    "blocks of one": {"dspark_block_size": 1},
    "a window of one": {"window_size": 1},
    "a window longer than the prompt": {"window_size": 50},
    "one expert of one": {"n_routed_experts": 1, "n_activated_experts": 1},
    "one stream": {"hc_mult": 1},
    "no vision tower": {"vision_n_layers": 0},
    "no YaRN": {"original_seq_len": 0},
}


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES.keys())
def test_other_shapes_are_reproduced(changes):
    config = replace(SMALL, **changes)
    stale = bool(config.kv_source_layers)
    assert_reproduced(record(config, 7, 1, 11, (1, 4, 11), 3, image=10, stale=stale), config)


def test_a_model_without_vision_has_no_image_bias_and_needs_none():
    config = replace(SMALL, vision_n_layers=0)
    outputs = record(config, 7, 1, 10, (10,), 0, image=10)
    assert not [name for name in outputs if "bias_vl" in name or name.startswith(("w/vision", "w/aligner"))]
    assert_reproduced(outputs, config)


@pytest.mark.parametrize(("batch", "tokens", "steps"), [(1, 1, 0), (3, 2, 1), (1, 3, 2), (3, 9, 9), (1, 5, 0)])
def test_short_prompts_batches_and_decodes_of_any_length(batch, tokens, steps):
    lengths = sorted({1, tokens})
    assert_reproduced(record(SMALL, 11, batch, tokens, lengths, steps, stale=steps > 0), SMALL)


def test_a_released_configuration_may_leave_out_what_the_reference_defaults_to():
    """compress theta 40 000, no YaRN, experts of the stages like those of the layers, stages only with a block."""
    config = replace(
        SMALL,
        compress_rope_theta=40_000.0,
        original_seq_len=0,
        rope_factor=40.0,
        dspark_n_routed_experts=4,
        dspark_n_activated_experts=2,
    )
    settings = released(config)
    for name in ("compress_rope_theta", "original_seq_len", "rope_factor", "n_mtp_layers", "n_shared_experts"):
        del settings[name]
    settings["dspark_n_routed_experts"] = settings["dspark_n_activated_experts"] = 0
    outputs = record(config, 3, 1, 9, (9,), 2)
    assert verify(outputs, settings).passed
    del settings["dspark_block_size"]
    settings["n_mtp_layers"] = 2  # not built without a block, and the ratios behind the layers are not read
    config = ModelConfig.from_released(settings)
    assert (config.n_mtp_layers, config.compress_ratios) == (0, (2, 2, 1, 1))
    assert verify(only(record(config, 3, 1, 9, (9,), 2), "noquant/prefill9/logits"), settings).passed


def test_the_decoded_tokens_may_stand_anywhere():
    """Recorded from position 3 on, with more ids behind."""
    outputs = record(SMALL, 13, 2, 12, (3, 12), 4)
    logits = outputs["noquant/prefill12/logits"]
    early = {**only(outputs, "noquant/prefill3/logits"), "noquant/decode/logits": logits[:, 3:7]}
    for implementation in ("numpy", "torch"):
        assert verify(early, SMALL, implementation).passed
    early["noquant/decode/logits"] = logits[:, 3:7] + 1e-3
    assert not verify(early, SMALL).passed


def test_drafts_after_some_of_the_steps_only():
    outputs = record(SMALL, 13, 2, 12, (12,), 4)
    for part in ("ids", "logits", "conf"):
        outputs[f"noquant/draft/{part}"] = outputs[f"noquant/draft/{part}"][:, :2]
    assert_reproduced(outputs, SMALL)


def test_the_choice_of_a_reusing_layer_is_that_of_the_layer_it_follows():
    outputs = only(small_file(), "noquant/topk_idxs_L0")
    outputs["noquant/topk_idxs_L1"] = outputs["noquant/topk_idxs_L0"]
    assert_reproduced(outputs, SMALL)


@pytest.mark.parametrize("width", [np.float16, np.float32, np.float64, ">f4"])
def test_arrays_of_any_floating_type_are_read(width):
    outputs = record(SMALL, 17, 1, 6, (6,), 0)
    exact = {name: array.astype(np.float16).astype(np.float32) for name, array in outputs.items() if name[:2] == "w/"}
    model = PlainModel(SMALL, {name[2:]: array for name, array in exact.items()}, token_map(SMALL))
    logits = np.array([[model.step(token) for token in outputs["ids"][0]]])
    stored = {name: array.astype(width) for name, array in exact.items()}
    stored |= {"ids": outputs["ids"].astype(np.int32), "noquant/prefill6/logits": logits}
    for implementation in ("numpy", "torch"):
        assert verify(stored, SMALL, implementation).passed


def test_a_token_map_of_the_file_is_used():
    shuffled = np.random.default_rng(0).permutation(token_map(SMALL))
    outputs = only(record(SMALL, 19, 1, 8, (8,), 0), "engram_hashes8")
    assert rows_of(verify({**outputs, "token_map": shuffled}, SMALL))["engram_hashes8"].difference > 0
    assert verify({**outputs, "token_map": token_map(SMALL)}, SMALL).passed
    with pytest.raises(ValueError, match="token_map must be integers"):
        verify({**outputs, "token_map": shuffled / 2}, SMALL)
