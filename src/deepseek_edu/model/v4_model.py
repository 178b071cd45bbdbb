"""DeepSeek-V4 in PyTorch: batched, cached, in chunks; with the preview's next-token layer or the later draft stages.

Differences to V4.1 are those of reference/v4_model.py. All layers run on all tokens: there is no encoder.

Source: V4 report; V4 reference `Transformer`, `Block`, `MTPBlock`.
"""

from functools import partial

import torch
from torch import nn

from deepseek_edu.model import dspark, threads
from deepseek_edu.model.language_model import LanguageModel
from deepseek_edu.model.linear import Head
from deepseek_edu.model.output import Output, joined, require_logits
from deepseek_edu.model.span import Span
from deepseek_edu.model.tiles import next_ids
from deepseek_edu.model.v4_attention import Call
from deepseek_edu.model.v4_block import DraftStage, NextTokenLayer, StreamHead, V4Block
from deepseek_edu.model.v4_cache import V4Cache
from deepseek_edu.model.v4_experts import V4MoE
from deepseek_edu.model.v4_run import Run
from deepseek_edu.reference import checks
from deepseek_edu.reference.v4_model import v4_weight_shapes, wrong_tables

ONE_TOKEN_THREADS = 1
"""Threads of a decode step of one token on a CPU; None to leave PyTorch's number.

Such a step is some hundred short operations. Where other programs run beside it, two threads wait for each other at
each of them: a step that took 50 ms on one took 500 ms and more on two.
"""
PIECE = 1024
"""Columns of a prompt that are read together where pieces are read side by side.

Shorter pieces load the weights more often; with longer ones a thread is alone for longer at the beginning and the end.
"""
SHORTEST_PIECE = 512
"""Columns of a piece below which a prompt is read at once, since idle cores are up to a quarter faster then."""


