"""The `dspark` widget's round: a block is drafted, the target runs once over it, a prefix stands, the rest is undone.

A toy of six words stands in for both models: the target and the drafter each have a row of chances for what follows a
word. Draws and decisions are those of `reference.sampling` and `reference.acceptance`.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import acceptance, sampling

from .memo import remembered

WORDS = ("the", "cat", "sat", "on", "a", "mat")
BLOCK = 5
START = 8  # the position of the word that begins the block
_SEEDS = (1, 2, 12, 4, 7, 5)

# Per cent, by the word before; the drafter knows the target roughly.
TARGET = (
    np.array(
        [
            [1, 48, 4, 2, 2, 43],
            [4, 1, 60, 25, 9, 1],
            [6, 1, 1, 78, 10, 4],
            [50, 8, 1, 1, 34, 6],
            [1, 46, 4, 2, 1, 46],
            [15, 20, 20, 35, 8, 2],
        ]
    )
    / 100
)
DRAFTER = (
    np.array(
        [
            [2, 38, 6, 4, 3, 47],
            [10, 4, 45, 32, 5, 4],
            [12, 4, 3, 60, 15, 6],
            [70, 3, 4, 4, 15, 4],
            [3, 62, 3, 4, 3, 25],
            [25, 15, 25, 20, 10, 5],
        ]
    )
    / 100
)


class _Watched:
    """A random generator that remembers what `random` returned."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.chances: list[float] = []

    def random(self):
        self.chances.append(float(self._rng.random()))
        return self.chances[-1]

    def __getattr__(self, name: str):
        return getattr(self._rng, name)


@dataclass(frozen=True)
class Round:
    """One round: ids of the word before, the drafts and the word after those that stand."""

    greedy: bool
    first: int
    drafts: tuple[int, ...]
    proposed: np.ndarray  # Q [k V]
    wanted: np.ndarray  # P [k+1 V]
    limits: tuple[float, ...]  # acceptance probability of each draft; 0 or 1 if greedy
    chances: tuple[float, ...]  # the random numbers they were compared with, as many as were looked at
    accepted: int
    following: int

    @property
    def looked_at(self) -> int:
        """How many drafts were compared before the round ended."""
        return min(self.accepted + 1, len(self.drafts))

    @property
    def emitted(self) -> tuple[int, ...]:
        """The words that the round adds."""
        return (*self.drafts[: self.accepted], self.following)

    @property
    def left(self) -> np.ndarray:
        """The distribution that the word after the accepted drafts is drawn from [V]."""
        target = self.wanted[self.accepted]
        if self.greedy:
            return np.eye(len(target))[target.argmax()]
        if self.accepted == len(self.drafts):
            return target
        return acceptance.residual(target, self.proposed[self.accepted])


@remembered(16)
def play(number: int, greedy: bool) -> Round:
    """Round `number` (1 …); it begins with another word each time."""
    first = (number - 1) % len(WORDS)
    rng = _Watched(_SEEDS[first])
    drafts, proposed, word = [], [], first
    for _ in range(BLOCK):
        proposed.append(DRAFTER[word])
        word = int(DRAFTER[word].argmax()) if greedy else sampling.draw(DRAFTER[word], rng)
        drafts.append(word)
    wanted = np.stack([TARGET[w] for w in (first, *drafts)])
    proposed = np.stack(proposed)
    rng.chances.clear()
    if greedy:
        accepted, following = acceptance.accept_greedy(drafts, np.log(wanted))
        limits = tuple(float(d == w.argmax()) for d, w in zip(drafts, wanted, strict=False))
    else:
        accepted, following = acceptance.accept(drafts, proposed, wanted, rng)
        limits = tuple(
            float(acceptance.acceptance_probability(d, w, q)) for d, w, q in zip(drafts, wanted, proposed, strict=False)
        )
    chances = tuple(rng.chances[:BLOCK])
    return Round(
        greedy,
        first,
        tuple(drafts),
        proposed,
        wanted,
        limits,
        chances,
        int(accepted),
        int(following),
    )


def undone(accepted: int) -> tuple[tuple[str, int, str], ...]:
    """What the target wrote for rejected drafts and takes back: (state, how many, where), at the released sizes."""
    config = ModelConfig.v41_flash()
    kept, done = START + 1 + accepted, START + 1 + BLOCK
    ratios = [config.compress_ratios[layer] for layer in config.kv_source_layers]
    entries = sum(done // ratio - kept // ratio for ratio in ratios)
    halves = sum(1 for ratio in ratios if ratio > 1 and kept % ratio)
    rejected = BLOCK - accepted
    return (
        ("Window entries", rejected * config.n_layers, f"{rejected} in each of {config.n_layers} layers"),
        ("Global entries, with their index keys", entries, f"in the {len(ratios)} owners"),
        ("Open groups set back", halves if rejected else 0, "owners with one entry for two tokens"),
        ("Engram history", rejected, "compressed ids"),
    )
