"""The PyTorch model against the recorded outputs of the released reference code."""

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import dspark
from deepseek_edu.reference import dspark as numpy_dspark
from deepseek_edu.verify import verify

from .tiny import ORACLES, gap, pair, recorded, tiny_model


def test_every_recorded_output_of_the_tiny_model_is_reproduced():
    report = verify(ORACLES / "v41_tiny.npz", ORACLES / "v41_tiny_config.json", "torch")
    assert report.passed, report.text()
    assert "torch: 33 of 33 outputs reproduced" in report.text()
    assert report.unknown == []


@pytest.mark.parametrize("tokens", [1, 2, 7, 8, 9, 24, 33, 40])
def test_float32_stays_within_the_tolerance_of_prefill(tokens):
    model, data = tiny_model(torch.float32), recorded()
    output = model.prefill(torch.tensor(data["ids"][:, :tokens]), model.new_cache(2, quantized=False))
    assert output.logits.dtype == torch.float32
    assert gap(output.logits, data[f"noquant/prefill{tokens}/logits"]) < 5e-5
    if tokens == 24:
        assert gap(output.main_hidden, data["noquant/prefill24/main_hidden"]) < 5e-5


def test_float32_decode_stays_within_its_tolerance():
    model, data = tiny_model(torch.float32), recorded()
    cache = model.new_cache(2, quantized=False)
    ids = torch.tensor(data["ids"])
    model.prefill(ids[:, :24], cache)
    got = torch.stack([model.decode(ids[:, step], cache).last for step in range(24, 40)], dim=1)
    assert gap(got, data["noquant/decode/logits"]) < 1e-4


def test_tokens_drafted_at_once_are_those_of_numpy_for_rows_of_different_lengths():
    numpy_model, model = pair(ModelConfig.tiny(), seed=5)
    batch = [[1, 2, 3], list(range(20, 41))]
    cache = model.new_cache(2)
    model.prefill(batch, cache)
    with torch.no_grad():
        draft = dspark.draft(torch.tensor([7, 8]), model, cache)
    for row, ids in enumerate(batch):
        state = numpy_model.new_cache()
        numpy_model.prefill(ids, state)
        expected = numpy_dspark.draft(7 + row, len(ids), numpy_model, state)
        np.testing.assert_array_equal(draft.ids[row], expected.ids)
        assert gap(draft.logits[row], expected.logits) < 1e-8
