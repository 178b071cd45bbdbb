"""Training in small cases done by hand: losses, what is trained, and the three updates."""

import math

import numpy as np
import torch

from deepseek_edu.model import losses, optimisers

from .test_properties_streams import random
from .test_speculative import small
from .tiny import gap


def text_and_output(model, tokens=12):
    ids = torch.tensor([[1, 2, 0, 3, 4, 1, 0, 2, 2, 3, 1, 4], [4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 4, 1]])[:, :tokens]
    with torch.no_grad():
        return ids, model(ids)


def test_the_next_token_loss_is_the_mean_surprise_of_counted_tokens():
    logits, ids = random(2, 4, 5), torch.tensor([[1, 2, 3, 4], [0, 4, 1, 1]])
    surprises = -logits.log_softmax(dim=-1)
    expected = [float(surprises[0, t, ids[0, t + 1]]) for t in range(3)] + [float(surprises[1, 0, 4])]
    assert abs(float(losses.next_token_loss(logits, ids, [4, 2])) - np.mean(expected)) < 1e-12
    whole = expected[:3] + [float(surprises[1, t, ids[1, t + 1]]) for t in range(3)]
    assert abs(float(losses.next_token_loss(logits, ids)) - np.mean(whole)) < 1e-12


def test_the_draft_loss_is_the_sum_of_its_three_parts():
    """Weights e^(−k/γ); the distance of the distributions; confidence against one minus half of it."""
    model = small()
    ids, output = text_and_output(model)
    with torch.no_grad():
        got = losses.draft_loss_on_text(model, ids, output, [2, 5], gamma=2.0, factors=(1, 0.5, 2))
    parts = np.zeros(3)
    for anchor in (2, 5):
        with torch.no_grad():
            logits, confidence = losses._teacher_forced(model, ids, output.main_hidden, anchor)
        q, p = logits.softmax(dim=-1).numpy(), output.logits.softmax(dim=-1).numpy()
        for row in range(2):
            for k in range(3):
                weight = math.exp(-k / 2) / sum(math.exp(-i / 2) for i in range(3)) / 4
                target = p[row, anchor + k]
                overlap = np.minimum(target, q[row, k]).sum()
                sure = 1 / (1 + math.exp(-float(confidence[row, k])))
                parts[0] -= weight * math.log(q[row, k, int(ids[row, anchor + 1 + k])])
                parts[1] += weight * np.abs(target - q[row, k]).sum()
                parts[2] -= weight * (overlap * math.log(sure) + (1 - overlap) * math.log(1 - sure))
    assert gap(torch.stack([got["cross_entropy"], got["distance"], got["confidence"]]), parts) < 1e-6
    assert abs(float(got["loss"]) - parts @ [1, 0.5, 2]) < 1e-6


def test_the_left_neighbours_of_teacher_forced_drafts_are_the_text():
    """Another token inside the block changes what comes right of it, by its bigram row, and nothing to its left."""
    model = small()
    ids, output = text_and_output(model)
    other = ids.clone()
    other[:, 4] = (ids[:, 4] + 1) % 5
    with torch.no_grad():
        first, _ = losses._teacher_forced(model, ids, output.main_hidden, 3)
        second, _ = losses._teacher_forced(model, other, output.main_hidden, 3)
        markov = model.mtp[-1].markov_head
        step = markov.head(markov.embed(other[:, 4])) - markov.head(markov.embed(ids[:, 4]))
    assert gap(second[:, 0], first[:, 0]) < 1e-12
    assert gap(second[:, 1] - first[:, 1], step) < 1e-12
    assert gap(second[:, 2], first[:, 2]) < 1e-12


def test_draft_losses_never_reach_the_backbone():
    model = small()
    ids, _ = text_and_output(model)
    output = model(ids)
    losses.draft_loss_on_text(model, ids, output, [2, 5])["loss"].backward()
    for name, parameter in model.named_parameters():
        assert name.startswith("mtp.") or parameter.grad is None, name
    assert model.mtp[0].main_proj.weight.grad.abs().max() > 0
    assert model.mtp[0].confidence_head.proj.weight.grad.abs().max() > 0


def test_rounding_lets_gradients_through():
    """Quantised training: gradients reach what is rounded, and they are those of the rounded forward pass."""
    model = small()
    ids, _ = text_and_output(model)
    losses.next_token_loss(model(ids, quantized=True).logits, ids).backward()
    for name in ("layers.0.attn.wkv.weight", "layers.1.attn.compressor.wkv.weight", "layers.2.attn.wkv.weight"):
        gradient = dict(model.named_parameters())[name].grad
        assert gradient is not None and gradient.abs().max() > 1e-6, name


