"""V4's unshifted hyper-connections around one sub-block, with little work beside the products where nothing is trained.

    one token       its coefficients are 24 numbers, for which starting operations is all the work (one_token.py)
    many tokens     the streams are the largest array of a pass: they are written once

Otherwise the functions of mhc.py are used; all of them give the same numbers.

Source: V4 reference `Block`; formulas in reference/mhc.py.
"""

import torch

from deepseek_edu.model import mhc, one_token
from deepseek_edu.model.linear import PLAIN
from deepseek_edu.model.one_token import array


def around(streams, projection, base, scale, config, act):
    """Run a sub-block between the collapse of its streams and their expansion: X' [B T S C] from X [B T S C].

    Args:
        streams: X [B T S C].
        projection, base, scale: of the coefficients, as in mhc.coefficients.
        config: ModelConfig.
        act: function x [B T C] -> y [B T C].
    """
    batch, tokens, size, width = streams.shape
    plain = streams.device.type == "cpu" and streams.dtype in PLAIN and not torch.is_autocast_enabled("cpu")
    if torch.is_grad_enabled() or not plain:
        own = mhc.coefficients(streams, projection, base, scale, config)
        return mhc.expand(streams, act(mhc.collapse(streams, own.pre)), own.post, own.mix)
    if batch * tokens == 1 and size == 4:
        flat = array(streams.reshape(size, width))
        pre, post, mix = one_token.coefficients(flat, projection, base, scale, config)
        y = act(torch.from_numpy(pre @ flat).view(1, 1, width))
        return torch.from_numpy(one_token.expand(flat, array(y.reshape(width)), post, mix)).view(streams.shape)
    own = mhc.coefficients(streams, projection, base, scale, config)
    y = act(mhc.collapse(streams, own.pre))
    mixed = torch.bmm(own.mix.flatten(0, 1).mT, streams.flatten(0, 1)).view(streams.shape)
    return mixed.addcmul_(own.post[..., None], y[:, :, None])
