"""V4's unshifted hyper-connections around one sub-block, with little work beside the products where nothing is trained.

    one token       its coefficients are 24 numbers: 40 steps of Python's own arithmetic take 25 µs, of arrays 100 µs
    many tokens     the streams are the largest array of a pass: they are written once

Otherwise the functions of mhc.py are used; all of them give the same numbers.

Source: V4 reference `Block`; formulas in reference/mhc.py.
"""

from math import exp, tanh

import torch

from deepseek_edu.model import mhc
from deepseek_edu.model.linear import product


def around(streams, projection, base, scale, config, act):
    """Run a sub-block between the collapse of its streams and their expansion: X' [B T S C] from X [B T S C].

    Args:
        streams: X [B T S C].
        projection, base, scale: of the coefficients, as in mhc.coefficients.
        config: ModelConfig.
        act: function x [B T C] -> y [B T C].
    """
    batch, tokens, size, width = streams.shape
    if torch.is_grad_enabled() or streams.device.type != "cpu" or streams.dtype not in (torch.float32, torch.float64):
        own = mhc.coefficients(streams, projection, base, scale, config)
        return mhc.expand(streams, act(mhc.collapse(streams, own.pre)), own.post, own.mix)
    if batch * tokens == 1 and size == 4:
        flat = streams.reshape(size, width)
        pre, post, mix = _one_token(flat, projection, base, scale, config)
        y = act((pre @ flat).view(1, 1, width))
        return torch.addmm(torch.outer(post, y.view(width)), mix.mT, flat).view(streams.shape)
    own = mhc.coefficients(streams, projection, base, scale, config)
    y = act(mhc.collapse(streams, own.pre))
    mixed = torch.bmm(own.mix.flatten(0, 1).mT, streams.flatten(0, 1)).view(streams.shape)
    return mixed.addcmul_(own.post[..., None], y[:, :, None])


def _one_token(flat, projection, base, scale, config):
    """Coefficients of one token's four streams [4 C] as tensors: pre [4], post [4], mix [4 4]."""
    eps, row = config.hc_eps, flat.reshape(1, -1)
    size = float(torch.linalg.vector_norm(row)) ** 2 / row.shape[-1]
    for_pre, for_post, for_mix = (factor * (size + config.norm_eps) ** -0.5 for factor in scale.tolist())
    factors = [for_pre] * 4 + [for_post] * 4 + [for_mix] * 16
    mixes = product(row, projection)[0].tolist()  # 24
    mixes = [mix * factor + b for mix, factor, b in zip(mixes, factors, base.tolist(), strict=True)]
    both = [0.5 + 0.5 * tanh(0.5 * mix) for mix in mixes[:8]]  # the logistic function
    pre, post = [share + eps for share in both[:4]], [2 * share for share in both[4:]]
    weights = []
    for begin in range(8, 24, 4):
        scores = mixes[begin : begin + 4]
        most = max(scores)
        powers = [exp(score - most) for score in scores]
        total = sum(powers)
        weights += [power / total + eps for power in powers]
    balanced = _balance(weights, config.hc_sinkhorn_iters, eps)
    pre, post, mix = torch.tensor(pre + post + balanced, dtype=flat.dtype).split([4, 4, 16])
    return pre, post, mix.view(4, 4)


def _balance(weights, iterations, eps):
    """Sinkhorn's steps as in mhc.sinkhorn, P_ij / (r_i c_j), for one matrix of 16 numbers row by row."""
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
