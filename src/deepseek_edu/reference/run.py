"""One pass of some tokens through layers, and what those tokens share on the way.

Layers hand on streams and the coefficients A. A skipping prefill runs the later layers on fewer tokens: from layer to
layer only the last ones are kept.

Source: reference `Transformer.forward` and `Block.forward`; for what a prefill leaves out report, section 3.2.2.
"""

from deepseek_edu.reference import block, csa2, engram, moe


class Run:
    """One pass through layers: what the tokens of this call share.

    Args:
        model: Model whose layers run.
        position: of the first token.
        mask: bool [T], tokens inside an image span, or None.
        hashes: int64 [T modules rows], table rows of the Engram modules, or None.

    Attributes:
        means: of the streams at the input of the drafter's layers, [R C] each.
        layer_tokens: tokens processed, summed over layers.
    """

    def __init__(self, model, cache, position, mask, hashes, published):
        self.model, self.cache, self.position = model, cache, position
        self.mask, self.hashes, self.published = mask, hashes, published
        self.means, self.layer_tokens = [], 0

    def remember(self, streams, plan):
        """Add the layer's n-gram memory, if it has one: [T S C]."""
        if plan.engram is None:
            return streams
        rows = self.hashes[len(self.hashes) - len(streams) :, plan.engram]
        w = self.model.layer_parts[plan.index]["engram"]
        return engram.engram(streams, rows, w, self.model.config, self._mask(len(streams)))

    def _mask(self, rows):
        return None if self.mask is None else self.mask[len(self.mask) - rows :]

    def store(self, streams, pre, plan):
        """Make the global entries of a layer from the streams at its input, and nothing else of it.

        Args:
            streams: [T S C].
            pre: [T S], A of the sub-block before.
        """
        w = self.model.layer_parts[plan.index]["attn"]
        layer, config = self.model.layers[plan.index], self.model.config
        u = block.attention_input(self.remember(streams, plan), pre, layer, config)
        csa2.store_global(u, self.position, w, plan, self.cache, self.model.frequencies[plan.ratio])

    def layers(self, streams, pre, plans, rows=None):
        """Run some layers.

        Args:
            streams: [T S C]; pre: [T S].
            plans: LayerPlan of each.
            rows: per layer (tokens given, tokens computed), counted from the end; None for all, and then owners store.

        Returns:
            (streams [R S C], pre [R S]) of the tokens the last layer computed.
        """
        end = self.position + len(streams)
        for number, plan in enumerate(plans):
            given, asked = rows[number] if rows else (len(streams), len(streams))
            given = min(given, len(streams))
            streams, pre = streams[len(streams) - given :], pre[len(pre) - given :]
            streams, pre = self._layer(streams, pre, plan, end - given, min(asked, given), storing=rows is None)
        return streams, pre

    def _layer(self, streams, pre, plan, position, asked, storing):
        model, config, layer = self.model, self.model.config, plan.index
        w, parts = model.layers[layer], model.layer_parts[layer]
        frequencies = model.frequencies[plan.ratio]
        streams = self.remember(streams, plan)
        if layer in config.dspark_target_layer_ids:
            self.means.append(streams.mean(axis=1))  # R C

        def attend(u):
            if plan.mode == "full" and storing:
                csa2.store_global(u, position, parts["attn"], plan, self.cache, frequencies)
            return csa2.attend(
                u, position, parts["attn"], plan, self.cache, frequencies, self.published, None if storing else asked
            )

        def feed(u):
            return moe.moe(u, parts["ffn"], config.n_activated_experts, config, self._mask(len(u)))

        self.layer_tokens += asked
        return block.block(streams, pre, w, attend, feed, config)
