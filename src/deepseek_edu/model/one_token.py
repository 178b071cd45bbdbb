"""Mechanisms for one token on a CPU: NumPy's arithmetic on the memory of PyTorch's tensors.

A decode step of one sequence has some thousand numbers to compute beside its matrix products. PyTorch starts an
operation in 5 to 20 µs while weights stream through the caches, NumPy in 1 to 3. Nothing of this has a gradient. The
results are those of norms.py, mhc.py, moe.py and attention.py.

Source: our own; formulas in reference/.
"""

from math import exp, sqrt, tanh

import numpy as np
import torch

from deepseek_edu.model.linear import PLAIN, times

SMALL_PRODUCT = 1 << 16
"""Multiplications of a matrix product that OpenBLAS does on the matrices as they lie, and on one thread."""


def fits(span, cache):
    """Whether a call is one token of one sequence, on a CPU, without gradients; `coefficients` are those of 4 streams.

    Args:
        span: span.Span of the call; cache: cache.Cache that takes it in.
    """
    return (
        span.width == 1
        and len(span.counts) == 1
        and span.full
        and cache.device.type == "cpu"
        and cache.dtype in PLAIN
        and cache.config.hc_mult == 4
        and not cache.live
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
    )


def array(tensor):
    """Return the tensor's own memory as an array."""
    return tensor.detach().numpy()


def normed(x, norm):
    """Return what norms.RMSNorm gives for an array x [n]."""
    return x * (array(norm.weight) * (1 / sqrt(float(x.dot(x)) / len(x) + norm.eps)))


def turn(x, turns):
    """Turn the last 2F channels of x [D] or [H D] in place and return it; turns: complex [F]."""
    pairs = x[..., x.shape[-1] - 2 * len(turns) :].view(turns.dtype)
    pairs *= turns
    return x


class Turns:
    """Turns of the one position of a call, made once for all layers whose angles are the same.

    Args:
        span: span.Span of one token.
    """

    def __init__(self, span):
        self._span, self._made = span, {}

    def __call__(self, ratio):
        """Return the turns in layers of this ratio, complex [F], and those back."""
        kind = ratio > 0
        if kind not in self._made:
            turns = self._span.rotation(ratio).turns[0, 0].numpy()
            self._made[kind] = turns, turns.conj()
        return self._made[kind]


def coefficients(streams, projection, base, scale, config):
    """Return mHC's coefficients of four streams, as mhc.coefficients does for many tokens.

    They are 24 numbers: 40 steps of Python's own arithmetic take less time than starting 40 operations on arrays.

    Args:
        streams: array [4 C].
        projection: tensor [24 4C]; base: tensor [24]; scale: tensor [3].
        config: ModelConfig with hc_mult 4.

    Returns:
        Arrays (pre [4], post [4], mix [4 4]).
    """
    eps, row = config.hc_eps, streams.reshape(-1)
    inverse = 1 / sqrt(float(row.dot(row)) / len(row) + config.norm_eps)
    for_pre, for_post, for_mix = (factor * inverse for factor in scale.tolist())
    factors = [for_pre] * 4 + [for_post] * 4 + [for_mix] * 16
    mixes = times(array(projection), row).tolist()  # 24
    mixes = [mix * factor + b for mix, factor, b in zip(mixes, factors, base.tolist(), strict=True)]
    both = [0.5 + 0.5 * tanh(0.5 * mix) for mix in mixes[:8]]  # the logistic function
    weights = []
    for begin in range(8, 24, 4):
        scores = mixes[begin : begin + 4]
        most = max(scores)
        powers = [exp(score - most) for score in scores]
        total = sum(powers)
        weights += [power / total + eps for power in powers]
    balanced = _balance(weights, config.hc_sinkhorn_iters, eps)
    numbers = np.array([share + eps for share in both[:4]] + [2 * share for share in both[4:]] + balanced, row.dtype)
    return numbers[:4], numbers[4:8], numbers[8:].reshape(4, 4)


def _balance(weights, iterations, eps):
    """Sinkhorn's steps as in mhc.sinkhorn, P_ij / (r_i c_j), for one matrix of 16 numbers row by row.

    All is written out because 20 steps so take 20 µs, with a function for half a step 25, with lists 43, as arrays 97.
    """
    a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3 = weights
    ra = rb = rc = rd = 1.0
    k0, k1, k2, k3 = a0 + b0 + c0 + d0 + eps, a1 + b1 + c1 + d1 + eps, a2 + b2 + c2 + d2 + eps, a3 + b3 + c3 + d3 + eps
    for _ in range(iterations - 1):
        i0, i1, i2, i3 = 1 / k0, 1 / k1, 1 / k2, 1 / k3
        ra = a0 * i0 + a1 * i1 + a2 * i2 + a3 * i3 + eps * ra
        rb = b0 * i0 + b1 * i1 + b2 * i2 + b3 * i3 + eps * rb
        rc = c0 * i0 + c1 * i1 + c2 * i2 + c3 * i3 + eps * rc
        rd = d0 * i0 + d1 * i1 + d2 * i2 + d3 * i3 + eps * rd
        ia, ib, ic, id_ = 1 / ra, 1 / rb, 1 / rc, 1 / rd
        k0 = a0 * ia + b0 * ib + c0 * ic + d0 * id_ + eps * k0
        k1 = a1 * ia + b1 * ib + c1 * ic + d1 * id_ + eps * k1
        k2 = a2 * ia + b2 * ib + c2 * ic + d2 * id_ + eps * k2
        k3 = a3 * ia + b3 * ib + c3 * ic + d3 * id_ + eps * k3
    divisors = [row * column for row in (ra, rb, rc, rd) for column in (k0, k1, k2, k3)]
    return [weight / divisor for weight, divisor in zip(weights, divisors, strict=True)]


