"""Checks of the claims about the design choices of the cache: what is stored, read and computed.

Sources: technical report of DeepSeek-V4.1-Flash, abstract and sections 2.3, 2.4.4 and 3.2.2; its released
configuration; public sizes of DeepSeek-V1 (67B) and DeepSeek-V3.2.
"""

from deepseek_edu.accounting import caches, choices, work
from deepseek_edu.config import ModelConfig


def toy_bytes() -> int:
    """Bytes of the toy before any choice."""
    return choices.stored_bytes(choices.Toy())


def selection_keeps_everything() -> bool:
    """Whether reading 3 entries changes what is read, and not what is stored, in every setting of the toy."""
    toys = [
        {"vectors": vectors, "ratio": ratio, "owners": owners, "bits": bits}
        for vectors, ratio in ((2, 1), (1, 1), (1, 2))
        for owners in (4, 2, 1)
        for bits in (16, 8, 4)
    ]
    same = all(
        choices.stored_bytes(choices.Toy(**toy)) == choices.stored_bytes(choices.Toy(**toy, selected=3)) for toy in toys
    )
    less = all(
        choices.read_bytes(choices.Toy(**toy)) > choices.read_bytes(choices.Toy(**toy, selected=3)) for toy in toys
    )
    return same and less


def bytes_by_generation() -> str:
    """Bytes per token of the four models, in order."""
    return ", ".join(f"{size:g}" if size % 1 else f"{size:.0f}" for size in caches.generation_bytes().values())


def first_against_last() -> int:
    """How many times as much the first model stores per token as the last, rounded."""
    sizes = list(caches.generation_bytes().values())
    return round(sizes[0] / sizes[-1])


def previous_against_last() -> float:
    """The same for V4-Flash, rounded to two places."""
    sizes = list(caches.generation_bytes().values())
    return round(sizes[-2] / sizes[-1], 2)


def million_tokens_mib() -> float:
    """MiB of global KV after 2**20 tokens."""
    return caches.global_bytes(ModelConfig.v41_flash(), 2**20) / 2**20


def prefill_share() -> float:
    """Percent of the pairs of layer and token that are left at 4 096 tokens."""
    counts = work.ced_block_tokens(ModelConfig.v41_flash(), 4096)
    return round(100 * counts["encoder–decoder"] / counts["all layers"], 1)


def decode_growth() -> float:
    """Arithmetic of a decoded token at 2**20 tokens against 2**12, rounded to two places."""
    flash = ModelConfig.v41_flash()
    short, long = (sum(work.decode_flops(flash, context).values()) for context in (2**12, 2**20))
    return round(long / short, 2)


def growth_is_the_index_scan() -> bool:
    """Whether the index scan is the only part of it that grows."""
    flash = ModelConfig.v41_flash()
    short, long = (work.decode_flops(flash, context) for context in (2**12, 2**20))
    return [name for name in long if long[name] != short[name]] == ["index scan"]
