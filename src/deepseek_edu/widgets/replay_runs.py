"""Runs behind the widget `replay`: the same tokens with exact windows, with replayed ones, and after a cut.

After a prefix hit all layers replay; at a prefill the decoder layers do, above an encoder that runs on every token
(tiny_models.py). One pass through the deepest model serves every depth: its lower layers are those of the shallower
models, and logits are taken after each. Nothing here knows the rule of what is exact.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import model as models
from deepseek_edu.reference import replay

from . import replay_batch as batch
from .memo import remembered
from .tiny_models import prompt, toy_config, toy_model

NEW = 4
"""Tokens that follow the prefix."""

DEEPEST = 4
"""Layers that are replayed at most."""

DECODER = ModelConfig.tiny().decoder_start
"""First layer of the decoder."""

EXACT = 1e-9
"""Relative difference below which two windows are the same: far above the rounding of float64, far below any effect."""

DIGITS = 12
"""Decimals of a divergence; the rest is rounding, which differs from machine to machine. What is left as 0 is exact."""


def divergence(logits, other):
    """Σ p·log(p/q) of each pair of rows of logits: [R]."""
    p, q = (row - row.max(axis=-1, keepdims=True) for row in (logits, other))
    p, q = (row - np.log(np.exp(row).sum(axis=-1, keepdims=True)) for row in (p, q))
    return np.round(np.maximum((np.exp(p) * (p - q)).sum(axis=-1), 0), DIGITS)  # rounding can leave −1e-17


def relative_errors(rows, true):
    """Size of the difference of each row from the true one, by the size of the true one: [n]; rounding counts as 0."""
    errors = np.linalg.norm(rows - true, axis=-1) / np.linalg.norm(true, axis=-1)
    return np.where(errors < EXACT, 0, np.round(errors, 10))


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
        return 0 if self.variant == "hit" else DECODER

    @property
    def layers(self):
        return range(self.first, self.first + self.depth)

    @property
    def config(self):
        """Configuration of the model that ends with the last replayed layer."""
        return _config(self.first + self.depth, self.window)

    @property
    def model(self):
        """The deepest model, in which this one's layers are the lower ones."""
        return toy_model(self.first + DEEPEST, self.window)

    @property
    def ids(self):
        return prompt(self.hit + NEW)

    @property
    def longest(self):
        """Layers × window, at most the prefix: no longer replay can matter."""
        return min(self.hit, self.depth * self.window)


_config = remembered(32)(toy_config)


@dataclass(frozen=True)
class Run:
    """One sequence through the layers: logits after each replayed layer, [R V] of its last tokens, and its cache."""

    logits: tuple
    cache: object


def _through(setting, lines, storing=True, asked=None):
    """Take lines through the replayed layers of the deepest model: a Run of each."""
    after = []
    for number, plan in enumerate(setting.model.plans[setting.first :]):
        batch.run(setting.model, lines, plan, storing, asked and [rows[number] for rows in asked])
        after.append(batch.logits(setting.model, lines))
    return [Run(tuple(rows[i] for rows in after), line.cache) for i, line in enumerate(lines)]


@remembered(16)
def _whole(setting):
    """Prefix and new tokens without a gap, the prompt cut to its last window, and what enters the replayed layers."""
    s = setting
    lines = [
        batch.begin(s.model, s.model.new_cache(quantized=False, spare=len(ids)), ids)
        for ids in (s.ids, s.ids[max(0, s.hit - s.window) :])
    ]
    for plan in s.model.plans[: s.first]:
        batch.run(s.model, lines, plan)
    entering = lines[0].last(len(s.ids))
    exact, cut = _through(s, lines)
    exact.cache.length = exact.cache.stored = len(s.ids)
    return exact, cut, entering


@remembered(16)
def _replays(setting):
    """Replays that have been run, by their length; filled by `replays`."""
    return {}


def _hit_lines(s, stored, lengths):
    """A later request finds the prefix: its global memory is there, its last tokens are fed again."""
    caches = [replay.resume(s.model, stored, s.ids, s.hit, tokens=tokens) for tokens in lengths]
    return [batch.begin(s.model, cache, s.ids[cache.length :]) for cache in caches]


