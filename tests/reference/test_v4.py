"""DeepSeek-V4's mechanisms."""

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import mhc, rope, v4_attention, v4_compressor, v4_model

from .tiny import gap


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


def random_weights(config, seed, **drafter):
    """Random weights, with those of the preview's layer unless a drafter is named."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in v4_model.v4_weight_shapes(config, **(drafter or {"mtp": True})).items():
        if name.endswith("tid2eid"):
            weights[name] = np.array([rng.permutation(config.n_routed_experts)[: shape[1]] for _ in range(shape[0])])
        else:
            scale = 1 / np.sqrt(shape[-1]) if len(shape) > 1 and "embed" not in name else 1
            weights[name] = rng.standard_normal(shape) * scale + ("norm" in name)
    return weights


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
    """The last 64 channels are bfloat16, eight bits of mantissa, nearest; the others take one of 253 values."""
    entry = np.random.default_rng(10).standard_normal((3, 128)) * 3
    got = v4_attention.read_back_entry(entry, 64, quantized=True)
    turning = got[:, 64:]
    assert (np.abs(turning - entry[:, 64:]) <= np.abs(entry[:, 64:]) * 2.0**-8).all()
    mantissa, _ = np.frexp(turning)
    np.testing.assert_array_equal(mantissa * 256, np.round(mantissa * 256))
    assert gap(turning, entry[:, 64:]) > 0
    assert 0.01 < gap(got[:, :64], entry[:, :64]) < 0.5


def test_bfloat16_ties_go_to_the_even_number():
    ties = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, -(1 + 2.0**-8), 0.0])
    assert v4_attention.round_to_bfloat16(ties).tolist() == [1.0, 1 + 2.0**-6, -1.0, 0.0]


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
    config = tiny_v4()
    w = random_weights(config, 0)
    model = v4_model.V4Model(config, w)
    for ids, message in (
        ([], "one or more"),
        ([-1], "0 … 95"),
        ([96], "0 … 95"),
        ([1.5], "integers"),
        ("a", "integers"),
    ):
        with pytest.raises(ValueError, match=f"ids must be .*{message}"):
            model.forward(ids)
    with pytest.raises(ValueError, match="following must hold one token for each of 2 ids; got 1"):
        model.predict_after_next([1, 2], [3])
    wrong = {**w, "norm.weight": np.ones(3)}
    del wrong["head.weight"]
    with pytest.raises(
        ValueError, match=r"1 missing: head\.weight; 1 of another shape: norm\.weight \(3,\) \(expected \(32,\)\)"
    ):
        v4_model.V4Model(config, wrong)
