"""Manifold-constrained hyper-connections (mHC): several residual streams, mixed by a nearly doubly stochastic matrix.

Before a sub-block (attention or experts) the streams X are collapsed to one vector, x = Σ_i A_i X_i; after it the
output y is written back to all of them, X'_j = post_j · y + Σ_i S_ij X_i. A ("pre"), post and S depend on the token.

V4.1 works single-pass: the coefficients of a sub-block are computed from its X together with everything else that
reads X, and its own A is used only by the *next* sub-block, so X is read once. The chain begins with A = one-hot on
stream 0 (all streams are copies of the embedding then) and ends with the A of the last sub-block collapsing the final
streams. V4 is unshifted: a sub-block collapses with the A made from the same X.

Source: report, section 2.4.1, equations 2–6; reference `hc_pre`, `hc_post`, `hc_split_sinkhorn`.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import activations, checks, norms


@dataclass(frozen=True)
class Coefficients:
    """What one sub-block does to the streams of each token."""

    pre: np.ndarray  # [T S], each in (eps, 1 + eps)
    post: np.ndarray  # [T S], each in (0, 2)
    mix: np.ndarray  # [T S S], from stream (first index) to stream (second index)

    def last(self, rows):
        """Return the coefficients of the last `rows` tokens."""
        keep = slice(len(self.pre) - rows, None)
        return Coefficients(self.pre[keep], self.post[keep], self.mix[keep])


def sinkhorn(scores, iterations, eps):
    """Make square matrices nearly doubly stochastic: softmax over rows, then columns, then both in turn.

    The softmax counts as the first row step, so `iterations` row and column steps are made; the last one normalises
    columns. Columns therefore sum to 1 within eps, rows only about.

    Args:
        scores: (…, S, S).
        iterations: 1 or more.
        eps: added after the softmax and to every sum.

    Returns:
        (…, S, S), positive.

    Raises:
        ValueError: iterations is no integer, 1 or more.
    """
    iterations = checks.count(iterations, "iterations", 1)
    mix = activations.softmax(scores, axis=-1) + eps
    mix = mix / (mix.sum(axis=-2, keepdims=True) + eps)
    for _ in range(iterations - 1):
        mix = mix / (mix.sum(axis=-1, keepdims=True) + eps)
        mix = mix / (mix.sum(axis=-2, keepdims=True) + eps)
    return mix


def split_mixes(mixes, scale, base, streams, iterations, eps):
    """Turn the S + S + S·S raw numbers of each token into Coefficients.

    Args:
        mixes: [T 2S+S²]: S for pre, S for post, S² for the mixing matrix row by row.
        scale: [3], factors of the three parts.
        base: [2S+S²], added after scaling.
        streams: S.
        iterations, eps: of `sinkhorn`; eps is also added to pre, not to post.

    Returns:
        Coefficients.
    """
    n = streams
    pre = activations.sigmoid(mixes[:, :n] * scale[0] + base[:n]) + eps  # T S
    post = 2 * activations.sigmoid(mixes[:, n : 2 * n] * scale[1] + base[n : 2 * n])  # T S
    scores = mixes[:, 2 * n :] * scale[2] + base[2 * n :]  # T S²
    return Coefficients(pre, post, sinkhorn(scores.reshape(-1, n, n), iterations, eps))


def coefficients(streams, projection, base, scale, config):
    """Compute the coefficients of a sub-block from the streams at its input.

    Args:
        streams: [T S C].
        projection: fn [2S+S²  S·C]; base [2S+S²]; scale [3].
        config: for norm_eps, hc_mult, hc_sinkhorn_iters, hc_eps.

    Returns:
        Coefficients.

    One root mean square is taken over all S·C numbers of a token, after the projection and without a gain; the result
    is the same as normalising first.
    """
    flat = streams.reshape(len(streams), -1)  # T S·C, stream by stream
    mixes = (flat @ projection.T) * norms.reciprocal_rms(flat, config.norm_eps)  # T 2S+S²
    return split_mixes(mixes, scale, base, config.hc_mult, config.hc_sinkhorn_iters, config.hc_eps)


def one_hot(tokens, streams, dtype=np.float64):
    """Return the A of the first sub-block: everything from stream 0, [T S]."""
    pre = np.zeros((tokens, streams), dtype)
    pre[:, 0] = 1
    return pre


def collapse(streams, pre):
    """Return Σ_i A_i X_i: [T C] from streams [T S C] and A [T S].

    >>> collapse(np.array([[[3.0], [5.0]]]), np.array([[1.0, 0.5]])).tolist()
    [[5.5]]
    """
    return np.einsum("ts,tsc->tc", pre, streams)


def expand(streams, output, coefficients):
    """Return X'_j = post_j · y + Σ_i S_ij X_i: [T S C] from X [T S C] and y [T C]; the sum is over the first index.

    >>> own = Coefficients(np.ones((1, 2)), np.array([[1.0, 2.0]]), np.array([[[0.0, 1.0], [1.0, 0.0]]]))
    >>> expand(np.array([[[3.0], [5.0]]]), np.array([[10.0]]), own).tolist()  # S swaps the streams, y is added
    [[[15.0], [23.0]]]
    """
    written = coefficients.post[..., None] * output[:, None, :]  # T S C
    return written + np.einsum("tij,tic->tjc", coefficients.mix, streams)


def head_pre(streams, projection, base, scale, config):
    """Return V4's A for the collapse before the final norm (`hc_head`): σ(mix · scale + base) + eps, [T S].

    Args:
        streams: [T S C]; projection [S  S·C]; base [S]; scale [1].
    """
    flat = streams.reshape(len(streams), -1)
    mixes = (flat @ projection.T) * norms.reciprocal_rms(flat, config.norm_eps)  # T S
    return activations.sigmoid(mixes * scale + base) + config.hc_eps


def traffic(streams, width, passes="single"):
    """Return the numbers moved per token and sub-block (report, section 2.4.1).

    Args:
        streams, width: S and C.
        passes: "three-kernel", "two-pass" or "single".

    Raises:
        ValueError: another word for passes.

    >>> [traffic(4, 1, p) for p in ("three-kernel", "two-pass", "single")]
    [20, 14, 10]
    """
    per_width = {"three-kernel": 4 * streams + 4, "two-pass": 3 * streams + 2, "single": 2 * streams + 2}
    if passes not in per_width:
        raise ValueError(f"passes must be one of {', '.join(per_width)}; got {passes!r}")
    return per_width[passes] * width