def expand(streams, y, post, mix):
    """Write a sub-block's output into the streams: X'_j = post_j · y + Σ_i S_ij X_i.

    Args:
        streams: array [4 C], X; y: array [C].
        post: array [4]; mix: array [4 4], S.

    Returns:
        Array [4 C].
    """
    return mix.T @ streams + post[:, None] * y


def attend(queries, keys, hidden, sinks, scale):
    """Read several sets of entries that are keys and values.

    Args:
        queries: array [H D].
        keys: tensors [N D]; hidden: int numbers of those of the first set that the query does not see.
        sinks: array [H]; scale: factor of the scores.

    Returns:
        Array [H D].
    """
    queries = torch.from_numpy(queries)
    scores = [torch.mm(queries, some.T).numpy() for some in keys]
    scores = np.concatenate([*scores, sinks[:, None] / scale], axis=1)  # H N+1
    scores *= scale
    if len(hidden):
        scores[:, hidden] = -np.inf
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    shares, heads, begin = torch.from_numpy(scores), None, 0
    for some in keys:
        share = shares[:, begin : begin + len(some)]
        heads = torch.mm(share, some) if heads is None else heads.addmm_(share, some)
        begin += len(some)
    return heads.numpy()


def index_scores(queries, weights, keys):
    """Return what indexer.index_scores gives for one token: [N].

    As many keys are taken together as one call of the matrix library handles without copying them first, which for few
    heads is two to three times as fast as a product with all of them.

    Args:
        queries: array [Hi Di]; weights: array [Hi]; keys: array [N Di].
    """
    together = max(1, SMALL_PRODUCT // queries.size)
    whole = len(keys) // together * together
    products = queries @ keys[:whole].reshape(-1, together, keys.shape[1]).transpose(0, 2, 1)  # n Hi together
    scores = weights @ np.maximum(products, 0, out=products)  # n together
    if whole == len(keys):
        return scores.reshape(-1)
    return np.concatenate([scores.reshape(-1), weights @ np.maximum(queries @ keys[whole:].T, 0)])


def output(heads, attention):
    """Project heads [H D], turned back: [C]; attention is attention.Attention."""
    groups, (rows, wide) = attention.config.o_groups, attention.wo_a.weight.shape
    blocks = array(attention.wo_a.weight).reshape(groups, rows // groups, wide)  # G r H/G·D
    narrow = np.vecdot(blocks, heads.reshape(groups, 1, wide))  # G r
    return times(array(attention.wo_b.weight), narrow.reshape(-1))


def scores_of_experts(logits, kind):
    """Return what moe.router_scores gives for logits [E]."""
    if kind == "sqrtsoftplus":
        return np.sqrt(np.where(logits > 40, logits, np.log1p(np.exp(np.minimum(logits, 40)))))
    if kind == "sigmoid":
        return 0.5 + 0.5 * np.tanh(0.5 * logits)
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def largest(scores, k):
    """Return the places of the k largest scores [n] in rising order, the earlier place on a tie."""
    return np.sort(np.argsort(-scores, kind="stable")[:k])


def run_experts(u, experts, chosen, weights, shared=None):
    """Return Σ over chosen experts, and the shared one: [C].

    Args:
        u: array [C].
        experts: moe.Experts; chosen: list of k experts; weights: array [k].
        shared: moe.Expert or None.
    """
    wide, narrow = array(experts.w13.flatten(1, 2)), array(experts.w2)  # E 2F C, E C F
    both = np.stack([times(wide[expert], u) for expert in chosen])  # k 2F
    hidden = _swiglu(both, experts.limit) * weights[:, None]
    y = sum(times(narrow[expert], row) for expert, row in zip(chosen, hidden, strict=True))
    if shared is not None:
        y += times(array(shared.w2), _swiglu(times(array(shared.w13.flatten(0, 1)), u), shared.limit))
    return y


def _swiglu(both, limit):
    """SiLU(gate) · up, gate clamped from above and up on both sides; [… F] from [… 2F]."""
    inner = both.shape[-1] // 2
    gate, up = both[..., :inner], both[..., inner:]
    if limit > 0:
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return gate / (1 + np.exp(np.minimum(-gate, 80))) * up
