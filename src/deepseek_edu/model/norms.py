"""RMSNorm: divide a vector by its root mean square, multiply by a learned gain.

Source: reference `RMSNorm`; formula in reference/norms.py. Sums are taken in float32 or better, whatever x is.
"""

import torch
from torch import nn

from deepseek_edu.model import one_token
from deepseek_edu.model.linear import suits_numpy


def precise(x):
    """Return x in float32 if its type is narrower, else as it is."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def reciprocal_rms(x, eps):
    """Return (mean(x²) + eps)^(−1/2) over the last dimension, which is kept with length 1; float32 or better."""
    length = torch.linalg.vector_norm(precise(x), dim=-1, keepdim=True)  # no array of squares is made
    return (length.square() / x.shape[-1] + eps).rsqrt()


class RMSNorm(nn.Module):
    """Normalise the last dimension, n numbers.

    Args:
        width: n.
        eps: added to the mean square.
        where: device and dtype of the gain.
    """

    def __init__(self, width, eps, where):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width, **where))

    def forward(self, x):
        """Return (…, n) of the type of x."""
        if suits_numpy(x, self.weight):
            return torch.from_numpy(one_token.normed(x.numpy().reshape(-1), self)).view(x.shape)
        return nn.functional.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)
