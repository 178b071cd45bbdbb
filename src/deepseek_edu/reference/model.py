"""The whole model: embedding, layers, logits; prefill in one piece or in chunks, decode of one or several tokens.

The first half of the layers is a causal encoder, the second a decoder that reads one global memory: the compressed
entries of the first decoder layer, made from the encoder's output. Once the encoder has run, the decoder is needed
only for tokens whose logits, or whose window entries, are needed later. `prefill` can skip it for most of a prompt:

    decoder     decoder layers run on                   what they see               result
    "all"       all tokens                              everything                  exact
    "exact"     W + (layers above)·(W − 1) last tokens  everything                  exact
    "report"    the last W tokens                       windows cut at their start  approximate (report, section 3.2.2)
    "serving"   the last W tokens                       as "report", but the first  approximate (as served by vLLM)
                                                        decoder layer sees its whole window

Every pass also feeds the drafter's context windows (dspark.py). One sequence at a time; a batch is a loop.

What the layers of one call share on the way is in run.py. Left out: the rounding of streams to bfloat16.
Source: report, sections 2 and 3; reference `Transformer.forward`.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import cache as caches
from deepseek_edu.reference import checks, dspark, engram, linear, mhc, norms, rope
from deepseek_edu.reference import generate as generation
from deepseek_edu.reference import weights as names
from deepseek_edu.reference.csa2 import Published
from deepseek_edu.reference.run import Run

DECODER_ROWS = ("all", "exact", "report", "serving")  # what a prefill may leave out; the table above


@dataclass(frozen=True)
class Output:
    """What a forward pass returns, for the last R of its tokens (all of them unless the decoder was skipped)."""

    logits: np.ndarray  # [R V]
    main_hidden: np.ndarray  # [R' targets·C], what the drafter reads; R' ≥ R
    choices: dict  # layer -> int64 [R'' K], entries chosen
    hashes: np.ndarray | None  # int64 [T modules rows], of all tokens
    layer_tokens: int  # how many tokens all layers together have processed


class Model:
    """DeepSeek-V4.1 in NumPy.

    Args:
        config: ModelConfig, generation "v4.1".
        weights: {released name: array}; kept as `dtype`.
        token_map: compressed id of each token id, for the Engram hash; needed if the model has Engram layers.
        dtype: NumPy type of all arithmetic.
        round_inputs: round what quantised matrices multiply to FP8, as the released kernels do (linear.py).

    Raises:
        ValueError: weights are missing, unknown or misshapen (all are listed), the token map does not fit, or a width
            cannot be rounded.
    """

    def __init__(self, config, weights, token_map=None, dtype=np.float64, round_inputs=False):
        if config.generation != "v4.1":
            raise ValueError(f"config.generation must be 'v4.1'; got {config.generation!r}; V4 is in v4_model.py")
        names.check_weights(weights, config)
        self.config, self.dtype = config, np.dtype(dtype)
        weights = {name: np.asarray(array, dtype) for name, array in weights.items()}
        if round_inputs:
            weights = linear.round_inputs(weights)
        self.weights = weights
        self.embed, self.head, self.norm = (weights[f"{name}.weight"] for name in ("embed", "head", "norm"))
        self.plans = config.schedule()[: config.n_layers]
        self.layers = [names.under(weights, f"layers.{layer}.") for layer in range(config.n_layers)]
        self.stages = [names.under(weights, f"mtp.{stage}.") for stage in range(config.n_mtp_layers)]
        self.layer_parts = [_parts(w) for w in self.layers]
        self.stage_parts = [_parts(w) for w in self.stages]
        self.frequencies = {ratio: rope.layer_frequencies(config, ratio) for ratio in {0, *config.compress_ratios}}
        if config.engram_layer_ids and token_map is None:
            raise ValueError("token_map is needed: the model has Engram layers; see engram.compressed_token_map")
        self.hash = engram.EngramHash(config, token_map) if config.engram_layer_ids else None

    def new_cache(self, quantized=True, spare=None):
        """Return an empty Cache for one sequence; quantized and spare as for `cache.Cache`."""
        return caches.Cache(self.config, quantized, self.dtype, spare)

    # Feeding tokens

    def forward(self, ids, cache, types=None, features=None, stale_index_keys=False):
        """Process the next tokens of a sequence in all layers.

        Args:
            ids: [T], 1 or more.
            cache: Cache; grows by T positions.
            types: [T] or None: −1 text, 0 image start, 1 image, 2 newline, 3 image end.
            features: [number of tokens inside image spans, C] that take the place of their embeddings, or None.
            stale_index_keys: reproduce the released decode's defect (csa2.py).

        Returns:
            Output for all T tokens.

        Raises:
            ValueError: an id outside the vocabulary, an empty call, or lengths that differ.
        """
        streams, pre, mask, hashes = self._begin(ids, cache, types, features)
        run = Run(self, cache, cache.length, mask, hashes, Published(stale_index_keys=stale_index_keys))
        streams, pre = run.layers(streams, pre, self.plans)
        self._advance(cache, len(streams))
        return self._output(streams, pre, run)

    def prefill(self, ids, cache, types=None, features=None, chunk=None, decoder="all", tokens=None):
        """Process a prompt.

        Args:
            ids, cache, types, features: as in `forward`.
            chunk: tokens at a time, or None for all at once; memory falls with it, the result stays the same.
            decoder: which tokens the decoder layers run on, a key of the table above.
            tokens: for experiments, how many last tokens "report" and "serving" take; W by default.

        Returns:
            Output. With decoder="all" its rows are those of the last chunk; otherwise those that were needed.

        Raises:
            ValueError: an unknown decoder, no tokens, or what `forward` refuses.
        """
        if decoder not in DECODER_ROWS:
            raise ValueError(f"decoder must be one of {', '.join(DECODER_ROWS)}; got {decoder!r}")
        ids, types, features = self._checked(ids, cache, types, features)
        chunk = len(ids) if chunk is None else checks.count(chunk, "chunk", 1)
        pieces = [slice(first, first + chunk) for first in range(0, len(ids), chunk)]
        if decoder == "all":
            for piece in pieces:
                output = self.forward(ids[piece], cache, *_cut(types, features, piece))
            return output
        rows = decoder_rows(self.config, decoder, tokens)
        return self._prefill_skipping(ids, cache, types, features, pieces, rows)

    def decode(self, ids, cache, **options):
        """Process one or several new tokens; the same as `forward`.

        Args:
            ids: [T], or one id.
            options: further arguments of `forward`.

        Returns:
            Output.
        """
        return self.forward(np.atleast_1d(ids), cache, **options)

    def generate(self, ids, max_new_tokens, **options):
        """Continue a prompt; see `generate.generate` for the options. Returns generate.Generation."""
        return generation.generate(self, ids, max_new_tokens, **options)

    # Steps of a forward pass

    def _checked(self, ids, cache, types, features):
        """What a call was given, as arrays; refused before the cache is touched."""
        ids = checks.token_ids(ids, self.config.vocab_size)
        types, features = checks.image_input(types, features, ids, self.config.dim)
        if not isinstance(cache, caches.Cache):
            raise ValueError(f"cache must come from new_cache() of a NumPy model; got {type(cache).__name__}")
        if cache.config != self.config:
            raise ValueError("cache belongs to another configuration; make it with model.new_cache()")
        return ids, types, features

    def _begin(self, ids, cache, types, features):
        ids, types, features = self._checked(ids, cache, types, features)
        mask = None if types is None else types >= 0
        embedded = self.embed[ids]  # T C
        if features is not None:
            embedded[mask] = features
        hashes = None
        if self.hash is not None:
            compressed = self.hash.compress(ids, mask)  # T
            hashes = self.hash.rows(compressed, cache.previous_ids())  # T modules rows
            if cache.history.end != cache.length:
                cache.history.restart(cache.length)
            cache.history.write(cache.history.row_format.encode(compressed))
        streams = np.repeat(embedded[:, None, :], self.config.hc_mult, axis=1)  # T S C
        return streams, mhc.one_hot(len(ids), self.config.hc_mult, self.dtype), mask, hashes

    def _advance(self, cache, tokens):
        cache.length += tokens
        cache.highest = max(cache.highest, cache.length)
        cache.stored = max(cache.stored, cache.length)

    def _output(self, streams, pre, run):
        hidden = mhc.collapse(streams, pre)  # R C
        logits = norms.rms_norm(hidden, self.norm, self.config.norm_eps) @ self.head.T  # R V
        rows = min((len(mean) for mean in run.means), default=0)
        means = [mean[len(mean) - rows :] for mean in run.means]
        main_hidden = np.concatenate(means, axis=-1) if means else np.zeros((len(logits), 0))
        if self.stages:
            first = run.cache.length - rows
            dspark.insert_context(main_hidden, first, self.stages, run.cache, self.frequencies[0])
        return Output(logits, main_hidden, run.published.choices, run.hashes, run.layer_tokens)

    def _prefill_skipping(self, ids, cache, types, features, pieces, rows):
        cut, first = self.config.decoder_start, cache.length
        tail = rows[0][0]
        layer_tokens, hashes, means = 0, [], []
        streams, pre, mask = None, None, None
        for piece in pieces:
            new_streams, new_pre, new_mask, new_hashes = self._begin(ids[piece], cache, *_cut(types, features, piece))
            run = Run(self, cache, cache.length, new_mask, new_hashes, Published())
            new_streams, new_pre = run.layers(new_streams, new_pre, self.plans[:cut])
            run.store(new_streams, new_pre, self.plans[cut])
            self._advance(cache, len(new_streams))
            streams, pre = _join(streams, new_streams, tail), _join(pre, new_pre, tail)
            mask = None if types is None else _join(mask, new_mask, tail)
            means = [
                _join(old, new, tail) for old, new in zip(means or [None] * len(run.means), run.means, strict=True)
            ]
            layer_tokens += run.layer_tokens
            hashes.append(new_hashes)
        run = Run(self, cache, cache.length - len(streams), mask, None, Published())
        run.layer_tokens, run.means = layer_tokens, means
        run.hashes = None if self.hash is None else np.concatenate(hashes)
        rows = [(min(given, cache.length - first), asked) for given, asked in rows]
        streams, pre = run.layers(streams, pre, self.plans[cut:], rows)
        cache.settle(cache.length)
        return self._output(streams, pre, run)


def decoder_rows(config, decoder, tokens=None):
    """Return, for each decoder layer, (last tokens it gets, last tokens whose output it computes).

    `tokens`, 1 or more, takes the place of W in "report" and "serving".

    Raises:
        ValueError: the model has no decoder, one that needs its encoder's pool, or tokens below 1.

    >>> from deepseek_edu.config import ModelConfig
    >>> decoder_rows(ModelConfig.tiny(), "serving")
    [(15, 8), (8, 8), (8, 8), (8, 8), (8, 8)]
    >>> decoder_rows(ModelConfig.tiny(), "exact")
    [(36, 29), (29, 22), (22, 15), (15, 8), (8, 1)]
    """
    window, layers = config.window_size, config.n_layers - config.decoder_start
    if not layers:
        raise ValueError("decoder must be 'all': no layer of this model makes global entries, so it has no decoder")
    if not config.skips_decoder:
        raise ValueError("decoder must be 'all': the decoder of this model chooses inside a pool made by its encoder")
    if decoder == "exact":
        given = [window + above * (window - 1) for above in range(layers - 1, -1, -1)]
        return list(zip(given, [*given[1:], 1], strict=True))
    tokens = window if tokens is None else checks.count(tokens, "tokens", 1)  # the last token gets logits
    rows = [(tokens, tokens)] * layers
    if decoder == "serving":
        rows[0] = (tokens + window - 1, tokens)
    return rows


def _parts(w):
    return {part: names.under(w, f"{part}.") for part in ("attn", "ffn", "engram")}


def _cut(types, features, piece):
    """The types and features of one chunk; features are counted by the image tokens before it."""
    if types is None:
        return None, None
    if features is None:
        return types[piece], None
    before = int((types[: piece.start] >= 0).sum())
    return types[piece], features[before : before + int((types[piece] >= 0).sum())]


def _join(old, new, tail):
    joined = new if old is None else np.concatenate([old, new])
    return joined[-tail:]
