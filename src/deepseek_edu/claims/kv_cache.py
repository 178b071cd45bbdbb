"""Checks of the claims about the KV cache of the small attention model."""

from deepseek_edu.reference import toy_attention
from deepseek_edu.widgets import kv_cache


def bytes_per_token() -> int:
    """Bytes that one token leaves in the cache."""
    cache = toy_attention.Cache()
    toy_attention.forward([12], toy_attention.random_weights(), cache)
    return cache.nbytes


def equal_at_every_step() -> bool:
    """Whether cached and whole-prefix logits agree in all steps of the example."""
    return all(step.equal for step in kv_cache.run((12, 37, 9, 21, 6), False))


def mistake_passes_weak_tests() -> str:
    """Which of the three tests an off-by-one position passes, over all steps of the example."""
    results = kv_cache.tests(kv_cache.run((12, 37, 9, 21, 6), True))
    return ", ".join(name for name, _, passed in results if passed)
