"""Checks of the claims about where numbers live: weights, hidden states, caches, Engram rows.

Sources: technical report of DeepSeek-V4.1-Flash, sections 2.1, 2.3 and 2.4.2; its released configuration and code.
"""

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import engram
from deepseek_edu.widgets import state_homes_runs as runs


def owners() -> str:
    """Layers that write global entries."""
    return ", ".join(map(str, ModelConfig.v41_flash().kv_source_layers))


def engram_lookups() -> int:
    """Rows that each n-gram memory reads for a token."""
    config = ModelConfig.v41_flash()
    return (config.engram_max_ngram_size - 1) * config.engram_n_heads


def compressed_ids() -> int:
    """Ids after different spellings of a text have become one."""
    return ModelConfig.v41_flash().engram_compressed_vocab_size


def spelling_does_not_matter() -> bool:
    """Whether capitals, accents and surrounding spaces vanish before an n-gram is hashed."""
    return len({engram.normalised_text(text) for text in (" Rose", "rose", "ROSE", "rosé")}) == 1


def follows_a_token(position: int = 5) -> dict[str, int]:
    """What another token at a position of the toy changes: rows before it, later rows, parameters, addresses.

    Rows are those of hidden states and caches; an address is a row of an n-gram table that is read.
    """
    before, after = runs.base(), runs.changed("token", position, False, "embed", runs.WINDOW)
    rows = [(i, c.ratio) for c in runs.changes(before, after) for i, size in enumerate(c.sizes) if size]
    return {
        "before": sum((i + 1) * ratio <= position for i, ratio in rows),
        "later": sum(i * ratio > position for i, ratio in rows),
        "parameters": sum(runs.changed_parameters(before, after).values()),
        "addresses": sum(runs.changed_addresses(before, after)),
    }


def nothing_reads_ahead() -> bool:
    """Whether a changed token of the toy leaves all rows before it as they were, at every position."""
    for position in range(runs.LENGTH):
        found = runs.changes(runs.base(), runs.changed("token", position, False, "embed", runs.WINDOW))
        if any(size for c in found for i, size in enumerate(c.sizes) if (i + 1) * c.ratio <= position):
            return False
    return True
