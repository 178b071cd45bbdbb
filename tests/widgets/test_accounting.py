"""The accounting and owners widgets: bytes, block evaluations, operations, each counted again by hand or one by one."""

import itertools
import json

import pytest

from deepseek_edu import widgets
from deepseek_edu.accounting import choices
from deepseek_edu.config import ModelConfig
from deepseek_edu.widgets import live

FLASH, V4 = ModelConfig.v41_flash(), ModelConfig.v4_flash_0731()
TOKENS = [2**k for k in range(5, 21)]


def metrics(id: str = "accounting", **values) -> dict:
    view = widgets.evaluate(id, values)
    return {m.label: m.value for m in next(part for part in view.parts if type(part).__name__ == "Metrics").items}


def real(what: str, tokens: int, **values):
    return widgets.evaluate("accounting", {"part": "real", "what": what, "context": tokens.bit_length() - 1, **values})


def edited(id: str, values: dict, old: str, new: str) -> dict:
    source = live.mechanism_source(widgets.get(id))
    assert source.count(old) == 1
    answer = json.loads(live.evaluate_json(id, json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer["data"]


# The toy


def vectors_of(compress: str, owners: int, bits: int, read: str) -> tuple[int, int]:
    """Stored and read bytes, vector by vector: every layer, every position, every number."""
    stored = moved = 0
    groups = list(range(0, 8, 2)) if compress == "pairs" else list(range(8))
    kinds = ["key", "value"] if compress == "none" else ["latent"]
    for layer, entry in itertools.product(range(4), range(len(groups))):
        for _ in kinds:
            size = sum({16: 16, 8: 8, 4: 4}[bits] for _ in range(8)) // 8 + (bits != 16)
            stored += size if layer % (4 // owners) == 0 else 0
            moved += size if read == "all" or entry < 3 else 0
    return stored, moved


@pytest.mark.parametrize("compress", ["none", "latent", "pairs"])
@pytest.mark.parametrize("read", ["all", "3"])
def test_every_setting_of_the_toy_counted_vector_by_vector(compress, read):
    for owners, bits in itertools.product((1, 2, 4), (4, 8, 16)):
        got = metrics(compress=compress, owners=str(owners), bits=str(bits), read=read)
        assert (got["Stored"], got["Read for one query"]) == vectors_of(compress, owners, bits, read)


def test_the_numbers_of_the_plain_toy():
    """8 positions · 2 vectors · 8 values · 2 bytes = 256 in a layer, 1 024 in four."""
    plain = {"compress": "none", "owners": "4", "bits": "16", "read": "all"}
    assert metrics(**plain)["Stored"] == 1024 == 4 * 256
    assert metrics(**{**plain, "compress": "latent"})["Stored"] == 4 * 8 * 16
    assert metrics(**{**plain, "compress": "pairs"})["Stored"] == 4 * 4 * 16
    assert metrics(**{**plain, "owners": "1"})["Stored"] == 256
    assert metrics(**{**plain, "owners": "1"})["Read for one query"] == 1024


def test_after_reading_three_of_eight_all_eight_stay_stored():
    got = metrics(read="3")
    assert (got["Entries an owner keeps"], got["Of these read"]) == (8, 3)
    assert metrics(read="3")["Stored"] == metrics(read="all")["Stored"]
    assert "All 8 stay stored" in widgets.evaluate("accounting", {"read": "3"}).parts[2].text


def test_the_picture_draws_every_step_it_counts():
    view = widgets.evaluate("accounting", {"compress": "pairs", "owners": "1", "bits": "4", "read": "3"})
    raw = view.parts[0].raw
    assert [step["stored"] for step in raw["steps"]] == [1024, 256, 64, 20, 20]
    assert [step["read"] for step in raw["steps"]] == [1024, 256, 256, 80, 60]
    assert len(raw["chosen"]) == 3 and max(raw["chosen"]) < 4


# The real models


def test_bytes_per_token_by_generation():
    raw = real("memory", 4096).parts[0].raw
    assert raw == {"V1": 389_120, "V3.2": 48_068, "V4-Flash": 3514.25, "V4.1-Flash": 890}
    view = real("memory", 4096)
    got = {m.label: m for m in view.parts[2].items}
    assert got["V1 against it"].shown == "× 437"
    assert got["V4-Flash against it"].shown == "× 3.95"


def test_a_million_tokens_take_890_mebibytes():
    view = real("memory", 2**20)
    raw = view.parts[1].raw
    assert raw["bytes"]["V4.1-Flash"] == 890 * 2**20 == 3 * 2**19 * (288 + 68) + 2**20 * (288 + 68)
    assert raw["windows"] == 40 * 128 * 528
    assert "890 MiB" in view.summary
    assert real("memory", 32).parts[1].raw["windows"] == raw["windows"]


def test_short_contexts_hold_no_entries_for_groups_that_are_not_full():
    """V4 stores an entry for 128 tokens in 20 layers: none of these exist at 64."""
    assert real("memory", 64).parts[1].raw["bytes"]["V4-Flash"] == 21 * 16 * (584 + 68)


def test_the_path_to_890():
    """18 encoder layers at ratio 2 and 20 at ratio 1; a BF16 latent has 1 024 bytes, an FP4 one 256 + 32."""
    steps = real("path", 4096).parts[0].raw["steps"]
    assert list(steps.values()) == [38 * 1024, 9 * 1024 + 20 * 1024, 2.5 * 1024, 2.5 * 288, 2.5 * (288 + 68)]
    owners = real("path", 4096).parts[0].raw["owners"]
    assert owners == {"2": [144, 178], "8": [144, 178], "14": [144, 178], "20": [288, 356]}
    assert {m.label: m.value for m in real("path", 2**20).parts[1].items}["Read per layer"] == 512
    assert {m.label: m.value for m in real("path", 32).parts[1].items}["Read per layer"] == 32


@pytest.mark.parametrize("tokens", TOKENS)
def test_the_prefill_proxy_counts_pairs_of_layer_and_token(tokens):
    pairs = sum(1 for layer in (0, 39) for token in range(tokens) if layer < 20 or token >= tokens - 128)
    raw = real("prefill", tokens).parts[0].raw
    assert (raw["all layers"], raw["encoder–decoder"]) == (40 * tokens, 20 * pairs)


def test_a_prefill_of_4096_tokens():
    view = real("prefill", 4096)
    assert [m.value for m in view.parts[1].items][:2] == [163_840, 84_480]
    assert view.parts[1].items[2].shown == "51.6\u202f%"
    assert "neither FLOPs nor latency" in view.parts[2].text and view.parts[2].role == "warn"


def test_decoding_grows_by_a_quarter_and_only_the_index_scan_grows():
    """Four layers scan everything, four more at most 16 384 candidates; 32 heads of 128, FP4 at a quarter."""
    raw = real("decode", 2**20).parts[0].raw
    stacks = dict(zip(raw["tokens"], raw["stacks"], strict=True))
    assert f"{sum(stacks[2**20]) / sum(stacks[2**12]):.2f}" == "1.25"
    for tokens in (2**12, 2**16, 2**20):
        full = 3 * (tokens // 2) + tokens
        pool = 4 * min(tokens, 2048 * 8)
        assert stacks[tokens][2] == 2 * 32 * 128 * (full + pool) * 0.25
        read = 2 * 128 + 38 * (128 + 512)
        assert stacks[tokens][1] == 2 * 2 * 64 * 512 * read
        assert stacks[tokens][0] == stacks[2**5][0]
    assert "100\u202f% of the growth is the scan" in real("decode", 2**20).parts[2].text


def test_v4_grows_more_because_pooled_layers_read_everything():
    raw = real("decode", 2**20, model="v4").parts[0].raw
    stacks = dict(zip(raw["tokens"], raw["stacks"], strict=True))
    reads = {n: 2 * 128 + 21 * (128 + min(512, n // 4)) + 20 * (128 + n // 128) for n in (2**12, 2**20)}
    assert stacks[2**20][1] / stacks[2**12][1] == pytest.approx(reads[2**20] / reads[2**12])
    assert sum(stacks[2**20]) / sum(stacks[2**12]) > 3


# Owners


@pytest.mark.parametrize("count", range(1, 9))
def test_owners_of_eight_equal_caches(count):
    view = widgets.evaluate("owners", {"owners": count, "context": 20, "entry": "main"})
    got = {m.label: m.value for m in view.parts[1].items}
    assert got["Stored"] == count * 288 * 2**20
    assert got["Of eight caches"] == count / 8
    assert got["Times as many conversations"] == 8 / count
    read = view.parts[0].raw["read"]
    assert len(set(read)) == count
    assert all(owner <= layer and read[owner] == owner for layer, owner in enumerate(read)), (
        "an owner is no later layer"
    )
    sizes = [read.count(owner) for owner in set(read)]
    assert max(sizes) - min(sizes) <= 1 and read == sorted(read)


def test_entry_formats_of_the_calculator():
    for entry, size in (("bf16", 1024), ("window", 512 + 16), ("main", 256 + 32)):
        assert metrics("owners", entry=entry, context=10, owners=1)["Stored"] == 1024 * size


# Wrong mechanisms move these numbers


def test_storing_only_what_is_selected_is_caught():
    wrong = edited(
        "accounting",
        {"read": "3"},
        "return toy.owners * entries_stored(toy) *",
        "return toy.owners * min(entries_stored(toy), toy.selected or 99) *",
    )
    assert wrong["parts"][1]["values"]["Stored"] != metrics(read="3")["Stored"]


def test_reading_only_in_owners_is_caught():
    wrong = edited("accounting", {"owners": "1"}, "return toy.layers * entries *", "return toy.owners * entries *")
    assert wrong["parts"][1]["values"]["Read for one query"] == metrics(owners="1")["Read for one query"] / 4


def test_a_decoder_that_runs_on_every_token_is_caught():
    values = {"part": "real", "what": "prefill"}
    wrong = edited("accounting", values, "* min(prompt, c.window_size)", "* prompt")
    assert wrong["parts"][0]["raw"]["encoder–decoder"] == 163_840


def test_forgotten_index_keys_are_caught():
    values = {"part": "real", "what": "path"}
    wrong = edited("accounting", values, "_row_of(config, layer) /", 'entry_bytes(config)["main"] /')
    assert wrong["parts"][0]["raw"]["steps"]["index keys"] == 720


def test_an_owner_above_its_readers_is_caught():
    wrong = edited("owners", {"owners": 4}, "return -(-(layer", "return 1 - (-(layer")
    assert wrong["parts"][0]["raw"]["read"] != [choices.owner_of(layer, 8, 4) for layer in range(8)]
