"""Images: sizes, patches, tower, aligner, span."""

import math

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import vision

from .tiny import gap, tiny_model, tiny_weights

CONFIG = ModelConfig.tiny()


def test_the_span_of_an_image_has_a_newline_per_row():
    assert vision.image_types(2, 3).tolist() == [0, 1, 1, 1, 2, 1, 1, 1, 2, 3]


@pytest.mark.parametrize(
    ("width", "height"), [(544, 544), (1, 1), (4000, 3000), (300, 9000), (20000, 10), (10, 20000), (1302, 1302)]
)
def test_every_size_fits_the_budget_in_whole_patches(width, height):
    config = ModelConfig.v41_flash()
    rows, columns, best_height, best_width = vision.plan_grid(width, height, config)
    assert rows * (columns + 1) + 2 <= 1024
    assert best_height % 14 == best_width % 14 == 0
    assert (rows, columns) == (math.ceil(best_height / 42), math.ceil(best_width / 42))


@pytest.mark.parametrize(
    ("width", "height", "sizes"),
    [
        (1962, 2571, {"vision_max_tokens": 5}),
        (57332, 107, {"vision_patch_size": 14, "vision_max_tokens": 1024}),
        *((width, height, {"vision_max_tokens": 9}) for width in (3, 40, 700) for height in (5, 50, 999)),
    ],
)
def test_an_image_keeps_a_patch_in_each_direction_where_patches_are_tokens(width, height, sizes):
    config = ModelConfig.tiny(vision_downsample_ratio=1, **sizes)
    rows, columns, best_height, best_width = vision.plan_grid(width, height, config)
    assert min(rows, columns) >= 1
    assert (rows, columns) == (best_height // config.vision_patch_size, best_width // config.vision_patch_size)
    assert rows * (columns + 1) + 2 <= config.vision_max_tokens


def test_known_sizes():
    """544² needs no scaling: 39 patches, 13 tokens a side. Smaller ones grow to about 544², larger ones shrink."""
    config = ModelConfig.v41_flash()
    assert vision.plan_grid(544, 544, config) == (13, 13, 546, 546)
    assert vision.plan_grid(100, 100, config) == (13, 13, 546, 546)
    assert vision.plan_grid(5000, 5000, config) == (31, 31, 1302, 1302)


def test_patches_run_row_by_row_and_colour_by_colour():
    pixels = np.arange(8 * 4 * 3).reshape(8, 4, 3) / 96
    patches, rows, columns = vision.patches_of(pixels, CONFIG)
    assert (patches.shape, rows, columns) == ((2, 48), 2, 1)
    for colour in range(3):
        expected = (pixels[4:, :, colour] - 0.5) * 2
        assert gap(patches[1, 16 * colour : 16 * colour + 16], expected.ravel()) < 1e-12
    with pytest.raises(ValueError, match="multiples of 4"):
        vision.patches_of(np.zeros((7, 4, 3)), CONFIG)


def test_pairs_turn_by_row_and_then_by_column():
    x = np.random.default_rng(0).standard_normal((6, 2, 8))
    got = vision.rotate_2d(x, 2, 3, 100.0)
    frequencies = [1.0, 0.1]  # 100^(−0/4), 100^(−2/4)
    for n in range(6):
        row, column = n // 3, n % 3
        for h in range(2):
            for i in range(4):
                angle = (row, row, column, column)[i] * frequencies[i % 2]
                turned = complex(x[n, h, i], x[n, h, i + 4]) * complex(math.cos(angle), math.sin(angle))
                assert abs(got[n, h, i] - turned.real) < 1e-12
                assert abs(got[n, h, i + 4] - turned.imag) < 1e-12


def tower_by_hand(patches, columns, w):
    """The one layer of the tiny tower with explicit loops over heads and patches."""
    x = np.array([w["vision.patch_embed.proj.weight"] @ p + w["vision.patch_embed.proj.bias"] for p in patches])

    def norm(z, gain):
        return z / math.sqrt((z**2).mean() + 1e-6) * gain

    p = "vision.blocks.0."
    qkv = np.array([w[f"{p}attn.wqkv.weight"] @ norm(z, w[f"{p}norm1.weight"]) + w[f"{p}attn.wqkv.bias"] for z in x])
    parts = qkv.reshape(len(x), 3, 2, 16)
    q, k = (vision.rotate_2d(parts[:, i], len(x) // columns, columns, 1e4) for i in (0, 1))
    y = []
    for n in range(len(x)):
        heads = []
        for h in range(2):
            scores = np.exp([q[n, h] @ k[m, h] / 4 for m in range(len(x))])
            heads.append(sum(scores[m] * parts[m, 2, h] for m in range(len(x))) / scores.sum())
        y.append(x[n] + w[f"{p}attn.wo.weight"] @ np.concatenate(heads) + w[f"{p}attn.wo.bias"])
    result = []
    for z in y:
        gate, up = np.split(w[f"{p}mlp.w1.weight"] @ norm(z, w[f"{p}norm2.weight"]), 2)
        z = z + w[f"{p}mlp.w2.weight"] @ (gate / (1 + np.exp(-gate)) * up)
        result.append(norm(z, w["vision.norm.weight"]))
    return np.array(result)


def test_the_tower_is_a_pre_norm_transformer_over_all_patches():
    w = tiny_weights()
    patches = np.random.default_rng(1).standard_normal((8, 48))
    assert gap(vision.vision_tower(patches, 2, 4, w, CONFIG), tower_by_hand(patches, 4, w)) < 1e-10


def test_the_aligner_merges_three_by_three_and_fills_up_with_zeros():
    w = tiny_weights()
    features = np.random.default_rng(2).standard_normal((4 * 5, 32))
    got = vision.align(features, 4, 5, w, CONFIG)
    grid = np.zeros((6, 6, 32))
    grid[:4, :5] = features.reshape(4, 5, 32)
    assert got.shape == (4, 32)
    for token, (row, column) in enumerate([(0, 0), (0, 3), (3, 0), (3, 3)]):
        cell = grid[row : row + 3, column : column + 3]
        flat = np.concatenate([cell[:, :, channel].ravel() for channel in range(32)])
        hidden = w["aligner.w1.weight"] @ flat + w["aligner.w1.bias"]
        hidden = np.array([z * 0.5 * (1 + math.erf(z / math.sqrt(2))) for z in hidden])
        assert gap(got[token], w["aligner.w2.weight"] @ hidden + w["aligner.w2.bias"]) < 1e-10


def test_an_image_goes_through_the_model():
    model, w = tiny_model(), tiny_weights()
    patches, rows, columns = vision.patches_of(np.random.default_rng(3).random((16, 24, 3)), CONFIG)
    types, features = vision.image_span(patches, rows, columns, w, CONFIG)
    assert types.tolist() == vision.image_types(2, 2).tolist()
    np.testing.assert_array_equal(features[0], w["image_start"])
    np.testing.assert_array_equal(features[3], w["image_newline"])
    np.testing.assert_array_equal(features[-1], w["image_end"])
    ids = np.concatenate([[5, 6], np.full(len(types), 95), [7]])
    types = np.concatenate([[-1, -1], types, [-1]])
    output = model.prefill(ids, model.new_cache(quantized=False), types, features)
    other = model.prefill(ids, model.new_cache(quantized=False), types)
    assert gap(output.logits[:2], other.logits[:2]) < 1e-12
    assert gap(output.logits[-1], other.logits[-1]) > 1e-3


def test_sizes_and_pixels_that_are_none_are_refused():
    with pytest.raises(ValueError, match="pixels must be"):
        vision.patches_of(np.ones((8, 8)), CONFIG)
    for pixels in (np.full((4, 4, 3), 255, np.uint8), np.full((4, 4, 3), -0.1), np.full((4, 4, 3), math.nan)):
        with pytest.raises(ValueError, match=r"pixels must be 0 … 1; .* divide values of 8 bits by 255"):
            vision.patches_of(pixels, CONFIG)
    for width in (0, -3, math.nan, math.inf):
        with pytest.raises(ValueError, match="1 or more pixels"):
            vision.plan_grid(width, 5, CONFIG)