class V4Model(LanguageModel, StreamHead):
    """DeepSeek-V4 in PyTorch, random until weights are loaded. Parameters have their released names in state dicts.

    Args:
        config: ModelConfig, generation "v4".
        drafter: None, "mtp" for the preview's next-token layer, or "dspark" for the draft stages of the 31 July model.
        dtype, device: of the parameters; device "meta" allocates nothing.

    Raises:
        ValueError: another generation or an unknown drafter.
    """

    cache_type = V4Cache

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
        self.head = Head(config.vocab_size, config.dim, where)
        self.mtp = nn.ModuleList()
        if drafter is not None and not config.n_mtp_layers:
            raise ValueError(
                f"config.n_mtp_layers must be 1 or more for drafter={drafter!r}; got 0; leave the drafter out, or give "
                "the configuration a draft layer"
            )
        if drafter == "mtp":
            experts = V4MoE(count, k, config, False, where)
            self.mtp.append(NextTokenLayer(plans[config.n_layers], config, experts, where))
        elif drafter == "dspark":
            self.mtp.extend(DraftStage(stage, config, where) for stage in range(config.n_mtp_layers))
        elif drafter is not None:
            raise ValueError(f"drafter must be None, 'mtp' or 'dspark'; got {drafter!r}")

    def weight_shapes(self):
        """Return {released name: shape} of all parameters and tables."""
        return v4_weight_shapes(self.config, mtp=self.drafter == "mtp", dspark=self.drafter == "dspark")

    def wrong_values(self, weights):
        """Return the tables among weights, {name: array}, that hold something else than numbers of experts."""
        return wrong_tables(weights, self.config)

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
            Output; `hidden` is what the last norm reads, of all tokens.

        Raises:
            ValueError: ids or counts do not fit; the message names the argument.
        """
        require_logits(logits)
        run = Run(self, *self._begin(ids, cache, counts, quantized), with_routing)
        self._layers(run)
        return self._finish(run, logits)

    def predict_after_next(self, ids, following, cache=None, counts=None, quantized=False):
        """Run backbone and next-token layer: logits [B T V] for the token after the next one.

        Args:
            ids: int64 [B T]; following: int64 [B T], the next token of each position.
            cache, counts, quantized: as in `forward`.

        Raises:
            ValueError: the model has no next-token layer, or it has not seen all tokens of the cache.
        """
        if self.drafter != "mtp":
            raise ValueError(f"the model must be made with drafter='mtp' for this; it has {self.drafter!r}")
        ids, call = self._begin(ids, cache, counts, quantized)
        if bool((call.cache.decoded != call.cache.lengths).any()):
            raise ValueError(
                f"cache must have been fed by predict_after_next alone; it has {call.cache.lengths.tolist()} tokens, "
                f"the next-token layer has seen {call.cache.decoded.tolist()}; begin with a new cache"
            )
        layer = self.mtp[0]
        streams = self._layers(Run(self, ids, call))
        following = torch.as_tensor(following, device=self.device)
        streams = layer.run(
            layer.join(streams, self.embed(following)),
            lambda u: layer.attn(u, call, call.cache.draft_windows[0]),
            lambda u: layer.ffn(u, None, None if call.span.full else call.span.valid),
        )
        call.cache.advance(call.span.counts)
        call.cache.decoded = call.cache.lengths.clone()
        return self.head(layer.norm(layer.collapse(streams)))

    @torch.inference_mode()
    def prefill(self, ids, cache, counts=None, chunk=None, decoder="all", logits="all"):
        """Process prompts.

        Args:
            ids: int64 [B T], or a list of lists of different lengths (then without counts).
            cache, counts, logits: as in `forward`.
            chunk: columns at a time; memory falls with it. None for all at once, on a CPU for two pieces of up to PIECE
                columns at a time, on a thread each (threads.py). The result stays the same.
            decoder: only "all"; V4 has no layers that could be skipped.

        Returns:
            Output. With chunks, logits of all columns together.

        Raises:
            ValueError: another decoder, no tokens, or what `forward` refuses.
        """
        if decoder != "all":
            raise ValueError(f"decoder must be 'all' for V4, which has no encoder; got {decoder!r}")
        require_logits(logits)
        self.require_memory(cache)
        ids, counts = self.checked_tokens(ids, cache, counts)
        width = ids.shape[1]
        if chunk is None and self._cut_pays(width):
            piece = min(PIECE, -(-width // 2))
            return joined(self._side_by_side(ids, cache, counts, piece, logits), logits)
        chunk = width if chunk is None else checks.count(chunk, "chunk", 1)
        outputs = [
            self.forward(ids[:, begin : begin + chunk], cache, (counts - begin).clamp(0, chunk), logits=logits)
            for begin in range(0, width, chunk)
        ]
        return outputs[0] if len(outputs) == 1 else joined(outputs, logits)

    @torch.inference_mode()
    def decode(self, ids, cache, **options):
        """Process one or several new tokens of every row: ids [B] or [B T]; options of `forward`. Returns Output.

        A single token on a CPU runs on ONE_TOKEN_THREADS threads.
        """
        ids = next_ids(ids, self.device)
        alone = ids.numel() == 1 and self.device.type == "cpu"
        with threads.limited(ONE_TOKEN_THREADS if alone else None):
            return super().decode(ids, cache, **options)

    def generate(self, ids, max_new_tokens, **options):
        """Continue prompts; see `generate.generate` for the options. Returns one generate.Generation per row.

        Only the draft stages of DSpark draft; with another drafter, or none, tokens come one by one.

        Raises:
            ValueError: types or features, which belong to images; or what `generate.generate` refuses.
        """
        if options.get("types") is not None or options.get("features") is not None:
            raise ValueError("types and features must be left out: V4 reads no images")
        if self.drafter != "dspark":
            options["speculative"] = False
        return super().generate(ids, max_new_tokens, **options)

    # Steps of a forward pass

    def _begin(self, ids, cache, counts, quantized):
        if cache is None:
            cache = self.live_cache(ids, quantized)
        ids, counts = self.checked_tokens(ids, cache, counts)
        return ids, Call(cache.span(counts, ids.shape[1]), cache)

    def _layers(self, run):
        """Run all layers; returns the streams [B T S C]."""
        for layer in self.layers:
            run.layer(layer)
        return run.streams

    def _finish(self, run, logits):
        """Count the tokens of a run whose layers have all run, and return its Output."""
        span, cache, streams, main_hidden = run.call.span, run.call.cache, run.streams, run.main_hidden()
        cache.advance(span.counts)
        if main_hidden is not None:
            dspark.insert_context(main_hidden, span, self.mtp, cache)
        if self.drafter != "mtp":  # the next-token layer's window is filled by predict_after_next alone
            cache.decoded = cache.lengths.clone()
        hidden = self.collapse(streams)  # B T C
        values = None
        if logits != "none":
            values = self.head(self.norm(hidden if logits == "all" else span.take_last(hidden, 1)))
        tokens = len(self.layers) * int(span.counts.sum())
        return Output(values, span, main_hidden, {}, None, tokens, hidden, run.routing or [])

    def _cut_pays(self, width):
        """Whether a prompt of so many columns is read in pieces on several threads."""
        several = self.device.type == "cpu" and torch.get_num_threads() > 1
        return several and width >= 2 * SHORTEST_PIECE and not torch.is_autocast_enabled("cpu")

    def _side_by_side(self, ids, cache, counts, width, logits):
        """Outputs of pieces of a prompt, one half a layer behind the other: list of Output.

        Args:
            width: columns of a piece.
        """
        outputs, grid = [], []
        for begin in range(0, ids.shape[1], width):
            piece, fed = ids[:, begin : begin + width], (counts - begin).clamp(0, width)
            first = cache.lengths + counts.clamp_max(begin)
            span = Span(first, fed.clamp_max(piece.shape[1]), piece.shape[1], self.config, self.device, self.dtype)
            run = Run(self, piece, Call(span, cache))
            halves = [partial(half, layer) for layer in self.layers for half in (run.attend, run.feed)]
            grid.append([*halves, lambda run=run: outputs.append(self._finish(run, logits))])
        threads.wavefront(grid)
        return outputs
