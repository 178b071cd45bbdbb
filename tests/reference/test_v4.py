"""DeepSeek-V4's mechanisms, and the printed numbers of a public walk through one token (one_token_trace.json)."""

import json

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import (
    activations,
    attention,
    compressor,
    indexer,
    mhc,
    moe,
    rope,
    v4_attention,
    v4_compressor,
    v4_model,
)

from .tiny import ORACLES, gap

PRINTED = 1.5e-4  # the article prints four decimals and computed with rounded inputs


def trace():
    return json.loads((ORACLES / "one_token_trace.json").read_text())


def tiny_v4(**changes):
    fields = ModelConfig.tiny().to_dict() | {
        "generation": "v4",
        "n_layers": 5,
        "n_mtp_layers": 1,
        "compress_ratios": (0, 4, 8, 4, 0, 0),
        "kv_source_layers": (1, 2, 3),
        "index_source_layers": (1, 3),
        "candidate_source_layer": -1,
        "engram_layer_ids": (),
        "engram_num_embeddings": (),
        "dspark_target_layer_ids": (4,),
        "n_hash_layers": 2,
        "norm_eps": 1e-6,
        "index_topk": 2,
    }
    return ModelConfig(**(fields | changes))


def random_weights(config, seed):
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in v4_model.v4_weight_shapes(config, mtp=True).items():
        if name.endswith("tid2eid"):
            weights[name] = np.array([rng.permutation(config.n_routed_experts)[: shape[1]] for _ in range(shape[0])])
        else:
            scale = 1 / np.sqrt(shape[-1]) if len(shape) > 1 and "embed" not in name else 1
            weights[name] = rng.standard_normal(shape) * scale + ("norm" in name)
    return weights


# the article's numbers


def test_collapse_sinkhorn_and_expansion_are_the_printed_ones():
    case, swa = trace()["mhc"], trace()["swa"]
    streams = np.outer(case["expand_weights"], trace()["embedding_p"])
    assert gap(streams, case["X"]) < PRINTED
    assert gap(mhc.collapse(np.array([case["X"]]), np.array([case["A"]]))[0], case["collapsed_H"]) < PRINTED
    scores = np.log(case["exp_B_raw"])[None]
    assert gap(activations.softmax(scores)[0], case["iter1_row"]) < PRINTED
    assert gap(mhc.sinkhorn(scores, 1, 1e-6)[0], case["iter1_col"]) < PRINTED
    mix = mhc.sinkhorn(scores, 20, 1e-6)
    assert gap(mix[0], case["B"]) < PRINTED
    own = mhc.Coefficients(np.array([case["A"]]), np.array([case["C"]]), mix)
    assert gap(mhc.expand(np.array([case["X"]]), np.array([swa["F_attn"]]), own)[0], swa["X_new"]) < PRINTED


def test_window_attention_is_the_printed_one():
    case = trace()["swa"]
    q, k = np.array(case["q_head1"]), np.array(case["k_head1"])
    turned = rope.rotate_tail(q, 3, np.array([1.0]))
    assert gap(turned[2:], case["q_rotated_last2"]) < PRINTED
    own = turned @ rope.rotate_tail(k, 3, np.array([1.0])) * case["scale"]
    assert abs(own - case["scores"][1]) < PRINTED
    assert abs(np.exp(case["scores"]).sum() + np.exp(case["sink_logit"]) - case["denominator"]) < PRINTED
    weights = attention_weights(case["scores"], case["sink_logit"])
    assert gap(weights, case["weights"]) < PRINTED
    assert abs(1 - weights.sum() - case["sink_mass"]) < PRINTED


def attention_weights(scores, sink):
    """The weights of given scores: attention over unit vectors returns them as its value."""
    entries = np.eye(len(scores))[None]
    valid = np.ones((1, len(scores)), bool)
    return attention.sink_attention(np.array([[scores]]), entries, valid, np.array([sink]), 1.0)[0, 0]


def test_core_attention_over_compressed_entries_is_the_printed_one():
    case = trace()["csa"]
    weights = attention_weights(case["core_scores"], case["core_sink_logit"])
    assert gap(weights, case["core_weights"]) < PRINTED
    assert abs(1 - weights.sum() - case["core_sink_mass"]) < 1e-3  # printed to three decimals


