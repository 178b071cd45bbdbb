"""DeepSeek-V4 in PyTorch: batched, cached, in chunks; with the preview's next-token layer or the later draft stages.

Differences to V4.1 are those of reference/v4_model.py. All layers run on all tokens: there is no encoder.

Source: V4 report; V4 reference `Transformer`, `Block`, `MTPBlock`.
"""

import numpy as np
import torch
from torch import nn

from deepseek_edu.model import dspark, mhc
from deepseek_edu.model import generate as generation
from deepseek_edu.model.block import Block
from deepseek_edu.model.linear import Matrix
from deepseek_edu.model.norms import RMSNorm, precise, reciprocal_rms
from deepseek_edu.model.output import Output, joined
from deepseek_edu.model.tiles import padded
from deepseek_edu.model.v4_attention import Call, V4Attention
from deepseek_edu.model.v4_cache import V4Cache
from deepseek_edu.model.v4_experts import V4MoE
from deepseek_edu.reference.v4_model import v4_weight_shapes


class StreamHead(nn.Module):
    """A module that ends with the learned collapse of the streams (`hc_head`) and a norm."""

    def add_head(self, config, where):
        """Make the parameters hc_head_fn [S  S·C], hc_head_base [S], hc_head_scale [1] and norm."""
        n = config.hc_mult
        self.hc_head_fn = nn.Parameter(torch.empty(n, n * config.dim, **where))
        nn.init.normal_(self.hc_head_fn, std=0.1 * (n * config.dim) ** -0.5)
        self.hc_head_base = nn.Parameter(torch.zeros(n, **where))
        self.hc_head_scale = nn.Parameter(torch.ones(1, **where))
        self.norm = RMSNorm(config.dim, config.norm_eps, where)

    def head_pre(self, streams):
        """Return A of the collapse before the norm: [B T S] from streams [B T S C]."""
        flat = precise(streams.flatten(2))
        mixes = nn.functional.linear(flat, self.hc_head_fn.to(flat.dtype))
        mixes = mixes * reciprocal_rms(flat, self.config.norm_eps)  # B T S
        return (mixes * self.hc_head_scale + self.hc_head_base).sigmoid() + self.config.hc_eps


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

    def run(self, streams, attend, feed):
        """Return X' [B T S C] from X [B T S C]; attend and feed are functions u [B T C] -> [B T C]."""
        for part, norm, act in (("attn", self.attn_norm, attend), ("ffn", self.ffn_norm, feed)):
            fn, base, scale = (getattr(self, f"hc_{part}_{name}") for name in ("fn", "base", "scale"))
            own = mhc.coefficients(streams, fn, base, scale, self.config)
            y = act(norm(mhc.collapse(streams, own.pre)))
            streams = mhc.expand(streams, y, own.post, own.mix)
        return streams


class NextTokenLayer(V4Block, StreamHead):
    """The preview's layer: reads the last streams and the next token's embedding, predicts the token after it."""

    def __init__(self, plan, config, experts, where):
        super().__init__(plan, config, experts, where)
        self.add_head(config, where)
        self.e_proj, self.h_proj = (Matrix(config.dim, config.dim, where) for _ in "eh")
        self.enorm, self.hnorm = (RMSNorm(config.dim, config.norm_eps, where) for _ in "eh")

    def join(self, streams, embedded):
        """Return the layer's input streams [B T S C] from the backbone's and embeddings [B T C]."""
        return self.e_proj(self.enorm(embedded))[:, :, None] + self.h_proj(self.hnorm(streams))


