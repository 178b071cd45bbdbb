"""The PyTorch model against the recorded outputs of the released reference code."""

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import dspark
from deepseek_edu.reference import dspark as numpy_dspark
from deepseek_edu.reference.weights import random_weights
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


def test_a_file_of_other_sizes_made_by_numpy_is_reproduced():
    """Another shape altogether; a changed weight is noticed."""
    config = ModelConfig.tiny(
        vocab_size=52,
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
        image_token_id=50,
        vision_n_layers=0,
    )
    numpy_model, _ = pair(config)
    ids = np.random.default_rng(2).integers(0, 52, (1, 17))
    output = numpy_model.prefill(ids[0], numpy_model.new_cache(quantized=False))
    outputs = {f"w/{name}": array for name, array in random_weights(config, 0).items()}
    outputs |= {"ids": ids, "noquant/prefill17/logits": output.logits[None], "engram_hashes17": output.hashes[None]}
    outputs["noquant/topk_idxs_L4"] = np.where(output.choices[4] < 0, -1, output.choices[4] + 17)[None]
    outputs["noquant/decode/logits"] = output.logits[None, 15:]
    report = verify(outputs, config, "torch")
    assert len(report.rows) == 4
    assert report.passed, report.text()
    outputs["w/layers.5.ffn.experts.3.w2.weight"] = outputs["w/layers.5.ffn.experts.3.w2.weight"] * 1.01
    assert not verify(outputs, config, "torch").passed


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
