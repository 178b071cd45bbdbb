"""Training: gradients against finite differences, losses, optimisers, and a model that learns."""

import math

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import losses, moe, optimisers
from deepseek_edu.model.model import Model
from deepseek_edu.reference import moe as numpy_moe

from .tiny import gap, recorded, tiny_model, token_map

NOT_READ = ("mtp.", "vision.", "aligner.", "image_")
"""What a text without drafts does not read; the tower's gradients are in test_vision.py."""


def fresh(seed=0, **changes):
    torch.manual_seed(seed)
    return Model(ModelConfig.tiny(**changes), token_map(), torch.float64)


def test_training_sees_what_prefill_gives():
    ids = torch.tensor(recorded()["ids"])
    model = tiny_model()
    for quantized in (False, True):
        cache = model.new_cache(2, quantized)
        with torch.no_grad():
            live = model(ids, quantized=quantized)
        assert gap(live.logits, model.prefill(ids, cache).logits) < 1e-9


def test_gradients_are_those_of_finite_differences():
    """Two entries of every kind of parameter, central differences in float64."""
    model, ids = fresh(), torch.tensor(recorded()["ids"][:, :13])
    loss = losses.next_token_loss(model(ids).logits, ids)
    loss.backward()
    rng = np.random.default_rng(0)
    kinds = {}
    for name, parameter in model.named_parameters():
        kinds.setdefault(name.split(".", 2)[-1], (name, parameter))
    checked = 0
    for name, parameter in kinds.values():
        if name.startswith(NOT_READ) or "indexer" in name or not parameter.requires_grad:
            continue
        flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
        places = {int(gradient.abs().argmax()), int(rng.integers(len(flat)))}
        for place in places:
            values = []
            for step in (1e-5, -2e-5):
                flat[place] += step
                with torch.no_grad():
                    values.append(float(losses.next_token_loss(model(ids).logits, ids)))
            flat[place] += 1e-5
            slope = (values[0] - values[1]) / 2e-5
            assert abs(slope - float(gradient[place])) < 1e-6 + 1e-4 * abs(slope), (name, place)
            checked += 1
    assert checked > 40


def test_choosing_has_no_gradient_and_everything_else_has():
    model, ids = fresh(), torch.tensor(recorded()["ids"])
    losses.next_token_loss(model(ids, quantized=True).logits, ids).backward()
    without = {name for name, p in model.named_parameters() if p.grad is None and not name.startswith(NOT_READ)}
    assert all("indexer" in name or name.endswith(("gate.bias", "gate.bias_vl", "embed.scale")) for name in without)
    assert "layers.1.attn.indexer.wk.weight" in without
    assert "layers.1.attn.compressor.wgate.weight" not in without


def test_padding_counts_nothing_in_the_loss():
    model, ids = tiny_model(), torch.tensor(recorded()["ids"])
    counts = [40, 17]
    with torch.no_grad():
        logits = model(ids, counts=counts).logits
        loss = losses.next_token_loss(logits, ids, counts)
        rows = [
            losses.next_token_loss(model(ids[b : b + 1, :n]).logits, ids[b : b + 1, :n]) for b, n in enumerate(counts)
        ]
    assert gap(loss, (rows[0] * 39 + rows[1] * 16) / 55) < 1e-12


def test_balance_loss_and_bias_updates_are_those_of_the_reference():
    model, ids = tiny_model(), torch.tensor(recorded()["ids"])
    with torch.no_grad():
        routing = model(ids, with_routing=True).routing
    assert len(routing) == 8
    expected = sum(
        numpy_moe.sequence_balance_loss(scores[b * 40 : b * 40 + 40].numpy(), experts[b * 40 : b * 40 + 40].numpy())
        for scores, experts in routing
        for b in range(2)
    )
    assert gap(losses.balance_loss(routing, 2), expected / 2) < 1e-15
    load = moe.expert_load(routing[3][1], 8)
    bias = torch.zeros(8, dtype=torch.float64)
    moe.update_bias(bias, load)
    assert gap(bias, numpy_moe.update_bias(np.zeros(8), load.numpy())) < 1e-15
    assert bias[load.argmax()] < 0 < bias[load.argmin()]


def test_the_balance_loss_refuses_what_is_no_batch_of_full_rows():
    routing = [(torch.rand(7, 4), torch.zeros(7, 2, dtype=torch.int64))]
    with pytest.raises(ValueError, match="routing must be of 2 full rows; got 7 tokens"):
        losses.balance_loss(routing, 2)


