"""Mixture of experts: a router picks a few of many small networks for each token; one shared network always runs.

The router's score is sqrt(softplus(u·w_e)). A correction bias, one set for text and one for tokens of images, is added
for *choosing* only; the weights come from the scores without it and sum to route_scale. A SwiGLU inside an expert is
clamped: the gate from above, the other branch on both sides.

During training the biases are moved by the load of each expert, separately for text and image tokens, and a small loss
keeps every sequence balanced in itself.

Source: report, sections 2.2 and 4.2.2; reference `Gate`, `Expert`, `MoE`. The reference leaves ties open; here the
expert with the lower number wins.
"""

import numpy as np

from deepseek_edu.reference import activations, linear


def router_scores(u, weight, score_func="sqrtsoftplus", temperature=1.0):
    """Return the positive score of every expert for every token: [T E].

    Args:
        u: [T C].
        weight: [E C].
        score_func: "sqrtsoftplus" (√log(1 + e^x)), "sigmoid" or "softmax".
        temperature: divides the logits.

    Raises:
        ValueError: another score_func.
    """
    logits = u @ weight.T / temperature  # T E
    if score_func == "sqrtsoftplus":
        return np.sqrt(activations.softplus(logits))
    if score_func == "sigmoid":
        return activations.sigmoid(logits)
    if score_func == "softmax":
        return activations.softmax(logits)
    raise ValueError(f"score_func must be sqrtsoftplus, sigmoid or softmax; got {score_func!r}")


def route(scores, bias, k, normalise=True, scale=1.0):
    """Choose k experts for each token and weigh them.

    Args:
        scores: [T E], positive.
        bias: correction bias, [E] or [T E] (one row per token where text and image tokens differ).
        k: experts per token.
        normalise: divide the chosen scores by their sum (plus 1e-20).
        scale: factor of the weights.

    Returns:
        (experts int64 [T k], best first; weights [T k]).

    Raises:
        ValueError: k is below 1 or above E.

    >>> chosen, weights = route(np.array([[1.0, 3.0, 2.0]]), np.array([9.0, 0.0, 0.0]), 2, scale=1.5)
    >>> chosen.tolist(), weights.tolist()  # the bias chooses expert 0, its weight stays small
    ([[0, 1]], [[0.375, 1.125]])
    """
    if not 1 <= k <= scores.shape[-1]:
        raise ValueError(f"k must be 1 … {scores.shape[-1]}, the number of experts; got {k}")
    experts = np.argsort(-(scores + bias), axis=-1, kind="stable")[:, :k]  # T k
    weights = np.take_along_axis(scores, experts, axis=-1)  # T k
    if normalise:
        weights = weights / (weights.sum(axis=-1, keepdims=True) + 1e-20)
    return experts, weights * scale


def modality_bias(text_bias, image_bias, image_mask):
    """Return the bias of each token, [T E]: image_bias [E] for tokens inside an image span, else text_bias [E].

    >>> modality_bias(np.array([1.0, 0.0]), np.array([0.0, 2.0]), [False, True]).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    return np.where(np.asarray(image_mask, bool)[:, None], image_bias, text_bias)


def swiglu(u, gate_weight, down_weight, up_weight, limit, routing_weight=None):
    """Run one expert.

    Args:
        u: [T C].
        gate_weight, down_weight, up_weight: w1 [F C], w2 [C F], w3 [F C].
        limit: the gate is clamped to at most limit, the other branch to ±limit; 0 for no clamp.
        routing_weight: [T] or None; multiplies the hidden vector before w2.

    Returns:
        [T C].
    """
    gate, up = linear.product(u, gate_weight), linear.product(u, up_weight)  # T F
    if limit > 0:
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    hidden = activations.silu(gate) * up
    if routing_weight is not None:
        hidden = hidden * routing_weight[:, None]
    return linear.product(hidden, down_weight)


def experts_output(u, experts, weights, w, config):
    """Return Σ over the chosen experts, plus the shared expert last: [T C].

    Args:
        u: [T C].
        experts, weights: [T k], from `route`.
        w: weights of the feed-forward part by released name ("experts.3.w1.weight", "shared_experts.w1.weight", …).
        config: for swiglu_limit and n_shared_experts.
    """
    total = np.zeros_like(u)  # T C
    for expert in np.unique(experts):
        tokens, place = np.nonzero(experts == expert)
        matrices = (w[f"experts.{expert}.{name}.weight"] for name in ("w1", "w2", "w3"))
        total[tokens] += swiglu(u[tokens], *matrices, config.swiglu_limit, weights[tokens, place])
    if config.n_shared_experts:
        shared = (w[f"shared_experts.{name}.weight"] for name in ("w1", "w2", "w3"))
        total = total + swiglu(u, *shared, config.swiglu_limit)
    return total


def moe(u, w, k, config, image_mask=None):
    """Route and run: [T C] from u [T C].

    Args:
        w: weights of the feed-forward part by released name.
        k: experts per token (the draft stages use another number than the backbone).
        image_mask: bool [T] of tokens inside an image span, or None for text only. A model without a vision tower has
            one bias for all tokens.
    """
    scores = router_scores(u, w["gate.weight"], config.score_func, config.gate_temp)  # T E
    bias = w["gate.bias"]
    if image_mask is not None and config.vision_n_layers:
        bias = modality_bias(bias, w["gate.bias_vl"], image_mask)  # T E
    experts, weights = route(scores, bias, k, config.norm_topk_prob and k > 1, config.route_scale)
    return experts_output(u, experts, weights, w, config)


# Training


def expert_load(experts, n_experts):
    """Return how many tokens each expert got: int64 [E] from experts [T k]."""
    return np.bincount(np.asarray(experts).ravel(), minlength=n_experts)


def update_bias(bias, load, speed=0.001):
    """Move the correction bias against the load: down where an expert got more than the mean, up where less.

    Args:
        bias: [E]; load: [E], tokens per expert of one modality.
        speed: size of the step (report: 0.001).

    Returns:
        [E]. Text and image biases are updated apart, each from its own tokens; without tokens nothing moves.

    >>> update_bias(np.zeros(3), np.array([6, 3, 0])).tolist()
    [-0.001, 0.0, 0.001]
    """
    load = np.asarray(load)
    return bias - speed * np.sign(load - load.mean())


def sequence_balance_loss(scores, experts, weight=1e-4):
    """Return the loss that keeps the experts of one sequence balanced.

    Args:
        scores: [T E], of one sequence; experts [T k].
        weight: factor of the loss (report: 1e-4).

    Returns:
        float: weight · Σ_e f_e p_e with f_e = E/(kT) · (tokens of expert e) and p_e the mean share of e in the scores;
        it is `weight` when both are even.

    >>> float(sequence_balance_loss(np.ones((2, 2)), np.array([[0], [1]]), 1.0))
    1.0
    """
    tokens, n_experts = scores.shape
    frequency = expert_load(experts, n_experts) * n_experts / (experts.shape[-1] * tokens)  # E
    share = (scores / scores.sum(axis=-1, keepdims=True)).mean(axis=0)  # E
    return weight * np.sum(frequency * share)
