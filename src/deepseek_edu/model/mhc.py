"""Manifold-constrained hyper-connections (mHC): several residual streams, mixed by a nearly doubly stochastic matrix.

    collapse   x = Σ_i A_i X_i                        A ("pre") of the sub-block before
    expand     X'_j = post_j · y + Σ_i S_ij X_i       post and S of this sub-block

Source: report, section 2.4.1, equations 2–6; reference `hc_pre`, `hc_post`, `hc_split_sinkhorn`; in words in
reference/mhc.py. Coefficients are computed in float32 or better.
"""

from functools import lru_cache
from typing import NamedTuple

import torch

from deepseek_edu.model import one_token
from deepseek_edu.model.linear import outside_autocast, product, suits_numpy
from deepseek_edu.model.norms import precise, reciprocal_rms


class Coefficients(NamedTuple):
    """What one sub-block does to the streams of each token."""

    pre: torch.Tensor  # [B T S]
    post: torch.Tensor  # [B T S]
    mix: torch.Tensor  # [B T S S], from stream (first index) to stream (second index)


def sinkhorn(scores, iterations, eps):
    """Make square matrices nearly doubly stochastic; columns last.

    Args:
        scores: (…, S, S).
        iterations: row and column steps, 1 or more; a softmax is the first row step.
        eps: added after the softmax and to every sum.

    The result is P_ij / (r_i c_j), P the softmax plus eps; a step changes only the divisors r or c. Dividing row i by
    its sum plus eps makes r_i into Σ_j P_ij / c_j + eps · r_i, one product with P.
    """
    size = scores.shape[-1]
    weights = (scores.softmax(dim=-1) + eps).reshape(-1, size, size)  # N S S
    across = weights.mT.contiguous()
    rows = weights.new_ones(len(weights), size, 1)
    columns = torch.baddbmm(rows, across, rows, beta=eps)  # N S 1
    if torch.is_grad_enabled():
        for _ in range(iterations - 1):
            rows = torch.baddbmm(rows, weights, columns.reciprocal(), beta=eps)
            columns = torch.baddbmm(columns, across, rows.reciprocal(), beta=eps)
    else:
        _iterate_in_place(weights, across, rows, columns, iterations - 1, eps)
    return (weights / (rows * columns.mT)).view_as(scores)


def _iterate_in_place(weights, across, rows, columns, iterations, eps):
    """The same steps without new arrays: for one token the time is that of starting 40 operations."""
    inverse, step = torch.empty_like(rows), torch.Tensor.baddbmm_
    if len(weights) == 1:
        weights, across, rows, columns, inverse = (x[0] for x in (weights, across, rows, columns, inverse))
        step = torch.Tensor.addmm_
    for _ in range(iterations):
        torch.reciprocal(columns, out=inverse)
        step(rows, weights, inverse, beta=eps)
        torch.reciprocal(rows, out=inverse)
        step(columns, across, inverse, beta=eps)


@lru_cache
def _part_of_each_number(streams, device):
    """Which of the three scales belongs to each of the 2S+S² numbers."""
    parts = [0] * streams + [1] * streams + [2] * streams**2
    with torch.inference_mode(False):  # kept for later calls of any kind
        return torch.tensor(parts, device=device)


@outside_autocast
def coefficients(streams, projection, base, scale, config):
    """Compute the coefficients of a sub-block from the streams at its input.

    Args:
        streams: [B T S C].
        projection: fn [2S+S²  S·C]; base: [2S+S²]; scale: [3].
        config: for norm_eps, hc_mult, hc_sinkhorn_iters, hc_eps.
    """
    n = config.hc_mult
    flat = precise(streams.flatten(2))  # B T S·C, stream by stream
    if n == 4 and suits_numpy(flat, projection):
        own = one_token.coefficients(flat.view(n, -1).numpy(), projection, base, scale, config)
        return Coefficients(*(torch.from_numpy(numbers)[None, None] for numbers in own))
    mixes = product(flat, projection.to(flat.dtype)) * reciprocal_rms(flat, config.norm_eps)
    factors = scale.to(flat.dtype).index_select(0, _part_of_each_number(n, scale.device))
    pre, post, scores = torch.addcmul(base.to(flat.dtype), mixes, factors).split([n, n, n * n], dim=-1)
    mix = sinkhorn(scores.unflatten(-1, (n, n)), config.hc_sinkhorn_iters, config.hc_eps)
    return Coefficients(pre.sigmoid() + config.hc_eps, 2 * post.sigmoid(), mix)


def one_hot(batch, tokens, streams, dtype, device):
    """Return the A of the first sub-block: everything from stream 0, [B T S].

    Args:
        tokens: T; streams: S.
        dtype: of the result.
    """
    pre = torch.zeros(batch, tokens, streams, dtype=dtype, device=device)
    pre[..., 0] = 1
    return pre


def collapse(streams, pre):
    """Return Σ_i A_i X_i: [B T C] from streams [B T S C] and A [B T S]."""
    return (pre.to(streams.dtype)[:, :, None] @ streams)[:, :, 0]


def expand(streams, output, post, mix):
    """Return X'_j = post_j · y + Σ_i S_ij X_i: [B T S C]; the sum is over the first index of S.

    Args:
        streams: X [B T S C].
        output: y [B T C], of the sub-block.
        post, mix: [B T S] and S [B T S S], from `coefficients`.
    """
    written = post.to(output.dtype)[..., None] * output[:, :, None]  # B T S C
    mixed = torch.baddbmm(written.flatten(0, 1), mix.to(streams.dtype).flatten(0, 1).mT, streams.flatten(0, 1))
    return mixed.view_as(written)
