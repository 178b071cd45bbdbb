"""The drafter's loss has one name, one set of arguments and one value in NumPy and in PyTorch."""

import inspect

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.model import losses
from deepseek_edu.reference import dspark
from deepseek_edu.reference import losses as numpy_losses
from deepseek_edu.reference.model import Model as NumpyModel

from ..reference.tiny import tiny_weights
from .tiny import recorded, tiny_model, token_map

SHARED = ("cross_entropy", "acceptance_rate", "position_weights", "draft_loss")


@pytest.mark.parametrize("name", SHARED)
def test_both_have_the_same_arguments_and_defaults(name):
    assert inspect.signature(getattr(losses, name)) == inspect.signature(getattr(numpy_losses, name))


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(3,), (2, 4), (1, 2, 5)]),
    st.integers(2, 9),
    st.sampled_from([0.0, 0.5, 4.0]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_both_give_the_same_value(seed, shape, vocabulary, gamma, masked):
    rng = np.random.default_rng(seed)
    draft, target = 3 * rng.standard_normal((2, *shape, vocabulary))
    targets, confidence = rng.integers(0, vocabulary, shape), 3 * rng.standard_normal(shape)
    mask = rng.random(shape) < 0.6 if masked else None
    factors = tuple(rng.random(3))
    expected = numpy_losses.draft_loss(draft, target, targets, confidence, mask, gamma, factors)
    arrays = (torch.tensor(x) for x in (draft, target, targets, confidence))
    got = losses.draft_loss(*arrays, mask if mask is None else torch.tensor(mask), gamma, factors)
    assert list(got) == list(expected)
    for name, value in expected.items():
        assert abs(float(got[name]) - value) < 1e-12 * max(1, abs(value)), name


def test_the_loss_on_a_text_is_that_of_drafts_whose_left_neighbours_are_the_text():
    """NumPy drafts with the text in place of its own choices; PyTorch trains on the whole text at once."""
    ids, anchors, model = recorded()["ids"], [1, 5, 20, 34], tiny_model()
    reference = NumpyModel(model.config, tiny_weights(), token_map())
    block, collected = model.config.dspark_block_size, [[], [], [], []]
    for anchor in anchors:
        for row in ids:
            cache = reference.new_cache(quantized=False)
            logits = reference.prefill(row, reference.new_cache(quantized=False)).logits
            reference.prefill(row[:anchor], cache)
            followed = row[anchor + 1 : anchor + 1 + block]
            draft = dspark.draft(row[anchor], anchor, reference, cache, lambda _, k, text=followed: int(text[k]))
            parts = (draft.logits, logits[anchor : anchor + block], followed, draft.confidence)
            for some, part in zip(collected, parts, strict=True):
                some.append(part)
    expected = numpy_losses.draft_loss(*(np.stack(some) for some in collected))
    with torch.no_grad():
        text = torch.tensor(ids)
        got = losses.draft_loss_on_text(model, text, model(text), anchors)
    for name, value in expected.items():
        assert abs(float(got[name]) - value) < 1e-9, name


def test_positions_that_do_not_count_have_no_value_and_no_gradient():
    draft = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    losses.draft_loss(draft, torch.zeros(2, 3, 5), torch.zeros(2, 3).long(), torch.zeros(2, 3), mask)["loss"].backward()
    assert (draft.grad.abs().sum(dim=-1) > 0).tolist() == mask.tolist()
    nothing = losses.draft_loss(draft, torch.zeros(2, 3, 5), torch.zeros(2, 3).long(), torch.zeros(2, 3), mask & False)
    assert [float(part.detach()) for part in nothing.values()] == [0, 0, 0, 0]


def test_confidence_is_taught_and_does_not_teach():
    """The confidence term moves the confidence alone, the others never do."""
    draft = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(1), requires_grad=True)
    confidence = torch.zeros(2, 3, requires_grad=True)
    parts = losses.draft_loss(draft, torch.zeros(2, 3, 5), torch.zeros(2, 3).long(), confidence)
    moved = torch.autograd.grad(parts["confidence"], [draft, confidence], retain_graph=True, allow_unused=True)
    assert moved[0] is None and moved[1].abs().min() > 0
    others = torch.autograd.grad(parts["cross_entropy"] + parts["distance"], [draft, confidence], allow_unused=True)
    assert others[0].abs().max() > 0 and others[1] is None


WRONG = [
    ((2, 3, 5), (2, 3, 4), (2, 3), (2, 3), None, "target_logits must be (2, 3, 5)"),
    ((2, 3, 5), (2, 3, 5), (2, 2), (2, 3), None, "targets must be integers (2, 3)"),
    ((2, 3, 5), (2, 3, 5), (2, 3), (3,), None, "confidence must be (2, 3)"),
    ((2, 3, 5), (2, 3, 5), (2, 3), (2, 3), (3,), "mask must be (2, 3)"),
    ((5,), (5,), (), (), None, "draft_logits must be (…, block, V)"),
]


@pytest.mark.parametrize("case", WRONG)
def test_shapes_that_do_not_belong_together_are_refused_by_both(case):
    draft, target, targets, confidence, mask, words = case
    arrays = [np.zeros(draft), np.zeros(target), np.zeros(targets, int), np.zeros(confidence)]
    mask = None if mask is None else np.ones(mask, bool)
    with pytest.raises(ValueError) as first:
        numpy_losses.draft_loss(*arrays, mask)
    with pytest.raises(ValueError) as second:
        losses.draft_loss(*(torch.tensor(x) for x in arrays), mask if mask is None else torch.tensor(mask))
    assert str(first.value) == str(second.value) and words in str(first.value)


@pytest.mark.parametrize("target", [-1, 5])
def test_a_target_outside_the_vocabulary_is_refused_by_both(target):
    for module, array in ((numpy_losses, np.array), (losses, torch.tensor)):
        with pytest.raises(ValueError, match=f"targets must be 0 … 4; got {target} … {target}"):
            module.cross_entropy(array([[0.0] * 5]), array([target]))
