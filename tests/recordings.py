"""Files of recorded outputs of any sizes, made by the plain model: what `deepseek-edu verify` has to read."""

import json
from functools import cache

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference.weights import random_weights, weight_shapes

from .plain_model import PlainModel

RUN_SETTINGS = {"max_batch_size": 4, "max_seq_len": 256, "temperature": 0.0, "dtype": "bf16", "expert_dtype": None}


def released(config):
    """The configuration as `inference/config.json` spells it, as a dict."""
    values = config.to_dict()
    del values["generation"], values["max_positions"], values["bos_token_id"], values["eos_token_id"]
    del values["pad_token_id"]
    return {**RUN_SETTINGS, **json.loads(json.dumps(values))}


def weights_of(config, seed, dtype=np.float32):
    """Random weights in the file's type; a model without drafts or images has none for them."""
    wanted = weight_shapes(config)
    return {name: array.astype(dtype) for name, array in random_weights(config, seed).items() if name in wanted}


def token_map(config):
    """Neighbouring ids share a compressed id, as in the recorded files."""
    share = -(-config.vocab_size // max(config.engram_compressed_vocab_size, 1))
    return np.arange(config.vocab_size) // share


def record(
    config,
    seed,
    batch=2,
    tokens=12,
    prefills=(1, 5, 12),
    steps=4,
    kinds=("noquant",),
    image=None,
    stale=False,
    width=np.float32,
):
    """Return {name: array} in the layout of v41_tiny.npz.

    Args:
        config: ModelConfig.
        seed: of weights and ids.
        batch, tokens: of the ids.
        prefills: lengths whose logits are recorded.
        steps: tokens decoded one at a time at the end of the ids; 0 for no decode and no drafts.
        kinds: "noquant", "quant" or both.
        image: length of a run with an image span, or None.
        stale: record the decode with stale index keys too.
        width: type of weights and arithmetic.
    """
    rng = np.random.default_rng(seed)
    w = weights_of(config, seed, width)
    ids, given = rng.integers(0, config.vocab_size, (batch, tokens)), rng.integers(0, config.vocab_size, (batch, steps))
    outputs = {**{f"w/{name}": array for name, array in w.items()}, "ids": ids}
    for kind in kinds:
        runs = [_run(config, w, kind, row, next_ids, False, width) for row, next_ids in zip(ids, given, strict=True)]
        for length in prefills:
            outputs[f"{kind}/prefill{length}/logits"] = np.stack([run["logits"][:length] for run in runs])
        outputs |= _choices(config, kind, runs, tokens)
        if config.dspark_target_layer_ids:
            name = f"{kind}/prefill{tokens - steps or tokens}/main_hidden"
            outputs[name] = np.stack([run["hidden"][: tokens - steps or tokens] for run in runs])
        if steps:
            outputs[f"{kind}/decode/logits"] = np.stack([run["logits"][-steps:] for run in runs])
            if config.n_mtp_layers:
                for part in ("ids", "logits", "conf"):
                    outputs[f"{kind}/draft/{part}"] = np.stack([run[f"draft {part}"] for run in runs])
            if stale:
                runs = [_run(config, w, kind, *row, True, width)["logits"] for row in zip(ids, given, strict=True)]
                outputs[f"{kind}/decode_stale_index_k/logits"] = np.stack(runs)[:, -steps:]
    if config.engram_layer_ids:
        outputs[f"engram_hashes{tokens}"] = (
            np.stack([run["hashes"] for run in runs]) if not stale else _hashes(config, w, ids)
        )
    return outputs | (_image(config, w, ids, image, width) if image else {})


def _run(config, w, kind, ids, given, stale, width, types=None):
    """One sequence: per token logits, hidden, hashes, choices; drafts after each of the last len(given)."""
    model = PlainModel(config, w, token_map(config), kind == "quant", width)
    run = {name: [] for name in ("logits", "hidden", "hashes", "choices", "draft ids", "draft logits", "draft conf")}
    for place, token in enumerate(ids):
        step = place - len(ids) + len(given)
        model.stale = stale and step >= 0
        run["logits"].append(model.step(token, None if types is None else types[place]))
        for name in ("hidden", "hashes"):
            run[name].append(getattr(model, name))
        run["choices"].append(dict(model.choices))
        if step >= 0 and config.n_mtp_layers and not stale:
            for part, value in zip(("ids", "logits", "conf"), model.draft(given[step]), strict=True):
                run[f"draft {part}"].append(value)
    return {name: value if name == "choices" else np.array(value) for name, value in run.items()}


def _hashes(config, w, ids):
    return np.stack([_run(config, w, "noquant", row, [], False, np.float32)["hashes"] for row in ids])


def _choices(config, kind, runs, tokens):
    found = {}
    for layer in config.index_source_layers:
        k = min(config.index_topk, tokens // config.compress_ratios[layer])
        rows = np.full((len(runs), tokens, k), -1, np.int32)
        for b, run in enumerate(runs):
            for t, choices in enumerate(run["choices"]):
                rows[b, t, : len(choices[layer])] = np.array(choices[layer], int) + tokens
        found[f"{kind}/topk_idxs_L{layer}"] = rows
    return found


def _image(config, w, ids, length, width):
    ids = ids[:, :length].copy()
    first, end = length // 4, length // 2 + 1
    ids[:, first:end] = config.image_token_id
    types = np.full(ids.shape, -1)
    types[:, first:end], types[:, first], types[:, end - 2], types[:, end - 1] = 1, 0, 2, 3
    runs = [
        _run(config, w, "noquant", *row, False, width, kinds)
        for *row, kinds in zip(ids, [[]] * len(ids), types, strict=True)
    ]
    found = {"ids": ids, "types": types, "logits": np.stack([run["logits"] for run in runs])}
    found = {f"noquant/image{length}/{name}": value for name, value in found.items()}
    if config.engram_layer_ids:
        found[f"engram_hashes_image{length}"] = np.stack([run["hashes"] for run in runs])
    return found


def random_config(seed, quantizable=False):
    """A configuration with other numbers of layers, owners, modules, stages, heads and experts than the tiny one."""
    rng = np.random.default_rng(seed)

    def some(low, high):
        return int(rng.integers(low, high + 1))

    def few(pool, most):
        return tuple(sorted(int(x) for x in rng.choice(pool, min(some(0, most), len(pool)), replace=False)))

    layers, stages = some(1, 9), some(0, 3)
    owners, ratios, ratio = few(range(layers), 3), [], 0
    for layer in range(layers):
        ratio = some(1, 2) if layer in owners else ratio
        ratios.append(0 if layer not in owners and rng.random() < 0.2 else ratio)
    others = [layer for layer in range(layers) if ratios[layer] and layer not in owners]
    choosers = tuple(sorted({*owners, *few(others, 3)}))
    same = [o for o in owners if all(ratios[x] == ratios[o] for x in choosers if x > o)]
    unit = 32 if quantizable else 8
    groups, index_topk = some(1, 3), some(1, 6)
    blocks, size = some(2, 4), some(2, 5)
    experts, drafters, vocabulary = some(2, 9), some(1, 6), some(20, 120)
    targets = few(range(layers), 3)
    stages = stages if targets else 0
    return ModelConfig(
        vocab_size=vocabulary,
        dim=some(5, 24) if not quantizable else 32,
        n_layers=layers,
        n_mtp_layers=stages,
        norm_eps=float(rng.choice([1e-20, 1e-6])),
        n_heads=groups * some(1, 3),
        head_dim=unit * some(1, 2),
        rope_head_dim=2 * some(1, 4),
        q_lora_rank=some(4, 20),
        o_groups=groups,
        o_lora_rank=some(2, 9),
        window_size=some(1, 12),
        original_seq_len=int(rng.choice([0, 16, 64])),
        rope_factor=float(some(1, 16)),
        compress_ratios=(*ratios, *[0] * stages),
        kv_source_layers=owners,
        index_source_layers=choosers,
        index_n_heads=16,
        index_head_dim=unit * some(1, 2),
        index_topk=min(index_topk, (blocks - 1) * size + 1),
        candidate_source_layer=int(rng.choice([-1, *same])),
        candidate_topk_blocks=blocks,
        candidate_block_size=size,
        moe_inter_dim=some(4, 30),
        n_routed_experts=experts,
        n_activated_experts=some(1, experts),
        score_func=str(rng.choice(["sqrtsoftplus", "sqrtsoftplus", "sigmoid", "softmax"])),
        gate_temp=float(rng.choice([1.0, 0.7])),
        norm_topk_prob=bool(rng.random() < 0.8),
        route_scale=float(rng.choice([1.0, 1.5, 2.5])),
        swiglu_limit=float(rng.choice([0.0, 0.5, 10.0])),
        hc_mult=some(1, 5),
        hc_sinkhorn_iters=some(1, 20),
        engram_layer_ids=few(range(layers), 3),
        engram_max_ngram_size=some(2, 5),
        engram_vocab_size=some(5, 60),
        engram_n_heads=some(1, 4),
        engram_head_dim=int(rng.choice([32, 64])),
        engram_pad_id=some(0, vocabulary - 1),
        engram_compressed_vocab_size=-(-vocabulary // some(1, 3)),
        dspark_block_size=some(1, 6) if stages else 0,
        dspark_noise_token_id=some(0, vocabulary - 1),
        dspark_target_layer_ids=targets,
        dspark_markov_rank=some(1, 8),
        dspark_n_routed_experts=drafters if stages else 0,
        dspark_n_activated_experts=some(1, drafters) if stages else 0,
        image_token_id=vocabulary - 1,
        vision_n_layers=some(0, 1),
        vision_dim=16,
        vision_n_heads=2,
        vision_inter_dim=8,
        vision_patch_size=2,
    )


SMALL = ModelConfig.tiny(
    vocab_size=40,
    dim=16,
    n_layers=4,
    n_mtp_layers=1,
    n_heads=2,
    head_dim=32,
    o_groups=1,
    window_size=4,
    compress_ratios=(2, 2, 1, 1, 0),
    kv_source_layers=(0, 2),
    index_source_layers=(0, 2, 3),
    candidate_source_layer=2,
    candidate_block_size=2,
    moe_inter_dim=8,
    n_routed_experts=4,
    n_activated_experts=2,
    engram_layer_ids=(1,),
    engram_num_embeddings=(),
    engram_vocab_size=12,
    engram_compressed_vocab_size=20,
    dspark_block_size=3,
    dspark_noise_token_id=39,
    dspark_target_layer_ids=(1, 3),
    dspark_n_routed_experts=3,
    image_token_id=38,
)


@cache
def small_file():
    """A file with outputs of every kind."""
    return record(SMALL, 5, kinds=("noquant", "quant"), image=9, stale=True)


def only(outputs, *names):
    """The file with no other outputs than these."""
    inputs = {n: a for n, a in outputs.items() if n.startswith("w/") or n in ("ids", "token_map")}
    images = {n: a for n, a in outputs.items() if "/image" in n and n.endswith(("ids", "types"))}
    return {**inputs, **images, **{name: outputs[name] for name in names}}


def rows_of(report):
    return {row.output: row for row in report.rows}
