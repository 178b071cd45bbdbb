"""One pass of some tokens through layers, and what those tokens share on the way.

Layers hand on streams and the coefficients A. A skipping prefill runs the later layers on fewer tokens: from layer to
layer each row keeps only its last ones.

Source: report, section 2.2, for what a prefill leaves out; reference/model.py.
"""

import torch

from deepseek_edu.model import step
from deepseek_edu.model.csa2 import Published


class Run:
    """One pass through layers: what the tokens of this call share.

    Args:
        model: Model whose layers run.
        pre: [B T S], A of the sub-block before.
        mask: bool [B T], tokens inside an image span, or None.
        hashes: int64 [B T modules rows], table rows of the Engram modules, or None.
        stale_index_keys: reproduce the released decode's defect (csa2.py).
        with_routing: keep scores and experts of every layer, for the balance loss.
    """

    def __init__(self, model, cache, streams, pre, span, mask, hashes, stale_index_keys=False, with_routing=False):
        self.model, self.cache = model, cache
        self.streams, self.pre, self.span = streams, pre, span  # of the tokens that are still processed
        self.mask, self.hashes, self.begun = mask, hashes, span  # of all tokens the pass began with
        self.published = Published(stale_index_keys=stale_index_keys)
        self.means, self.layer_tokens = {}, 0
        self.routing = [] if with_routing else None

    def store(self, layer):
        """Make the global entries of a layer without running it."""
        u = layer.attention_input(self._remember(layer), self.pre)
        layer.attn.store_global(u, self.span, self.cache)

    def layers(self, layers, rows=None):
        """Run some layers; rows, per layer, is (tokens given, tokens computed), counted from each row's end."""
        self.step = step.Step(self) if rows is None and step.fits(self) else None
        for number, layer in enumerate(layers):
            given, asked = rows[number] if rows else (self.span.width, self.span.width)
            self._take(given)
            self._layer(layer, self.span.last(asked), skipping=rows is not None)

    def _take(self, rows):
        self.streams, self.pre = (self.span.take_last(x, rows) for x in (self.streams, self.pre))
        self.span = self.span.last(rows)

    def _image_mask(self):
        return None if self.mask is None else self.begun.take_last(self.mask, self.span.width)

    def _remember(self, layer):
        """The streams with the layer's n-gram memory, if it has one."""
        if layer.plan.engram is None:
            return self.streams
        rows = self.begun.take_last(self.hashes, self.span.width)[:, :, layer.plan.engram]
        return layer.engram(self.streams, rows, self._image_mask())

    def _layer(self, layer, asked, skipping):
        span, cache, plan = self.span, self.cache, layer.plan
        mask = self._image_mask()
        self.streams = self._remember(layer)
        if plan.index in self.model.config.dspark_target_layer_ids:
            self.means[plan.index] = self.streams.mean(dim=2), span  # B T C
        if plan.side == "decoder":
            cache.restart(cache.windows[plan.index], span.first)
        if self.step is not None:
            one = self.step.layer(layer, self.streams[0, 0].numpy(), self.pre[0, 0].numpy())
            self.streams, self.pre = (torch.from_numpy(numbers)[None, None] for numbers in one)
            self.layer_tokens += 1
            return

        def attend(u):
            if plan.mode == "full" and not skipping:
                layer.attn.store_global(u, span, cache)
            return layer.attn(u, span, cache, self.published, asked)

        def feed(u):
            images = None if mask is None else span.take_last(mask, asked.width)
            return layer.ffn(u, None if asked.full else asked.valid, images, self.routing)

        def last(x):
            return span.take_last(x, asked.width)

        self.streams, self.pre = layer(self.streams, self.pre, attend, feed, last)
        self.span = asked
        self.layer_tokens += int(asked.counts.sum())

    def main_hidden(self):
        """The means of the drafter's layers side by side, for the tokens that all of them have; and their Span."""
        if not self.means:
            return None, self.span
        spans = [span for _, span in self.means.values()]
        least = min(spans, key=lambda span: span.width)
        means = [span.take_last(tile, least.width) for _, (tile, span) in sorted(self.means.items())]
        return torch.cat(means, dim=-1), least
