"""Products of a few rows on several threads; several released matrices in one parameter; caches across modes."""

import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import linear, moe

from .tiny import gap, rows, tiny_model

WHERE = {"dtype": torch.float64}


@pytest.mark.parametrize("shape", [(1,), (1, 1), (3, 2), (linear.FEW_ROWS,), (linear.FEW_ROWS + 1,)])
def test_a_matrix_cut_for_several_threads_gives_the_same_product_and_gradients(shape, monkeypatch):
    torch.manual_seed(0)
    x = torch.randn(*shape, 6, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(8, 6, dtype=torch.float64, requires_grad=True)
    expected = x @ weight.mT
    wanted = torch.autograd.grad(expected.square().sum(), (x, weight))
    monkeypatch.setattr(linear, "LARGE", 1)
    for threads in (2, 3, 4):  # 8 rows cannot be cut into 3
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        got = linear.product(x, weight)
        assert gap(got, expected) < 1e-12
        for mine, other in zip(torch.autograd.grad(got.square().sum(), (x, weight)), wanted, strict=True):
            assert gap(mine, other) < 1e-11


def test_a_single_token_loops_over_its_experts_with_the_result_of_many_tokens():
    torch.manual_seed(0)
    experts = moe.Experts(5, ModelConfig.tiny(), WHERE)
    u = torch.randn(7, 32, dtype=torch.float64)
    chosen = torch.stack([torch.randperm(5)[:2] for _ in range(7)])
    weights = torch.rand(7, 2, dtype=torch.float64)
    with torch.no_grad():
        together = experts(u, chosen, weights)
        alone = [experts(u[n : n + 1], chosen[n : n + 1], weights[n : n + 1]) for n in range(7)]
    assert gap(torch.cat(alone), together) < 1e-12


def test_stacked_matrices_have_their_released_names_and_are_views():
    experts = moe.Experts(3, ModelConfig.tiny(), WHERE)
    state = experts.state_dict()
    assert sorted(state) == sorted(f"{e}.{name}.weight" for e in range(3) for name in ("w1", "w2", "w3"))
    state["2.w3.weight"].fill_(7)
    assert bool((experts.w13[2, 1] == 7).all()) and not bool((experts.w13[2, 0] == 7).any())
    shared = moe.Expert(24, ModelConfig.tiny(), WHERE)
    assert {name: tuple(matrix.shape) for name, matrix in shared.state_dict().items()} == {
        "w1.weight": (24, 32),
        "w2.weight": (32, 24),
        "w3.weight": (24, 32),
    }


def test_missing_misshapen_and_unknown_matrices_of_a_stack_are_told_together():
    experts = moe.Experts(2, ModelConfig.tiny(), WHERE)
    state = experts.state_dict() | {"9.w1.weight": torch.zeros(1), "1.w2.weight": torch.zeros(2, 2)}
    del state["0.w1.weight"]
    with pytest.raises(RuntimeError) as told:
        experts.load_state_dict(state)
    for words in ("0.w1.weight", "9.w1.weight", r"1.w2.weight must have shape (32, 24); got (2, 2)"):
        assert words in str(told.value)


@pytest.mark.parametrize("quantized", [False, True])
def test_a_cache_goes_from_prefill_and_decode_to_forward_and_back(quantized):
    """Prefill and decode run in inference mode; what they leave in a cache can be written by any other call."""
    model, ids = tiny_model(), torch.tensor(rows(24))
    together = model.new_cache(1, quantized)
    expected = model.prefill(ids, together, logits="last").logits
    cache = model.new_cache(1, quantized)
    model.prefill(ids[:, :9], cache)
    with torch.no_grad():
        model(ids[:, 9:12], cache)
    model.decode(ids[:, 12:13], cache)
    cache.rollback(12)
    row = cache.windows[0].stored(0)
    cache.windows[0].restore(0, row, 0)
    for layer in cache.entries:
        cache.entries[layer].restore(0, [part.clone() for part in cache.entries[layer].stored(0)])
    with torch.no_grad():
        got = model(ids[:, 12:], cache, logits="last").logits
    assert gap(got, expected) < (1e-3 if quantized else 1e-9)
