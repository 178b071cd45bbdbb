"""Sizes, schedules and checks of the configuration."""

import json
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu import config as config_module
from deepseek_edu.config import ConfigError, ModelConfig

from .reference.strategies import configurations

TINY_FILE = Path(__file__).parent / "oracles" / "v41_tiny_config.json"

RELEASED = {
    "model_type": "deepseek_v41",
    "architectures": ["DeepseekV41ForCausalLM"],
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "image_token_id": 129264,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [32, 32]},
    "text_config": {
        "model_type": "deepseek_v41_text",
        "vocab_size": 129280,
        "hidden_size": 5120,
        "moe_intermediate_size": 2304,
        "num_hidden_layers": 40,
        "num_attention_heads": 64,
        "num_key_value_heads": 1,
        "head_dim": 512,
        "qk_rope_head_dim": 64,
        "q_lora_rank": 1280,
        "o_groups": 8,
        "o_lora_rank": 1024,
        "rms_norm_eps": 1e-20,
        "rope_theta": 10000,
        "compress_rope_theta": 160000,
        "rope_scaling": {
            "type": "yarn",
            "factor": 16,
            "original_max_position_embeddings": 65536,
            "beta_fast": 32,
            "beta_slow": 1,
        },
        "sliding_window": 128,
        "max_position_embeddings": 1048576,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_experts_per_tok": 6,
        "scoring_func": "sqrtsoftplus",
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.5,
        "swiglu_limit": 10.0,
        "compress_ratios": [0, 0, *[2] * 18, *[1] * 20, 0, 0, 0],
        "kv_source_layer_ids": [2, 8, 14, 20],
        "index_source_layer_ids": [2, 8, 14, 20, 24, 28, 32, 36],
        "index_n_heads": 32,
        "index_head_dim": 128,
        "index_topk": 512,
        "candidate_source_layer_id": 20,
        "candidate_topk_blocks": 2048,
        "candidate_block_size": 8,
        "hc_mult": 4,
        "hc_sinkhorn_iters": 20,
        "hc_eps": 1e-6,
        "engram_layer_ids": [1, 14],
        "engram_num_embeddings": [384006168, 384016682],
        "engram_max_ngram_size": 4,
        "engram_vocab_size": 16000000,
        "engram_n_heads": 8,
        "engram_head_dim": 256,
        "engram_pad_token_id": 2,
        "engram_compressed_vocab_size": 99092,
        "num_nextn_predict_layers": 3,
        "dspark_block_size": 5,
        "dspark_noise_token_id": 128799,
        "dspark_target_layer_ids": [37, 38, 39],
        "dspark_markov_rank": 256,
        "dspark_n_routed_experts": 128,
        "dspark_num_experts_per_tok": 3,
    },
    "vision_config": {
        "model_type": "deepseek_v41_vision",
        "num_hidden_layers": 32,
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "intermediate_size": 2816,
        "patch_size": 14,
        "rope_theta": 10000,
        "downsample_ratio": 3,
        "max_image_tokens": 1024,
        "min_pixels": 295936,
        "max_wh_ratio": None,
    },
}


def test_hugging_face_names_give_the_released_configuration():
    assert ModelConfig.from_released(RELEASED) == ModelConfig.v41_flash()


def test_reference_names_give_the_tiny_configuration():
    assert ModelConfig.from_released(json.loads(TINY_FILE.read_text())) == ModelConfig.tiny()


def test_every_reference_name_of_the_tiny_file_is_read():
    """A changed value in the file changes the configuration, run-time settings of the reference excepted."""
    content = json.loads(TINY_FILE.read_text())
    settings = {"max_batch_size", "max_seq_len", "temperature", "dtype", "expert_dtype"}
    known = {field for field in ModelConfig.tiny().to_dict()}
    assert set(content) - settings <= known
    for name in set(content) - settings:
        assert getattr(ModelConfig.tiny(), name) == (tuple(v) if isinstance(v := content[name], list) else v)