def test_a_frozen_indexer_does_not_move_and_everything_else_does():
    model = small()
    ids, _ = text_and_output(model)
    made = optimisers.make_optimisers(model, 1e-2, trained=lambda name: ".indexer." not in name)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    losses.next_token_loss(model(ids).logits, ids).backward()
    for optimiser in made:
        optimiser.step()
    for name, parameter in model.named_parameters():
        if ".indexer." in name:
            assert torch.equal(parameter, before[name]), name
            assert not parameter.requires_grad
    for name in ("embed.weight", "norm.weight", "layers.1.engram.embed.weight", "layers.1.attn.wq_b.weight"):
        assert not torch.equal(dict(model.named_parameters())[name], before[name]), name


def test_choosing_has_no_gradient():
    model = small()
    ids, _ = text_and_output(model)
    losses.next_token_loss(model(ids).logits, ids).backward()
    for name, parameter in model.named_parameters():
        if ".indexer." in name or name.endswith(("gate.bias", "gate.bias_vl")):
            assert parameter.grad is None, name


# Updates


def test_each_head_of_a_query_matrix_is_made_orthogonal_by_itself():
    """Two heads whose gradients differ ten thousandfold move alike; as one matrix the small one hardly does."""
    gradient = random(8, 4).float() * torch.tensor([1e-3] * 4 + [10.0] * 4)[:, None]
    moved = []
    for heads in (2, 1):
        weight = torch.nn.Parameter(torch.zeros(8, 4))
        weight.grad = gradient.clone()
        optimisers.Muon([{"params": [weight], "heads": heads}], 1.0).step()
        moved.append([float(part.detach().square().mean().sqrt()) for part in weight.split(4)])
    assert all(0.12 < size < 0.22 for size in moved[0])
    assert moved[1][0] < 0.02


def test_query_matrices_are_split_into_their_heads_and_no_others_are():
    model = small()
    queries = optimisers.split_parameters(model)["queries"]
    heads = {name: count for name, (_, count) in queries.items()}
    assert heads["layers.0.attn.wq_b.weight"] == model.config.n_heads
    assert heads["layers.1.attn.indexer.wq_b.weight"] == model.config.index_n_heads
    assert all("wq_b" in name for name in heads)


def test_an_update_has_singular_values_near_one_times_its_size():
    weight = torch.nn.Parameter(torch.zeros(6, 9))
    weight.grad = random(6, 9).float()
    optimisers.Muon([weight], 1.0).step()
    values = torch.linalg.svdvals(weight.detach()) / (0.18 * 3)
    assert 0.6 < float(values.min()) <= float(values.max()) < 1.3


def test_momentum_looks_ahead():
    """Gradients (1, 0), then (0, 1): m = 0.05 g₁, then 0.95 m + 0.05 g₂; ahead = 0.05 g₂ + 0.95 m, made one long."""
    weight = torch.nn.Parameter(torch.zeros(1, 2, dtype=torch.float64))
    optimiser = optimisers.BalancedMomentum([weight], 1.0, iterations=1)
    for gradient in ([[1.0, 0.0]], [[0.0, 1.0]]):
        before = weight.detach().clone()
        weight.grad = torch.tensor(gradient, dtype=torch.float64)
        optimiser.step()
    momentum = 0.95 * np.array([0.05, 0]) + 0.05 * np.array([0, 1])
    ahead = 0.05 * np.array([0, 1]) + 0.95 * momentum
    assert gap(before - weight.detach(), [0.18 * 2**0.5 * ahead / np.linalg.norm(ahead)]) < 1e-12


def test_balancing_ends_with_rows_and_leaves_hardly_seen_rows_alone():
    table = random(20, 8) * torch.logspace(-2, 2, 8, dtype=torch.float64) * (1 + torch.arange(20.0)[:, None])
    table[3] = 1e-9
    got = optimisers.balance(table)
    lengths = got.norm(dim=1)
    assert lengths[3] == 0
    assert gap(lengths[lengths > 0], np.ones(19)) < 1e-12
    columns = got.norm(dim=0)
    assert columns.max() / columns.min() < 1.2


def test_a_table_does_not_decay_and_a_matrix_does():
    made = {}
    for kind in (optimisers.Muon, optimisers.BalancedMomentum):
        weight = torch.nn.Parameter(torch.ones(2, 2))
        weight.grad = torch.zeros(2, 2)
        kind([weight], 0.5).step()
        made[kind] = weight.detach()
    assert gap(made[optimisers.Muon], np.full((2, 2), 0.95)) < 1e-6
    assert gap(made[optimisers.BalancedMomentum], np.ones((2, 2))) == 0


def test_memory_tables_learn_five_times_as_fast():
    model = small()
    made = optimisers.make_optimisers(model, 1e-3)
    assert [type(optimiser) for optimiser in made] == [optimisers.Muon, optimisers.BalancedMomentum, torch.optim.AdamW]
    rates = {id(p): group["lr"] for o in made for group in o.param_groups for p in group["params"]}
    assert rates[id(model.layers[1].engram.embed.weight)] == 5e-3
    assert rates[id(model.embed.weight)] == rates[id(model.norm.weight)] == 1e-3
    adamw = made[2].param_groups[0]
    assert (adamw["betas"], adamw["eps"], adamw["weight_decay"]) == ((0.9, 0.95), 1e-20, 0.1)
