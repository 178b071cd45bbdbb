"""Checks of the claims about bounded replay: counts of the released model, and what the tiny random model shows.

Sources: technical report of DeepSeek-V4.1-Flash, sections 3.2.1 and 3.2.2; its released configuration; vLLM.
"""

from deepseek_edu.accounting import caches
from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import model as models
from deepseek_edu.reference import replay
from deepseek_edu.widgets import replay_runs as runs


def replayed_tokens() -> int:
    """Tokens that a bounded replay feeds again after a long prefix."""
    return 10_000 - replay.replay_start(10_000, ModelConfig.v41_flash())


def layers_times_window() -> int:
    """The report's count for an exact rebuild."""
    config = ModelConfig.v41_flash()
    return config.n_layers * config.window_size


def enough_for_exact() -> int:
    """Tokens after which our exact replay starts, counted back from the end of the prefix."""
    return 10_000 - replay.replay_start(10_000, ModelConfig.v41_flash(), exact=True)


def window_bytes() -> int:
    """Bytes of the windows of all layers of one sequence."""
    return caches.window_bytes(ModelConfig.v41_flash())["backbone"]


def first_layer_differs_as_served() -> bool:
    """Whether, as served, only the first decoder layer is given more tokens than it computes."""
    config = ModelConfig.v41_flash()
    report, served = (models.decoder_rows(config, decoder) for decoder in ("report", "serving"))
    return served[1:] == report[1:] and served[0] == (2 * config.window_size - 1, config.window_size)


def toy_is_exact_from_layers_times_window_minus_one() -> bool:
    """Whether that is the shortest exact replay of the toy after a prefix hit, for every depth and window it has."""
    settings = [runs.Setting("hit", depth, window, 20) for depth in range(1, 5) for window in (2, 4)]
    return all(runs.needed(s, runs.replayed(s, runs.probe(s))) == s.depth * (s.window - 1) for s in settings)


def toy_prefers_replay_to_a_cut() -> bool:
    """Whether one window of replay is at least five times closer to exact than a cut prompt, in all three variants."""
    settings = [runs.Setting(variant, 4, 4, 20) for variant in ("hit", "report", "serving")]
    return all(5 * runs.replayed(s, s.window).divergence < runs.mean(runs.cut(s)) for s in settings)
