"""Checks of the claims about residual streams and their mixing.

Sources: technical report of DeepSeek-V4.1-Flash, section 2.4.1; its released configuration and reference code.
"""

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import block, mhc
from deepseek_edu.widgets.mhc import RAW
from deepseek_edu.widgets.mhc_compare import difference, run


def streams_of_the_model() -> int:
    """How many residual streams there are."""
    return ModelConfig.v41_flash().hc_mult


def coefficients_keep_their_ranges() -> bool:
    """Whether far raw numbers leave A within (0, 1 + eps], C within [0, 2] and B positive."""
    config, raw = ModelConfig.v41_flash(), np.linspace(-30, 30, 24)[None]
    made = mhc.split_mixes(raw, np.ones(3), np.zeros(24), 4, config.hc_sinkhorn_iters, config.hc_eps)
    a = made.pre.min() > 0 and made.pre.max() <= 1 + config.hc_eps
    return bool(a and made.post.min() >= 0 and made.post.max() <= 2 and made.mix.min() > 0)


def columns_are_last() -> bool:
    """Whether after 3 iterations column sums are within 2 eps of 1 while row sums are not."""
    eps = ModelConfig.v41_flash().hc_eps
    mix = mhc.sinkhorn(2 * RAW, 3, eps)
    rows, columns = (np.abs(mix.sum(axis) - 1).max() for axis in (1, 0))
    return bool(columns < 2 * eps < 1e-3 < rows)


def a_is_one_sub_block_late() -> bool:
    """Whether a layer's attention reads the streams with the A it is given, and hands on that of its experts."""
    config, random = ModelConfig.tiny(), np.random.default_rng(0)
    n, width = config.hc_mult, config.dim
    numbers = 2 * n + n * n
    w = {"attn_norm.weight": np.ones(width), "ffn_norm.weight": np.ones(width)}
    for part in ("attn", "ffn"):
        w[f"hc_{part}_fn"] = random.normal(size=(numbers, n * width)) / 8
        w[f"hc_{part}_base"], w[f"hc_{part}_scale"] = random.normal(size=numbers), np.ones(3)
    streams, seen = random.normal(size=(1, n, width)), []

    def keep(u: np.ndarray) -> np.ndarray:
        seen.append(u)
        return u

    _, late = block.block(streams, mhc.one_hot(1, n), w, keep, keep, config)
    first = streams[:, 0] / np.sqrt(np.mean(streams[:, 0] ** 2))
    return bool(np.allclose(seen[0], first)) and late.shape == (1, n)


def traffic_of_four_streams() -> str:
    """Numbers moved per token and sub-block in multiples of the width."""
    return "/".join(str(mhc.traffic(4, 1, passes)) for passes in ("three-kernel", "two-pass", "single"))


def toy_agrees_at_first_and_differs_later() -> bool:
    """Whether the two schedules of the toy agree in the first sub-block and in no later one."""
    gaps = [difference(a["y"], b["y"]) for a, b in zip(run("none"), run("a"), strict=True)]
    return gaps[0] < 1e-9 and min(gaps[1:]) > 1e-3
