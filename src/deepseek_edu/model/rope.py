"""Rotary positions (RoPE) on the last channels, YaRN, and the inverse rotation of attention's output.

The frequencies are those of reference/rope.py. Angles are taken in float64, since float32 has no digits left for the
fraction of a turn at position 10⁶; only their cosines and sines are rounded.

Source: report, section 2.3; reference `precompute_freqs_cis` and `apply_rotary_emb`.
"""

from dataclasses import dataclass

import torch

from deepseek_edu.reference.rope import layer_frequencies


@dataclass(frozen=True)
class Rotation:
    """Cosine and sine of every position's angles, [B T F] each, F = half of the rotated channels."""

    cos: torch.Tensor
    sin: torch.Tensor

    @classmethod
    def at(cls, positions, config, ratio, dtype):
        """Return the rotation of a layer with this ratio at int64 positions [B T]."""
        frequencies = torch.tensor(layer_frequencies(config, ratio), device=positions.device)  # F, float64
        angles = positions[..., None] * frequencies  # B T F
        return cls(angles.cos().to(dtype), angles.sin().to(dtype))

    def part(self, columns):
        """Return the rotation of some columns of the tile (a slice)."""
        return Rotation(self.cos[:, columns], self.sin[:, columns])


def rotate_tail(x, rotation, inverse=False):
    """Turn the last 2F channels; neighbouring channels are a pair.

    Args:
        x: [B T D] or [B T H D].
        rotation: Rotation for B T.
        inverse: turn by the negative angle.

    Returns:
        Shape and type of x.
    """
    cos, sin = rotation.cos, -rotation.sin if inverse else rotation.sin  # B T F
    if x.ndim == 4:
        cos, sin = cos[:, :, None], sin[:, :, None]  # B T 1 F
    tail = 2 * cos.shape[-1]
    kept, turning = x[..., : x.shape[-1] - tail], x[..., x.shape[-1] - tail :]
    even, odd = turning.reshape(*turning.shape[:-1], -1, 2).to(cos.dtype).unbind(dim=-1)  # … F
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)  # … F 2
    return torch.cat([kept, turned.reshape(turning.shape).to(x.dtype)], dim=-1)
