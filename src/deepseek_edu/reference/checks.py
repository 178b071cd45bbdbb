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


def whole_blocks(n, block):
    """Refuse n values that are no whole number of blocks.

    Args:
        n: values; block: values that share a scale.

    Raises:
        ValueError: block is no positive integer, or does not divide n.
    """
    if not isinstance(block, (int, np.integer)) or block < 1:
        raise ValueError(f"block must be a positive integer; got {block!r}; DeepSeek uses 16 and 32")
    if n % block:
        raise ValueError(f"the number of values must be a multiple of block = {block}; got {n}; pad with zeros")


def scales_fit(values, scales, block):
    """Refuse scales that do not belong to the values.

    Args:
        values: shape (…, n) of the values.
        scales: shape of the scales; (…, n/block) fits.
        block: values that share a scale.

    Raises:
        ValueError: another shape, or no whole number of blocks.
    """
    whole_blocks(values[-1], block)
    if tuple(scales) != (*values[:-1], values[-1] // block):
        raise ValueError(
            f"scale_bytes must hold one byte per block of {block}; got shape {tuple(scales)} for values {tuple(values)}"
        )


def count(value, name, least):
    """Return value, an integer, least or more.

    Args:
        value: anything.
        name: the argument's name in the caller, for the message.
        least: lowest value allowed.

    Raises:
        ValueError: it is another type or too low.
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name} must be {least} or more{'' if whole else ', an integer'}; got {value!r}")
    return int(value)


def token_ids(ids, vocabulary):
    """Return the ids of one sequence as an array: integers [T], T at least 1.

    Args:
        ids: [T] of any kind that NumPy reads, as a caller gave it.
        vocabulary: V; ids are 0 … V − 1.

    Raises:
        ValueError: another shape or type, no ids, or one out of range.
    """
    ids = np.asarray(ids)
    if ids.ndim != 1 or not len(ids) or ids.dtype.kind not in "iu":
        raise ValueError(f"ids must be one or more integers in a list; got shape {ids.shape}, type {ids.dtype}")
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise ValueError(f"ids must be 0 … {vocabulary - 1}; got {ids.min()} … {ids.max()}")
    return ids


def image_input(types, features, ids, width):
    """Return (types [T], features [n C]) of a prompt with images as arrays, None for what was not given.

    Args:
        types: [T] as a caller gave it, −1 text and 0 … 3 inside an image; or None.
        features: [n C] as a caller gave it, one row for each token inside an image; or None.
        ids: [T].
        width: C.

    Raises:
        ValueError: shapes or values do not fit, or there are features without types.
    """
    if types is None:
        if features is not None:
            raise ValueError("features need types, which say where they stand; got none; see vision.image_span")
        return None, None
    types = np.asarray(types)
    if types.shape != ids.shape:
        raise ValueError(f"types must have the shape of ids, {ids.shape}; got {types.shape}")
    if types.dtype.kind not in "iu" or types.min() < -1 or types.max() > 3:
        found = types.dtype if types.dtype.kind not in "iu" else f"{types.min()} … {types.max()}"
        raise ValueError(f"types must be integers, -1 for text and 0 … 3 inside an image; got {found}")
    if features is None:
        return types, None
    features, expected = np.asarray(features), (int((types >= 0).sum()), width)
    if features.shape != expected:
        raise ValueError(f"features must be {expected}; got {features.shape}")
    return types, real_numbers(features, "features")
