"""Compressed entries: r neighbouring tokens become one entry, which all later layers of the group may read.

With ratio 1 an entry is one projected token. With ratio 2 the two tokens are mixed channel by channel; a learned gate,
softmax over the two, says how much of each. Groups do not overlap and know no position (V4's compressor differs: see
v4_compressor.py). An entry belongs to a query only when all its tokens do: entry j is visible at position t if and only
if j < ⌊(t + 1)/r⌋. A half-filled group waits as projections of its tokens; until it is complete its tokens are seen
through the window only.

The entry is normalised, gives the index key (indexer.py), is rotated at the position of its first token, j · r, and is
stored in FP4.

Source: report, section 2.3; reference `Compressor`.
"""

import numpy as np

from deepseek_edu.reference import activations, norms


def visible_entries(positions, ratio):
    """Return how many entries a query at each position may read: ⌊(t + 1)/ratio⌋.

    >>> visible_entries(np.arange(4), 2).tolist(), visible_entries(np.arange(4), 1).tolist()
    ([0, 1, 1, 2], [1, 2, 3, 4])
    """
    return (np.asarray(positions) + 1) // ratio


def project(u, weight, gate_weight):
    """Project tokens to (values [T D], gate scores [T D]); gate scores are None for ratio 1, which has no gate.

    Args:
        u: [T C], the input that the layer's queries and window entries are made from as well.
        weight, gate_weight: wkv [D C], wgate [D C] or None.
    """
    return u @ weight.T, None if gate_weight is None else u @ gate_weight.T


def pool(values, gates, ratio):
    """Mix each group of `ratio` tokens to one vector.

    Args:
        values, gates: [N·ratio D]; gates is None for ratio 1.
        ratio: tokens in a group.

    Returns:
        [N D].

    Raises:
        ValueError: the last group is not whole.

    >>> pool(np.array([[1.0], [3.0]]), np.zeros((2, 1)), 2).tolist()
    [[2.0]]
    """
    if len(values) % ratio:
        raise ValueError(f"values must hold whole groups of {ratio} tokens; got {len(values)}; keep the rest for later")
    if gates is None:
        return values
    width = values.shape[-1]
    weights = activations.softmax(gates.reshape(-1, ratio, width), axis=1)  # N r D
    return (weights * values.reshape(-1, ratio, width)).sum(axis=1)


def latents(pooled, gain, eps):
    """Normalise pooled vectors [N D]: what index keys are made from, before rotation."""
    return norms.rms_norm(pooled, gain, eps)


def split_groups(first_position, waiting, values, ratio):
    """Join waiting and new tokens and say what is complete.

    Args:
        first_position: position of the first new token.
        waiting: rows of the incomplete group's tokens [first_position mod ratio, D'].
        values: rows of the new tokens [T D'].
        ratio: tokens in a group.

    Returns:
        (number of the first entry that becomes complete, rows of the complete groups [N·ratio D']).

    Raises:
        ValueError: more or fewer tokens wait than the open group has.
    """
    if len(waiting) != first_position % ratio:
        raise ValueError(f"waiting must hold {first_position % ratio} tokens of the open group; got {len(waiting)}")
    rows = np.concatenate([waiting, values])
    return first_position // ratio, rows[: len(rows) // ratio * ratio]
