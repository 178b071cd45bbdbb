"""Checks of the claims about drafting: sizes, acceptance, survival, scheduling.

Sources: technical report of DeepSeek-V4.1-Flash, section 2.4.3; its released configuration and code; the DSpark paper
(arXiv 2607.05147); speculative sampling (arXiv 2211.17192).
"""

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import acceptance, scheduler
from deepseek_edu.widgets import dspark_rounds, dspark_schedule
from deepseek_edu.widgets.dspark import SECOND
from deepseek_edu.widgets.dspark_acceptance import PAIRS, normalised


def sizes() -> str:
    """Draft stages, tokens drafted at once, window, width of the bigram head."""
    config = ModelConfig.v41_flash()
    numbers = (config.n_mtp_layers, config.dspark_block_size, config.window_size, config.dspark_markov_rank)
    return "/".join(map(str, numbers))


def experts() -> str:
    """Routed, active and shared experts of a draft stage."""
    config = ModelConfig.v41_flash()
    return f"{config.dspark_n_routed_experts}/{config.dspark_n_activated_experts}/{config.n_shared_experts}"


def layers_read() -> str:
    """The backbone layers whose input the drafter reads."""
    return "/".join(map(str, ModelConfig.v41_flash().dspark_target_layer_ids))


def output_is_the_targets() -> bool:
    """Whether kept drafts and replacements together have the target's distribution, for distributions of all kinds."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        target, draft = rng.dirichlet(np.ones(6) / 2, 2)
        kept = np.array(
            [q * acceptance.acceptance_probability(t, target, draft) if q else 0.0 for t, q in enumerate(draft)]
        )
        if not np.allclose(kept + (1 - kept.sum()) * acceptance.residual(target, draft), target, rtol=0, atol=1e-12):
            return False
    return True


def greedy_is_one_hot() -> bool:
    """Whether the greedy rule is the general one with all weight on the most likely tokens."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        logits, drafts = rng.normal(size=(6, 4)), rng.integers(0, 4, 5)
        target = np.eye(4)[logits.argmax(axis=1)]
        if acceptance.accept_greedy(drafts, logits) != acceptance.accept(drafts, np.eye(4)[drafts], target, rng):
            return False
    return True


def drafts_expected_of_the_second_set() -> float:
    """Sum of the survivals of the second set, to four decimals."""
    return round(float(scheduler.survival(SECOND).sum()), 4)


def worked_example() -> str:
    """Lengths and throughput of two requests."""
    case = dspark_schedule.CASES["two"]
    lengths, throughput = scheduler.causal_lengths(case.confidence, case.curve)
    return "/".join(map(str, lengths.tolist())) + f", {throughput:.2f}"


def later_confidence_is_not_looked_at() -> bool:
    """Whether the first decision stays when a later confidence changes, though the best budget would not."""
    high, low = dspark_schedule.CASES["high"], dspark_schedule.CASES["low"]
    same = all(scheduler.causal_lengths(c.confidence, c.curve)[0].tolist() == [0] for c in (high, low))
    budgets = [scheduler.capacity(c.confidence, c.curve)[0] for c in (high, low)]
    return same and budgets == [2, 0]


def wrong_rules_fail() -> bool:
    """Whether 4,000 rounds tell the right rule from each wrong one, for the start distributions of the widget."""
    target, draft = (normalised(weights) for weights in PAIRS["different"])

    def chance(rule: str) -> float:
        kept, replaced = dspark_rounds.run(rule, target, draft, 4000, 1).counts(len(target))
        return dspark_rounds.chi_square(kept + replaced, target).chance

    wrong = [rule for rule in dspark_rounds.RULES if rule != "exact"]
    return chance("exact") > 0.05 and all(chance(rule) < 1e-6 for rule in wrong)
