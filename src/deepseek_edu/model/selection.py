"""The k largest of each row, the earlier one on a tie: what the router and the indexer share.

`torch.topk` leaves ties open. Exact ties do happen (an index score is 0 whenever no head likes an entry), and both
implementations must choose alike. So one value more is looked at: where the last chosen and the first left out are
equal, places are given out again, from the left.

Source: our own; the reference leaves ties open.
"""

import torch


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
    values, places = scores.topk(k + 1, dim=-1)
    tied = (values[..., k - 1] == values[..., k]) & (values[..., k] > -torch.inf) if k else values.new_zeros(())
    places = places[..., :k].sort(dim=-1).values
    if bool(tied.any()):
        places[tied] = _earlier_on_a_tie(scores[tied], k)
    return places


def _earlier_on_a_tie(scores, k):
    least = scores.topk(k, dim=-1, sorted=False).values.amin(dim=-1, keepdim=True)  # … 1
    above, level = scores > least, scores == least  # … n
    places = k - above.sum(dim=-1, keepdim=True)  # for those at the level
    chosen = above | (level & (level.cumsum(dim=-1, dtype=torch.int32) <= places))
    return chosen.nonzero()[:, -1].reshape(*scores.shape[:-1], k)
