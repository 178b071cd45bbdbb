"""The comparison with recorded outputs: what it reads, what it refuses, what it lists."""

import json
from pathlib import Path

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
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
