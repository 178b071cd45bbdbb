"""The printed numbers of a public walk through one token (one_token_trace.json), recomputed by our code.

The walk's streams are two wide and four channels long, and its sub-blocks share one set of coefficients. It prints no
projection matrix, so what a matrix makes of a vector is given, not recomputed; `GIVEN` lists every such number and why.
"""

import json

import numpy as np

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
    v4_model,
)

from .tiny import ORACLES, gap

PRINTED = 1.5e-4  # the article prints four decimals and computed with rounded inputs

GIVEN = {
    "about": "prose",
    "caveats": "prose",
    "embedding_p": "a parameter",
    "mhc.expand_weights": "a parameter",
    "mhc.A": "made by an unprinted matrix",
    "mhc.C": "made by an unprinted matrix",
    "mhc.exp_B_raw": "made by an unprinted matrix",
    "swa.q_head1": "made by an unprinted matrix",
    "swa.k_head1": "made by an unprinted matrix",
    "swa.v_head1": "made by an unprinted matrix, and read by nothing that is printed",
    "swa.window": "a size",
    "swa.sink_logit": "a parameter",
    "swa.F_attn": "made by unprinted matrices of all heads",
    "hash_moe.gates": "scores of an unprinted matrix; only their ratio and sum are checked",
    "hash_moe.gate": "made by an unprinted matrix",
    "hash_moe.up": "made by an unprinted matrix",
    "hash_moe.shared": "made by an unprinted matrix",
    "hash_moe.expert0": "made by an unprinted matrix",
    "hash_moe.expert1": "made by an unprinted matrix",
    "csa.m": "a size",
    "csa.weights_a": "parameters of the walk's own compressor, which mixes vectors that are not printed",
    "csa.weight_b": "the same",
    "csa.entries": "made of vectors that are not printed",
    "csa.index_scores": "made by unprinted matrices",
    "csa.core_scores": "made by unprinted matrices",
    "csa.core_sink_logit": "a parameter",
    "csa.context": "a mean of values that are not printed",
    "csa.F_csa": "made by unprinted matrices",
    "router.logits": "made by an unprinted matrix",
    "router.bias": "a parameter",
    "hca.m": "a size",
}

RECOMPUTED = {
    "ids": "spelling",
    "mhc.X": "streams",
    "mhc.collapsed_H": "streams",
    "mhc.iter1_row": "streams",
    "mhc.iter1_col": "streams",
    "mhc.B": "streams",
    "swa.q_rotated_last2": "window",
    "swa.scale": "window",
    "swa.scores": "window; the first reads a key that is not printed and is given",
    "swa.denominator": "window",
    "swa.weights": "window",
    "swa.sink_mass": "window",
    "swa.X_new": "streams",
    "hash_moe.primary": "hash routing",
    "hash_moe.second": "hash routing",
    "hash_moe.occupancy": "hash routing",
    "hash_moe.h": "second sub-block",
    "hash_moe.silu": "hash routing",
    "hash_moe.hidden": "hash routing",
    "hash_moe.routed": "hash routing",
    "hash_moe.F_moe": "hash routing",
    "hash_moe.X_after_layer0": "second sub-block",
    "csa.H_p": "second sub-block",
    "csa.entry_tokens": "visible",
    "csa.visible_entries_for_p": "visible",
    "csa.core_weights": "core attention",
    "csa.core_sink_mass": "core attention",
    "router.softplus": "router",
    "router.sqrt": "router",
    "router.biased": "router",
    "router.selected": "router",
    "router.gates": "router",
    "hca.entry_tokens": "visible",
    "hca.visible_entries_for_p": "visible",
    "entries_scored_per_query_at_1048576.swa": "visible",
    "entries_scored_per_query_at_1048576.csa": "visible",
    "entries_scored_per_query_at_1048576.hca": "visible",
    "entries_scored_per_query_at_1048576.dense": "visible",
}


def trace():
    return json.loads((ORACLES / "one_token_trace.json").read_text())


def test_every_printed_number_is_given_or_recomputed_here():
    names = set()
    for name, value in trace().items():
        names |= {f"{name}.{part}" for part in value} if isinstance(value, dict) else {name}
    assert names == GIVEN.keys() | RECOMPUTED.keys()
    assert not GIVEN.keys() & RECOMPUTED.keys()


def test_the_tokens_spell_the_name():
    assert bytes(trace()["ids"]) == b"deepseek"
    assert chr(trace()["ids"][3]) == "p"


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
    assert case["scale"] == len(q) ** -0.5
    turned = rope.rotate_tail(q, 3, np.array([1.0]))
    assert gap(turned[2:], case["q_rotated_last2"]) < PRINTED
    own = turned @ rope.rotate_tail(k, 3, np.array([1.0])) * case["scale"]
    assert abs(own - case["scores"][1]) < PRINTED
    assert abs(np.exp(case["scores"]).sum() + np.exp(case["sink_logit"]) - case["denominator"]) < PRINTED
    weights = attention_weights(case["scores"], case["sink_logit"])
    assert gap(weights, case["weights"]) < PRINTED
    assert abs(1 - weights.sum() - case["sink_mass"]) < PRINTED


def printed_coefficients():
    """Coefficients of the walk: one set for all sub-blocks."""
    case = trace()["mhc"]
    mix = mhc.sinkhorn(np.log(case["exp_B_raw"])[None], 20, 1e-6)
    return mhc.Coefficients(np.array([case["A"]]), np.array([case["C"]]), mix)


def test_the_second_sub_block_collapses_and_expands_as_printed():
    """`h` reads the streams after attention; the experts' output goes back into them; `H_p` begins layer 1."""
    swa, moe_case, own = trace()["swa"], trace()["hash_moe"], printed_coefficients()
    streams = np.array([swa["X_new"]])
    assert gap(mhc.collapse(streams, own.pre)[0], moe_case["h"]) < PRINTED
    after = mhc.expand(streams, np.array([moe_case["F_moe"]]), own)
    assert gap(after[0], moe_case["X_after_layer0"]) < PRINTED
    assert gap(mhc.collapse(after, own.pre)[0], trace()["csa"]["H_p"]) < PRINTED


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
    tokens, m = list(range(8)), case["hca"]["m"]
    assert [tokens[j : j + m] for j in range(0, 8, m)] == case["hca"]["entry_tokens"]
    m = case["csa"]["m"]  # the walk's entries reach into the next group, the released ones into the one before
    assert [tokens[j : j + m + 1] for j in range(0, 8, m)] == case["csa"]["entry_tokens"]
    whole = [j for j, tokens in enumerate(case["csa"]["entry_tokens"]) if max(tokens) <= 3]
    assert whole == case["csa"]["visible_entries_for_p"]
    config, printed = ModelConfig.v4_flash_0731(), case["entries_scored_per_query_at_1048576"]
    assert [v4_attention.entries_read(2**20 - 1, r, config) for r in (0, 4, 128)] == [
        printed[k] for k in ("swa", "csa", "hca")
    ]
    assert printed["dense"] == 2**20
    assert indexer.top_k(np.array([case["csa"]["index_scores"]]), [1], 1).tolist() == [[0]]
