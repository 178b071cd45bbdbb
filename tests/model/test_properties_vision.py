"""The vision tower's own rules: two-dimensional rotary positions, merging of patches, the span of an image."""

import math

import numpy as np
import torch

from deepseek_edu.model import vision

from ..reference.test_vision import tower_by_hand
from ..reference.tiny import tiny_weights
from .test_properties_streams import random
from .tiny import gap, tiny_model


def test_pairs_turn_by_row_and_then_by_column():
    """Six patches in two rows of three; eight channels: pairs (i, i + 4), two turn by the row, two by the column."""
    x = random(6, 2, 8)
    got = vision.rotate_2d(x, 2, 3, 1e4)
    for n in range(6):
        for i in range(4):
            place = n // 3 if i < 2 else n % 3
            angle = place * 1e4 ** (-2 * (i % 2) / 4)
            for h in range(2):
                turned = complex(x[n, h, i], x[n, h, i + 4]) * complex(math.cos(angle), math.sin(angle))
                assert gap(got[n, h, [i, i + 4]], [turned.real, turned.imag]) < 1e-12


def test_the_tower_is_a_pre_norm_transformer_over_all_patches():
    patches = np.random.default_rng(1).standard_normal((8, 48))
    with torch.no_grad():
        got = tiny_model().vision(torch.tensor(patches), 2, 4)
    assert gap(got, tower_by_hand(patches, 4, tiny_weights())) < 1e-10


def test_the_aligner_merges_three_by_three_and_fills_up_with_zeros():
    aligner, features = tiny_model().aligner, random(4 * 5, 32)
    with torch.no_grad():
        got = aligner(features, 4, 5)
        grid = torch.zeros(6, 6, 32, dtype=torch.float64)
        grid[:4, :5] = features.view(4, 5, 32)
        assert got.shape == (4, 32)
        for token, (row, column) in enumerate([(0, 0), (0, 3), (3, 0), (3, 3)]):
            cell = grid[row : row + 3, column : column + 3]
            flat = torch.cat([cell[:, :, channel].flatten() for channel in range(32)])
            hidden = [z * 0.5 * (1 + math.erf(z / math.sqrt(2))) for z in aligner.w1(flat).tolist()]
            assert gap(got[token], aligner.w2(torch.tensor(hidden, dtype=torch.float64))) < 1e-10


def test_an_image_has_a_delimiter_at_each_end_and_after_each_row():
    model = tiny_model()
    with torch.no_grad():
        types, features = vision.image_span(model, random(12, 48).numpy(), 4, 3)
    assert types.tolist() == [0, 1, 2, 1, 2, 3]
    for place, vector in ((0, model.image_start), (2, model.image_newline), (5, model.image_end)):
        assert torch.equal(features[place], vector)
