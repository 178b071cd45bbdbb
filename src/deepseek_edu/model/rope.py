"""Rotary positions (RoPE) on the last channels, YaRN, and the inverse rotation of attention's output.

The frequencies are those of reference/rope.py. Angles are taken in float64, since float32 has no digits left for the
fraction of a turn at position 10⁶; only their cosines and sines are rounded.

Source: report, section 2.3; reference `precompute_freqs_cis` and `apply_rotary_emb`.
"""

from dataclasses import dataclass

import torch

from deepseek_edu.model.norms import precise
from deepseek_edu.reference.rope import layer_frequencies


@dataclass(frozen=True)
class Rotation:
    """e^(i·angle) of every position's angles: complex [B T F], F = half of the rotated channels."""

    turns: torch.Tensor

    @classmethod
    def at(cls, positions, config, ratio, dtype):
        """Return the rotation of a layer with this ratio at int64 positions [B T]."""
        frequencies = torch.tensor(layer_frequencies(config, ratio), device=positions.device)  # F, float64
        angles = positions[..., None] * frequencies  # B T F
        kind = torch.complex128 if dtype == torch.float64 else torch.complex64
        return cls(torch.polar(torch.ones_like(angles), angles).to(kind))


def rotate_tail(x, rotation, inverse=False):
    """Turn the last 2F channels; neighbouring channels are a pair.

    Args:
        x: [B T D] or [B T H D].
        rotation: Rotation for B T.
        inverse: turn by the negative angle.

    Returns:
        Shape and type of x.
    """
    turns = rotation.turns.conj() if inverse else rotation.turns  # B T F
    if x.ndim == 4:
        turns = turns[:, :, None]  # B T 1 F
    tail = 2 * turns.shape[-1]
    kept, turning = x[..., : x.shape[-1] - tail], x[..., x.shape[-1] - tail :]
    pairs = torch.view_as_complex(precise(turning).reshape(*turning.shape[:-1], -1, 2))  # … F
    turned = torch.view_as_real(pairs * turns).flatten(-2)  # … 2F
    return torch.cat([kept, turned.to(x.dtype)], dim=-1)
