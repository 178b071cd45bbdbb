"""V4's unshifted hyper-connections around one sub-block, with little work beside the products where nothing is trained.

    one token       the coefficients are 24 numbers: NumPy starts a small operation in a third of PyTorch's time
    many tokens     the streams are the largest array of a pass: they are written once

Otherwise the functions of mhc.py are used; all of them give the same numbers.
"""

import numpy as np
import torch

from deepseek_edu.model import mhc
from deepseek_edu.model.linear import product


def around(streams, projection, base, scale, config, act):
    """Run a sub-block between the collapse of its streams and their expansion: X' [B T S C] from X [B T S C].

    Args:
        streams: X.
        projection, base, scale: of the coefficients, as in mhc.coefficients.
        config: ModelConfig.
        act: function x [B T C] -> y [B T C].
    """
    batch, tokens, size, width = streams.shape
    if torch.is_grad_enabled() or streams.device.type != "cpu" or streams.dtype not in (torch.float32, torch.float64):
        own = mhc.coefficients(streams, projection, base, scale, config)
        return mhc.expand(streams, act(mhc.collapse(streams, own.pre)), own.post, own.mix)
    if batch * tokens == 1:
        flat = streams.reshape(size, width)
        pre, post, mix = _one_token(flat, projection, base, scale, config)
        y = act((pre @ flat).view(1, 1, width))
        return torch.addmm(torch.outer(post, y.view(width)), mix.mT, flat).view(streams.shape)
    own = mhc.coefficients(streams, projection, base, scale, config)
    y = act(mhc.collapse(streams, own.pre))
    mixed = torch.bmm(own.mix.flatten(0, 1).mT, streams.flatten(0, 1)).view(streams.shape)
    return mixed.addcmul_(own.post[..., None], y[:, :, None])


def _one_token(flat, projection, base, scale, config):
    """Coefficients of one token's streams [S C] as tensors: pre [S], post [S], mix [S S]."""
    n, eps, row = len(flat), config.hc_eps, flat.reshape(1, -1)
    mixes = product(row, projection).numpy()[0].astype(np.float64)  # 2S+S²
    size = float(torch.linalg.vector_norm(row)) ** 2 / row.shape[-1]
    factors = np.repeat(scale.detach().numpy(), (n, n, n * n))
    mixes = mixes * (factors * (size + config.norm_eps) ** -0.5) + base.detach().numpy()
    both = 0.5 + 0.5 * np.tanh(0.5 * mixes[: 2 * n])  # the logistic function
    scores = mixes[2 * n :].reshape(n, n)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = weights / weights.sum(axis=1, keepdims=True) + eps
    numbers = np.concatenate([both[:n] + eps, 2 * both[n:], _balance(weights, config.hc_sinkhorn_iters, eps).ravel()])
    pre, post, mix = torch.from_numpy(numbers).to(flat.dtype).split([n, n, n * n])
    return pre, post, mix.view(n, n)


def _balance(weights, iterations, eps):
    """Sinkhorn's steps as in mhc.sinkhorn, P_ij / (r_i c_j): one product of [P  eps·1] with (1/c, r) is a row step."""
    n = len(weights)
    same = eps * np.eye(n)
    by_row, by_column = np.hstack([weights, same]), np.hstack([weights.T, same])
    rows, columns = np.ones(n), weights.sum(axis=0) + eps
    for_rows, for_columns = np.empty(2 * n), np.empty(2 * n)
    inverse_columns, kept_rows = for_rows[:n], for_rows[n:]
    inverse_rows, kept_columns = for_columns[:n], for_columns[n:]
    kept_rows[:], kept_columns[:] = rows, columns
    for _ in range(iterations - 1):
        np.reciprocal(columns, inverse_columns)
        by_row.dot(for_rows, rows)
        np.reciprocal(rows, inverse_rows)
        by_column.dot(for_columns, columns)
        kept_rows[:], kept_columns[:] = rows, columns
    return weights / np.outer(rows, columns)
