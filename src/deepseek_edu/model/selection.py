"""The k largest of each row, the earlier one on a tie: what the router and the indexer share.

`torch.topk` leaves ties open. Exact ties do happen (an index score is 0 whenever no head likes an entry), and both
implementations must choose alike. So one value more is looked at: where the last chosen and the first left out are
equal, places are given out again, from the left. Many rows on one thread of a CPU go to NumPy, which finds the k-th
value of a row 1.5 to 5 times as fast; all places from it on are taken, in rising order.

Source: our own; the reference leaves ties open.
"""

import numpy as np
import torch

from deepseek_edu.model.linear import PLAIN


def top_k(scores, k):
    """Return the places of the k largest values in rising order, the earlier place on a tie.

    Args:
        scores: (…, n), no NaN. Where fewer than k are above −∞, it is open which of the others come with them.
        k: 0 … n.

    Returns:
        int64 (…, k).
    """
    n = scores.shape[-1]
    if k >= n:
        return torch.arange(n, device=scores.device).expand(*scores.shape[:-1], n)
    plain = scores.device.type == "cpu" and scores.dtype in PLAIN and torch.get_num_threads() == 1
    if k and scores.numel() > n and plain:
        return _from_the_kth_value_on(scores.detach().numpy().reshape(-1, n), k).view(*scores.shape[:-1], k)
    values, places = scores.topk(k + 1, dim=-1)
    tied = (values[..., k - 1] == values[..., k]) & (values[..., k] > -torch.inf) if k else values.new_zeros(())
    places = places[..., :k].sort(dim=-1).values
    if bool(tied.any()):
        places[tied] = _earlier_on_a_tie(scores[tied], k)
    return places


def _from_the_kth_value_on(scores, k):
    """The same for an array [R n] of several rows: int64 [R k]."""
    n = scores.shape[1]
    least = np.partition(scores, n - k, axis=1)[:, n - k, None]  # R 1
    chosen = scores >= least  # R n
    if np.count_nonzero(chosen) > k * len(scores):
        above = scores > least
        level = chosen & ~above
        chosen = above | (level & (level.cumsum(axis=1) <= k - above.sum(axis=1, keepdims=True)))
    return torch.from_numpy(np.flatnonzero(chosen).reshape(-1, k) % n)


def _earlier_on_a_tie(scores, k):
    least = scores.topk(k, dim=-1, sorted=False).values.amin(dim=-1, keepdim=True)  # … 1
    above, level = scores > least, scores == least  # … n
    places = k - above.sum(dim=-1, keepdim=True)  # for those at the level
    chosen = above | (level & (level.cumsum(dim=-1, dtype=torch.int32) <= places))
    return chosen.nonzero()[:, -1].reshape(*scores.shape[:-1], k)
