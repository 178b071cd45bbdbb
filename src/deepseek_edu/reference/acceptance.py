"""Speculative acceptance: which drafts stand, and what takes the place of the first that does not.

The drafter proposes y_1 … y_k, each drawn from its distribution Q_i. The backbone, run once over all of them, gives
P_1 … P_{k+1}. Draft i stands with probability min(1, P_i(y_i)/Q_i(y_i)); at the first that falls, a token is drawn
from what is left, max(P_i − Q_i, 0) normalised; if none falls, one more token comes from P_{k+1}. What is emitted has
exactly the distribution of plain decoding, whatever the drafter proposes. Confidence plays no part in it.

Source: rejection sampling (arXiv 2211.17192); DeepSpec `sampling.py`; the reference has no verification loop.
"""

import numpy as np

from deepseek_edu.reference import sampling


def residual(target, draft):
    """Return the distribution to draw from after a rejection: max(P − Q, 0) normalised; P if nothing is left.

    >>> residual(np.array([0.5, 0.5]), np.array([0.8, 0.2])).tolist()
    [0.0, 1.0]
    """
    left = np.maximum(target - draft, 0)
    total = left.sum()
    return target if total <= 1e-8 else left / total


def acceptance_probability(token, target, draft):
    """Return min(1, P(y)/Q(y)) for token y, target P [V] and draft Q [V]; y was drawn from Q, so Q(y) > 0.

    Raises ValueError where Q(y) is 0: then Q is not the distribution that y was drawn from.
    """
    if draft[token] <= 0:
        raise ValueError(
            f"draft[{token}] must be above 0; got {draft[token]}; pass the distribution that the draft was drawn from"
        )
    return min(1.0, target[token] / draft[token])


def accept(drafts, draft_distributions, target_distributions, rng):
    """Accept a prefix of the drafts and return what follows it.

    Args:
        drafts: ids [k].
        draft_distributions: Q [k V], those the drafts were drawn from.
        target_distributions: P [k+1 V].
        rng: numpy Generator.

    Returns:
        (accepted 0 … k, the token after them).

    Raises:
        ValueError: the numbers of drafts and distributions do not belong together.
    """
    if len(target_distributions) != len(drafts) + 1 or len(draft_distributions) != len(drafts):
        raise ValueError(
            f"{len(drafts)} drafts need as many draft distributions and one target distribution more; got "
            f"{len(draft_distributions)} and {len(target_distributions)}"
        )
    for position, token in enumerate(drafts):
        target, draft = target_distributions[position], draft_distributions[position]
        if rng.random() >= acceptance_probability(token, target, draft):
            return position, sampling.draw(residual(target, draft), rng)
    return len(drafts), sampling.draw(target_distributions[-1], rng)


def accept_greedy(drafts, target_logits):
    """Accept while a draft is the backbone's own choice: (accepted, the backbone's choice after them).

    Args:
        drafts: ids [k]; target_logits: [k+1 V]. The same as `accept` with all weight on the most likely tokens.
    """
    choices = np.asarray(target_logits).argmax(axis=-1)
    accepted = 0
    while accepted < len(drafts) and drafts[accepted] == choices[accepted]:
        accepted += 1
    return accepted, int(choices[accepted])


def expected_tokens(acceptance):
    """Return the expected tokens per step: 1 + Σ_j Π_{i≤j} a_i, from conditional acceptance probabilities [k].

    >>> round(float(expected_tokens([0.94, 0.88, 0.81, 0.73, 0.61])), 4)
    4.2247
    """
    return 1 + np.cumprod(acceptance).sum()
