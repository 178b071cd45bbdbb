"""Checks of array arguments that several mechanisms share.

Each names the argument, what was found, what is expected and what to do next.

Source: our own; the reference code checks nothing.
"""

import numpy as np


def real_numbers(x, name, nan_allowed=False):
    """Return x as a float32 array (if it is one) or a float64 array (otherwise), all values finite.

    Args:
        x: numbers, any shape.
        name: the argument's name in the caller, for the message.
        nan_allowed: let NaN pass; an infinity never does.

    Returns:
        float32 or float64, shape of x.

    Raises:
        ValueError: x is not made of real numbers, or holds an infinity or a NaN.
    """
    x = np.asarray(x)
    if x.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be real numbers; got {x.dtype}; convert it to floats first")
    if x.dtype != np.float32:
        x = x.astype(np.float64)
    bad = np.isinf(x) if nan_allowed else ~np.isfinite(x)
    if np.any(bad):
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} must be finite; got {x[where]} at index {where}; mask or mend it before quantising")
    return x


def integers(x, name, largest):
    """Return x as a uint8 array with values 0 … largest (at most 255).

    Args:
        x: integers, any shape.
        name: the argument's name in the caller, for the message.
        largest: highest value that may occur.

    Returns:
        uint8, shape of x.

    Raises:
        ValueError: x has another type or a value out of range.
    """
    x = np.asarray(x)
    if x.dtype.kind not in "iu" or np.any((x < 0) | (x > largest)):
        found = x.dtype if x.dtype.kind not in "iu" else f"{x.min()} … {x.max()}"
        raise ValueError(f"{name} must be integers 0 … {largest}; got {found}; encode the numbers first")
    return x.astype(np.uint8)
