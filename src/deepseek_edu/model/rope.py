"""Rotary positions (RoPE) on the last channels, YaRN, and the inverse rotation of attention's output.

The frequencies are those of reference/rope.py. Angles are taken in float64, since float32 has no digits left for the
fraction of a turn at position 10⁶; only their cosines and sines are rounded.

Source: report, section 2.3; reference `precompute_freqs_cis` and `apply_rotary_emb`.
"""

from functools import lru_cache

import torch
from torch import nn

from deepseek_edu.model import one_token
from deepseek_edu.model.linear import suits_numpy
from deepseek_edu.model.norms import precise
from deepseek_edu.reference.rope import layer_frequencies


class Rotation:
    """The turns of all positions of a tile.

    Attributes:
        turns: e^(i·angle) of every position's angles, complex [B T F], F = half of the rotated channels.
    """

    def __init__(self, turns):
        self.turns = turns
        self._wider = {}

    def of_width(self, width, inverse=False):
        """Return the turns of vectors of this width, [B T width/2], 1 where channels stay; made once."""
        if (width, inverse) not in self._wider:
            turns = nn.functional.pad(self.turns, (width // 2 - self.turns.shape[-1], 0), value=1.0)
            self._wider[width, inverse] = turns.conj().resolve_conj() if inverse else turns
        return self._wider[width, inverse]

    @classmethod
    def at(cls, positions, config, ratio, dtype):
        """Return the rotation of a layer with this ratio at int64 positions [B T].

        Args:
            positions: int64 [B T].
            ratio: tokens for one entry of the layer; 0 for window only.
            dtype: of what will be turned; float64 is turned in float64, everything else in float32.
        """
        frequencies = _frequencies(config, ratio > 0, positions.device)
        angles = positions[..., None] * frequencies  # B T F
        kind = torch.complex128 if dtype == torch.float64 else torch.complex64
        return cls(torch.polar(torch.ones_like(angles), angles).to(kind))


@lru_cache
def _frequencies(config, compressed, device):
    """Angles per position, float64 [F]; those of all ratios above 0 are the same."""
    with torch.inference_mode(False):  # kept for later calls of any kind
        return torch.tensor(layer_frequencies(config, int(compressed)), device=device)


def rotate_tail(x, rotation, inverse=False):
    """Turn the last 2F channels; neighbouring channels are a pair.

    Args:
        x: [B T D] or [B T H D].
        rotation: Rotation for B T.
        inverse: turn by the negative angle.

    Returns:
        Shape and type of x.
    """
    if x.shape[:2] == (1, 1) and suits_numpy(x):
        turns = rotation.turns[0, 0].numpy()  # F
        return torch.from_numpy(one_token.turn(x.numpy().copy(), turns.conj() if inverse else turns))
    turns = rotation.of_width(x.shape[-1], inverse)  # B T D/2
    if x.ndim == 4:
        turns = turns[:, :, None]  # B T 1 D/2
    pairs = torch.view_as_complex(precise(x).unflatten(-1, (-1, 2)))  # … D/2
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)
