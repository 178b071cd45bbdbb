"""How weights are changed: Muon for matrices, AdamW for the rest, balanced updates for tables.

    what                                       update                                                        decay
    matrices of linear maps                    Muon: momentum, made orthogonal, brought to a fixed size      yes
    query matrices                             the same for each head by itself ("head-wise")                yes
    embedding, output head, Engram tables      momentum, rows and columns brought to equal size in turn      no
    gains of norms                             AdamW                                                         yes
    biases, sinks, scales                      AdamW                                                         no

Tables get no AdamW since its second moments would double what is stored for 196 B parameters. One step each; a state is
what is passed in and returned, nothing is changed in place. The learning rate rises for 2 000 steps, stays, falls along
a cosine and stays.

Source: report, sections 2.5 and 4.2.2; Newton–Schulz in two stages: V4 report, section 2.4. V4 still gave AdamW to
embedding and head. Which update every single matrix gets is not written there; `update_rule` follows the wording, and
takes the draft head's bigram matrices for an embedding and a head.
"""

import numpy as np

STEEP, EXACT = (3.4445, -4.7750, 2.0315), (2.0, -1.5, 0.5)
"""Coefficients a, b, c of X → aX + bXXᵀX + c(XXᵀ)²X: first small singular values grow fast, then all go to 1."""


def update_rule(name):
    """Return "muon", "head-wise muon", "balanced" or "adamw" for a released name.

    >>> [update_rule(n) for n in ("head.weight", "layers.3.attn.wq_b.weight", "layers.3.attn.wo_b.weight")]
    ['balanced', 'head-wise muon', 'muon']
    >>> update_rule("layers.3.ffn_norm.weight"), update_rule("layers.3.ffn.gate.bias")
    ('adamw', 'adamw')
    """
    if name.endswith(("embed.weight", "head.weight")):  # of the model, of Engram, of the draft head's bigrams
        return "balanced"
    if name.endswith("wq_b.weight"):
        return "head-wise muon"
    vector = name.endswith((".bias", ".bias_vl", "attn_sink", "_base", "_scale", "q_weight", "k_weight", "embed.scale"))
    if vector or "norm" in name.rsplit(".", 2)[-2 if name.endswith(".weight") else -1] or name.startswith("image_"):
        return "adamw"
    return "muon"


def learning_rate(tokens, step, peak=2.6e-4, final=2.6e-5, warmup_steps=2000, hold=28e12, end=40e12):
    """Return the learning rate: a linear rise, a long hold, half a cosine down to the final value.

    Args:
        tokens: trained on so far.
        step: steps done so far, for the warm-up only.
        peak, final: highest and last rate.
        warmup_steps: length of the rise; 0 for none.
        hold, end: tokens at which the fall begins and ends.

    >>> [round(learning_rate(t, 10**6) * 1e5, 2) for t in (1e12, 28e12, 34e12, 40e12, 45e12)]
    [26.0, 26.0, 14.3, 2.6, 2.6]
    """
    rising = min(1.0, step / warmup_steps) if warmup_steps else 1.0
    done = min(max((tokens - hold) / (end - hold), 0.0), 1.0)
    return float(rising * (final + (peak - final) * 0.5 * (1 + np.cos(np.pi * done))))


def nesterov(gradient, momentum, decay=0.95):
    """Return (look-ahead gradient, new momentum): M ← μM + G, Ĝ = μM + G.

    Args:
        gradient, momentum: G and M, of any one shape.
        decay: μ.
    """
    momentum = decay * momentum + gradient
    return decay * momentum + gradient, momentum


def orthogonalise(matrix, steep=8, exact=2):
    """Bring all singular values of a matrix near 1, by Newton–Schulz steps: U Vᵀ of its singular value decomposition.

    Args:
        matrix: [n m]; a zero matrix stays zero.
        steep, exact: steps with each set of coefficients; the first end between 0.7 and 1.2, V4 takes 8 and 2.

    Returns:
        [n m].
    """
    x = np.asarray(matrix, float)
    size = np.linalg.norm(x)
    if size == 0:
        return x
    wide = x.shape[0] <= x.shape[1]
    x = (x if wide else x.T) / size
    for a, b, c in [STEEP] * steep + [EXACT] * exact:
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide else x.T


def muon_step(weight, gradient, momentum, rate, heads=1, decay=0.1, size=0.18, inertia=0.95):
    """Change a matrix by Muon.

    Args:
        weight, gradient, momentum: [n m].
        rate: learning rate.
        heads: rows are split into so many blocks, each made orthogonal by itself.
        decay: of the weights; size: root mean square of the update; inertia: momentum factor.

    Returns:
        (weight, momentum), shapes as given.

    Raises:
        ValueError: heads does not divide the rows.
    """
    rows, columns = weight.shape
    if rows % heads:
        raise ValueError(f"heads must divide the {rows} rows; got {heads}")
    ahead, momentum = nesterov(gradient, momentum, inertia)
    blocks = [orthogonalise(block) for block in np.split(ahead, heads)]
    update = np.concatenate(blocks) * np.sqrt(max(rows // heads, columns)) * size
    return weight * (1 - rate * decay) - rate * update, momentum


def adamw_step(weight, gradient, first, second, step, rate, betas=(0.9, 0.95), eps=1e-20, decay=0.1):
    """Change any array by AdamW.

    Args:
        weight, gradient, first, second: of one shape; the two moments are 0 at the beginning.
        step: counts from 1.
        rate: learning rate.
        betas: how much of the moments is kept.
        eps: added to the root of the second moment.
        decay: share of the weight that goes in one step, times the rate; 0.1 for gains of norms, 0 for the others.

    Returns:
        (weight, first moment, second moment), shapes as given.
    """
    first = betas[0] * first + (1 - betas[0]) * gradient
    second = betas[1] * second + (1 - betas[1]) * np.square(gradient)
    mean, square = first / (1 - betas[0] ** step), second / (1 - betas[1] ** step)
    return weight * (1 - rate * decay) - rate * mean / (np.sqrt(square) + eps), first, second


def balance(matrix, rounds=11, threshold=1e-3, eps=1e-20):
    """Bring the rows of a table to a root mean square of 1, and its columns near equal size.

    Rows whose length is at most threshold · mean length are set to zero first (tokens that were hardly seen). Then rows
    and columns are divided by their lengths in turn, beginning and ending with rows, `rounds` divisions in all.

    Args:
        matrix: [V n].
        rounds: divisions; odd, so that rows come last.
        threshold: share of the mean length up to which a row counts as hardly seen.
        eps: added to every length.

    Returns:
        [V n], times √n.

    Raises:
        ValueError: rounds is even or below 1.
    """
    if rounds < 1 or rounds % 2 == 0:
        raise ValueError(f"rounds must be odd and positive; got {rounds}; the last division must be one of rows")
    x = np.array(matrix, float)
    lengths = np.linalg.norm(x, axis=1)
    x[lengths <= threshold * lengths.mean()] = 0
    for turn in range(rounds):
        x = x / (np.linalg.norm(x, axis=1 - turn % 2, keepdims=True) + eps)
    return x * np.sqrt(x.shape[1])


def balanced_step(weight, gradient, momentum, rate, size=0.18, inertia=0.95):
    """Change a table: momentum, balanced, no weight decay; Engram tables use five times the rate.

    Args:
        weight, gradient, momentum: [V n].
        rate: learning rate.
        size: root mean square of the update.
        inertia: momentum factor.

    Returns:
        (weight, momentum), shapes as given.
    """
    ahead, momentum = nesterov(gradient, momentum, inertia)
    return weight - rate * size * balance(ahead), momentum