def test_hash_routing_is_the_printed_one():
    case, ids = trace()["hash_moe"], np.array(trace()["ids"])
    table = np.stack([np.arange(128) % 4, (np.arange(128) + 1) % 4], axis=-1)
    scores = np.tile([0.7, 0.3, 0.7, 0.3], (8, 1))
    experts, _ = v4_model.hash_route(ids, table, scores, 1.0)
    assert experts.T.tolist() == [case["primary"], case["second"]]
    assert moe.expert_load(experts[:, :1], 4).tolist() == case["occupancy"]
    assert gap(v4_model.hash_route(ids[3:4], table, scores[3:4], 1.0)[1][0], case["gates"]) < 1e-12
    silu = activations.silu(np.array(case["gate"]))
    assert gap(silu, case["silu"]) < PRINTED
    assert gap(silu * case["up"], case["hidden"]) < PRINTED
    routed = case["gates"] @ np.array([case["expert0"], case["expert1"]])
    assert gap(routed, case["routed"]) < PRINTED
    assert gap(routed + case["shared"], case["F_moe"]) < PRINTED


def test_the_router_is_the_printed_one():
    case = trace()["router"]
    logits = np.array([case["logits"]])
    assert gap(activations.softplus(logits)[0], case["softplus"]) < PRINTED
    scores = moe.router_scores(logits, np.eye(4))
    assert gap(scores[0], case["sqrt"]) < PRINTED
    assert gap(scores[0] + case["bias"], case["biased"]) < PRINTED
    experts, weights = moe.route(scores, np.array(case["bias"]), 2)
    assert experts[0].tolist() == case["selected"]
    assert gap(weights[0], case["gates"]) < PRINTED


def test_what_a_query_can_see_is_the_printed_one():
    case = trace()
    assert list(range(compressor.visible_entries(3, case["hca"]["m"]))) == case["hca"]["visible_entries_for_p"]
    whole = [j for j, tokens in enumerate(case["csa"]["entry_tokens"]) if max(tokens) <= 3]
    assert whole == case["csa"]["visible_entries_for_p"]
    config, printed = ModelConfig.v4_flash_0731(), case["entries_scored_per_query_at_1048576"]
    assert [v4_attention.entries_read(2**20 - 1, r, config) for r in (0, 4, 128)] == [
        printed[k] for k in ("swa", "csa", "hca")
    ]
    assert printed["dense"] == 2**20
    assert indexer.top_k(np.array([case["csa"]["index_scores"]]), [1], 1).tolist() == [[0]]


# V4's own mechanisms


def test_overlapping_groups_mix_second_halves_of_their_own_and_first_halves_of_earlier_tokens():
    rng = np.random.default_rng(0)
    values, gates = rng.standard_normal((2, 3, 4, 6))
    got = v4_compressor.pool_overlapping(values, gates)
    for j in range(3):
        for c in range(3):
            candidates = [(values[j, k, 3 + c], gates[j, k, 3 + c]) for k in range(4)]
            if j:
                candidates += [(values[j - 1, k, c], gates[j - 1, k, c]) for k in range(4)]
            total = sum(np.exp(g) for _, g in candidates)
            assert abs(got[j, c] - sum(np.exp(g) * v for v, g in candidates) / total) < 1e-12


def test_the_place_in_the_group_counts():
    config = tiny_v4()
    w = random_weights(config, 1)
    w = {
        name.removeprefix("layers.2.attn.compressor."): a
        for name, a in w.items()
        if name.startswith("layers.2.attn.compressor.")
    }
    u, frequencies = np.random.default_rng(2).standard_normal((17, 32)), rope.layer_frequencies(config, 8)
    got = v4_compressor.compress(u, 8, w, frequencies, 1e-6)
    assert got.shape == (2, 32)
    values, gates = u[8:16] @ w["wkv.weight"].T, u[8:16] @ w["wgate.weight"].T + w["ape"]
    pooled = (np.exp(gates) / np.exp(gates).sum(axis=0) * values).sum(axis=0)
    latent = pooled / np.sqrt((pooled**2).mean() + 1e-6) * w["norm.weight"]
    assert gap(got[1], rope.rotate_tail(latent, 8, frequencies)) < 1e-12


def test_the_hadamard_matrix_keeps_products_and_is_its_own_inverse():
    a, b = np.random.default_rng(3).standard_normal((2, 5, 32))
    matrix = np.array([[1.0]])
    for _ in range(5):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]]) / np.sqrt(2)
    assert gap(v4_attention.hadamard(a), a @ matrix) < 1e-12
    assert gap((v4_attention.hadamard(a) * v4_attention.hadamard(b)).sum(-1), (a * b).sum(-1)) < 1e-12
    assert gap(v4_attention.hadamard(v4_attention.hadamard(a)), a) < 1e-12
    with pytest.raises(ValueError, match="power of two"):
        v4_attention.hadamard(np.zeros(12))