def test_orthogonalised_matrices_keep_their_directions_and_lose_their_sizes():
    torch.manual_seed(0)
    for shape in ((6, 10), (10, 6), (3, 4, 8)):
        matrix = torch.randn(shape, dtype=torch.float64)
        values = torch.linalg.svdvals(optimisers.orthogonalise(matrix))
        assert gap(values, np.ones(values.shape)) < 1e-3
        u, _, vt = torch.linalg.svd(matrix, full_matrices=False)
        turned = u.mT @ optimisers.orthogonalise(matrix) @ vt.mT  # diagonal if the directions are kept
        assert gap(turned, torch.diag_embed(turned.diagonal(dim1=-2, dim2=-1))) < 1e-9


def test_muon_moves_matrices_by_the_stated_root_mean_square_and_each_head_alone():
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.zeros(12, 6))
    weight.grad = torch.randn(12, 6)
    optimisers.Muon([weight], 1.0).step()
    assert abs(weight.detach().square().mean().sqrt() - 0.18) < 1e-3
    heads = torch.nn.Parameter(torch.zeros(12, 6))
    heads.grad = torch.cat([weight.grad[:6], torch.zeros(6, 6)])
    optimisers.Muon([{"params": [heads], "heads": 2}], 1.0).step()
    assert heads[:6].abs().min() > 0
    assert heads[6:].abs().max() == 0


def test_muon_and_decay_with_the_arithmetic_done_by_hand():
    """One number: its orthogonal matrix is its sign, 0.18 · √1 of it is taken."""
    weight = torch.nn.Parameter(torch.tensor([[2.0]]))
    weight.grad = torch.tensor([[3.0]])
    optimisers.Muon([weight], 0.5).step()
    assert abs(float(weight.detach()) - (2 * (1 - 0.05) - 0.5 * 0.18)) < 1e-4


def test_newton_schulz_takes_eight_steep_steps_and_two_exact_ones():
    """Two singular values, followed by hand through the ten steps."""
    sizes, expected = (0.003, math.sqrt(1 - 0.003**2)), []
    for value in sizes:
        for a, b, c in [(3.4445, -4.7750, 2.0315)] * 8 + [(2.0, -1.5, 0.5)] * 2:
            value = a * value + b * value**3 + c * value**5
        expected.append(value)
    got = optimisers.orthogonalise(torch.diag(torch.tensor(sizes, dtype=torch.float64)))
    assert gap(got.diagonal(), expected) < 1e-12
    assert gap(expected, np.ones(2)) < 1e-3


def test_gains_of_norms_decay_and_biases_sinks_and_scales_do_not():
    """Report, section 2.5. Mixing projections are matrices of linear maps: Muon."""
    model = fresh()
    split, made = optimisers.split_parameters(model), optimisers.make_optimisers(model, 1e-3)
    assert {"layers.0.attn_norm.weight", "layers.1.engram.q_weight", "norm.weight"} <= set(split["gains"])
    assert {"layers.0.attn.attn_sink", "layers.0.hc_ffn_base", "layers.0.hc_ffn_scale"} <= set(split["others"])
    assert {"layers.0.hc_attn_fn", "layers.0.ffn.gate.weight", "layers.1.engram.wkv.weight"} <= set(split["matrices"])
    groups = [group for optimiser in made for group in optimiser.param_groups]
    decay = {id(parameter): group["weight_decay"] for group in groups for parameter in group["params"]}
    for part, expected in (("gains", 0.1), ("others", 0.0), ("matrices", 0.1), ("tables", 0.0)):
        assert {decay[id(parameter)] for parameter in split[part].values()} == {expected}, part


def test_balanced_rows_have_length_one_and_untouched_rows_stay():
    torch.manual_seed(1)
    table = torch.randn(20, 8, dtype=torch.float64) * torch.rand(20, 1, dtype=torch.float64).exp()
    table[3] = 0
    table[7] *= 1e-6
    got = optimisers.balance(table)
    lengths = got.norm(dim=1)
    assert lengths[[3, 7]].tolist() == [0, 0]
    assert gap(lengths[lengths > 0], np.ones(18)) < 1e-12
    columns = got.norm(dim=0)
    assert columns.max() / columns.min() < 1.05 < (table.norm(dim=0).max() / table.norm(dim=0).min())
    weight = torch.nn.Parameter(torch.zeros(20, 8, dtype=torch.float64))
    weight.grad = table
    optimisers.BalancedMomentum([weight], 1.0).step()
    assert weight[[3, 7]].abs().max() == 0
    assert gap(weight.detach().square().mean(dim=1).sqrt()[lengths > 0], np.full(18, 0.18)) < 1e-12


