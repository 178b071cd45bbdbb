"""The same V4 model in transformers: configuration and weights under its names.

`DeepseekV4ForCausalLM` (transformers 5.24) computes what the released V4 code computes, except

    shared expert     clamps like the routed ones; the released code has no clamp (reference/v4_model.py)
    FP8 and FP4       nothing that is cached is rounded, and index queries and keys meet without a Hadamard matrix,
                      which changes no product
    hash layers       weights are divided by their sum + 1e-20, not by their sum: the same in every float
    drafting          there is no next-token layer and no draft stage

and rotates, normalises and takes softmaxes in float32 whatever the type of the model. `peer` switches the clamp of the
shared expert off, so that the rest can be compared.
"""

import numpy as np
import torch
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

LAYER_TYPES = {
    "window": "sliding_attention",
    "csa": "compressed_sparse_attention",
    "hca": "heavily_compressed_attention",
}


def peer_config(config):
    """The DeepseekV4Config of a V4 ModelConfig whose HCA layers all have one ratio."""
    plans = config.schedule()[: config.n_layers]
    hca = next((plan.ratio for plan in plans if plan.mode == "hca"), 128)
    rope = {"rope_type": "default"}
    if config.original_seq_len:
        rope = {
            "rope_type": "yarn",
            "factor": config.rope_factor,
            "beta_fast": config.beta_fast,
            "beta_slow": config.beta_slow,
            "original_max_position_embeddings": config.original_seq_len,
        }
    return DeepseekV4Config(
        vocab_size=config.vocab_size,
        hidden_size=config.dim,
        moe_intermediate_size=config.moe_inter_dim,
        num_hidden_layers=config.n_layers,
        num_attention_heads=config.n_heads,
        head_dim=config.head_dim,
        q_lora_rank=config.q_lora_rank,
        num_experts_per_tok=config.n_activated_experts,
        n_routed_experts=config.n_routed_experts,
        n_shared_experts=config.n_shared_experts,
        scoring_func=config.score_func,
        routed_scaling_factor=config.route_scale,
        max_position_embeddings=config.max_positions,
        rope_theta=config.rope_theta,
        compress_rope_theta=config.compress_rope_theta,
        rope_parameters=rope,
        partial_rotary_factor=config.rope_head_dim / config.head_dim,
        layer_types=[LAYER_TYPES[plan.mode] for plan in plans],
        compress_rates={"compressed_sparse_attention": 4, "heavily_compressed_attention": hca},
        hc_mult=config.hc_mult,
        hc_sinkhorn_iters=config.hc_sinkhorn_iters,
        hc_eps=config.hc_eps,
        mlp_layer_types=["hash_moe" if plan.hash_routed else "moe" for plan in plans],
        swiglu_limit=config.swiglu_limit,
        sliding_window=config.window_size,
        o_groups=config.o_groups,
        o_lora_rank=config.o_lora_rank,
        index_n_heads=config.index_n_heads,
        index_head_dim=config.index_head_dim,
        index_topk=config.index_topk,
        rms_norm_eps=config.norm_eps,
        attn_implementation="eager",
    )


ROOT = {"embed": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"}
LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn.attn_sink": "self_attn.sinks",
    "attn.wq_a": "self_attn.q_a_proj",
    "attn.q_norm": "self_attn.q_a_norm",
    "attn.wq_b": "self_attn.q_b_proj",
    "attn.wkv": "self_attn.kv_proj",
    "attn.kv_norm": "self_attn.kv_norm",
    "attn.wo_a": "self_attn.o_a_proj",
    "attn.wo_b": "self_attn.o_b_proj",
    "attn.compressor.wkv": "self_attn.compressor.kv_proj",
    "attn.compressor.wgate": "self_attn.compressor.gate_proj",
    "attn.compressor.ape": "self_attn.compressor.position_bias",
    "attn.compressor.norm": "self_attn.compressor.kv_norm",
    "attn.indexer.compressor.wkv": "self_attn.compressor.indexer.kv_proj",
    "attn.indexer.compressor.wgate": "self_attn.compressor.indexer.gate_proj",
    "attn.indexer.compressor.ape": "self_attn.compressor.indexer.position_bias",
    "attn.indexer.compressor.norm": "self_attn.compressor.indexer.kv_norm",
    "attn.indexer.wq_b": "self_attn.compressor.indexer.q_b_proj",
    "attn.indexer.weights_proj": "self_attn.compressor.indexer.scorer.weights_proj",
    "ffn.gate": "mlp.gate",
    "ffn.gate.bias": "mlp.gate.e_score_correction_bias",
    "ffn.gate.tid2eid": "mlp.gate.tid2eid",
    "ffn.shared_experts.w1": "mlp.shared_experts.gate_proj",
    "ffn.shared_experts.w2": "mlp.shared_experts.down_proj",
    "ffn.shared_experts.w3": "mlp.shared_experts.up_proj",
    **{f"hc_{part}_{name}": f"{part}_hc.{name}" for part in ("attn", "ffn") for name in ("fn", "base", "scale")},
}


def peer_weights(weights, config):
    """The weights under the names of transformers: {name: tensor} from {released name: array or tensor}."""
    renamed, tensors = {}, {name: torch.as_tensor(np.asarray(array)) for name, array in weights.items()}
    for name, tensor in tensors.items():
        if name.startswith("mtp.") or ".ffn.experts." in name:
            continue
        stem, suffix = (name.removesuffix(".weight"), ".weight") if name.endswith(".weight") else (name, "")
        if name.startswith("layers."):
            _, layer, stem = stem.split(".", 2)
            renamed[f"model.layers.{layer}.{LAYER[stem]}{suffix}"] = tensor
        elif name.startswith("hc_head_"):
            renamed[f"model.hc_head.hc_{name.removeprefix('hc_head_')}"] = tensor
        else:
            renamed[f"{ROOT[stem]}{suffix}"] = tensor
    for layer in range(config.n_layers):
        prefix = f"layers.{layer}.ffn.experts."
        stacked = {
            part: torch.stack([tensors[f"{prefix}{e}.{part}.weight"] for e in range(config.n_routed_experts)])
            for part in ("w1", "w2", "w3")
        }
        mine = f"model.layers.{layer}.mlp.experts."
        renamed[f"{mine}gate_up_proj"] = torch.cat([stacked["w1"], stacked["w3"]], dim=1)
        renamed[f"{mine}down_proj"] = stacked["w2"]
    return renamed


def peer(weights, config, dtype=torch.float32):
    """DeepseekV4ForCausalLM with these weights; its shared experts do not clamp, as in the released code."""
    model = DeepseekV4ForCausalLM(peer_config(config)).to(dtype).eval()
    model.load_state_dict(peer_weights(weights, config))
    for layer in model.model.layers:
        layer.mlp.shared_experts.limit = float("inf")
    return model