class V4Model(StreamHead):
    """DeepSeek-V4 in PyTorch, random until weights are loaded. Parameters have their released names in state dicts.

    Args:
        config: ModelConfig, generation "v4".
        drafter: None, or "mtp" for the preview's next-token layer.
        dtype, device: of the parameters; device "meta" allocates nothing.

    Raises:
        ValueError: another generation or an unknown drafter.
    """

    def __init__(self, config, drafter=None, dtype=torch.float32, device="cpu"):
        super().__init__()
        if config.generation != "v4":
            raise ValueError(f"config.generation must be 'v4'; got {config.generation!r}; V4.1 is model.Model")
        self.config, self.drafter = config, drafter
        where = {"dtype": dtype, "device": torch.device(device)}
        self.embed = dspark.Weight(config.vocab_size, config.dim, where)
        plans = config.schedule()
        count, k = config.n_routed_experts, config.n_activated_experts
        self.layers = nn.ModuleList(
            V4Block(plan, config, V4MoE(count, k, config, plan.hash_routed, where), where)
            for plan in plans[: config.n_layers]
        )
        self.add_head(config, where)
        self.head = Matrix(config.vocab_size, config.dim, where)
        self.mtp = nn.ModuleList()
        if drafter == "mtp":
            experts = V4MoE(count, k, config, False, where)
            self.mtp.append(NextTokenLayer(plans[config.n_layers], config, experts, where))
        elif drafter is not None:
            raise ValueError(f"drafter must be None or 'mtp'; got {drafter!r}")

    @property
    def dtype(self):
        """Type of the parameters."""
        return self.embed.weight.dtype

    @property
    def device(self):
        """Where the parameters are."""
        return self.embed.weight.device

    def load_weights(self, weights):
        """Take over weights by released name, arrays or tensors. Returns the model.

        Raises:
            ValueError: lists missing and unknown names and wrong shapes together.
        """
        shapes = v4_weight_shapes(self.config, mtp=self.drafter == "mtp")
        wrong = [f"{name} is missing" for name in shapes if name not in weights]
        wrong += [f"{name} is unknown" for name in weights if name not in shapes]
        wrong += [
            f"{name} has shape {tuple(weights[name].shape)}, not {shape}"
            for name, shape in shapes.items()
            if name in weights and tuple(weights[name].shape) != shape
        ]
        if wrong:
            raise ValueError(f"weights do not fit the configuration: {'; '.join(wrong[:12])} ({len(wrong)} in all)")
        self.load_state_dict({name: torch.as_tensor(np.asarray(array)) for name, array in weights.items()})
        return self

    def new_cache(self, batch=1, quantized=True, spare=None):
        """Return an empty V4Cache for a batch of sequences."""
        return V4Cache(self.config, batch, quantized, self.dtype, self.device, spare)

    # Feeding tokens

    def forward(self, ids, cache=None, counts=None, logits="all", quantized=False, with_routing=False):
        """Process the next tokens of every row.

        Args:
            ids: int64 [B T]. What stands behind a row's own tokens is ignored.
            cache: V4Cache, grows by counts[b] positions in row b; None to train on whole sequences.
            counts: tokens of each row, [B], 0 … T; T by default.
            logits: "all", "last" (of each row) or "none".
            quantized: without a cache, round what would be cached, with gradients straight through.
            with_routing: keep what the routers chose in Output.routing.

        Returns:
            Output; `hidden` is what the output matrix reads.

        Raises:
            ValueError: ids or counts do not fit; the message names the argument.
        """
        if logits not in ("all", "last", "none"):
            raise ValueError(f"logits must be 'all', 'last' or 'none'; got {logits!r}")
        ids, call = self._begin(ids, cache, counts, quantized)
        routing = [] if with_routing else None
        streams = self._layers(ids, call, routing)
        call.cache.advance(call.span.counts)
        call.cache.decoded = call.cache.lengths.clone()
        if logits == "last":
            streams = call.span.take_last(streams, 1)
        hidden = self.norm(mhc.collapse(streams, self.head_pre(streams)))  # B R C
        values = None if logits == "none" else self.head(hidden)
        tokens = len(self.layers) * int(call.span.counts.sum())
        return Output(values, call.span, None, {}, None, tokens, hidden, routing or [])

    @torch.no_grad()
    def prefill(self, ids, cache, counts=None, chunk=None, decoder="all", logits="all"):
        """Process prompts.

        Args:
            ids: int64 [B T], or a list of lists of different lengths (then without counts).
            cache, counts, logits: as in `forward`.
            chunk: columns at a time, or None for all at once; memory falls with it, the result stays the same.
            decoder: only "all"; V4 has no layers that could be skipped.

        Returns:
            Output. With chunks, logits of all columns together.
        """
        if decoder != "all":
            raise ValueError(f"decoder must be 'all' for V4, which has no encoder; got {decoder!r}")
        ids, counts = padded(ids, counts, self.device)
        width = ids.shape[1]
        chunk = width if chunk is None else chunk
        if chunk < 1:
            raise ValueError(f"chunk must be 1 or more tokens; got {chunk}")
        outputs = [
            self.forward(ids[:, begin : begin + chunk], cache, (counts - begin).clamp(0, chunk), logits=logits)
            for begin in range(0, width, chunk)
        ]
        return outputs[0] if len(outputs) == 1 else joined(outputs, logits)

    @torch.no_grad()
    def decode(self, ids, cache, **options):
        """Process one or several new tokens of every row: ids [B] or [B T]; options of `forward`. Returns Output."""
        ids = torch.as_tensor(ids, device=self.device)
        return self.forward(ids[:, None] if ids.ndim == 1 else ids, cache, **options)

    def generate(self, ids, max_new_tokens, **options):
        """Continue prompts; see `generate.generate` for the options. Returns one generate.Generation per row."""
        options.setdefault("speculative", False)
        return generation.generate(self, ids, max_new_tokens, **options)

    # Steps of a forward pass

    def _begin(self, ids, cache, counts, quantized):
        config = self.config
        ids, counts = padded(ids, counts, self.device)
        if ids.min() < 0 or ids.max() >= config.vocab_size:
            raise ValueError(f"ids must be 0 … {config.vocab_size - 1}; got {int(ids.min())} … {int(ids.max())}")
        if cache is None:
            cache = V4Cache(config, len(ids), quantized, self.dtype, self.device, live=True)
        if cache.config != config or cache.batch != len(ids):
            raise ValueError(
                f"cache must be made for this configuration and {len(ids)} rows; it has {cache.batch} rows and "
                f"{'the same' if cache.config == config else 'another'} configuration; use model.new_cache(batch)"
            )
        return ids, Call(cache.span(counts, ids.shape[1]), cache)

    def _layers(self, ids, call, routing):
        streams = self.embed(ids)[:, :, None].expand(-1, -1, self.config.hc_mult, -1)  # B T S C
        valid = None if call.span.full else call.span.valid
        for layer in self.layers:
            streams = layer.run(
                streams,
                lambda u, layer=layer: layer.attn(u, call),
                lambda u, layer=layer: layer.ffn(u, ids, valid, routing),
            )
        return streams
