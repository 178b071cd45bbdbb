"""What a decoded token costs at 1K to 64K tokens of context, where growth comes from, and what the skip saves."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import selection, step
from deepseek_edu.model.cache import Cache
from deepseek_edu.model.model import Model
from tests.bench.rows import CLOCK, Row, in_turn, ratio

CONTEXTS = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
STEPS = 20
SKIP_TOKENS, SKIP_PAIRS, CHUNK = 8192, 3, 512
SEED = 0
SETTINGS = {
    "decode: contexts": CONTEXTS,
    "decode: steps at each": STEPS,
    "skip: tokens": SKIP_TOKENS,
    "skip: chunk": CHUNK,
    "skip: pairs": SKIP_PAIRS,
    "weights' seed": SEED,
}
PARTS = {  # what grows or might: name -> functions whose time counts, none inside another
    "index scores": ((step.Step, "_scores"),),
    "choice of blocks and entries": ((selection, "top_k"),),
    "gathered entries": ((step.Step, "_entries"),),
    "new entries": ((step.Step, "_store"),),
}


def small_config(**changes) -> ModelConfig:
    """V4.1 in eight layers of width 512: 32 experts of 256, four active, Top-64 of 512 candidates; 114 M parameters."""
    sizes = {
        "vocab_size": 4096,
        "dim": 512,
        "n_layers": 8,
        "n_mtp_layers": 0,
        "n_heads": 8,
        "head_dim": 128,
        "rope_head_dim": 32,
        "q_lora_rank": 128,
        "o_groups": 2,
        "o_lora_rank": 128,
        "window_size": 128,
        "original_seq_len": 65536,
        "rope_factor": 16.0,
        "compress_ratios": (0, 2, 2, 1, 1, 1, 1, 1),
        "kv_source_layers": (1, 3),
        "index_source_layers": (1, 3, 5),
        "candidate_source_layer": 3,
        "index_n_heads": 8,
        "index_head_dim": 64,
        "index_topk": 64,
        "candidate_topk_blocks": 64,
        "candidate_block_size": 8,
        "moe_inter_dim": 256,
        "n_routed_experts": 32,
        "n_activated_experts": 4,
        "swiglu_limit": 10.0,
        "engram_layer_ids": (),
        "engram_num_embeddings": (),
        "dspark_target_layer_ids": (5,),
        "dspark_noise_token_id": 1,
        "image_token_id": -1,
        "vision_n_layers": 0,
    }
    return ModelConfig.tiny(**sizes | changes)


def filled_cache(model: Model, tokens: int, quantized: bool) -> Cache:
    """A cache as after so many tokens: random entries and index keys, windows of zeros. Filling it needs no prefill."""
    cache, config = model.new_cache(1, quantized=quantized), model.config
    generator = torch.Generator().manual_seed(SEED)
    nothing = torch.zeros(1, dtype=torch.int64)
    for layer, entries in cache.entries.items():
        count = tokens // config.compress_ratios[layer]
        for store, width in ((entries, config.head_dim), (cache.index_keys[layer], config.index_head_dim)):
            store.write(torch.randn(1, count, width, generator=generator), nothing, torch.tensor([count]))
    cache.lengths = cache.stored = cache.highest = cache.decoded = torch.tensor([tokens])
    return cache


@contextmanager
def stopwatch():
    """Time the functions in PARTS while the block runs: {part: seconds}."""
    taken = dict.fromkeys(PARTS, 0.0)

    def timed(part, function):
        def run(*args, **options):
            began = CLOCK()
            try:
                return function(*args, **options)
            finally:
                taken[part] += CLOCK() - began

        return run

    patches = [
        mock.patch.object(owner, name, timed(part, getattr(owner, name)))
        for part, functions in PARTS.items()
        for owner, name in functions
    ]
    for patch in patches:
        patch.start()
    yield taken
    for patch in patches:
        patch.stop()


def parts_of_a_step(model: Model, cache: Cache) -> dict[str, float]:
    """Milliseconds of a decode step by part, and the rest."""
    token = torch.tensor([5])
    with stopwatch() as taken:
        began = CLOCK()
        for _ in range(STEPS):
            model.decode(token, cache)
        whole = CLOCK() - began
    parts = {part: 1e3 * seconds / STEPS for part, seconds in taken.items()}
    return parts | {"everything else": 1e3 * whole / STEPS - sum(parts.values())}


def growth(model: Model, quantized: bool) -> Row:
    """Decode times at all contexts, taken in turn."""
    caches = {tokens: filled_cache(model, tokens, quantized) for tokens in CONTEXTS}
    for cache in caches.values():
        for store in (*cache.entries.values(), *cache.index_keys.values()):
            store.reserve(store.size + 4 * STEPS)  # no step pays for moving a whole cache
    steps = {str(n): lambda cache=cache: model.decode(torch.tensor([5]), cache) for n, cache in caches.items()}
    times = in_turn(steps, STEPS, warm=2)
    curve = {n: 1e3 * statistics.median(taken) for n, taken in times.items()}
    first, last = str(CONTEXTS[0]), str(CONTEXTS[-1])
    parts = {n: parts_of_a_step(model, caches[int(n)]) for n in (first, last)}
    grown = {part: parts[last][part] - parts[first][part] for part in parts[first]}
    most = sorted(grown, key=grown.get, reverse=True)[:2]
    detail = f"{curve[first]:.1f} to {curve[last]:.1f} ms; more at 64K: " + ", ".join(
        f"{part} {grown[part]:+.1f} ms" for part in most
    )
    name = f"decode, 64K against 1K tokens, {'quantised' if quantized else 'float32'}"
    data = {"median ms by context": curve, "ms by part": parts}
    return Row(name, ratio(times[last], times[first]), "×", 1.5, detail, data=data)


def skipping_prefill() -> Row:
    """All layers on all tokens against encoder layers on all and decoder layers on the last ones, 10 + 10 layers."""
    config = small_config(
        dim=256,
        moe_inter_dim=128,
        n_heads=4,
        q_lora_rank=64,
        n_layers=20,
        compress_ratios=(0, *(2,) * 9, *(1,) * 10),
        kv_source_layers=(1, 5, 10),
        index_source_layers=(1, 5, 10, 14, 17),
        candidate_source_layer=10,
        candidate_topk_blocks=256,
        index_n_heads=4,
        index_head_dim=32,
        dspark_target_layer_ids=(19,),
    )
    torch.manual_seed(SEED)
    model = Model(config)
    ids = torch.randint(config.vocab_size, (1, SKIP_TOKENS))

    def prefill(decoder):
        model.prefill(ids, model.new_cache(1), chunk=CHUNK, decoder=decoder, logits="last")

    actions = {decoder: lambda decoder=decoder: prefill(decoder) for decoder in ("all", "report")}
    times = in_turn(actions, SKIP_PAIRS, warm=0)
    whole, skipped = (statistics.median(times[decoder]) for decoder in ("all", "report"))
    detail = f"{whole:.1f} s in all layers, {skipped:.1f} s with the decoder on the last tokens, {SKIP_PAIRS} pairs"
    name, gain = "prefill of 8 192 tokens with the decoder skip", ratio(times["all"], times["report"])
    return Row(name, gain, "× as fast", 1.8, detail, least=True, data={"seconds": times})


def rows() -> Iterator[Row]:
    """Growth of a decode step in both kinds of cache, the step's own time, and the skip."""
    torch.manual_seed(SEED)
    model = Model(small_config())
    for quantized in (False, True):
        row = growth(model, quantized)
        own = row.data["median ms by context"][str(CONTEXTS[0])]
        kind = "quantised" if quantized else "float32"
        yield Row(f"decode step at 1K tokens, {kind}", own, "ms", None, "8 layers, 114 M parameters, one sequence")
        yield row
    yield skipping_prefill()
