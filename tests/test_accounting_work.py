"""Cache bytes and arithmetic in closed form against caches that were filled, entries counted one by one, and matrices.

Sizes are written out here; nothing is taken from the code under test but what is compared.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.accounting import caches, work
from deepseek_edu.config import ModelConfig
from deepseek_edu.reference.cache import Cache
from tests.reference.strategies import configurations

FLASH, TINY, V4 = ModelConfig.v41_flash(), ModelConfig.tiny(), ModelConfig.v4_flash_0731()


# Bytes


def test_bytes_per_token_by_generation():
    """Rows written out: FP4 halves and a scale byte for 16 or 32; FP8, BF16 tail, seven scale bytes filled up to 8."""
    main, index, v4_entry = 512 // 2 + 512 // 16, 128 // 2 + 128 // 32, 448 + 64 * 2 + 8
    assert caches.generation_bytes() == {
        "DeepSeek-V1": 95 * 8 * 128 * 2 * 2,
        "DeepSeek-V3.2": 61 * (656 + 132),
        "DeepSeek-V4-Flash": 21 * (v4_entry + index) / 4 + 20 * v4_entry / 128,
        "DeepSeek-V4.1-Flash": (main + index) * (3 / 2 + 1),
    }
    assert list(caches.generation_bytes().values()) == [389_120, 48_068, 3514.25, 890.0]
    assert f"{3514.25 / 890:.2f}" == "3.95"
    assert round(389_120 / caches.global_bytes_per_token(FLASH)) == 437


def test_windows_have_a_fixed_size():
    assert caches.window_bytes(FLASH) == {"backbone": 2_703_360, "encoder": 1_351_680, "draft": 2_906_112 - 2_703_360}
    assert caches.window_bytes(V4)["backbone"] == 3_214_336


def test_a_million_tokens_of_global_entries():
    assert caches.global_bytes(FLASH, 2**20) == 890 * 2**20
    assert caches.global_bytes(V4, 2**20) == 3514.25 * 2**20


@pytest.mark.parametrize("tokens", [0, 1, 2, 7, 8, 9, 31])
def test_a_cache_of_the_tiny_model_holds_these_bytes(tokens):
    cache = Cache(TINY, quantized=True)
    for layer, ratio in ((1, 2), (3, 1)):
        cache.entries[layer].append(np.ones((tokens // ratio, 32)))
        cache.index_keys[layer].append(np.ones((tokens // ratio, 32)))
    held, measured = caches.sequence_bytes(TINY, tokens), cache.nbytes
    assert held["entries"] == measured["entries"]
    assert held["index keys"] == measured["index_keys"]
    assert caches.global_bytes(TINY, tokens) == measured["persistent"]
    assert held["windows"] == measured["windows"] == caches.window_bytes(TINY)["backbone"]
    assert held["draft windows"] == measured["draft_windows"] == caches.window_bytes(TINY)["draft"]


def test_half_filled_groups_store_nothing():
    assert [caches.global_bytes(TINY, tokens) for tokens in (0, 1, 2, 3)] == [0, 35, 105, 140]  # 35: 18 and 17 bytes


def test_an_eighth_is_stored_with_turns_of_1830_tokens_and_two_window_checkpoints():
    assert f"{caches.turn_bytes(V4, 1832, 2) / caches.turn_bytes(FLASH, 1832):.1f}" == "7.9"
    assert caches.turn_bytes(V4, 1832, 2) - caches.turn_bytes(V4, 1832) == 2 * 43 * 128 * 584
    assert caches.turn_bytes(V4, 2**20, 2) / caches.turn_bytes(FLASH, 2**20) < 3.96


@pytest.mark.parametrize("tokens", [-1, 2.0, True])
def test_tokens_are_counted_in_whole_numbers(tokens):
    for function in (caches.global_bytes, caches.sequence_bytes):
        with pytest.raises(ValueError, match="tokens must be an integer, 0 or more"):
            function(FLASH, tokens)


# Arithmetic


def gigaflops(flops):
    return f"{flops / 1e9:.1f}"


def test_decoding_costs_a_quarter_more_at_256_times_the_context():
    short, long = (work.decode_flops(FLASH, context) for context in (2**12, 2**20))
    assert (gigaflops(sum(short.values())), gigaflops(sum(long.values()))) == ("21.5", "27.0")
    assert f"{sum(long.values()) / sum(short.values()):.2f}" == "1.25"
    grown = {name for name in long if long[name] != short[name]}
    assert grown == {"index scan"}
    keys = 3 * 2**19 + 2**20 + 4 * 16384  # layers 2, 8, 14; layer 20; layers 24, 28, 32, 36
    assert long["index scan"] == keys * 32 * 128 * 2 * 0.25
    assert short["attention core"] == (40 * 128 + 38 * 512) * 64 * 512 * 2 * 2


def test_work_of_the_tiny_model_is_one_multiply_add_for_each_number_of_its_matrices():
    """What depends on the context comes on top: products with entries, and with index keys."""
    with np.load(Path(__file__).parent / "oracles" / "v41_tiny.npz") as file:
        matrices = {name[2:]: file[name].size for name in file.files if name.startswith("w/") and file[name].ndim == 2}
    matrices = {
        name: size
        for name, size in matrices.items()
        if (name.startswith("layers.") or name == "head.weight")
        and not name.endswith(("embed.weight", "embed.scale", "engram.q_weight", "engram.k_weight"))
        and not (".experts." in name and int(name.split(".")[4]) >= 3)
    }
    context = 40
    read = 8 * 8 + 7 * 4  # a window of 8 in each layer, 4 entries in each compressed one
    scored = 40 // 2 + 40 + min(40, 3 * 4)  # layers 1 and 3, and layer 5 inside the pool
    expected = sum(matrices.values()) + 2 * 4 * 32 * read + 16 * 32 * scored
    assert sum(item.multiply_adds for item in work.decode_work(TINY, context)) == expected


def test_precisions_and_parts_are_conventions_of_the_caller():
    equal = dict.fromkeys(work.PRECISION_WEIGHTS, 1.0)
    plain = work.decode_flops(FLASH, 4096, precision_weights=equal)
    assert sum(plain.values()) == 2 * sum(item.multiply_adds for item in work.decode_work(FLASH, 4096))
    assert "head" not in work.decode_flops(FLASH, 4096, head=False)
    readers = work.decode_flops(FLASH, 4096)["engram readers"]
    assert readers == 2 * 2 * 25600 * 6144 * 0.5
    assert "engram readers" not in work.decode_flops(FLASH, 4096, engram=False)


def test_a_precision_without_a_weight_is_named():
    with pytest.raises(ValueError, match=r"missing: \['fp4', 'fp8'\]"):
        work.decode_flops(FLASH, 4096, precision_weights={"fp32": 1.0, "bf16": 1.0})


def test_v4_work_has_its_own_compressors_and_scans():
    flops = work.decode_flops(V4, 2**20)
    assert flops["index scan"] == 21 * 2**18 * 64 * 128 * 2 * 0.25
    assert flops["attention core"] == (43 * 128 + 21 * 512 + 20 * 8192) * 64 * 512 * 2 * 2
    assert flops["compressor"] == (21 * 2 * 2 * 512 + 20 * 2 * 512) * 4096 * 2
    assert flops["index keys"] == 21 * 2 * 2 * 128 * 4096 * 2
    assert flops["hyper-connections"] == (43 * 2 * 24 + 4) * 16384 * 2


@given(configurations(), st.integers(1, 60))
@settings(max_examples=60)
def test_entries_are_those_that_a_query_may_see(config, context):
    """By trying every entry: it is visible when the last token of its group is not later than the query."""
    newest = context - 1
    for plan in config.schedule()[: config.n_layers]:
        in_window = sum(newest - config.window_size < position <= newest for position in range(context))
        visible = sum((j + 1) * plan.ratio - 1 <= newest for j in range(context)) if plan.ratio else 0
        read = in_window + min(visible, config.index_topk if plan.ratio else 0)
        assert work.entries_read(config, plan, context) == read
        chooses = plan.index in config.index_source_layers
        pool = config.candidate_topk_blocks * config.candidate_block_size
        source = config.candidate_source_layer
        restricted = 0 <= source < plan.index and plan.ratio == config.compress_ratios[source]
        scored = (min(visible, pool) if restricted else visible) if chooses else 0
        assert work.entries_scored(config, plan, context) == scored


def test_entries_per_query_at_a_million_tokens():
    plans = V4.schedule()
    assert [work.entries_read(V4, plans[layer], 2**20) for layer in (0, 2, 3)] == [128, 128 + 512, 128 + 8192]
    assert [work.entries_scored(V4, plans[layer], 2**20) for layer in (0, 2, 3)] == [0, 2**18, 0]
    assert {work.entries_read(FLASH, plan, 2**20) for plan in FLASH.schedule()[2:40]} == {640}


@pytest.mark.parametrize("context", [0, -3, 1.5, True])
def test_a_context_holds_at_least_the_asking_token(context):
    with pytest.raises(ValueError, match="context must be an integer, 1 or more"):
        work.decode_flops(FLASH, context)


def test_hyper_connections_move_twenty_fourteen_or_ten_times_the_width():
    assert list(work.hyper_connection_traffic(4).values()) == [20, 14, 10]
    assert list(work.hyper_connection_traffic(4, 5120).values()) == [20 * 5120, 14 * 5120, 10 * 5120]
    assert list(work.hyper_connection_traffic(1).values()) == [8, 5, 4]
    with pytest.raises(ValueError, match="streams must be an integer, 1 or more; got 0"):
        work.hyper_connection_traffic(0)


def test_the_decoder_sees_a_window_of_a_prompt():
    assert list(work.ced_block_tokens(FLASH, 4096).values()) == [163_840, 84_480]
    assert list(work.ced_block_tokens(FLASH, 100).values()) == [4_000, 4_000]
    assert list(work.ced_block_tokens(TINY, 20).values()) == [160, 3 * 20 + 5 * 8]
    assert len(set(work.ced_block_tokens(V4, 1000).values())) == 1  # no encoder, nothing to skip
    with pytest.raises(ValueError, match="prompt must be an integer"):
        work.ced_block_tokens(FLASH, -1)
