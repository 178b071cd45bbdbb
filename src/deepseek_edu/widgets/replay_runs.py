"""Runs behind the widget `replay`: the same tokens with exact windows, with replayed ones, and after a cut.

The model has as many layers as are replayed: all of them after a prefix hit, the decoder layers above the whole encoder
at a prefill (tiny_models.py).
Everything is a run of `reference.model`; nothing here knows the rule of what is exact.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import replay

from .memo import remembered
from .tiny_models import prompt, toy_model

NEW = 4
"""Tokens that follow the prefix."""

EXACT = 1e-9
"""Relative difference below which two windows are the same: far above the rounding of float64, far below any effect."""

DIGITS = 12
"""Decimals of a divergence; the rest is rounding, which differs from machine to machine. What is left as 0 is exact."""


def divergence(logits, other):
    """Σ p·log(p/q) of each pair of rows of logits: [R]."""
    p, q = (row - row.max(axis=-1, keepdims=True) for row in (logits, other))
    p, q = (row - np.log(np.exp(row).sum(axis=-1, keepdims=True)) for row in (p, q))
    return np.maximum((np.exp(p) * (p - q)).sum(axis=-1), 0)  # rounding can leave −1e-17


@dataclass(frozen=True)
class Run:
    """Logits of the tokens that follow [NEW V], of the last prompt token (None if it got none), and all windows."""

    logits: np.ndarray
    last: np.ndarray | None
    windows: tuple  # for each layer (first position, rows [n D])
    entries: dict  # owner -> compressed entries


def _run(model, cache, logits, last):
    windows = tuple((ring.start, ring.read(ring.start, ring.end)) for ring in cache.windows)
    return Run(logits, last, windows, {layer: entries.read() for layer, entries in cache.entries.items()})


def exact_run(model, ids, hit):
    """Prefix and new tokens without a gap: what every other run is compared with. Returns Run and the cache."""
    cache = model.new_cache(quantized=False, spare=len(ids))
    before = model.forward(ids[:hit], cache)
    after = model.forward(ids[hit:], cache)
    return _run(model, cache, after.logits, before.logits[-1]), cache


def hit_run(model, ids, hit, tokens, stored):
    """A later request finds the prefix: its global memory is there, its last `tokens` tokens are fed again."""
    cache = replay.resume(model, stored, ids, hit, tokens=tokens)
    fed, new = model.forward(ids[cache.length :], cache).logits, len(ids) - hit
    return _run(model, cache, fed[-new:], fed[-new - 1] if len(fed) > new else None)


def decoder_run(model, ids, hit, tokens, decoder):
    """A prefill whose decoder layers run on the last `tokens` tokens of the prompt; then the new tokens are decoded."""
    cache = model.new_cache(quantized=False, spare=len(ids))
    output = model.prefill(ids[:hit], cache, decoder=decoder, tokens=max(1, tokens))
    if not tokens:
        for ring in cache.windows[model.config.decoder_start :]:
            ring.restart(hit)
    after = model.forward(ids[hit:], cache) if len(ids) > hit else output
    return _run(model, cache, after.logits, output.logits[-1] if tokens else None)


def cut_run(model, ids, hit, tokens):
    """The prompt cut to its last `tokens` tokens: no memory of what came before them."""
    cache = model.new_cache(quantized=False, spare=len(ids))
    logits = model.forward(ids[hit - tokens :], cache).logits
    return logits[-(len(ids) - hit) :]


def window_errors(run, exact, layers):
    """Relative error of each window row: for each layer (first position, [n]), compared with the exact run."""
    errors = []
    for layer in layers:
        (first, rows), (_, true) = run.windows[layer], exact.windows[layer]
        true = true[first : first + len(rows)]
        errors.append((first, relative_errors(rows, true)))
    return errors


def relative_errors(rows, true):
    """Size of the difference of each row from the true one, by the size of the true one: [n]; rounding counts as 0."""
    errors = np.linalg.norm(rows - true, axis=-1) / np.linalg.norm(true, axis=-1)
    return np.where(errors < EXACT, 0, np.round(errors, 10))


@dataclass(frozen=True)
class Replayed:
    """One replay length: errors of the windows, and divergences of the logits of the new tokens."""

    tokens: int
    errors: tuple  # for each layer (first position, [n] relative errors)
    divergences: tuple  # of each new token
    same_entries: bool  # whether the global entries of the prefix are those stored, bit for bit
    entry_errors: dict  # owner -> relative error of each entry that was made after the prefix

    @property
    def divergence(self):
        return round(float(np.mean(self.divergences)), DIGITS)

    def read_errors(self, hit, window):
        """For each layer the errors of the rows that the next token reads; 1 for a row that is missing."""
        needed = range(max(0, hit - window + 1), hit)
        return [[float(error[p - first]) if p >= first else 1.0 for p in needed] for first, error in self.errors]

    def exact(self, hit, window):
        """Whether the next token reads exact windows in all layers."""
        return all(error < EXACT for layer in self.read_errors(hit, window) for error in layer)


@dataclass(frozen=True)
class Setting:
    """What is run: which replay, how many layers of it, window and prefix."""

    variant: str  # "hit", "report" or "serving"
    depth: int
    window: int
    hit: int

    @property
    def first(self):
        """Number of the first replayed layer."""
        return 0 if self.variant == "hit" else ModelConfig.tiny().decoder_start

    @property
    def layers(self):
        return range(self.first, self.first + self.depth)

    @property
    def model(self):
        return toy_model(self.first + self.depth, self.window)

    @property
    def ids(self):
        return prompt(self.hit + NEW)


@remembered(8)
def _exact(setting):
    return exact_run(setting.model, setting.ids, setting.hit)


@remembered(2048)
def replayed(setting, tokens):
    """One run with so many replayed tokens, compared with the exact one."""
    s, (exact, stored) = setting, _exact(setting)
    if s.variant == "hit":
        run = hit_run(s.model, s.ids, s.hit, tokens, stored)
    else:
        run = decoder_run(s.model, s.ids, s.hit, tokens, s.variant)
    prefix = {layer: s.hit // s.model.config.compress_ratios[layer] for layer in run.entries}
    same = all(np.array_equal(run.entries[layer][:n], exact.entries[layer][:n]) for layer, n in prefix.items())
    errors = tuple(window_errors(run, exact, s.layers))
    fresh = {layer: relative_errors(run.entries[layer][n:], exact.entries[layer][n:]) for layer, n in prefix.items()}
    return Replayed(tokens, errors, tuple(map(float, divergence(exact.logits, run.logits))), same, fresh)


def longest(setting):
    """Layers × window, at most the prefix: no longer replay can matter."""
    return min(setting.hit, setting.depth * setting.window)


def needed(setting):
    """The shortest replay after which the next token reads exact windows in all layers, found by halving."""
    low, high = -1, longest(setting)
    while high - low > 1:
        middle = (low + high) // 2
        exact = replayed(setting, middle).exact(setting.hit, setting.window)
        low, high = (low, middle) if exact else (middle, high)
    return high


def curve(setting):
    """Replay lengths to draw: a window more for each layer, a window less one for each layer, and around `needed`."""
    steps = {
        count * per_layer for count in range(setting.depth + 1) for per_layer in (setting.window, setting.window - 1)
    }
    enough = needed(setting)
    return sorted(t for t in {*steps, enough - 1, enough, longest(setting)} if 0 <= t <= longest(setting))


@remembered(128)
def cut(setting):
    """Mean divergence of the new tokens' logits when the prompt is cut to its last window."""
    s, (exact, _) = setting, _exact(setting)
    rows = divergence(exact.logits, cut_run(s.model, s.ids, s.hit, min(s.window, s.hit)))
    return round(float(np.mean(rows)), DIGITS)
