"""The k largest of each row, the earlier one on a tie: what the router and the indexer share.

`torch.topk` leaves ties open. Exact ties do happen (an index score is 0 whenever no head likes an entry), and both
implementations must choose alike; so the k-th value is found first, and places are given out from the left.
"""

import torch


def top_k(scores, k):
    """Return the places of the k largest values in rising order, the earlier place on a tie.

    Args:
        scores: (…, n), no NaN.
        k: 0 … n.

    Returns:
        int64 (…, k).
    """
    n = scores.shape[-1]
    if k >= n:
        return torch.arange(n, device=scores.device).expand(*scores.shape[:-1], n)
    least = scores.topk(k, dim=-1, sorted=False).values.amin(dim=-1, keepdim=True)  # … 1
    above, level = scores > least, scores == least  # … n
    places = k - above.sum(dim=-1, keepdim=True)  # for those at the level
    chosen = above | (level & (level.cumsum(dim=-1, dtype=torch.int32) <= places))
    return chosen.nonzero()[:, -1].reshape(*scores.shape[:-1], k)