def _decoder_runs(s, exact, entering, lengths):
    """A prefill whose decoder layers run on the last tokens of the prompt, and on the new ones behind it."""
    lines, asked = [], []
    for tokens in lengths:
        rows = models.decoder_rows(s.model.config, s.variant, tokens + NEW)
        lines.append(entering.last(rows[0][0], exact.cache.prefix(len(s.ids))))
        asked.append([wanted for _, wanted in rows])
    return _through(s, lines, storing=False, asked=asked)


def replays(setting, lengths):
    """The replays of so many tokens, compared with the exact run; those not known yet run side by side."""
    whole = Setting(setting.variant, DEEPEST, setting.window, setting.hit)
    known, (exact, _, entering) = _replays(whole), _whole(whole)
    missing = [tokens for tokens in dict.fromkeys(lengths) if tokens not in known]
    if missing and setting.variant == "hit":
        known.update(zip(missing, _through(whole, _hit_lines(whole, exact.cache, missing)), strict=True))
    elif missing:
        known.update(zip(missing, _decoder_runs(whole, exact, entering, missing), strict=True))
    return [_compared(setting, tokens, known[tokens], exact) for tokens in lengths]


def replayed(setting, tokens):
    """One replay, compared with the exact run."""
    return replays(setting, [tokens])[0]


@dataclass(frozen=True)
class Replayed:
    """One replay length: errors of the windows, of the new global entries, and of the logits."""

    tokens: int
    errors: tuple  # for each layer (first position, [n] relative errors)
    divergences: np.ndarray  # of the logits of each token that ran: the last n positions
    same_entries: bool  # whether the global entries of the prefix are those stored, bit for bit
    entry_errors: dict  # owner -> relative error of each entry that was made after the prefix

    @property
    def divergence(self):
        """Mean over the new tokens."""
        return round(float(np.mean(self.divergences[-NEW:])), DIGITS)

    def read_errors(self, hit, window):
        """For each layer the errors of the rows that the next token reads; 1 for a row that is missing."""
        needed = range(max(0, hit - window + 1), hit)
        return [[float(error[p - first]) if p >= first else 1.0 for p in needed] for first, error in self.errors]

    def exact(self, hit, window):
        """Whether the next token reads exact windows in all layers."""
        return all(error < EXACT for layer in self.read_errors(hit, window) for error in layer)


def _compared(s, tokens, run, exact):
    errors = []
    for layer in s.layers:
        ring = run.cache.windows[layer]
        true = exact.cache.windows[layer].read(ring.start, ring.end)
        errors.append((ring.start, relative_errors(ring.read(ring.start, ring.end), true)))
    fresh, same = {}, True
    for layer in s.config.kv_source_layers:
        made, true = run.cache.entries[layer].read(), exact.cache.entries[layer].read()
        known = s.hit // s.config.compress_ratios[layer]
        same = same and np.array_equal(made[:known], true[:known])
        fresh[layer] = relative_errors(made[known:], true[known:])
    return Replayed(tokens, tuple(errors), _divergences(s, run, exact), same, fresh)


def _divergences(s, run, exact):
    logits, true = run.logits[s.depth - 1], exact.logits[s.depth - 1]
    return divergence(true[-len(logits) :], logits)


def cut(setting):
    """Divergences of the logits when the prompt is cut to its last window: of those tokens and the new ones."""
    exact, short, _ = _whole(Setting(setting.variant, DEEPEST, setting.window, setting.hit))
    return _divergences(setting, short, exact)


def mean(divergences):
    """Mean divergence of the new tokens."""
    return round(float(np.mean(divergences[-NEW:])), DIGITS)


def probe(setting):
    """Length of the replay from which `needed` is read: one that begins a little behind the start of the prompt."""
    return setting.hit - 4


def needed(setting, run):
    """The shortest replay after which the next token reads exact windows in all layers.

    Read off one run, of `probe(setting)` tokens: where its last layer is exact again before the next token's window
    begins, a start as many tokens later would still do.
    """
    behind = 0
    for first, errors in run.errors:
        off = np.flatnonzero(errors >= EXACT)
        behind = max(behind, first + off[-1] + 1 if len(off) else first)
    spare = setting.hit - setting.window + 1 - behind
    return int(max(0, min(run.tokens - spare, setting.hit)))


def curve(setting, enough):
    """Replay lengths to draw: a window more for each layer, and the two around the shortest exact one."""
    steps = {*range(0, setting.longest + 1, setting.window), enough - 1, enough, setting.longest}
    return sorted(tokens for tokens in steps if 0 <= tokens <= setting.longest)
