"""From logits to tokens, for all rows at once: greedy, or a draw from the softmax at a temperature.

The draw is an exponential race: token v finishes at Exp(1)/p_v, and the first wins with probability p_v.

Source: reference `sample`; temperatures below 1e-5 count as 0.
"""

import torch

from deepseek_edu.reference.sampling import GREEDY_BELOW


def probabilities(logits, temperature):
    """Return the distribution that `sample` draws from: (…, V), sums of 1, float32 or better.

    Raises:
        ValueError: a negative or infinite temperature.
    """
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature must be 0 or more and finite; got {temperature}; 0 is greedy")
    if temperature < GREEDY_BELOW:
        best = logits.argmax(dim=-1)
        return torch.nn.functional.one_hot(best, logits.shape[-1]).to(torch.float32)
    return (logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature).softmax(dim=-1)


def draw(distribution, generator=None):
    """Return ids drawn from distributions (…, V): int64 (…)."""
    times = torch.empty_like(distribution).exponential_(generator=generator)
    return (distribution / times).argmax(dim=-1)


def sample(logits, temperature, generator=None):
    """Return ids for logits (…, V): int64 (…); the generator is only used above temperature 0."""
    if 0 <= temperature < GREEDY_BELOW:
        return logits.argmax(dim=-1)
    return draw(probabilities(logits, temperature), generator)
