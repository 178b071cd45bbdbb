"""Printed numbers of the walk through one token (one_token_trace.json) from the PyTorch code."""

import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import mhc, moe, v4_reading, v4_streams

from ..reference.test_v4_trace import PRINTED, trace
from .tiny import gap


def numbers(values):
    return torch.tensor(values, dtype=torch.float64)


def coefficients():
    case = trace()["mhc"]
    mix = mhc.sinkhorn(numbers(case["exp_B_raw"]).log()[None, None], 20, 1e-6)
    return mhc.Coefficients(numbers([[case["A"]]]), numbers([[case["C"]]]), mix)


def test_streams_collapse_and_expand_as_printed():
    case, own = trace(), coefficients()
    assert gap(own.mix[0, 0], case["mhc"]["B"]) < PRINTED
    streams = numbers([[case["mhc"]["X"]]])
    assert gap(mhc.collapse(streams, own.pre)[0, 0], case["mhc"]["collapsed_H"]) < PRINTED
    new = mhc.expand(streams, numbers([[case["swa"]["F_attn"]]]), own.post, own.mix)
    assert gap(new[0, 0], case["swa"]["X_new"]) < PRINTED
    assert gap(mhc.collapse(new, own.pre)[0, 0], case["hash_moe"]["h"]) < PRINTED
    after = mhc.expand(new, numbers([[case["hash_moe"]["F_moe"]]]), own.post, own.mix)
    assert gap(after[0, 0], case["hash_moe"]["X_after_layer0"]) < PRINTED


@pytest.mark.parametrize(
    ("scores", "sink", "weights"),
    [
        (trace()["swa"]["scores"], trace()["swa"]["sink_logit"], trace()["swa"]["weights"]),
        (trace()["csa"]["core_scores"], trace()["csa"]["core_sink_logit"], trace()["csa"]["core_weights"]),
    ],
)
def test_the_zero_key_takes_the_sinks_share(scores, sink, weights):
    """Keys that are unit vectors return the weights themselves."""
    count = len(scores)
    keys = torch.cat([torch.zeros(1, count), torch.eye(count)])[None].double()
    hidden = torch.zeros(1, 1, count + 1, dtype=torch.bool)
    got = v4_reading.read(numbers([[[scores]]]), keys, hidden, numbers([sink]), 1.0)
    assert gap(got[0, 0, 0], weights) < PRINTED


def test_the_router_is_the_printed_one():
    case = trace()["router"]
    scores = moe.router_scores(numbers([case["logits"]]))
    assert gap(scores[0], case["sqrt"]) < PRINTED
    experts, weights = moe.route(scores, numbers(case["bias"]), 2)
    assert sorted(experts[0].tolist()) == sorted(case["selected"])
    by_expert = dict(zip(case["selected"], case["gates"], strict=True))
    assert gap(weights[0], [by_expert[expert] for expert in experts[0].tolist()]) < PRINTED


def test_one_token_goes_through_a_sub_block_as_many_do():
    """The short way of a decode step against the general one, which also serves training."""
    config = ModelConfig.tiny()
    generator = torch.Generator().manual_seed(0)
    streams, projection, base, scale = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((1, 1, 4, 32), (24, 128), (24,), (3,))
    )
    expected = v4_streams.around(streams, projection, base, scale, config, torch.tanh)
    with torch.no_grad():
        assert gap(v4_streams.around(streams, projection, base, scale, config, torch.tanh), expected) < 1e-12
        several = streams.expand(1, 3, -1, -1)
        got = v4_streams.around(several, projection, base, scale, config, torch.tanh)
    assert gap(got, expected.expand(-1, 3, -1, -1)) < 1e-12