RELEASED_V4 = {
    "model_type": "deepseek_v4",
    "vocab_size": 129280,
    "hidden_size": 4096,
    "num_hidden_layers": 43,
    "num_nextn_predict_layers": 1,
    "num_attention_heads": 64,
    "head_dim": 512,
    "qk_rope_head_dim": 64,
    "q_lora_rank": 1024,
    "o_groups": 8,
    "o_lora_rank": 1024,
    "rms_norm_eps": 1e-6,
    "sliding_window": 128,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "num_experts_per_tok": 6,
    "routed_scaling_factor": 1.5,
    "swiglu_limit": 10.0,
    "num_hash_layers": 3,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0, 0, 0],
    "index_n_heads": 64,
    "index_head_dim": 128,
    "index_topk": 512,
    "dspark_block_size": 5,
    "dspark_noise_token_id": 128799,
    "dspark_target_layer_ids": [40, 41, 42],
    "dspark_markov_rank": 256,
}


def test_v4_names_are_read():
    assert ModelConfig.from_released(RELEASED_V4) == ModelConfig.v4_flash_0731()


def preview():
    """The released V4 preview by its Hugging Face names: a next-token layer and no draft stages."""
    others = {name: value for name, value in RELEASED_V4.items() if not name.startswith("dspark_")}
    return others | {"compress_ratios": [0, 0, *[4, 128] * 20, 4, 0]}


def test_the_v4_preview_is_read_without_draft_stages():
    config = ModelConfig.from_released(preview())
    assert config.n_mtp_layers == 0
    assert config.compress_ratios == ModelConfig.v4_flash_0731().compress_ratios[:43]
    assert config.kv_source_layers == tuple(range(2, 43))


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_names_of_a_field_its_own_wins_wherever_it_stands(turned):
    names = {"n_mtp_layers": 3, "num_nextn_predict_layers": 1}
    names = dict(reversed(names.items())) if turned else names
    text = {name: value for name, value in RELEASED["text_config"].items() if name not in names}
    assert ModelConfig.from_released(RELEASED | {"text_config": text | names}).n_mtp_layers == 3


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("n_layers", {"num_hidden_layers": "43"}),
        ("compress_ratios", {"compress_ratios": "abc"}),
        ("compress_ratios", {"compress_ratios": [None, 4]}),
        ("compress_ratios", {"compress_ratios": 7}),
        ("n_shared_experts", {"n_shared_experts": 0}),
    ],
)
def test_a_released_value_of_another_type_is_refused_by_name(field, changes):
    with pytest.raises(ConfigError, match=f"^{field} must be"):
        ModelConfig.from_released(preview() | changes)


def test_a_reference_value_of_another_type_is_refused_by_name():
    content = json.loads(TINY_FILE.read_text()) | {"n_mtp_layers": "3"}
    with pytest.raises(ConfigError, match=r"^n_mtp_layers must be an integer"):
        ModelConfig.from_released(content)


@given(st.data())
@settings(max_examples=50)
def test_any_configuration_survives_the_released_spelling(data):
    config = data.draw(configurations())
    released = json.loads(json.dumps(config.to_dict()))
    del released["generation"]  # no file of either kind has it
    assert ModelConfig.from_released(released) == config


def test_v4_is_told_by_its_ratios_where_no_model_type_is_given():
    released = ModelConfig.v4_flash_0731().to_dict()
    for name in ("generation", "kv_source_layers", "index_source_layers"):
        del released[name]
    assert ModelConfig.from_released(released) == ModelConfig.v4_flash_0731()


def test_the_released_schedule_has_2_window_4_full_4_reindex_and_30_reuse_layers():
    plans = ModelConfig.v41_flash().schedule()
    backbone = [plan.mode for plan in plans[:40]]
    assert {mode: backbone.count(mode) for mode in set(backbone)} == {"window": 2, "full": 4, "reindex": 4, "reuse": 30}
    assert [p.index for p in plans if p.mode == "full"] == [2, 8, 14, 20]
    assert [p.index for p in plans if p.mode == "reindex"] == [24, 28, 32, 36]
    assert [p.index for p in plans if p.pool == "restricted"] == [24, 28, 32, 36]
    assert [p.index for p in plans if p.pool == "source"] == [20]
    assert [p.index for p in plans if p.side == "decoder"] == list(range(20, 40))
    assert [(p.side, p.mode) for p in plans[40:]] == [("draft", "window")] * 3
    assert (plans[19].owner, plans[19].chooser, plans[39].owner, plans[39].chooser) == (14, 14, 20, 36)
    assert (plans[1].engram, plans[14].engram, plans[2].engram) == (0, 1, None)


