"""From logits to a token: greedy, or a draw from the softmax at a temperature.

The draw is an exponential race: token v gets the finishing time Exp(1)/p_v, and the first one wins; that happens with
probability p_v. At temperature 0 the most likely token is taken, the lower id on a tie.

Source: reference `sample`; temperatures below 1e-5 are greedy there in verification.
"""

from numbers import Real

import numpy as np

from deepseek_edu.reference import activations

GREEDY_BELOW = 1e-5
"""Temperatures below this count as 0."""


def check_temperature(temperature):
    """Raise ValueError unless a temperature is a number, 0 or more and finite."""
    if not isinstance(temperature, Real) or not 0 <= temperature < np.inf:
        raise ValueError(f"temperature must be 0 or more and finite; got {temperature!r}; 0 is greedy")


def probabilities(logits, temperature):
    """Return the distribution that `sample` draws from.

    Args:
        logits: (…, V).
        temperature: 0 or more; below GREEDY_BELOW all the weight is on the most likely token.

    Returns:
        (…, V), sums of 1.

    Raises:
        ValueError: a negative or infinite temperature.

    >>> probabilities(np.array([0.0, 1.0, 1.0]), 0).tolist()
    [0.0, 1.0, 0.0]
    """
    check_temperature(temperature)
    logits = np.asarray(logits)
    if temperature < GREEDY_BELOW:
        return np.eye(logits.shape[-1])[logits.argmax(axis=-1)]
    return activations.softmax(logits / temperature)


def draw(distribution, rng):
    """Return an id drawn from a distribution [V] by an exponential race.

    >>> draw(np.array([0.0, 1.0]), np.random.default_rng(0))
    1
    """
    times = rng.exponential(size=len(distribution))
    return int(np.argmax(distribution / times))


def sample(logits, temperature, rng):
    """Return an id for logits [V]; rng (numpy Generator) is only used above temperature 0.

    Raises:
        ValueError: a negative or infinite temperature.
    """
    distribution = probabilities(logits, temperature)
    return int(distribution.argmax()) if temperature < GREEDY_BELOW else draw(distribution, rng)
