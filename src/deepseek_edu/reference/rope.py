"""Rotary positions (RoPE) on a part of the channels, stretched to long contexts by YaRN, and their inverse.

The last `rope_head_dim` channels of a head are read as pairs (2i, 2i + 1). At position p pair i turns by the angle
p · f_i. The product of a query turned by p and a key turned by q depends on p − q only.

One vector is key and value here, so the sum of values carries the rotation of its keys. The output is therefore turned
back by the query's position; what stays is the relative rotation (reference `Attention.forward`).

Source: report, section 2.3; reference `precompute_freqs_cis` and `apply_rotary_emb`. There is no extra temperature in
the attention scores (no "mscale").
"""

import math

import numpy as np


def rope_frequencies(width, theta):
    """Return the angle per position of each pair: f_i = theta^(−2i/width), float64 [width/2].

    Raises:
        ValueError: width is odd or not positive.

    >>> rope_frequencies(4, 100.0).tolist()
    [1.0, 0.1]
    """
    if width < 2 or width % 2:
        raise ValueError(f"width must be even and positive; got {width}; channels turn in pairs")
    return theta ** (-np.arange(0, width, 2) / width)  # F


def yarn_frequencies(width, theta, original_length, factor, beta_fast=32.0, beta_slow=1.0):
    """Return frequencies for contexts `factor` times longer than the model was first trained on.

    Pairs that make more than beta_fast turns within original_length keep their frequency, those with fewer than
    beta_slow turns are slowed by factor; in between the two are mixed along a straight line over the pair's number.

    Args:
        width: rotated channels.
        theta: base of the frequencies.
        original_length: tokens.
        factor: stretching, 1 or more.
        beta_fast, beta_slow: turns.

    Returns:
        float64 [width/2].

    Raises:
        ValueError: width is odd or not positive, or the other sizes turn nothing.

    Source: reference `precompute_freqs_cis`; YaRN (arXiv 2309.00071).

    >>> f = yarn_frequencies(64, 160000.0, 65536, 16)
    >>> float(f[15] / rope_frequencies(64, 160000.0)[15]), float(rope_frequencies(64, 160000.0)[25] / f[25])
    (1.0, 16.0)
    """
    if not (theta > 1 and factor >= 1 and min(original_length, beta_fast, beta_slow) > 0):
        raise ValueError(
            "theta must be above 1, factor 1 or more, original_length and turns positive; got "
            f"{theta}, {factor}, {original_length}, {beta_fast} and {beta_slow}; without YaRN take rope_frequencies"
        )

    def pair_with(turns):  # number of the pair that makes this many turns, as a real number
        return width * math.log(original_length / (2 * math.pi * turns)) / (2 * math.log(theta))

    frequencies = rope_frequencies(width, theta)  # F
    low = max(math.floor(pair_with(beta_fast)), 0)
    high = min(math.ceil(pair_with(beta_slow)), width - 1)
    slowed = np.clip((np.arange(width // 2) - low) / max(high - low, 1e-3), 0, 1)  # F
    return frequencies * (1 - slowed) + frequencies / factor * slowed


def layer_frequencies(config, ratio):
    """Return the frequencies of everything in a layer: queries, window entries, compressed entries, index keys.

    Layers with ratio 0 use theta 10 000 as it is; layers with any other ratio, 1 included, use theta 160 000 with YaRN.
    """
    if not ratio:
        return rope_frequencies(config.rope_head_dim, config.rope_theta)
    if not config.original_seq_len:
        return rope_frequencies(config.rope_head_dim, config.compress_rope_theta)
    return yarn_frequencies(
        config.rope_head_dim,
        config.compress_rope_theta,
        config.original_seq_len,
        config.rope_factor,
        config.beta_fast,
        config.beta_slow,
    )


def rotate(x, positions, frequencies, inverse=False):
    """Turn adjacent pairs of the last dimension.

    Args:
        x: (…, 2F).
        positions: integers, shape that broadcasts against x without its last dimension.
        frequencies: [F].
        inverse: turn by the negative angle.

    Returns:
        (…, 2F), of the type of x where that is a float, else float64.

    >>> rotate(np.array([1.0, 0.0]), 1, np.array([np.pi / 2])).round(6).tolist()
    [0.0, 1.0]
    """
    angles = np.asarray(positions)[..., None] * frequencies  # … F
    cos, sin = np.cos(angles), np.sin(angles)
    if inverse:
        sin = -sin
    even, odd = x[..., 0::2], x[..., 1::2]  # … F
    turned = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)  # … F 2
    return turned.reshape(x.shape).astype(x.dtype if x.dtype.kind == "f" else turned.dtype, copy=False)


def rotate_tail(x, positions, frequencies, inverse=False):
    """Turn the last 2F channels of x (…, D) and keep the others; arguments as in `rotate`.

    Raises:
        ValueError: x has fewer channels.
    """
    tail = 2 * len(frequencies)
    if x.shape[-1] < tail:
        raise ValueError(f"x must have at least {tail} channels to turn; got {x.shape[-1]}")
    kept, turning = x[..., : x.shape[-1] - tail], x[..., x.shape[-1] - tail :]
    return np.concatenate([kept, rotate(turning, positions, frequencies, inverse)], axis=-1)
