"""Rounding of what quantised matrices multiply in PyTorch: equal to NumPy's, one token as many, and trainable."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import dspark, linear, losses
from deepseek_edu.model.model import Model
from deepseek_edu.reference import dspark as numpy_dspark
from deepseek_edu.reference import linear as numpy_linear
from deepseek_edu.reference import model as numpy_model
from deepseek_edu.reference.weights import random_weights

from ..reference.test_round_inputs import EVEN, TOKEN_MAP
from .tiny import gap


def both(seed):
    weights = random_weights(EVEN, seed)
    return (
        numpy_model.Model(EVEN, weights, TOKEN_MAP, round_inputs=True),
        Model(EVEN, TOKEN_MAP, torch.float64, round_inputs=True).load_weights(weights),
    )


@given(st.integers(0, 2**32 - 1), st.sampled_from([32, 128]), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=40, deadline=None)
def test_an_input_is_rounded_as_in_numpy(seed, block, dtype):
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((3, 256)) * 2.0 ** rng.integers(-30, 30, (3, 1))).astype(dtype)
    got = linear.round_input(torch.tensor(x), block)
    np.testing.assert_array_equal(got, numpy_linear.round_input(x, block))
    assert got.dtype == torch.tensor(x).dtype


def test_prefill_decode_and_drafts_agree_with_numpy():
    for quantized in (False, True):
        agrees_with_numpy(quantized)


def agrees_with_numpy(quantized):
    reference, model = both(5)
    ids = np.random.default_rng(6).integers(0, 96, 21)
    theirs, ours = reference.new_cache(quantized), model.new_cache(1, quantized)
    with torch.no_grad():
        got = [model.prefill(torch.tensor(ids[None, :17]), ours).logits[0]]
        got += [model.decode(torch.tensor([[token]]), ours).logits[0] for token in ids[17:]]
        draft = dspark.draft(torch.tensor([9]), model, ours)
    expected = [reference.prefill(ids[:17], theirs).logits]
    expected += [reference.decode(token, theirs).logits for token in ids[17:]]
    assert gap(torch.cat(got), np.concatenate(expected)) < 1e-8
    expected = numpy_dspark.draft(9, 21, reference, theirs)
    assert draft.ids[0].tolist() == expected.ids.tolist()
    assert gap(draft.logits[0], expected.logits) < 1e-8


def test_one_token_at_a_time_agrees_with_all_at_once():
    _, model = both(7)
    ids = torch.from_numpy(np.random.default_rng(8).integers(0, 96, (2, 12)))
    with torch.no_grad():
        whole = model(ids).logits
        for row in range(2):
            cache = model.new_cache(1, quantized=False)
            steps = [model.decode(ids[row : row + 1, t : t + 1], cache).logits[0] for t in range(12)]
            assert gap(torch.cat(steps), whole[row]) < 1e-8


def test_gradients_pass_the_rounding_unchanged():
    """y = W r(x): the gradient of x is Wᵀ g as if nothing had been rounded, that of W sees the rounded x."""
    x, matrix = (
        torch.randn(3, 64, dtype=torch.float64, requires_grad=True),
        linear.Matrix(5, 64, {"dtype": torch.float64}),
    )
    matrix.rounds_input = True
    g = torch.randn(3, 5, dtype=torch.float64)
    (matrix(x) * g).sum().backward()
    assert gap(x.grad, g @ matrix.weight) < 1e-12
    rounded = numpy_linear.round_input(x.detach().numpy())
    assert gap(matrix.weight.grad, g.numpy().T @ rounded) < 1e-12
    assert gap(matrix.weight.grad, g.T @ x) > 1e-3


def test_a_model_with_rounded_inputs_can_be_trained():
    _, model = both(9)
    ids = torch.from_numpy(np.random.default_rng(1).integers(0, 96, (2, 12)))
    losses.next_token_loss(model(ids, quantized=True).logits, ids).backward()
    for name in ("layers.3.attn.wq_a", "layers.3.attn.wo_b", "layers.1.engram.wkv"):
        assert model.get_submodule(name).weight.grad.abs().max() > 0
    assert model.layers[0].ffn.experts.w2.grad.abs().max() > 0


def test_rounding_is_off_unless_asked_for():
    plain = Model(EVEN, TOKEN_MAP)
    rounded = [name for name, module in plain.named_modules() if getattr(module, "rounds_input", False)]
    assert rounded == []


def test_widths_that_are_no_whole_blocks_are_listed():
    with pytest.raises(ValueError, match=r"multiple of 32 columns; got layers\.0\.attn\.wq_b\.weight \(128, 16\)"):
        Model(ModelConfig.tiny(), TOKEN_MAP, round_inputs=True)
