"""V4's compressed entries: CSA pools overlapping groups of 4, HCA plain groups of 128, both with a position term.

CSA projects every token twice. Entry j mixes the *second* halves of its own tokens 4j … 4j + 3 and the *first* halves
of the four tokens before, eight candidates, by a softmax per channel over gate + a learned term for the place in the
group (APE). Entry 0 has no tokens before it. HCA mixes 128 tokens in the same way, without overlap.

In V4.1 groups do not overlap and know no place (compressor.py). Source: V4 report; V4 reference `Compressor`.
"""

import numpy as np

from deepseek_edu.reference import activations, norms, rope

CSA_RATIO = 4  # the ratio at which groups overlap


def pool_overlapping(values, gates):
    """Mix overlapping groups.

    Args:
        values, gates: [N r 2D], whole groups in order; gates already contain the position term.

    Returns:
        [N D].
    """
    groups, ratio, double = values.shape
    width = double // 2
    candidates = np.zeros((groups, 2 * ratio, width), values.dtype)
    scores = np.full((groups, 2 * ratio, width), -np.inf)
    candidates[:, ratio:], scores[:, ratio:] = values[..., width:], gates[..., width:]
    candidates[1:, :ratio], scores[1:, :ratio] = values[:-1, :, :width], gates[:-1, :, :width]
    return (activations.softmax(scores, axis=1) * candidates).sum(axis=1)


def compress(u, ratio, w, frequencies, eps):
    """Return the entries of whole groups of a sequence.

    Args:
        u: [T C], inputs of the attention from position 0 on; an incomplete last group gives nothing.
        ratio: 4 (overlapping) or another (plain).
        w: "wkv.weight", "wgate.weight" [(2)D C], "ape" [r (2)D], "norm.weight" [D].
        frequencies: of the layer.

    Returns:
        [⌊T/r⌋ D], turned at the position of each group's first token, not quantised.
    """
    whole = len(u) // ratio * ratio
    values = (u[:whole] @ w["wkv.weight"].T).reshape(-1, ratio, len(w["wkv.weight"]))  # N r (2)D
    gates = (u[:whole] @ w["wgate.weight"].T).reshape(values.shape) + w["ape"]
    if ratio == CSA_RATIO:
        pooled = pool_overlapping(values, gates)
    else:
        pooled = (activations.softmax(gates, axis=1) * values).sum(axis=1)  # N D
    entries = norms.rms_norm(pooled, w["norm.weight"], eps)
    return rope.rotate_tail(entries, np.arange(len(entries)) * ratio, frequencies)
