"""Checks of the claims about the formats of the three branches: released rows, and what a toy of random latents shows.

Source: technical report of DeepSeek-V4.1-Flash, section 2.4.4; its released configuration.
"""

from deepseek_edu.accounting import caches
from deepseek_edu.config import ModelConfig
from deepseek_edu.widgets import precision_mix_runs as runs

DRAWS = range(1, 9)


def released_rows() -> str:
    """Bytes of a window entry, a main entry and an index key."""
    return "/".join(str(size) for size in caches.entry_bytes(ModelConfig.v41_flash()).values())


def window_in_four_bits_more_than_doubles() -> bool:
    """Whether it does so for both kinds of latents, every aim of attention and every draw."""
    settings = [
        runs.Setting(kind, aim, seed) for kind in ("gaussian", "heavy") for aim in runs.TARGETED for seed in DRAWS
    ]
    return all(
        runs.error(s, runs.alone("window", "fp4")) > 2 * runs.error(s, runs.alone("window", "fp8")) for s in settings
    )


def entries_changed_by_coarse_keys() -> float:
    """Entries that change in FP4, mean over draws and queries, rounded to a tenth; attention goes to both branches."""
    counts = [count for seed in DRAWS for count in runs.changed(runs.Setting("gaussian", "both", seed), "fp4")]
    return round(sum(counts) / len(counts), 1)