def test_the_streams_collapse_with_their_own_coefficients():
    """One layer with sub-blocks that return their input: X' from the definition, step by step."""
    config = tiny_v4()
    w = {n.removeprefix("layers.0."): a for n, a in random_weights(config, 4).items() if n.startswith("layers.0.")}
    streams = np.random.default_rng(5).standard_normal((3, 4, 32))
    expected = streams
    for part in ("attn", "ffn"):
        own = mhc.coefficients(expected, w[f"hc_{part}_fn"], w[f"hc_{part}_base"], w[f"hc_{part}_scale"], config)
        x = (own.pre[..., None] * expected).sum(axis=1)
        u = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * w[f"{part}_norm.weight"]
        mixed = np.stack([(own.mix[..., j][..., None] * expected).sum(axis=1) for j in range(4)], axis=1)
        expected = own.post[..., None] * u[:, None] + mixed
    assert gap(v4_model.block(streams, w, lambda u: u, lambda u: u, config), expected) < 1e-12


def test_a_later_token_changes_no_earlier_row():
    config = tiny_v4()
    model = v4_model.V4Model(config, random_weights(config, 6))
    ids = np.random.default_rng(7).integers(0, 96, 26)
    changed = ids.copy()
    changed[17] = (changed[17] + 1) % 96
    for quantized in (False,):
        before, after = model.forward(ids, quantized), model.forward(changed, quantized)
        assert gap(after[:17], before[:17]) < 1e-12
        assert gap(after[17:], before[17:]) > 1e-3
    shorter = model.forward(ids[:13])
    assert gap(shorter, before[:13]) < 1e-10


def test_compressed_entries_carry_tokens_beyond_the_window():
    """Window 8: a query 20 positions later still depends on a token, through CSA or HCA entries."""
    for ratio, mode in ((8, "hca"), (4, "csa"), (0, "window")):
        config = tiny_v4(
            n_layers=1,
            compress_ratios=(ratio, 0),
            kv_source_layers=(0,) if ratio else (),
            index_source_layers=(0,) if ratio == 4 else (),
            n_hash_layers=0,
            dspark_target_layer_ids=(0,),
            index_topk=99,
        )
        model = v4_model.V4Model(config, random_weights(config, 8))
        ids = np.arange(30)
        changed = ids.copy()
        changed[2] = 95
        difference = gap(model.forward(changed)[-1], model.forward(ids)[-1])
        assert (difference > 1e-6) is bool(ratio)
        assert config.schedule()[0].mode == mode


def test_each_head_of_the_query_is_normalised():
    """A query projection ten times larger changes nothing in V4, since every head is divided by its own size."""
    config = tiny_v4(norm_eps=1e-20)
    weights = random_weights(config, 9)
    larger = {n: a * 10 if n.endswith("attn.wq_b.weight") else a for n, a in weights.items()}
    ids = np.arange(9)
    assert gap(v4_model.V4Model(config, larger).forward(ids), v4_model.V4Model(config, weights).forward(ids)) < 1e-9


def test_quantised_entries_keep_their_turning_channels():
    entry = np.random.default_rng(10).standard_normal((3, 128)) * 3
    got = v4_attention.read_back_entry(entry, 64, quantized=True)
    np.testing.assert_array_equal(got[:, 64:], entry[:, 64:])
    assert 0 < gap(got[:, :64], entry[:, :64]) < 0.5


def test_the_preview_predicts_one_token_further():
    config = tiny_v4()
    model = v4_model.V4Model(config, random_weights(config, 11))
    ids = np.arange(12)
    first = model.predict_after_next(ids[:-1], ids[1:])
    other = ids[1:].copy()
    other[-1] = 90
    second = model.predict_after_next(ids[:-1], other)
    assert gap(first[:-1], second[:-1]) < 1e-12
    assert gap(first[-1], second[-1]) > 1e-3


def test_the_shared_expert_of_v4_is_not_clamped():
    config = tiny_v4(swiglu_limit=0.1)
    w = {
        n.removeprefix("layers.4.ffn."): a
        for n, a in random_weights(config, 12).items()
        if n.startswith("layers.4.ffn.")
    }
    w |= {name: a * 0 for name, a in w.items() if name.startswith("experts.")}
    u = np.random.default_rng(13).standard_normal((2, 32))
    gate, up = u @ w["shared_experts.w1.weight"].T, u @ w["shared_experts.w3.weight"].T
    expected = (gate / (1 + np.exp(-gate)) * up) @ w["shared_experts.w2.weight"].T
    assert gap(v4_model.feed_forward(u, np.array([1, 2]), w, config), expected) < 1e-12


def test_a_v41_configuration_is_refused():
    with pytest.raises(ValueError, match="must be 'v4'"):
        v4_model.V4Model(ModelConfig.tiny(), {})
