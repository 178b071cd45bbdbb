"""What training minimises: the next token's cross-entropy, and the drafter's three terms.

The drafter is trained against the frozen backbone: cross-entropy with the tokens that followed, the distance of its
distributions from the backbone's, and a confidence that has to predict how often a draft will stand. That probability
is known in closed form, Σ_v min(P_v, Q_v) = 1 − ½ Σ_v |P_v − Q_v|. Later drafts count less.

Values only; gradients are the matter of model/. The router's balance loss is in moe.py.
Source: report, sections 2.4.3 and 4.2.2; DeepSpec `deepspec/modeling/dspark/loss.py`. The report gives no factors; the
defaults are those of DeepSpec's configuration for Qwen3-4B.
"""

import numpy as np

from deepseek_edu.reference import activations

GAMMA = 4.0  # decay over the positions of a block (DeepSpec `loss_decay_gamma`)
FACTORS = (0.1, 0.9, 1.0)
"""Of cross-entropy, distance and confidence (DeepSpec `ce_loss_alpha`, `l1_loss_alpha`, `confidence_head_alpha`)."""


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

    Raises:
        ValueError: targets are no token ids of the shape of the logits without V.

    >>> round(float(cross_entropy(np.zeros((2, 4)), np.array([0, 3]))), 4)  # log 4
    1.3863
    """
    targets = target_ids(targets, logits.shape)
    losses = -np.take_along_axis(log_softmax(logits), targets[..., None], axis=-1)[..., 0]
    return _weighted_mean(losses, np.ones(losses.shape) if weights is None else weights)


def target_ids(targets, shape):
    """Return targets as an array: integers (…), one token for each row of logits.

    Args:
        targets: (…) as a caller gave it.
        shape: (…, V) of the logits.

    Raises:
        ValueError: another shape or type, or an id outside 0 … V − 1.
    """
    targets = np.asarray(targets)
    if targets.shape != tuple(shape[:-1]) or targets.dtype.kind not in "iu":
        raise ValueError(f"targets must be integers {tuple(shape[:-1])}; got {targets.dtype} {targets.shape}")
    if targets.size and not 0 <= targets.min() <= targets.max() < shape[-1]:
        raise ValueError(f"targets must be 0 … {shape[-1] - 1}; got {targets.min()} … {targets.max()}; mask padding")
    return targets


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
    """Return e^(−k/gamma) for the drafts k = 0 … block − 1 of a block, [block]; equal weights for gamma 0.

    >>> position_weights(3, 2.0).round(3).tolist(), position_weights(2, 0).tolist()
    ([1.0, 0.607, 0.368], [1.0, 1.0])
    """
    return np.exp(-np.arange(block) / gamma) if gamma else np.ones(block)


def check_draft_shapes(draft_logits, target_logits, confidence, mask):
    """Refuse arguments of `draft_loss` that do not belong together.

    Args:
        draft_logits, target_logits, confidence, mask: shapes of the arguments; mask may be None.

    Raises:
        ValueError: names the first that does not fit.
    """
    draft_logits = tuple(draft_logits)
    expected = {"target_logits": (target_logits, draft_logits), "confidence": (confidence, draft_logits[:-1])}
    expected["mask"] = (draft_logits[:-1] if mask is None else mask, draft_logits[:-1])
    if len(draft_logits) < 2:
        raise ValueError(f"draft_logits must be (…, block, V); got {draft_logits}")
    for name, (found, wanted) in expected.items():
        if tuple(found) != wanted:
            raise ValueError(f"{name} must be {wanted}, as draft_logits {draft_logits} say; got {tuple(found)}")


def draft_loss(draft_logits, target_logits, targets, confidence, mask=None, gamma=GAMMA, factors=FACTORS):
    """Return the drafter's loss and its parts.

    The drafts of a whole text, with its own tokens to their left, come from `dspark.draft` with
    `pick=lambda logits, row: text[row]`.

    Args:
        draft_logits: (…, block, V), with the bigram bias of the true left neighbours.
        target_logits: (…, block, V), the backbone's.
        targets: integers (…, block), the tokens that followed.
        confidence: (…, block), logits of the confidence head.
        mask: bool (…, block), positions that count; all by default.
        gamma: decay over the positions of a block, 0 for none.
        factors: of cross-entropy, distance and confidence.

    Returns:
        dict: cross_entropy, distance (mean of Σ|P − Q|), confidence (binary cross-entropy), loss (their weighted sum).

    Raises:
        ValueError: shapes that do not belong together, or targets that are no token ids.

    >>> same = np.zeros((1, 1, 4))  # four tokens, all equally likely in draft and target: every draft stands
    >>> parts = draft_loss(same, same, np.array([[2]]), np.array([[50.0]]))
    >>> [round(part, 4) for part in parts.values()]  # log 4, no distance, a sure and right confidence
    [1.3863, 0.0, 0.0, 0.1386]
    """
    draft_logits, confidence = np.asarray(draft_logits), np.asarray(confidence)
    check_draft_shapes(
        draft_logits.shape, np.shape(target_logits), confidence.shape, mask if mask is None else np.shape(mask)
    )
    rate = acceptance_rate(draft_logits, target_logits)  # … block
    weights = np.broadcast_to(position_weights(rate.shape[-1], gamma), rate.shape)
    if mask is not None:
        weights = weights * np.asarray(mask)
    binary = rate * activations.softplus(-confidence) + (1 - rate) * activations.softplus(confidence)
    parts = {
        "cross_entropy": cross_entropy(draft_logits, targets, weights),
        "distance": _weighted_mean(2 * (1 - rate), weights),
        "confidence": _weighted_mean(binary, weights),
    }
    return {**parts, "loss": sum(factor * part for factor, part in zip(factors, parts.values(), strict=True))}
