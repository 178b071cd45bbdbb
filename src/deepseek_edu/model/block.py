"""One layer: attention and experts, each between the collapse and the expansion of the residual streams.

The single-pass shift: attention collapses with the A that the sub-block before left, the experts with the A of this
layer's attention, and the experts' own A goes on to the next layer.

Source: report, section 2.4.1; reference `Block.forward`.
"""

import torch
from torch import nn

from deepseek_edu.model import mhc
from deepseek_edu.model.linear import at_least_float32
from deepseek_edu.model.norms import RMSNorm


class Block(nn.Module):
    """Norms and hyper-connections around an attention and a feed-forward module; backbone layers and draft stages.

    Args:
        attention, experts: modules; they become `attn` and `ffn`.
        config: ModelConfig.
        where: device and dtype of the parameters.
    """

    def __init__(self, attention, experts, config, where):
        super().__init__()
        self.config = config
        self.attn, self.ffn = attention, experts
        self.attn_norm = RMSNorm(config.dim, config.norm_eps, where)
        self.ffn_norm = RMSNorm(config.dim, config.norm_eps, where)
        n = config.hc_mult
        numbers, where = 2 * n + n * n, at_least_float32(where)
        for part in ("attn", "ffn"):
            projection = nn.Parameter(torch.empty(numbers, n * config.dim, **where))
            nn.init.normal_(projection, std=0.1 * (n * config.dim) ** -0.5)
            setattr(self, f"hc_{part}_fn", projection)
            setattr(self, f"hc_{part}_base", nn.Parameter(torch.zeros(numbers, **where)))
            setattr(self, f"hc_{part}_scale", nn.Parameter(torch.ones(3, **where)))

    def attention_input(self, streams, pre):
        """Return what the layer's attention reads: RMSNorm of the collapsed streams, [B T C]."""
        return self.attn_norm(mhc.collapse(streams, pre))

    def forward(self, streams, pre, attend, feed, last=lambda x: x):
        """Run the layer.

        Args:
            streams: X [B T S C].
            pre: A [B T S], left by the sub-block before.
            attend: function u [B T C] -> [B T' C], for the last T' tokens of each row.
            feed: function u [B T' C] -> [B T' C].
            last: function from a tile [B T …] to those last tokens, [B T' …].

        Returns:
            (streams [B T' S C], pre [B T' S] for the next layer).
        """
        attention = mhc.coefficients(streams, self.hc_attn_fn, self.hc_attn_base, self.hc_attn_scale, self.config)
        y = attend(self.attention_input(streams, pre))  # B T' C
        attention = mhc.Coefficients(*map(last, attention))
        streams = mhc.expand(last(streams), y, attention.post, attention.mix)  # B T' S C
        experts = mhc.coefficients(streams, self.hc_ffn_fn, self.hc_ffn_base, self.hc_ffn_scale, self.config)
        y = feed(self.ffn_norm(mhc.collapse(streams, attention.pre)))  # B T' C
        return mhc.expand(streams, y, experts.post, experts.mix), experts.pre
