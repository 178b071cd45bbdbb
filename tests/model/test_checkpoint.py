"""A checkpoint in the released layout becomes a model that computes what its numbers mean."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from deepseek_edu.model.checkpoint import load_checkpoint
from deepseek_edu.model.model import Model
from deepseek_edu.reference import model as numpy_model

from ..reference.test_checkpoint import CONFIG, released, write
from .tiny import gap

TOKEN_MAP = np.arange(96) // 2


def test_a_released_checkpoint_is_read_tensor_by_tensor(tmp_path):
    stored, meaning = released(CONFIG)
    write(tmp_path, stored)
    model = load_checkpoint(tmp_path, CONFIG, TOKEN_MAP, torch.float64)
    for name, tensor in model.state_dict().items():
        assert gap(tensor, meaning[name]) == 0, name
    same = Model(CONFIG, TOKEN_MAP, torch.float64).load_weights(meaning)
    ids = [[1, 2, 3, 4, 5]]
    assert gap(model.prefill(ids, model.new_cache()).last, same.prefill(ids, same.new_cache()).last) == 0


def test_a_checkpoint_can_be_run_with_rounded_inputs(tmp_path):
    config = replace(CONFIG, q_lora_rank=32, o_lora_rank=16, moe_inter_dim=32)
    stored, meaning = released(config)
    write(tmp_path, stored)
    model = load_checkpoint(tmp_path, config, TOKEN_MAP, torch.float64, round_inputs=True)
    reference = numpy_model.Model(config, meaning, TOKEN_MAP, round_inputs=True)
    got = model.prefill([[1, 2, 3, 4, 5]], model.new_cache(quantized=False)).last
    expected = reference.prefill([1, 2, 3, 4, 5], reference.new_cache(quantized=False)).logits[-1:]
    assert gap(got, expected) < 1e-8


def test_an_incomplete_checkpoint_is_refused_before_a_tensor_is_read(tmp_path):
    stored, _ = released(CONFIG)
    del stored["head.weight"]
    write(tmp_path, stored)
    with pytest.raises(ValueError, match=r"1 missing: head\.weight"):
        load_checkpoint(tmp_path, CONFIG, TOKEN_MAP)