def test_every_layer_that_chooses_above_the_source_is_held_to_the_pool():
    """Also an owner; not below the source, and not where entries stand for other numbers of tokens."""
    config = ModelConfig.tiny(
        compress_ratios=(1, 1, 1, 1, 1, 2, 2, 0, 0, 0, 0),
        kv_source_layers=(0, 1, 3, 5),
        index_source_layers=(0, 1, 2, 3, 4, 5),
        candidate_source_layer=1,
    )
    assert [plan.pool for plan in config.schedule()[:7]] == ["", "source", *["restricted"] * 3, "", ""]


def test_the_v4_schedule_alternates_csa_and_hca_after_two_window_layers():
    plans = ModelConfig.v4_flash_0731().schedule()
    modes = [plan.mode for plan in plans[:43]]
    assert (modes.count("window"), modes.count("csa"), modes.count("hca")) == (2, 21, 20)
    assert [plan.index for plan in plans if plan.hash_routed] == [0, 1, 2]


def test_the_schedule_prints_one_line_per_run_of_equal_layers():
    lines = ModelConfig.v41_flash().schedule_table().splitlines()
    assert len(lines) == 20
    assert lines[4].split() == ["3–7", "encoder", "2", "reuse", "2", "2", "–", "–"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dim", 0),
        ("dim", 2.5),
        ("rope_head_dim", 7),
        ("o_groups", 3),
        ("compress_ratios", (0, 2)),
        ("compress_ratios", (0, 2, 2, 1, 1, 1, 1, 1, 0, 0, 2)),
        ("kv_source_layers", (3, 1)),
        ("kv_source_layers", (1,)),
        ("kv_source_layers", (0, 1, 3)),
        ("index_source_layers", (1, 5)),
        ("candidate_source_layer", 5),
        ("candidate_topk_blocks", 0),
        ("n_activated_experts", 9),
        ("score_func", "relu"),
        ("n_hash_layers", 1),
        ("engram_num_embeddings", (384,)),
        ("engram_pad_id", 96),
        ("dspark_target_layer_ids", (8,)),
        ("dspark_target_layer_ids", (5, 5, 6)),
        ("dspark_target_layer_ids", (7, 6, 5)),
        ("norm_topk_prob", "no"),
        ("norm_topk_prob", 1),
        ("dspark_noise_token_id", 96),
        ("vision_dim", 30),
        ("vision_rope_theta", 0),
        ("vision_rope_theta", 1),
        ("vision_max_tokens", 3),
        ("norm_eps", -1e-6),
        ("norm_eps", float("nan")),
        ("beta_fast", 0.5),
        ("generation", "v5"),
        ("bos_token_id", 96),
        ("eos_token_id", 96),
        ("pad_token_id", 1000),
        ("image_token_id", 96),
        ("engram_compressed_vocab_size", 97),
        ("engram_vocab_size", 10**18),
        ("engram_max_ngram_size", 0),
    ],
)
def test_a_wrong_value_is_refused_by_name(field, value):
    with pytest.raises(ConfigError, match=field) as error:
        replace(ModelConfig.tiny(), **{field: value})
    assert "got" in str(error.value)


def test_a_compressed_layer_below_the_first_owner_is_refused():
    with pytest.raises(ConfigError, match="layer 0 has ratio 2 and needs an owner"):
        replace(ModelConfig.tiny(), compress_ratios=(2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0))


def test_a_missing_size_is_named():
    content = json.loads(TINY_FILE.read_text())
    del content["head_dim"]
    with pytest.raises(ConfigError, match="missing: head_dim"):
        ModelConfig.from_released(content)


def test_a_configuration_is_frozen_and_survives_its_dictionary():
    config = ModelConfig.tiny()
    with pytest.raises(FrozenInstanceError):
        config.dim = 3
    assert ModelConfig(**config.to_dict()) == config
    assert ModelConfig.tiny(index_topk=3).index_topk == 3


def test_the_module_imports_only_the_standard_library():
    assert "numpy" not in vars(config_module)
