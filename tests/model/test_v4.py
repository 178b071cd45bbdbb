"""DeepSeek-V4 in PyTorch: NumPy and PyTorch agree, and all ways of feeding the same tokens."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.model.v4_cache import V4Rows
from deepseek_edu.model.v4_model import V4Model
from deepseek_edu.reference import v4_model as numpy_v4

from ..reference.test_v4 import random_weights, tiny_v4
from .tiny import gap

PARITY = 1e-8  # float64 with sums in another order; logits of scale 7
FEEDING = 1e-5


def pair(config, seed=0, drafter=None):
    """(NumPy model, PyTorch model) with the same random weights, both in float64."""
    weights = random_weights(config, seed)
    if drafter is None:
        weights = {name: array for name, array in weights.items() if not name.startswith("mtp.")}
    return numpy_v4.V4Model(config, weights), V4Model(config, drafter, torch.float64).load_weights(weights)


def ids_of(count, seed=0, vocabulary=96):
    return np.random.default_rng(seed).integers(0, vocabulary, count).tolist()


@st.composite
def v4_configurations(draw):
    """1 … 5 layers of any kinds, ratios of HCA 3 … 9, drawn widths, windows, Top-k, experts and hash layers."""
    ratios = tuple(draw(st.lists(st.sampled_from([0, 4, 4, 3, 5, 8, 9]), min_size=1, max_size=5)))
    groups = draw(st.integers(1, 2))
    experts = draw(st.integers(1, 6))
    head_dim = draw(st.sampled_from([4, 6, 16]))
    return tiny_v4(
        vocab_size=draw(st.integers(8, 40)),
        dim=draw(st.integers(3, 20)),
        n_layers=len(ratios),
        dspark_target_layer_ids=(0,),
        dspark_noise_token_id=0,
        image_token_id=-1,
        engram_pad_id=0,
        compress_ratios=(*ratios, 0),
        kv_source_layers=tuple(layer for layer, ratio in enumerate(ratios) if ratio),
        index_source_layers=tuple(layer for layer, ratio in enumerate(ratios) if ratio == 4),
        n_heads=groups * draw(st.integers(1, 3)),
        o_groups=groups,
        o_lora_rank=draw(st.integers(1, 6)),
        q_lora_rank=draw(st.integers(1, 10)),
        head_dim=head_dim,
        rope_head_dim=draw(st.sampled_from([2, 4])),
        window_size=draw(st.integers(1, 9)),
        original_seq_len=draw(st.sampled_from([0, 16])),
        index_n_heads=draw(st.integers(1, 4)),
        index_head_dim=draw(st.sampled_from([4, 8, 16])),
        index_topk=draw(st.integers(1, 5)),
        n_routed_experts=experts,
        n_activated_experts=draw(st.integers(1, experts)),
        moe_inter_dim=draw(st.integers(1, 9)),
        n_hash_layers=draw(st.integers(0, len(ratios))),
        score_func=draw(st.sampled_from(["sqrtsoftplus", "sigmoid", "softmax"])),
        hc_mult=draw(st.integers(1, 4)),
    )


@given(v4_configurations(), st.lists(st.integers(1, 30), min_size=1, max_size=3), st.data())
@settings(max_examples=60)
def test_random_models_agree_row_by_row(config, lengths, data):
    """Any layers; rows of different lengths, in pieces of any sizes, each piece against the whole sequence in NumPy."""
    numpy_model, torch_model = pair(config)
    batch = [ids_of(length, row, config.vocab_size) for row, length in enumerate(lengths)]
    expected = [numpy_model.forward(row) for row in batch]
    chunk = data.draw(st.integers(1, max(lengths)), label="chunk")
    spare = data.draw(st.integers(0, 4), label="spare")
    cache = torch_model.new_cache(len(batch), quantized=False, spare=spare)
    output = torch_model.prefill(batch, cache, chunk=chunk)
    for b, row in enumerate(batch):
        assert gap(output.logits[b, : len(row)], expected[b]) < PARITY
    assert cache.lengths.tolist() == lengths


@pytest.mark.parametrize("tokens", [1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33])
def test_lengths_at_the_edges_of_windows_and_groups(tokens):
    """Window 8, CSA groups of 4, HCA groups of 8: below, at and above; then four tokens one by one."""
    numpy_model, torch_model = pair(tiny_v4(), 1)
    ids = ids_of(tokens + 4, tokens)
    expected = numpy_model.forward(ids)
    cache = torch_model.new_cache(quantized=False)
    assert gap(torch_model.prefill([ids[:tokens]], cache).logits[0], expected[:tokens]) < PARITY
    for place in range(tokens, tokens + 4):
        assert gap(torch_model.decode([ids[place]], cache).logits[0, 0], expected[place]) < PARITY


def test_weights_that_do_not_fit_are_told_together():
    config = tiny_v4()
    weights = {name: array for name, array in random_weights(config, 0).items() if not name.startswith("mtp.")}
    del weights["head.weight"]
    weights["layers.9.extra"] = np.zeros(3)
    weights["norm.weight"] = np.zeros(3)
    weights["embed.weight"] = torch.zeros(96, 32, dtype=torch.complex64)
    weights["layers.0.ffn.gate.tid2eid"] = weights["layers.0.ffn.gate.tid2eid"] + 0.5
    weights["layers.1.ffn.gate.tid2eid"] = torch.tensor(weights["layers.1.ffn.gate.tid2eid"]) + 1
    told = (
        r"1 missing: head\.weight; 1 unknown: layers\.9\.extra; 1 of another shape: norm\.weight \(3,\) "
        r"\(expected \(32,\)\); 1 not of real numbers: embed\.weight complex64; 2 of wrong values: "
        r"layers\.0\.ffn\.gate\.tid2eid \(expected whole numbers 0 … 7; got 0\.5 … 7\.5\), layers\.1.*got 1 … 8\)$"
    )
    for make in (lambda: V4Model(config).load_weights(weights), lambda: numpy_v4.V4Model(config, weights)):
        with pytest.raises(ValueError, match=told):
            make()


def test_weights_may_be_tensors_of_any_type():
    """bfloat16 weights, tables too, into a model of float64 and into one of their own type."""
    config = tiny_v4()
    weights = {name: array for name, array in random_weights(config, 0).items() if not name.startswith("mtp.")}
    narrow = {name: torch.tensor(array).bfloat16().requires_grad_() for name, array in weights.items()}
    for dtype in (torch.float64, torch.bfloat16):
        state = V4Model(config, dtype=dtype).load_weights(narrow).state_dict()
        assert state.keys() == narrow.keys()
        for name, tensor in state.items():
            kept = name.endswith(
                ("hc_attn_fn", "hc_attn_base", "hc_attn_scale", "hc_ffn_fn", "hc_ffn_base", "hc_ffn_scale")
            )
            kept |= name == "head.weight" or name.endswith(
                ("hc_head_fn", "hc_head_base", "hc_head_scale", "attn_sink", "gate.bias")
            )
            expected = torch.promote_types(dtype, torch.float32) if kept else dtype
            assert tensor.dtype is (torch.int64 if name.endswith("tid2eid") else expected)
            assert torch.equal(tensor.double(), narrow[name].double())
    assert pair(config)[1].dtype is torch.float64


def test_released_rows_cost_584_bytes():
    rows = V4Rows(512, 64, torch.float32)
    assert sum(width * dtype.itemsize for width, dtype in rows.parts) == 584
    with pytest.raises(ValueError, match="multiple of 64"):
        V4Rows(100, 64, torch.float32)
