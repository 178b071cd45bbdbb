"""Images in PyTorch against the NumPy tower, and through the whole model."""

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import vision
from deepseek_edu.reference import vision as numpy_vision
from deepseek_edu.reference.weights import random_weights

from .tiny import gap, pair

CONFIG = ModelConfig.tiny()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 3), (4, 7), (5, 2)])
def test_spans_are_those_of_the_reference(rows, columns):
    _, model = pair(CONFIG)
    weights = random_weights(CONFIG, 0)
    patches = np.random.default_rng(rows).standard_normal((rows * columns, 48))
    types, features = vision.image_span(model, patches, rows, columns)
    expected_types, expected = numpy_vision.image_span(patches, rows, columns, weights, CONFIG)
    np.testing.assert_array_equal(types, expected_types)
    assert gap(features, expected) < 1e-10


def test_an_image_inside_a_prompt_gives_the_logits_of_the_reference():
    numpy_model, model = pair(CONFIG)
    patches = np.random.default_rng(0).standard_normal((12, 48))
    types, features = vision.image_span(model, patches, 3, 4)
    ids = [5, 6, *[CONFIG.image_token_id] * len(types), 7]
    kinds = [-1, -1, *types.tolist(), -1]
    output = model.prefill([ids], model.new_cache(quantized=False), types=[kinds], features=features)
    state = numpy_model.new_cache(quantized=False)
    expected = numpy_model.prefill(ids, state, kinds, features.detach().numpy())
    assert gap(output.logits[0], expected.logits) < 1e-8


def test_gradients_reach_the_tower_and_the_delimiters():
    _, model = pair(CONFIG)
    types, features = vision.image_span(model, np.random.default_rng(1).standard_normal((4, 48)), 2, 2)
    ids = torch.tensor([[5, *[CONFIG.image_token_id] * len(types), 7, 8]])
    kinds = torch.cat([torch.tensor([-1]), types, torch.tensor([-1, -1])])[None]
    model(ids, types=kinds, features=features).logits[0, -1].square().sum().backward()
    for parameter in (model.vision.patch_embed.proj.bias, model.aligner.w1.weight, model.image_newline):
        assert parameter.grad.abs().max() > 0


def test_patches_that_do_not_fill_the_grid_and_models_without_a_tower_are_refused():
    _, model = pair(CONFIG)
    with pytest.raises(ValueError, match="patches must be 2 × 2 = 4; got 3"):
        vision.image_span(model, np.zeros((3, 48)), 2, 2)
    _, text_only = pair(ModelConfig.tiny(vision_n_layers=0))
    with pytest.raises(ValueError, match="no vision tower"):
        vision.image_span(text_only, np.zeros((4, 48)), 2, 2)
