"""The draft stages of V4's model of 31 July."""

import numpy as np
import pytest

from deepseek_edu.reference import mhc, v4_dspark, v4_model

from .test_v4 import random_weights, tiny_v4
from .tiny import gap


def drafting_v4(**changes):
    """Three draft stages that read the outputs of layers 2, 3 and 4."""
    return tiny_v4(
        n_mtp_layers=3,
        compress_ratios=(0, 4, 8, 4, 0, 0, 0, 0),
        dspark_target_layer_ids=(2, 3, 4),
        **changes,
    )


def drafting_model(seed=0, **changes):
    config = drafting_v4(**changes)
    return v4_model.V4Model(config, random_weights(config, seed, dspark=True))


def test_the_drafter_reads_the_outputs_of_its_layers():
    """The output of the last layer is the streams that the logits come from."""
    model, ids = drafting_model(), np.arange(12)
    hidden = model.main_hidden(ids)
    assert hidden.shape == (12, 96)
    assert gap(hidden[:, 64:], model.streams(ids).mean(axis=1)) < 1e-12
    assert gap(hidden[:, :32], hidden[:, 32:64]) > 1e-3


def test_a_draft_depends_on_what_the_windows_of_its_stages_hold():
    """Context reaches 8 positions back; through the backbone's own entries also further, but only by main_hidden."""
    model, ids = drafting_model(), np.arange(20)
    hidden = model.main_hidden(ids)
    first = v4_dspark.draft(7, ids, model)
    for row, counts in ((11, False), (12, True)):
        changed = hidden.copy()
        changed[row] += 1
        model.main_hidden = lambda ids, quantized, changed=changed: changed
        assert (gap(v4_dspark.draft(7, ids, model).logits, first.logits) > 1e-6) is counts
    assert first.ids.shape == (6,)
    assert first.ids[0] == 7


def test_rows_of_a_block_see_each_other_both_ways():
    config = drafting_v4()
    w = {
        n.removeprefix("mtp.0.attn."): a for n, a in random_weights(config, 1, dspark=True).items() if "mtp.0.attn" in n
    }
    u, none = np.random.default_rng(2).standard_normal((5, 32)), np.zeros((0, 32))
    before = v4_dspark.attend_block(u, none, 3, w, config)
    changed = u.copy()
    changed[4] += 1
    assert gap(v4_dspark.attend_block(changed, none, 3, w, config)[:4], before[:4]) > 1e-3


def test_the_last_stage_collapses_by_its_own_head():
    """The head's base decides alone once its matrix is zero: then hidden is a fixed mixture of the streams."""
    config = drafting_v4()
    weights = random_weights(config, 3, dspark=True)
    other = dict(weights)
    other["mtp.2.hc_head_base"] = weights["mtp.2.hc_head_base"] + np.array([3.0, 0, 0, -3.0])
    ids = np.arange(9)
    one, two = (v4_dspark.draft(5, ids, v4_model.V4Model(config, w)) for w in (weights, other))
    assert gap(one.logits[0], two.logits[0]) > 1e-3
    streams = np.random.default_rng(4).standard_normal((2, 4, 32))
    pre = mhc.head_pre(streams, np.zeros((4, 128)), np.zeros(4), np.ones(1), config)
    assert gap(mhc.collapse(streams, pre), streams.sum(axis=1) * (0.5 + 1e-6)) < 1e-12


def test_stages_take_as_many_experts_as_the_drafter_has():
    model, ids = drafting_model(), np.arange(9)
    shapes = v4_model.v4_weight_shapes(drafting_v4(), dspark=True)
    assert shapes["mtp.1.ffn.gate.weight"] == (6, 32)
    first = v4_dspark.draft(5, ids, model)
    model.config = drafting_v4(dspark_n_activated_experts=6)
    assert gap(v4_dspark.draft(5, ids, model).logits[0], first.logits[0]) > 1e-6


def test_what_cannot_be_drafted_from_is_refused():
    model = drafting_model()
    with pytest.raises(ValueError, match="one token or more"):
        v4_dspark.draft(5, [], model)
    plain = v4_model.V4Model(tiny_v4(), random_weights(tiny_v4(), 0))
    with pytest.raises(ValueError, match="must have draft stages"):
        v4_dspark.draft(5, [1, 2], plain)
