"""RMSNorm: divide a vector by its root mean square, multiply by a learned gain. The model has no other normalisation.

Source: reference `RMSNorm`. V4.1 adds 1e-20 under the root, V4 1e-6; nothing is subtracted and there is no bias.
"""

import numpy as np


def reciprocal_rms(x, eps):
    """Return (mean(x²) + eps)^(−1/2) over the last dimension, which is kept with length 1.

    >>> reciprocal_rms(np.array([3.0, 4.0, 0.0, 0.0]), 0.0).tolist()  # mean of squares 6.25
    [0.4]
    """
    return 1 / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + eps)


def rms_norm(x, gain, eps):
    """Normalise the last dimension.

    Args:
        x: (…, n).
        gain: (n,), or None for no gain.
        eps: added to the mean square.

    Returns:
        (…, n), type of x.

    >>> rms_norm(np.array([3.0, 4.0, 0.0, 0.0]), np.array([1.0, 2.0, 1.0, 1.0]), 0.0).round(6).tolist()
    [1.2, 3.2, 0.0, 0.0]
    """
    y = x * reciprocal_rms(x, eps)
    return y if gain is None else y * gain
