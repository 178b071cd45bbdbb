"""Models of bfloat16 and float16, and models under torch.autocast: what stays float32, and what must not break."""

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import cache_file, losses, mhc, moe, optimisers
from deepseek_edu.model.model import Model
from deepseek_edu.model.v4_model import V4Model

from ..reference.test_v4_dspark import drafting_v4
from .tiny import gap, rows, tiny_model

NARROW = (torch.bfloat16, torch.float16)
FLOAT32 = ("hc_attn_fn", "hc_ffn_base", "hc_attn_scale", "attn_sink", "gate.bias", "hc_head_fn")
"""Parameters that the release keeps in float32, by the ends of their names."""


def model_of(kind, dtype=torch.float32):
    """A small model of a generation; equal weights, as far as a type can hold them, for every type."""
    torch.manual_seed(0)
    if kind == "V4":
        exact, model = (V4Model(drafting_v4(), "dspark", some) for some in (torch.float32, dtype))
    else:
        exact = tiny_model(torch.float32)
        model = Model(exact.config, exact.hash.token_map.numpy(), dtype)
    model.load_state_dict(exact.state_dict())
    return model


def alike(got, expected):
    """Least cosine between rows of logits."""
    return float(torch.nn.functional.cosine_similarity(got.detach().float(), expected.float(), dim=-1).min())


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("kind", ["V4.1", "V4"])
def test_a_model_of_a_narrow_type_continues_token_by_token_and_drafts(kind, dtype):
    model, ids = model_of(kind, dtype), rows(16)[0]
    for quantized in (False, True) if kind == "V4.1" else (False,):
        whole = model.prefill([ids], model.new_cache(1, quantized)).logits[0, 12:]
        cache = model.new_cache(1, quantized)
        model.prefill([ids[:12]], cache)
        steps = torch.cat([model.decode([token], cache).last for token in ids[12:]])
        assert alike(steps, whole) > 0.95
        new = model.new_cache(1, quantized)
        assert len(model.generate([ids[:12]], 6, cache=new, speculative=True, stop=())[0].ids) == 6


def test_what_the_release_keeps_in_float32_stays_so_and_logits_are_float32():
    for kind in ("V4.1", "V4"):
        model = model_of(kind, torch.bfloat16)
        kept = {name: parameter.dtype for name, parameter in model.named_parameters() if name.endswith(FLOAT32)}
        assert len(kept) > 20
        assert set(kept.values()) == {torch.float32}
        assert (model.head.weight.dtype, model.layers[0].attn.wq_a.weight.dtype) == (torch.float32, torch.bfloat16)
        output = model.prefill(rows(12), model.new_cache(1, False))
        assert output.logits.dtype == torch.float32
        assert gap(output.logits, model.norm(output.hidden).float() @ model.head.weight.T) < 1e-4
        model.to(torch.bfloat16)  # on request everything is narrow, but logits
        assert model.prefill(rows(12), model.new_cache(1, False)).logits.dtype == torch.float32


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("kind", ["V4.1", "V4"])
def test_a_model_works_under_autocast(kind, dtype, mode):
    model, ids = model_of(kind), rows(16)[0]
    exact = model.prefill([ids], model.new_cache(1, False)).logits[0]
    with torch.autocast("cpu", dtype), mode():
        cache = model.new_cache(1, False)
        begun = model.prefill([ids[:12]], cache).logits[0]
        steps = [model.decode([token], cache).last for token in ids[12:]]
        trained = model(torch.tensor([ids])).logits[0]
        new = model.new_cache(1, False)
        assert len(model.generate([ids[:12]], 5, cache=new, speculative=True, stop=())[0].ids) == 5
    assert alike(torch.cat([begun, *steps]), exact) > 0.95
    assert alike(trained, exact) > 0.95


def test_routers_and_coefficients_do_not_feel_autocast():
    model, seen = model_of("V4.1"), []
    u, streams = torch.randn(1, 5, model.config.dim), torch.randn(1, 5, 4, model.config.dim)
    layer = model.layers[0]
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled), torch.no_grad():
            own = mhc.coefficients(streams, layer.hc_attn_fn, layer.hc_attn_base, layer.hc_attn_scale, model.config)
            seen.append((*own, layer.ffn.gate(u[0], 2)[0]))
    for plain, cast in zip(*seen, strict=True):
        assert torch.equal(plain, cast)


def test_a_float16_cache_is_saved_and_continued(tmp_path):
    model = model_of("V4.1", torch.float16)
    for quantized in (False, True):
        cache = model.new_cache(1, quantized)
        model.prefill(rows(12), cache)
        cache_file.save(cache, tmp_path / "cache")
        again = cache_file.load(tmp_path / "cache", model.config, torch.float16)
        assert torch.equal(model.decode([5], cache).logits, model.decode([5], again).logits)


@pytest.mark.parametrize("kind", [optimisers.Muon, optimisers.BalancedMomentum])
def test_training_in_bfloat16_goes_on_from_a_saved_state_as_if_it_had_not_stopped(kind):
    torch.manual_seed(0)
    first = torch.nn.Parameter(torch.randn(6, 4, dtype=torch.bfloat16))
    optimiser = kind([first], 0.1)
    for _ in range(2):
        first.grad = torch.randn(6, 4).bfloat16()
        optimiser.step()
    second = torch.nn.Parameter(first.detach().clone())
    other = kind([second], 0.1)
    other.load_state_dict(optimiser.state_dict())
    first.grad = second.grad = torch.randn(6, 4).bfloat16()
    optimiser.step()
    other.step()
    assert torch.equal(first, second)
    momenta = [some.state[p]["momentum"] for some, p in ((optimiser, first), (other, second))]
    assert momenta[1].dtype == torch.float32
    assert torch.equal(*momenta)


def test_training_in_float16_is_refused():
    with pytest.raises(ValueError, match="must be of float32 or bfloat16 to be trained; got float16"):
        optimisers.make_optimisers(Model(ModelConfig.tiny(), np.arange(96) // 2, torch.float16), 0.01)


@pytest.mark.parametrize("dtype", [*NARROW, torch.float32])
def test_loads_are_compared_as_they_were_counted(dtype):
    bias = torch.zeros(3, dtype=dtype)
    moe.update_bias(bias, torch.tensor([100_001, 100_003, 99_999]), 0.5)
    assert bias.tolist() == [0.0, -0.5, 0.5]


def test_the_loss_of_narrow_logits_is_computed_in_float32():
    torch.manual_seed(0)
    logits, ids = torch.randn(1, 4, 5000).bfloat16(), torch.tensor([[1, 2, 3, 4]])
    expected = -logits.float().log_softmax(dim=-1)[0, torch.arange(3), ids[0, 1:]].mean()
    assert gap(losses.next_token_loss(logits, ids), expected) < 1e-5


def test_a_text_without_a_second_token_has_no_loss():
    logits = torch.randn(1, 1, 9, requires_grad=True)
    loss = losses.next_token_loss(logits, torch.tensor([[1]]))
    loss.backward()
    assert float(loss.detach()) == 0
    assert not logits.grad.any()
    assert float(losses.next_token_loss(torch.randn(1, 3, 9), torch.tensor([[1, 2, 3]]), counts=[1])) == 0
