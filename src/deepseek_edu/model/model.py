"""The whole model: embedding, layers, logits; prefill in one piece or in chunks, decode of one or several tokens.

Rows of a batch may have different lengths and may be fed different numbers of tokens; `counts` says how many of a row's
ids are real. The first half of the layers is a causal encoder, the second a decoder that reads one global memory, so
`prefill` can skip the decoder for most of a prompt (table in reference/model.py): decoder="all", "exact", "report" or
"serving".

Without a cache `forward` trains: gradients reach every parameter but those of the indexer, whose choice has none.

Source: report, sections 2 and 3; reference `Transformer.forward`.
"""

import torch
from torch import nn

from deepseek_edu.model import dspark, linear, mhc
from deepseek_edu.model.block import Block
from deepseek_edu.model.csa2 import CSA2
from deepseek_edu.model.engram import NO_TOKEN, Engram, EngramHash
from deepseek_edu.model.language_model import LanguageModel
from deepseek_edu.model.linear import Head
from deepseek_edu.model.moe import MoE
from deepseek_edu.model.norms import RMSNorm
from deepseek_edu.model.output import Output, joined, require_logits
from deepseek_edu.model.run import Run
from deepseek_edu.model.span import Span
from deepseek_edu.model.tiles import Tail, cut, image_input
from deepseek_edu.model.vision import Aligner, VisionTower
from deepseek_edu.reference import checks
from deepseek_edu.reference import weights as names
from deepseek_edu.reference.model import DECODER_ROWS, decoder_rows

CHUNK = 1024
"""Tokens of a prompt that go through all layers together, if a caller does not say; faster than longer pieces."""


class Layer(Block):
    """A backbone layer: a block, before it an n-gram memory in some layers."""

    def __init__(self, plan, config, where):
        experts = MoE(config.n_routed_experts, config.n_activated_experts, config, where)
        super().__init__(CSA2(config, plan, where), experts, config, where)
        self.plan = plan
        if plan.engram is not None:
            self.engram = Engram(names.engram_rows(config)[plan.engram], config, where)


