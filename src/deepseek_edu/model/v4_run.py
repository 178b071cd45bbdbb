"""One pass of some tokens through V4's layers, and what those tokens share on the way.

Source: V4 reference `Transformer`; our own.
"""

import torch

from deepseek_edu.model import v4_step


class Run:
    """The tokens of one call.

    Args:
        model: V4Model whose layers run.
        ids: int64 [B T]; call: v4_attention.Call.
        with_routing: keep scores and experts of every layer.

    Attributes:
        streams: [B T S C], after the last layer that ran.
        routing: (scores [N E], experts [N k]) of each layer, or None.
    """

    def __init__(self, model, ids, call, with_routing=False):
        self.ids, self.call, self.routing = ids, call, [] if with_routing else None
        self.streams = model.embed(ids)[:, :, None].repeat(1, 1, model.config.hc_mult, 1)  # B T S C
        self._valid = None if call.span.full else call.span.valid
        self._read = model.config.dspark_target_layer_ids if model.drafter == "dspark" else ()
        self._means = {}
        one = self.routing is None and v4_step.fits(call)
        self._step = v4_step.Step(int(ids), call) if one else None

    def layer(self, layer):
        """Run one layer.

        Args:
            layer: V4Block.
        """
        if self._step is not None:
            self.streams = torch.from_numpy(self._step.layer(layer, self.streams[0, 0].numpy()))[None, None]
            self._remember(layer)
        else:
            self.attend(layer)
            self.feed(layer)

    def attend(self, layer):
        """Run the first sub-block of a layer, which reads what earlier tokens left there."""
        self.streams = layer.attend(self.streams, lambda u: layer.attn(u, self.call))

    def feed(self, layer):
        """Run the second sub-block of a layer, in which every token is alone."""
        self.streams = layer.feed(self.streams, lambda u: layer.ffn(u, self.ids, self._valid, self.routing))
        self._remember(layer)

    def _remember(self, layer):
        if layer.plan.index in self._read:
            self._means[layer.plan.index] = self.streams.mean(dim=2)  # B T C

    def main_hidden(self):
        """Return what the draft stages read, [B T targets·C], or None without them."""
        return torch.cat([self._means[layer] for layer in self._read], dim=-1) if self._read else None
