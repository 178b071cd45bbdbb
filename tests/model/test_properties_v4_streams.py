"""V4's residual streams, their collapse at the end, and the layers that draft, each against its formula by hand."""

import numpy as np
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import v4_block, v4_experts, v4_streams
from deepseek_edu.model.v4_model import V4Model

from ..reference.test_mhc import sinkhorn_by_hand
from ..reference.test_v4 import tiny_v4
from ..reference.test_v4_dspark import drafting_v4
from .numbers import WHERE, fill, random, rms
from .tiny import gap


def around_by_hand(streams, projection, base, scale, config, act):
    """X' [S C] of one token from X [S C], from the definition."""
    size = len(streams)
    flat = streams.flatten().numpy()
    mixes = projection.numpy() @ rms(flat, config.norm_eps)
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    b, s = base.numpy(), scale.numpy()
    pre = sigmoid(mixes[:size] * s[0] + b[:size]) + config.hc_eps
    post = 2 * sigmoid(mixes[size : 2 * size] * s[1] + b[size : 2 * size])
    matrix = (mixes[2 * size :] * s[2] + b[2 * size :]).reshape(size, size)
    mix = np.array(sinkhorn_by_hand(matrix.tolist(), config.hc_sinkhorn_iters, config.hc_eps))
    x = streams.numpy()
    return post[:, None] * act(pre @ x) + np.array([sum(mix[i, j] * x[i] for i in range(size)) for j in range(size)])


def test_a_sub_block_collapses_the_streams_with_coefficients_of_their_own():
    """One token and several, with gradients and without, four streams and three."""
    for size in (4, 3):
        config = ModelConfig.tiny(hc_mult=size, hc_eps=0.01)
        numbers = 2 * size + size**2
        projection, base = random(numbers, size * 32, seed=1) * 0.2, random(numbers, seed=2)
        scale = random(3, seed=3)
        streams = random(2, 3, size, 32)
        for gradients in (True, False):
            with torch.set_grad_enabled(gradients):
                for some in (streams, streams[:1, :1]):
                    got = v4_streams.around(some, projection, base, scale, config, torch.tanh)
                    for row in range(got.shape[0]):
                        for place in range(got.shape[1]):
                            expected = around_by_hand(some[row, place], projection, base, scale, config, np.tanh)
                            assert gap(got[row, place], expected) < 1e-10


def test_the_last_streams_collapse_with_logistic_weights_of_their_own():
    config = tiny_v4(hc_eps=0.01)
    model = fill(V4Model(config, dtype=torch.float64), 7)
    streams = random(1, 2, 4, config.dim, seed=8) * 3
    with torch.no_grad():
        model.hc_head_scale.fill_(0.7)
        got = model.collapse(streams)
    fn, base = model.hc_head_fn.detach().numpy(), model.hc_head_base.detach().numpy()
    for place in range(2):
        x = streams[0, place].numpy()
        pre = 1 / (1 + np.exp(-(0.7 * (fn @ rms(x.flatten())) + base))) + 0.01
        assert gap(got[0, place], pre @ x) < 1e-12


def test_the_previews_layer_joins_the_streams_and_the_next_embedding():
    config = tiny_v4()
    plan = config.schedule()[config.n_layers]
    layer = fill(v4_block.NextTokenLayer(plan, config, v4_experts.V4MoE(4, 2, config, False, WHERE), WHERE), 9)
    streams, embedded = random(1, 2, 4, config.dim), random(1, 2, config.dim, seed=1)
    with torch.no_grad():
        got = layer.join(streams, embedded)
    w = {name: values.numpy() for name, values in layer.state_dict().items()}
    for place in range(2):
        token = w["e_proj.weight"] @ (rms(embedded[0, place].numpy()) * w["enorm.weight"])
        for stream in range(4):
            hidden = w["h_proj.weight"] @ (rms(streams[0, place, stream].numpy()) * w["hnorm.weight"])
            assert gap(got[0, place, stream], token + hidden) < 1e-12


def test_the_last_draft_stage_collapses_its_streams_by_its_own_head_and_the_others_by_nothing():
    config = drafting_v4()
    streams, pre = random(1, 2, 4, config.dim), random(1, 2, 4, seed=1)
    for stage in range(3):
        one = fill(v4_block.DraftStage(stage, config, WHERE), stage)
        with torch.no_grad():
            after, got = one(streams, pre, torch.tanh, torch.sin)
            expected = one.run(streams, torch.tanh, torch.sin)
            assert gap(after, expected) == 0
            assert gap(got, one.head_pre(after) if stage == 2 else pre) == 0
        assert hasattr(one, "main_proj") is (stage == 0)
        assert one.ffn.gate.k == config.dspark_n_activated_experts
