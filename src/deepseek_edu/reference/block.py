"""One layer: attention and experts, each between the collapse and the expansion of the residual streams.

Written once, for the backbone and for the draft stages; what attends and what feeds forward is passed in.

Source: report, section 2.4.1; reference `Block.forward`.
"""

from deepseek_edu.reference import mhc, norms


def attention_input(streams, pre, w, config):
    """Return what a layer's attention reads: RMSNorm of the collapsed streams, [T C].

    Args:
        pre: [T S], how much of each stream is read.
    """
    return norms.rms_norm(mhc.collapse(streams, pre), w["attn_norm.weight"], config.norm_eps)


def block(streams, pre, w, attend, feed, config):
    """Run one layer.

    Args:
        streams: X [T S C].
        pre: A [T S], left by the sub-block before (mhc.one_hot at the beginning).
        w: the layer's weights by released name.
        attend: function u [T C] -> [R C], the outputs of the last R ≤ T tokens.
        feed: function u [R C] -> [R C].
        config: ModelConfig.

    Returns:
        (streams [R S C], pre [R S] for the next layer).
    """
    attention = mhc.coefficients(streams, w["hc_attn_fn"], w["hc_attn_base"], w["hc_attn_scale"], config)
    y = attend(attention_input(streams, pre, w, config))  # R C
    rows = len(y)
    attention = attention.last(rows)
    streams = mhc.expand(streams[len(streams) - rows :], y, attention)  # R S C
    experts = mhc.coefficients(streams, w["hc_ffn_fn"], w["hc_ffn_base"], w["hc_ffn_scale"], config)
    u = norms.rms_norm(mhc.collapse(streams, attention.pre), w["ffn_norm.weight"], config.norm_eps)
    return mhc.expand(streams, feed(u), experts), experts.pre
