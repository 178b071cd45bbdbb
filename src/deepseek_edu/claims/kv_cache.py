"""Checks of the claims about the KV cache of the small attention model."""

from deepseek_edu.reference import toy_attention
from deepseek_edu.widgets import kv_cache


def bytes_per_token() -> int:
    """Bytes that one token leaves in the cache."""
    cache = toy_attention.Cache()
    toy_attention.forward([12], toy_attention.random_weights(), cache)
    return cache.nbytes


def time_of_twice_the_context(record: dict) -> float:
    """How often the time of one more token behind 128 others one behind 256 takes, with the cache, to one decimal."""
    return round(_times(record, 2)[256] / _times(record, 2)[128], 1)


def time_of_twice_the_context_anew(record: dict) -> float:
    """The same from 1 024 to 2 048 tokens, without the cache, to one decimal."""
    return round(_times(record, 4)[2048] / _times(record, 4)[1024], 1)


def _times(record: dict, column: int) -> dict[int, float]:
    return {row[0]: row[column] for row in record["rows"]}


def equal_at_every_step() -> bool:
    """Whether cached and whole-prefix logits agree in all steps of the example."""
    return all(step.equal for step in kv_cache.run((12, 37, 9, 21, 6), False))


def mistake_passes_weak_tests() -> str:
    """Which of the three tests an off-by-one position passes, over all steps of the example."""
    results = kv_cache.tests(kv_cache.run((12, 37, 9, 21, 6), True))
    return ", ".join(name for name, _, passed in results if passed)
