"""One layer of V4, with unshifted hyper-connections, and the layers that draft: the preview's, and those of 31 July.

Source: V4 report; V4 reference `Block`, `MTPBlock`; in words in reference/v4_model.py and reference/v4_dspark.py.
"""

import torch
from torch import nn

from deepseek_edu.model import mhc
from deepseek_edu.model.block import Block
from deepseek_edu.model.dspark import ConfidenceHead, MarkovHead
from deepseek_edu.model.linear import Matrix, at_least_float32, outside_autocast
from deepseek_edu.model.norms import RMSNorm, precise, reciprocal_rms
from deepseek_edu.model.v4_attention import V4Attention
from deepseek_edu.model.v4_experts import V4MoE
from deepseek_edu.model.v4_streams import around


class StreamHead(nn.Module):
    """A module that ends with the learned collapse of the streams (`hc_head`) and a norm."""

    def add_head(self, config, where):
        """Make the parameters hc_head_fn [S  S·C], hc_head_base [S], hc_head_scale [1] and norm."""
        n, wide = config.hc_mult, at_least_float32(where)
        self.hc_head_fn = nn.Parameter(torch.empty(n, n * config.dim, **wide))
        nn.init.normal_(self.hc_head_fn, std=0.1 * (n * config.dim) ** -0.5)
        self.hc_head_base = nn.Parameter(torch.zeros(n, **wide))
        self.hc_head_scale = nn.Parameter(torch.ones(1, **wide))
        self.norm = RMSNorm(config.dim, config.norm_eps, where)

    @outside_autocast
    def head_pre(self, streams):
        """Return A of the collapse before the norm: [B T S] from streams [B T S C]."""
        flat = precise(streams.flatten(2))
        mixes = nn.functional.linear(flat, self.hc_head_fn.to(flat.dtype))
        mixes = mixes * reciprocal_rms(flat, self.config.norm_eps)  # B T S
        return (mixes * self.hc_head_scale + self.hc_head_base).sigmoid() + self.config.hc_eps

    def collapse(self, streams):
        """Return what the norm reads: [B T C] from streams [B T S C]."""
        return mhc.collapse(streams, self.head_pre(streams))


class V4Block(Block):
    """One layer with unshifted hyper-connections; backbone layers, the preview's layer and draft stages.

    Args:
        plan: LayerPlan; config: ModelConfig.
        experts: V4MoE.
        where: device and dtype of the parameters.
    """

    def __init__(self, plan, config, experts, where):
        super().__init__(V4Attention(config, plan, where), experts, config, where)
        self.plan = plan

    def attend(self, streams, act):
        """Run the first sub-block: X' [B T S C] from X [B T S C]; act is its function u [B T C] -> [B T C]."""
        own = self.hc_attn_fn, self.hc_attn_base, self.hc_attn_scale
        return around(streams, *own, self.config, lambda x: act(self.attn_norm(x)))

    def feed(self, streams, act):
        """Run the second sub-block: X' [B T S C] from X [B T S C]; act is its function u [B T C] -> [B T C]."""
        own = self.hc_ffn_fn, self.hc_ffn_base, self.hc_ffn_scale
        return around(streams, *own, self.config, lambda x: act(self.ffn_norm(x)))

    def run(self, streams, attend, feed):
        """Return X' [B T S C] from X [B T S C]; attend and feed are functions u [B T C] -> [B T C]."""
        return self.feed(self.attend(streams, attend), feed)


class NextTokenLayer(V4Block, StreamHead):
    """The preview's layer: reads the last streams and the next token's embedding, predicts the token after it.

    Args:
        experts: routed experts of the layer.
    """

    def __init__(self, plan, config, experts, where):
        super().__init__(plan, config, experts, where)
        self.add_head(config, where)
        self.e_proj, self.h_proj = (Matrix(config.dim, config.dim, where) for _ in "eh")
        self.enorm, self.hnorm = (RMSNorm(config.dim, config.norm_eps, where) for _ in "eh")

    def join(self, streams, embedded):
        """Return the layer's input streams [B T S C] from the backbone's and embeddings [B T C]."""
        return self.e_proj(self.enorm(embedded))[:, :, None] + self.h_proj(self.hnorm(streams))


class DraftStage(V4Block, StreamHead):
    """One draft stage. The first also projects the backbone's streams, the last also has the heads."""

    def __init__(self, stage, config, where):
        count, k = config.dspark_n_routed_experts, config.dspark_n_activated_experts
        super().__init__(
            config.schedule()[config.n_layers + stage], config, V4MoE(count, k, config, False, where), where
        )
        if stage == 0:
            self.main_proj = Matrix(config.dim, config.dim * len(config.dspark_target_layer_ids), where)
            self.main_norm = RMSNorm(config.dim, config.norm_eps, where)
        self.last = stage == config.n_mtp_layers - 1
        if self.last:
            self.add_head(config, where)
            self.markov_head = MarkovHead(config, where)
            self.confidence_head = ConfidenceHead(config, where)

    def forward(self, streams, pre, attend, feed):
        """Run the stage as dspark.py asks: (streams [B R S C], A [B R S] that collapses them after the last stage).

        Args:
            streams: [B R S C], of the rows of the block.
            pre: [B R S], handed through by all stages but the last.
            attend, feed: the two sub-blocks, functions from [B R C] to [B R C].
        """
        streams = self.run(streams, attend, feed)
        return streams, self.head_pre(streams) if self.last else pre