def test_every_trainable_parameter_gets_exactly_one_optimiser():
    model = fresh()
    made = optimisers.make_optimisers(model, 1e-3, trained=lambda name: ".indexer." not in name)
    seen = [id(p) for optimiser in made for group in optimiser.param_groups for p in group["params"]]
    trainable = [id(p) for _, p in model.named_parameters() if p.requires_grad]
    assert sorted(seen) == sorted(trainable)
    split = optimisers.split_parameters(model)
    assert "layers.0.ffn.experts.w13" in split["matrices"]
    assert split["queries"]["layers.0.attn.wq_b.weight"][1] == 4
    assert set(split["tables"]) == {
        "embed.weight",
        "head.weight",
        "mtp.2.markov_head.embed.weight",
        "mtp.2.markov_head.head.weight",
    }
    assert set(split["engram_tables"]) == {"layers.1.engram.embed.weight", "layers.2.engram.embed.weight"}
    assert not any("indexer" in name for part in split.values() for name in part)
    assert made[1].param_groups[1]["lr"] == 5e-3


@pytest.mark.parametrize("quantized", [False, True])
def test_a_small_model_learns_a_text_by_heart(quantized):
    torch.manual_seed(0)
    model = Model(ModelConfig.tiny(), token_map())
    ids = torch.tensor(recorded()["ids"])
    made = optimisers.make_optimisers(model, 0.01, trained=lambda name: ".indexer." not in name and "mtp." not in name)
    found = []
    for _ in range(20):
        output = model(ids, quantized=quantized, with_routing=True)
        loss = losses.next_token_loss(output.logits, ids)
        found.append(float(loss.detach()))
        (loss + losses.balance_loss(output.routing, 2)).backward()
        for optimiser in made:
            optimiser.step()
            optimiser.zero_grad()
    assert found[0] > 4
    assert found[-1] < 0.4 * found[0]


def test_the_drafter_learns_from_a_frozen_backbone():
    torch.manual_seed(0)
    model = Model(ModelConfig.tiny(), token_map()).load_weights(
        {name: array.numpy() for name, array in tiny_model().state_dict().items()}
    )
    ids = torch.tensor(recorded()["ids"])
    with torch.no_grad():
        output = model(ids)
    made = optimisers.make_optimisers(model, 0.01, trained=lambda name: name.startswith("mtp."))
    before = model.layers[0].attn.wq_a.weight.clone(), model.embed.weight.clone(), model.head.weight.clone()
    totals = []
    for _ in range(12):
        loss = losses.draft_loss_on_text(model, ids, output, [1, 9, 20, 34])["loss"]
        totals.append(float(loss.detach()))
        loss.backward()
        for optimiser in made:
            optimiser.step()
            optimiser.zero_grad()
    assert totals[-1] < 0.8 * totals[0]
    after = model.layers[0].attn.wq_a.weight, model.embed.weight, model.head.weight
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_the_drafter_is_trained_on_what_it_computes_when_drafting():
    """The first row's logits and confidence do not depend on drafts: teacher forcing and drafting agree there."""
    from deepseek_edu.model import dspark

    model, ids = tiny_model(), torch.tensor(recorded()["ids"])
    for anchor in (1, 5, 20):
        cache = model.new_cache(2, quantized=False)
        model.prefill(ids[:, :anchor], cache)
        with torch.no_grad():
            draft = dspark.draft(ids[:, anchor], model, cache)
            logits, confidence = losses._teacher_forced(model, ids, model(ids).main_hidden, anchor)
        assert gap(logits[:, 0], draft.logits[:, 0]) < 1e-9
        assert gap(confidence[:, 0], draft.confidence[:, 0]) < 1e-9


def test_anchors_without_context_or_targets_are_refused():
    model, ids = tiny_model(), torch.tensor(recorded()["ids"])
    with torch.no_grad():
        output = model(ids)
    for anchor in (0, 35):
        with pytest.raises(ValueError, match="anchors must be 1 … 34 for 40 tokens"):
            losses.draft_loss_on_text(model, ids, output, [anchor])
