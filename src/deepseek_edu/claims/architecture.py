"""Checks of the claims about the layers of the model and what runs in prefill and in decode.

Sources: technical report of DeepSeek-V4.1-Flash, sections 2.3, 2.4 and 4.2.1; its released configuration. What is
counted as activated is a convention of this course that reproduces the published round numbers.
"""

from deepseek_edu import accounting
from deepseek_edu.config import ModelConfig

PROMPT = 4096


def layers() -> str:
    """Encoder layers, decoder layers and draft stages."""
    sides = [plan.side for plan in ModelConfig.v41_flash().schedule()]
    return "/".join(str(sides.count(side)) for side in ("encoder", "decoder", "draft"))


def modes() -> str:
    """How many layers are window only, full, reindex and reuse."""
    plans = ModelConfig.v41_flash().schedule()
    found = [plan.mode for plan in plans if plan.side != "draft"]
    return "/".join(str(found.count(mode)) for mode in ("window", "full", "reindex", "reuse"))


def engram_layers() -> list[int]:
    """Layers with an n-gram memory."""
    return [plan.index for plan in ModelConfig.v41_flash().schedule() if plan.engram is not None]


def prefill_share() -> float:
    """Layer-tokens of a prefill of 4096 tokens that skips the decoder, in percent of all."""
    plain, short = accounting.ced_block_tokens(ModelConfig.v41_flash(), PROMPT).values()
    return round(100 * short / plain, 1)


def active_in_both_phases() -> str:
    """Parameters that a decoded token and a token of a long prompt meet, in billions."""
    config = ModelConfig.v41_flash()
    counts = [sum(accounting.activated_parameters(config, phase).values()) for phase in ("decode", "prefill")]
    return " and ".join(f"{count / 1e9:.1f} B" for count in counts)


def owners_of_v4() -> int:
    """Layers of V4-Flash that keep compressed entries of their own."""
    return len(ModelConfig.v4_flash_0731().kv_source_layers)
