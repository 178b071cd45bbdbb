"""Thousands of rounds of the `dspark` widget, one draft each, decided by `reference.acceptance`; and a test of them.

Every round has random numbers of its own, the same for every distribution, so that a small change of P or Q changes few
rounds. All rounds are decided at once from the acceptance probability of each token and the residual; the first ones
also go through `acceptance.accept` itself, and if any of them ends otherwise (an edited `accept`), all of them do.
"""

import math
from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import acceptance, sampling

from .memo import remembered

MOST = 4000
CHECKED = 64
FEWEST = 5.0  # a bin of the chi-square test expects at least this many tokens
RULES = {
    "exact": "min(1, P/Q), then the residual",
    "equality": "Wrong: only the target’s top token",
    "resample": "Wrong: replace from P itself",
    "other": "Wrong: test with another Q",
    "unseen": "Wrong: keep the draft unverified",
    "confidence": "Wrong: trust the confidence",
}


@dataclass(frozen=True)
class Rounds:
    """What came out: the draft of each round, whether it stood, and the token that was emitted."""

    drafts: np.ndarray  # int [N]
    stood: np.ndarray  # bool [N]
    emitted: np.ndarray  # int [N]

    def counts(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Emitted tokens [V]: drafts that stood, and tokens that took the place of one that did not."""
        kept = np.bincount(self.emitted[self.stood], minlength=size)
        return kept, np.bincount(self.emitted[~self.stood], minlength=size)


class _Recorded:
    """Stands in for a random generator in one round: numbers drawn before, then those of a generator."""

    def __init__(self, chance: float, race: np.ndarray) -> None:
        self._chances, self._races = [chance], [race]
        self._more = None

    def random(self):
        return self._chances.pop() if self._chances else self._rest().random()

    def exponential(self, size):
        return self._races.pop() if self._races else self._rest().exponential(size=size)

    def __getattr__(self, name: str):
        return getattr(self._rest(), name)

    def _rest(self):
        if self._more is None:
            self._more = np.random.default_rng(0)
        return self._more


@remembered(4)
def _numbers(sample: int, size: int) -> tuple[np.ndarray, ...]:
    """Random numbers of all rounds: a race that draws the draft, the chance that it falls, a race for what replaces it,
    and one more race for rules that draw twice."""
    rng = np.random.default_rng(sample)
    races = rng.exponential(size=(3, MOST, size))
    return races[0], rng.random(MOST), races[1], races[2]


def _drawn(distribution: np.ndarray, races: np.ndarray) -> np.ndarray:
    """`sampling.draw` for a race of each round."""
    return np.argmax(distribution / races, axis=1)


def _decided(drafts, target, used, chances, races) -> tuple[np.ndarray, np.ndarray]:
    """Whether each draft stands, and what replaces it if not, by `acceptance.accept` with Q as `used`."""
    present = sorted({int(token) for token in drafts})
    limits = np.zeros(len(target))
    limits[present] = [acceptance.acceptance_probability(token, target, used) for token in present]
    stood = chances < limits[drafts]
    following = _drawn(acceptance.residual(target, used), races)

    def one(index: int) -> tuple[int, int]:
        recorded = _Recorded(float(chances[index]), races[index])
        return acceptance.accept(drafts[index : index + 1], used[None], np.stack([target, target]), recorded)

    for index in range(min(CHECKED, len(drafts))):
        accepted, token = one(index)
        if bool(accepted) != stood[index] or (not accepted and token != following[index]):
            break
    else:
        return stood, following
    results = [one(index) for index in range(len(drafts))]
    return np.array([bool(accepted) for accepted, _ in results]), np.array([token for _, token in results])


def other_draft(draft: np.ndarray) -> np.ndarray:
    """The draft distribution at temperature 2, which is not the one that the drafts were drawn from."""
    possible = draft > 0
    logits = np.where(possible, np.log(np.where(possible, draft, 1)), -np.inf)
    return sampling.probabilities(logits, 2.0)


def overlap(target: np.ndarray, draft: np.ndarray) -> float:
    """How often a draft stands: the sum of Q times the acceptance probability, which is Σ min(P, Q)."""
    tokens = np.flatnonzero(draft)
    return float(sum(draft[t] * acceptance.acceptance_probability(t, target, draft) for t in tokens))


def run(rule: str, target: np.ndarray, draft: np.ndarray, count: int, sample: int) -> Rounds:
    """Sample rounds of one draft.

    Args:
        rule: one of RULES.
        target, draft: P and Q [V].
        count: rounds, at most MOST.
        sample: which random numbers.
    """
    drawing, chances, races, again = (numbers[:count] for numbers in _numbers(sample, len(target)))
    drafts = _drawn(draft, drawing)
    if rule == "equality":
        decided = [acceptance.accept_greedy([token], np.stack([target, target])) for token in range(len(target))]
        stood = np.array([bool(accepted) for accepted, _ in decided])[drafts]
        following = np.array([token for _, token in decided])[drafts]
    elif rule == "unseen":
        stood, following = np.ones(count, bool), drafts
    elif rule == "confidence":
        stood = chances < overlap(target, draft)
        following = _drawn(acceptance.residual(target, draft), races)
    else:
        used = other_draft(draft) if rule == "other" else draft
        stood, following = _decided(drafts, target, used, chances, races)
        if rule == "resample":
            following = _drawn(target, again)
    return Rounds(drafts, stood, np.where(stood, drafts, following))


@dataclass(frozen=True)
class Verdict:
    """A chi-square test of counts against a distribution."""

    statistic: float
    freedom: int
    chance: float  # of a statistic at least this large, if the counts come from the distribution


def chi_square(counts: np.ndarray, target: np.ndarray) -> Verdict:
    """Compare counts [V] with a distribution [V]; tokens that are expected too seldom share a bin.

    >>> chi_square(np.array([60, 40]), np.array([0.5, 0.5]))
    Verdict(statistic=4.0, freedom=1, chance=0.04550026389635842)
    """
    expected = counts.sum() * target
    if np.any(counts[expected == 0]):
        return Verdict(math.inf, max(1, int(np.count_nonzero(expected)) - 1), 0.0)
    bins = [[0.0, 0.0]]
    for token in np.argsort(expected, kind="stable"):
        if expected[token] == 0:
            continue
        if bins[-1][1] >= FEWEST:
            bins.append([0.0, 0.0])
        bins[-1][0] += counts[token]
        bins[-1][1] += expected[token]
    if len(bins) > 1 and bins[-1][1] < FEWEST:
        seen, wanted = bins.pop()
        bins[-1] = [bins[-1][0] + seen, bins[-1][1] + wanted]
    statistic = math.fsum((seen - wanted) ** 2 / wanted for seen, wanted in bins)
    return Verdict(statistic, len(bins) - 1, tail(statistic, len(bins) - 1))


def tail(statistic: float, freedom: int) -> float:
    """Probability that a chi-square variable of so many degrees of freedom is at least `statistic`.

    The finite sums of the incomplete gamma function at whole and half numbers; 1 where there is nothing to compare.
    """
    if freedom == 0:
        return 1.0
    half, odd = statistic / 2, freedom % 2
    total = math.erfc(math.sqrt(half)) if odd else 0.0
    term = math.exp(-half) * (2 * math.sqrt(half / math.pi) if odd else 1.0)
    for k in range(freedom // 2):
        total += term
        term *= half / (k + 1 + odd / 2)
    return total


def critical(freedom: int, share: float = 0.05) -> float:
    """The statistic that a share of right programs exceeds, by halving an interval."""
    low, high = 0.0, 100.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, freedom) > share else (low, middle)
    return high
