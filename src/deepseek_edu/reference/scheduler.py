"""How many drafts to verify: more tokens in a step cost time, and late drafts seldom survive.

The confidence of draft j is the probability that it stands, given that those before it do; its survival is the product
up to j. Verifying it adds its survival to the tokens expected and one token to the batch. Given the steps per second
that a machine reaches for each number of tokens, the lengths are chosen to get the most tokens per second.

`causal_lengths` stops at the first draft that does not help, so what it decides for a prefix never depends on later
confidences: that keeps sampling exact. `lagged_lengths` takes the total from the confidences of the step before.

Source: named by the report, section 2.4.3; algorithm: DSpark paper (arXiv 2607.05147), appendix. Thresholds of the
service are not known.
"""

import numpy as np

from deepseek_edu.reference import activations, checks


def survival(confidence):
    """Return Π_{i≤j} confidence_i along the last dimension.

    >>> survival([0.94, 0.88, 0.81, 0.73, 0.61]).round(4).tolist()
    [0.94, 0.8272, 0.67, 0.4891, 0.2984]
    """
    return np.cumprod(np.asarray(confidence, float), axis=-1)


def _survivals(confidence):
    """The survival of every draft, [R k], of confidences that are probabilities."""
    confidence = np.asarray(confidence, float)
    if confidence.ndim != 2 or not np.all((confidence >= 0) & (confidence <= 1)):
        found = f"shape {confidence.shape}" if confidence.ndim != 2 else f"{confidence.min()} … {confidence.max()}"
        raise ValueError(f"confidence must be probabilities [requests drafts]; got {found}; apply the sigmoid first")
    return survival(confidence)


def by_survival(survivals):
    """The order in which drafts are offered: by falling survival.

    Args:
        survivals: [R k], the survival of every draft.

    Returns:
        List of (position, request); on ties the smaller position comes first, then the smaller request.

    Survival never rises along a request, so no draft comes before the one it follows.

    >>> by_survival(np.array([[0.9, 0.45], [0.6, 0.54]]))
    [(0, 0), (0, 1), (1, 1), (1, 0)]
    """
    requests, drafts = survivals.shape
    places = [(position, request) for position in range(drafts) for request in range(requests)]
    return sorted(places, key=lambda place: (-survivals[place[1], place[0]], *place))


def _speed(steps_per_second, tokens):
    if tokens not in steps_per_second:
        raise ValueError(f"steps_per_second must have an entry for {tokens} tokens; it has {sorted(steps_per_second)}")
    return steps_per_second[tokens]


def causal_lengths(confidence, steps_per_second):
    """Choose the drafts to verify for each request.

    Args:
        confidence: [R k], probabilities 0 … 1.
        steps_per_second: {tokens in a batch: steps per second}, for R … R + R·k tokens.

    Returns:
        (lengths int64 [R], tokens per second expected).

    Raises:
        ValueError: confidence holds no probabilities, or steps_per_second lacks a number of tokens.
    """
    survivals = _survivals(confidence)  # R k
    requests = len(survivals)
    lengths = np.zeros(requests, np.int64)
    expected, tokens = float(requests), requests
    best = expected * _speed(steps_per_second, tokens)
    for position, request in by_survival(survivals):
        gained = expected + survivals[request, position]
        throughput = gained * _speed(steps_per_second, tokens + 1)
        if throughput <= best:
            break
        expected, tokens, best = gained, tokens + 1, throughput
        lengths[request] = position + 1
    return lengths, best


def capacity(confidence, steps_per_second):
    """Choose how many drafts to verify in all, over all budgets (the smallest of equals).

    Args:
        confidence: [R k], of the step before.
        steps_per_second: as in `causal_lengths`.

    Returns:
        (drafts, tokens per second expected).
    """
    survivals = _survivals(confidence)
    requests = len(survivals)
    gains = [survivals[request, position] for position, request in by_survival(survivals)]
    expected = requests + np.concatenate([[0.0], np.cumsum(gains)])  # drafts 0 … R·k
    throughput = [e * _speed(steps_per_second, requests + drafts) for drafts, e in enumerate(expected)]
    best = int(np.argmax(throughput))
    return best, throughput[best]


def lagged_lengths(confidence, earlier_confidence, steps_per_second):
    """Take the total from the step before and spread it by the present confidences.

    Args:
        confidence: [R k], of the drafts of every request now.
        earlier_confidence: [R' k], of the step before.
        steps_per_second: as in `capacity`.

    Returns:
        (lengths int64 [R], drafts in all, tokens expected).
    """
    drafts, _ = capacity(earlier_confidence, steps_per_second)
    survivals = _survivals(confidence)
    lengths = np.zeros(len(survivals), np.int64)
    expected = float(len(survivals))
    for position, request in by_survival(survivals)[:drafts]:
        lengths[request] = position + 1
        expected += survivals[request, position]
    return lengths, drafts, expected


# Calibration


def calibration_error(probabilities, outcomes, bins=15):
    """Return the expected calibration error: the mean gap of probability and frequency over equal bins.

    Args:
        probabilities: [n], each 0 … 1; outcomes: bool [n].
        bins: equal stretches of 0 … 1.

    Raises:
        ValueError: something else than probabilities, another number of outcomes, or bins below 1.

    >>> round(float(calibration_error(np.array([0.25, 0.25, 0.25, 0.25]), np.array([1, 0, 0, 0]))), 6)
    0.0
    """
    probabilities, outcomes = np.asarray(probabilities, float), np.asarray(outcomes, float)
    if probabilities.ndim != 1 or not np.all((probabilities >= 0) & (probabilities <= 1)):
        raise ValueError(f"probabilities must be [n], each 0 … 1; got shape {probabilities.shape}, {probabilities[:3]}")
    if outcomes.shape != probabilities.shape:
        raise ValueError(f"outcomes must be {probabilities.shape}, one for each; got {outcomes.shape}")
    bins = checks.count(bins, "bins", 1)
    place = np.minimum((probabilities * bins).astype(int), bins - 1)
    gaps = np.bincount(place, weights=probabilities - outcomes, minlength=bins)
    return np.abs(gaps).sum() / max(len(outcomes), 1)


def fit_temperatures(logits, accepted, grid=None, bins=15):
    """Scale the confidence logits, one temperature per draft position, from left to right.

    Args:
        logits: [n k], of drafts.
        accepted: [n], how many drafts stood.
        grid: temperatures to try; 0.25 … 4 by default.
        bins: as in `calibration_error`.

    Returns:
        float64 [k]: those that make the survival probability of each position best calibrated, given the ones before.

    Raises:
        ValueError: logits and accepted do not belong together.

    Source: DeepSpec, sequential temperature scaling.
    """
    logits, accepted = np.asarray(logits, float), np.asarray(accepted)
    if logits.ndim != 2 or accepted.shape != (len(logits),):
        raise ValueError(f"logits must be [n k] and accepted [n]; got {logits.shape} and {accepted.shape}")
    grid = np.geomspace(0.25, 4, 33) if grid is None else np.asarray(grid, float)
    before, temperatures = np.ones(len(logits)), []
    for position in range(logits.shape[1]):
        stood = accepted > position
        tries = [before * activations.sigmoid(logits[:, position] / t) for t in grid]
        errors = [calibration_error(probability, stood, bins) for probability in tries]
        best = int(np.argmin(errors))
        temperatures.append(grid[best])
        before = tries[best]
    return np.array(temperatures)
