"""What training minimises: the next token's cross-entropy, and the drafter's three terms.

The drafter is trained against the frozen backbone: cross-entropy with the tokens that followed, the distance of its
distributions from the backbone's, and a confidence that has to predict how often a draft will stand. That probability
is known in closed form, Σ_v min(P_v, Q_v) = 1 − ½ Σ_v |P_v − Q_v|. Later drafts count less.

Values only; gradients are the matter of model/. The router's balance loss is in moe.py.
Source: report, sections 2.4.3 and 4.2.2; DeepSpec `loss.py`.
"""

import numpy as np

from deepseek_edu.reference import activations


def log_softmax(logits):
    """Return the logarithm of the softmax over the last dimension."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def cross_entropy(logits, targets, weights=None):
    """Return the mean of −log p(target).

    Args:
        logits: (…, V).
        targets: integers (…).
        weights: (…) or None for equal weights; their sum divides, so 0 leaves a position out.

    Returns:
        float, in nats; 0 if all weights are 0.

    >>> round(float(cross_entropy(np.zeros((2, 4)), np.array([0, 3]))), 4)  # log 4
    1.3863
    """
    targets = np.asarray(targets)
    losses = -np.take_along_axis(log_softmax(logits), targets[..., None], axis=-1)[..., 0]
    return _weighted_mean(losses, np.ones(losses.shape) if weights is None else weights)


def _weighted_mean(values, weights):
    total = np.sum(weights)
    return float(np.sum(values * weights) / total) if total else 0.0


def acceptance_rate(draft_logits, target_logits):
    """Return the probability that a draft from softmax(draft) stands against softmax(target): (…).

    >>> float(acceptance_rate(np.zeros(2), np.zeros(2)))
    1.0
    """
    difference = activations.softmax(np.asarray(draft_logits)) - activations.softmax(np.asarray(target_logits))
    return 1 - 0.5 * np.abs(difference).sum(axis=-1)


def position_weights(block, gamma):
    """Return e^(−k/gamma) for the drafts k = 0 … block − 1 of a block, [block]; equal weights for gamma 0."""
    return np.exp(-np.arange(block) / gamma) if gamma else np.ones(block)


def draft_loss(draft_logits, target_logits, targets, confidence, mask=None, gamma=0.0, factors=(1.0, 1.0, 1.0)):
    """Return the drafter's loss and its parts.

    Args:
        draft_logits: [N block V], with the bigram bias of the true left neighbours.
        target_logits: [N block V], the backbone's.
        targets: integers [N block], the tokens that followed.
        confidence: [N block], logits of the confidence head.
        mask: bool [N block], positions that count; all by default.
        gamma: decay over the positions of a block, 0 for none.
        factors: of cross-entropy, distance and confidence.

    Returns:
        dict: cross_entropy, distance (mean of Σ|P − Q|), confidence (binary cross-entropy), loss (their weighted sum).
    """
    rate = acceptance_rate(draft_logits, target_logits)  # N block
    weights = np.broadcast_to(position_weights(rate.shape[-1], gamma), rate.shape)
    if mask is not None:
        weights = weights * mask
    confidence = np.asarray(confidence)
    binary = rate * activations.softplus(-confidence) + (1 - rate) * activations.softplus(confidence)
    parts = {
        "cross_entropy": cross_entropy(draft_logits, targets, weights),
        "distance": _weighted_mean(2 * (1 - rate), weights),
        "confidence": _weighted_mean(binary, weights),
    }
    return {**parts, "loss": sum(factor * part for factor, part in zip(factors, parts.values(), strict=True))}
