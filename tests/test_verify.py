"""The comparison with recorded outputs: what it reads, what it refuses, what it lists."""

import json
from pathlib import Path

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import dspark, model, weights
from deepseek_edu.verify import Row, verify

ORACLES = Path(__file__).parent / "oracles"


@pytest.fixture(scope="module")
def recorded():
    with np.load(ORACLES / "v41_tiny.npz") as file:
        return {name: file[name] for name in file.files}


def some(recorded, *names):
    """The weights, the ids and a few of the outputs."""
    return {k: v for k, v in recorded.items() if k.startswith("w/") or k in ("ids", *names)}


def test_every_recorded_output_of_the_tiny_model_is_reproduced(recorded):
    report = verify(ORACLES / "v41_tiny.npz", ORACLES / "v41_tiny_config.json")
    assert report.passed, report.text()
    assert report.unknown == []
    outputs = {name for name in recorded if not name.startswith("w/")}
    inputs = {"ids", "noquant/image20/ids", "noquant/image20/types"}
    assert {row.output for row in report.rows} == outputs - inputs
    assert "33 of 33 outputs reproduced" in report.text()


def test_a_changed_output_and_a_changed_weight_fail(recorded):
    config = json.loads((ORACLES / "v41_tiny_config.json").read_text())
    outputs = some(recorded, "noquant/prefill2/logits", "engram_hashes40")
    outputs["engram_hashes40"] = outputs["engram_hashes40"].copy()
    outputs["engram_hashes40"][0, 3, 1, 2] += 1
    report = verify(outputs, config)
    assert {row.output: (row.difference, row.passed) for row in report.rows}["engram_hashes40"] == (1.0, False)
    assert not report.passed
    outputs = some(recorded, "noquant/prefill2/logits")
    outputs["w/layers.7.ffn.shared_experts.w2.weight"] = outputs["w/layers.7.ffn.shared_experts.w2.weight"] * 1.01
    assert not verify(outputs, config).passed


def test_outputs_it_does_not_know_are_listed(recorded):
    outputs = {**some(recorded, "noquant/prefill1/logits"), "noquant/novel/thing": np.zeros(2), "w/extra": np.zeros(1)}
    report = verify(outputs, ModelConfig.tiny())
    assert report.unknown == ["noquant/novel/thing", "w/extra"]
    assert report.passed
    assert "noquant/novel/thing" in report.text()


def test_a_missing_weight_is_an_error_that_names_it(recorded):
    outputs = some(recorded, "noquant/prefill1/logits")
    del outputs["w/layers.5.attn.indexer.wq_b.weight"], outputs["w/norm.weight"]
    with pytest.raises(ValueError, match=r"2 missing: norm.weight, layers.5.attn.indexer.wq_b.weight"):
        verify(outputs, ModelConfig.tiny())


def test_a_missing_input_is_an_error_that_names_it(recorded):
    outputs = some(recorded, "noquant/image20/logits", "noquant/image20/ids")
    with pytest.raises(ValueError, match="noquant/image20/types"):
        verify(outputs, ModelConfig.tiny())


def test_an_output_of_another_shape_fails(recorded):
    outputs = some(recorded, "noquant/prefill2/logits")
    outputs["noquant/prefill2/logits"] = outputs["noquant/prefill2/logits"][:, :, :-1]
    assert not verify(outputs, ModelConfig.tiny()).passed


def test_nothing_to_compare_is_no_success(recorded):
    assert not verify(some(recorded), ModelConfig.tiny()).passed


def test_a_difference_that_is_not_a_number_fails():
    assert not Row("x", float("nan"), 1.0).passed


def test_files_of_other_sizes_are_read():
    """Another shape altogether, with outputs of our own: this shows that nothing is tied to the tiny model's sizes."""
    config = ModelConfig.tiny(
        vocab_size=51,
        dim=24,
        n_layers=6,
        n_mtp_layers=2,
        n_heads=6,
        head_dim=20,
        rope_head_dim=4,
        o_groups=3,
        window_size=5,
        compress_ratios=(2, 2, 0, 1, 1, 1, 0, 0),
        kv_source_layers=(0, 3),
        index_source_layers=(0, 3, 4),
        index_head_dim=12,
        index_n_heads=3,
        hc_mult=3,
        engram_layer_ids=(2,),
        engram_num_embeddings=(),
        engram_head_dim=8,
        engram_max_ngram_size=3,
        engram_vocab_size=20,
        engram_compressed_vocab_size=26,
        dspark_block_size=3,
        dspark_noise_token_id=50,
        dspark_target_layer_ids=(3, 5),
        candidate_source_layer=-1,
        n_shared_experts=2,
        image_token_id=50,
    )
    w = weights.random_weights(config, 1)
    ids = np.random.default_rng(2).integers(0, 51, (1, 17))
    runner = model.Model(config, w, np.arange(51) // 2)
    output = runner.prefill(ids[0], cache := runner.new_cache(quantized=False))
    outputs = {f"w/{name}": array for name, array in w.items()}
    outputs |= {"ids": ids, "noquant/prefill17/logits": output.logits[None], "engram_hashes17": output.hashes[None]}
    outputs["noquant/topk_idxs_L4"] = np.where(output.choices[4] < 0, -1, output.choices[4] + 17)[None]
    draft = dspark.draft(7, 17, runner, cache)
    outputs["noquant/decode/logits"] = output.logits[None, 15:]
    outputs["noquant/draft/ids"] = np.stack([[np.r_[9, draft.ids[1:] * 0], draft.ids]])
    report = verify(outputs, config)
    rows = {row.output: row for row in report.rows}
    assert rows["noquant/draft/ids"].difference <= 3  # the first of the two drafts is made up
    assert all(row.passed for name, row in rows.items() if name != "noquant/draft/ids"), report.text()
    assert len(rows) == 5