class Model(LanguageModel):
    """DeepSeek-V4.1 in PyTorch, random until weights are loaded. Parameters have their released names in state dicts.

    Args:
        config: ModelConfig, generation "v4.1".
        token_map: compressed id of each token id, for the Engram hash; needed to run a model with Engram layers.
        dtype, device: of the parameters; device "meta" allocates nothing.
        round_inputs: round what quantised matrices multiply to FP8, as the released kernels do (linear.py).

    Raises:
        ValueError: another generation, or a token map that does not fit.
    """

    optional_weights = ("vision.", "aligner.", "image_")  # a text-only model's weights have none

    def __init__(self, config, token_map=None, dtype=torch.float32, device="cpu", round_inputs=False):
        super().__init__()
        self.rounds_inputs = round_inputs
        if config.generation != "v4.1":
            raise ValueError(f"config.generation must be 'v4.1'; got {config.generation!r}")
        self.config = config
        where = {"dtype": dtype, "device": torch.device(device)}
        self.embed = dspark.Weight(config.vocab_size, config.dim, where)
        plans = config.schedule()[: config.n_layers]
        self.layers = nn.ModuleList(Layer(plan, config, where) for plan in plans)
        self.norm = RMSNorm(config.dim, config.norm_eps, where)
        self.head = Head(config.vocab_size, config.dim, where)
        self.mtp = nn.ModuleList(dspark.Stage(stage, config, where) for stage in range(config.n_mtp_layers))
        if config.vision_n_layers:
            self.vision, self.aligner = VisionTower(config, where), Aligner(config, where)
            self.image_start, self.image_end, self.image_newline = (
                nn.Parameter(torch.zeros(config.dim, **where)) for _ in range(3)
            )
        self.hash = None
        if token_map is not None and config.engram_layer_ids:
            self.hash = EngramHash(config, token_map, where["device"])
        if round_inputs:
            linear.round_inputs(self)

    def weight_shapes(self):
        """Return {released name: shape} of all parameters."""
        return names.weight_shapes(self.config)

    # Feeding tokens

    def forward(
        self,
        ids,
        cache=None,
        counts=None,
        types=None,
        features=None,
        stale_index_keys=False,
        logits="all",
        quantized=False,
        with_routing=False,
    ):
        """Process the next tokens of every row in all layers.

        Args:
            ids: int64 [B T]. What stands behind a row's own tokens is ignored.
            cache: Cache, grows by counts[b] positions in row b; None to train on whole sequences.
            counts: tokens of each row, [B], 0 … T; T by default.
            types: [B T] or None: −1 text, 0 image start, 1 image, 2 newline, 3 image end.
            features: [tokens inside image spans, C], row by row, that take the place of their embeddings, or None.
            stale_index_keys: reproduce the released decode's defect (csa2.py).
            logits: "all", "last" (of each row) or "none".
            quantized: without a cache, round what would be cached, with gradients straight through.
            with_routing: keep what the routers chose in Output.routing.

        Returns:
            Output.

        Raises:
            ValueError: ids, counts or types do not fit; the message names the argument.
        """
        require_logits(logits)
        if cache is None:
            cache = self.live_cache(ids, quantized)
        run = Run(self, cache, *self._begin(ids, cache, counts, types, features), stale_index_keys, with_routing)
        run.layers(self.layers)
        cache.advance(run.span.counts)
        return self._output(run, logits)

    @torch.inference_mode()
    def prefill(self, ids, cache, counts=None, types=None, features=None, chunk=None, decoder="all", logits="all"):
        """Process prompts.

        Args:
            ids: int64 [B T], or a list of lists of different lengths (then without counts).
            cache, counts, types, features, logits: as in `forward`.
            chunk: columns at a time, CHUNK by default; memory falls with it, the result stays the same.
            decoder: which tokens the decoder layers run on.

        Returns:
            Output. With decoder="all" and chunks, logits of all columns together. Its tensors are inference tensors:
            clone() them before gradients pass through what is made from them.

        Raises:
            ValueError: an unknown decoder, no tokens, or what `forward` refuses.
        """
        if decoder not in DECODER_ROWS:
            raise ValueError(f"decoder must be one of {', '.join(DECODER_ROWS)}; got {decoder!r}")
        require_logits(logits)
        self.require_memory(cache)
        ids, counts, types, features = self._checked(ids, cache, counts, types, features)
        width = ids.shape[1]
        chunk = min(width, CHUNK) if chunk is None else checks.count(chunk, "chunk", 1)
        pieces = []
        for begin in range(0, width, chunk):
            columns = slice(begin, begin + chunk)
            some = (counts - begin).clamp(0, chunk)
            pieces.append((ids[:, columns], some, *cut(types, features, columns, counts)))
        if decoder != "all":
            return self._prefill_skipping(cache, pieces, decoder, logits)
        outputs = [
            self.forward(some, cache, count, kinds, extra, logits=logits) for some, count, kinds, extra in pieces
        ]
        return outputs[0] if len(outputs) == 1 else joined(outputs, logits)

    # Steps of a forward pass

    def _checked(self, ids, cache, counts, types, features):
        """What a call was given, as tensors; refused before the cache is touched."""
        ids, counts = self.checked_tokens(ids, cache, counts)
        return ids, counts, *image_input(types, features, ids, counts, self.config.dim)

    def _begin(self, ids, cache, counts, types, features):
        config = self.config
        ids, counts, types, features = self._checked(ids, cache, counts, types, features)
        span = cache.span(counts, ids.shape[1])
        embedded, mask = self.embed(ids), None  # B T C
        if types is not None:
            mask = (types >= 0) & span.valid
        if features is not None:
            embedded = embedded.masked_scatter(mask[..., None], features.to(self.dtype))
        streams = embedded[:, :, None].repeat(1, 1, config.hc_mult, 1)  # B T S C
        pre = mhc.one_hot(*ids.shape, config.hc_mult, self.dtype, self.device)  # B T S
        return streams, pre, span, mask, self._hashes(ids, mask, span, cache)

    def _hashes(self, ids, mask, span, cache):
        if not self.config.engram_layer_ids:
            return None
        if self.hash is None:
            raise ValueError("token_map is needed: the model has Engram layers; see engram.compressed_token_map")
        back = self.config.engram_max_ngram_size - 1
        compressed = self.hash.compress(ids, mask)  # B T
        line = cache.history.line(span, back, compressed[..., None])[..., 0]  # B G-1+T
        return self.hash.rows(line.masked_fill(span.line_positions(back) < 0, NO_TOKEN))

    def _output(self, run, logits):
        hidden = mhc.collapse(run.streams, run.pre)  # B R C
        values = None
        if logits != "none":
            wanted = hidden if logits == "all" else run.span.take_last(hidden, 1)
            values = self.head(self.norm(wanted))
        main_hidden, span = run.main_hidden()
        if len(self.mtp) and main_hidden is not None:
            dspark.insert_context(main_hidden, span, self.mtp, run.cache)
        run.cache.decoded = run.cache.lengths.clone()
        choices = {layer: choice for layer, (choice, _) in run.published.choices.items()}
        return Output(values, run.span, main_hidden, choices, run.hashes, run.layer_tokens, hidden, run.routing or [])

    def _prefill_skipping(self, cache, pieces, decoder, logits):
        first_decoder = self.config.decoder_start
        rows = decoder_rows(self.config, decoder)
        keep = Tail(rows[0][0])
        hashes, layer_tokens = [], 0
        for ids, counts, types, features in pieces:
            run = Run(self, cache, *self._begin(ids, cache, counts, types, features))
            run.layers(self.layers[:first_decoder])
            run.store(self.layers[first_decoder])
            cache.advance(run.span.counts)
            mask = torch.zeros_like(ids, dtype=torch.bool) if run.mask is None else run.mask
            tiles = {"streams": run.streams, "pre": run.pre, "mask": mask}
            tiles |= {layer: tile for layer, (tile, _) in run.means.items()}
            if run.hashes is not None:
                tiles["hashes"] = run.hashes
                hashes.append(run.hashes)
            keep.add(run.span.counts, tiles)
            layer_tokens += run.layer_tokens
        width = keep.tiles["pre"].shape[1]
        span = Span(cache.lengths - keep.counts, keep.counts, width, self.config, cache.device, cache.dtype)
        mask = keep.tiles["mask"] if any(piece[2] is not None for piece in pieces) else None
        run = Run(self, cache, keep.tiles["streams"], keep.tiles["pre"], span, mask, keep.tiles.get("hashes"))
        run.means = {layer: (tile, span) for layer, tile in keep.tiles.items() if isinstance(layer, int)}
        run.layer_tokens = layer_tokens
        run.layers(self.layers[first_decoder:], rows)
        cache.settle(torch.where(keep.counts > 0, cache.lengths, 0))
        run.hashes = torch.cat(hashes, dim=1) if hashes else None
        return self._output(run, logits)
