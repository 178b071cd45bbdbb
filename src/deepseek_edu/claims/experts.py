"""Checks of the claims about the mixture of experts.

Sources: technical report of DeepSeek-V4.1-Flash, sections 2.2 and 4.2.2; its released configuration and code.
"""

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import moe
from deepseek_edu.widgets.router_numbers import ROUTER, batch


def sizes() -> str:
    """Routed, active and shared experts of a layer."""
    config = ModelConfig.v41_flash()
    return f"{config.n_routed_experts}/{config.n_activated_experts}/{config.n_shared_experts}"


def numbers_of_an_expert() -> int:
    """Numbers in the three matrices of one expert."""
    config = ModelConfig.v41_flash()
    return 3 * config.dim * config.moe_inter_dim


def score_is_the_root_of_softplus() -> bool:
    """Whether a score s satisfies e^(s²) − 1 = e^logit."""
    logits = np.linspace(-4, 4, 33)
    scores = moe.router_scores(logits[:, None], np.ones((1, 1)), ModelConfig.v41_flash().score_func)[:, 0]
    return bool(np.allclose(np.expm1(scores**2), np.exp(logits)))


def weights_sum_to() -> float:
    """Sum of the weights of one token, with biases that change the choice."""
    config, random = ModelConfig.v41_flash(), np.random.default_rng(0)
    scores = random.uniform(0.1, 2, (1, config.n_routed_experts))
    bias = random.normal(size=config.n_routed_experts)
    _, weights = moe.route(scores, bias, config.n_activated_experts, scale=config.route_scale)
    return round(float(weights.sum()), 12)


def image_bias_changes_the_choice_only() -> bool:
    """Whether another bias set changes the experts, while an expert chosen under both keeps its place in the scores."""
    scores = np.array([[1.0, 0.9, 0.8, 0.1]])
    text, image = np.zeros(4), np.array([0.0, -0.5, 0.5, 0.0])
    (first, weights), (second, _) = (moe.route(scores, bias, 2) for bias in (text, image))
    shares = scores[0, first[0]] / scores[0, first[0]].sum()
    return set(first[0]) != set(second[0]) and bool(np.allclose(weights[0], shares))


def clamps() -> bool:
    """Whether the gate is cut above 10 alone, and the other branch at ±10."""
    limit = ModelConfig.v41_flash().swiglu_limit
    one = np.eye(2)[:1], np.ones((1, 1)), np.eye(2)[1:]
    far = [moe.swiglu(np.array([[g, u]]), *one, limit)[0, 0] for g, u in ((50, 1), (10, 1), (10, 50), (10, -50))]
    below = moe.swiglu(np.array([[-12.0, 1.0]]), *one, limit)[0, 0]
    free = moe.swiglu(np.array([[-12.0, 1.0]]), *one, 0)[0, 0]
    both = np.allclose(far[2:], [10 * far[1], -10 * far[1]])
    return bool(limit == 10 and far[0] == far[1] and both and below == free)


def step_of_the_bias() -> float:
    """How far one update moves a bias by default."""
    return float(np.abs(moe.update_bias(np.zeros(2), np.array([2, 0]))).max())


def even_balance_loss() -> float:
    """The sequence balance loss of an even load with even scores: its factor."""
    return float(moe.sequence_balance_loss(np.ones((4, 4)), np.arange(4)[:, None]))


def first_load_of_the_batch() -> str:
    """Tokens of each expert of the toy before any update."""
    experts, _ = moe.route(moe.router_scores(batch(), ROUTER), np.zeros(len(ROUTER)), 1)
    return "/".join(map(str, moe.expert_load(experts, len(ROUTER)).tolist()))
