"""Speculative acceptance keeps the distribution of the output; sampling draws from the softmax."""

from itertools import product

import numpy as np
import pytest

from deepseek_edu.reference import acceptance, sampling


class Script:
    """Stands in for a random generator: says what `random` returns, and draws the first or the last possible token."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)

    def exponential(self, size):
        return np.ones(size)


def distributions(seed, rows, size):
    return np.random.default_rng(seed).dirichlet(np.ones(size), rows)


def emitted(target, draft, length):
    """Exact distribution of the first `length` emitted tokens, by enumerating drafts and decisions by hand.

    target(prefix) and draft(prefix) give distributions after a prefix; one block of len = 2 drafts is verified, tokens
    beyond it come from the target directly.
    """
    result = {}
    vocabulary = len(target(()))

    def add(tokens, weight):
        if len(tokens) >= length:
            key = tokens[:length]
            result[key] = result.get(key, 0) + weight
            return
        for token, p in enumerate(target(tokens)):
            add((*tokens, token), weight * p)

    for block in product(range(vocabulary), repeat=2):
        weight, prefix = 1.0, ()
        for token in block:
            weight *= draft(prefix)[token]
            prefix = (*prefix, token)
        for stands in range(3):  # drafts that stand: 0, 1 or both
            chance, prefix = weight, ()
            for token in block[:stands]:
                chance *= acceptance.acceptance_probability(token, target(prefix), draft(prefix))
                prefix = (*prefix, token)
            if stands < 2:
                chance *= 1 - acceptance.acceptance_probability(block[stands], target(prefix), draft(prefix))
                following = acceptance.residual(target(prefix), draft(prefix))
            else:
                following = target(prefix)
            for token, p in enumerate(following):
                add((*prefix, token), chance * p)
    return result


def test_the_emitted_distribution_is_the_targets_by_enumeration():
    """Three tokens from a vocabulary of three, 27 texts: the same probabilities as sampling the target directly."""

    def target(prefix):
        return distributions(hash_of(prefix), 1, 3)[0]

    def draft(prefix):
        return distributions(1000 + hash_of(prefix), 1, 3)[0]

    def hash_of(prefix):
        return sum((token + 1) * 7**place for place, token in enumerate(prefix))

    got = emitted(target, draft, 3)
    for text in product(range(3), repeat=3):
        expected = np.prod([target(text[:i])[text[i]] for i in range(3)])
        assert abs(got[text] - expected) < 1e-12


def test_the_first_emitted_token_has_the_targets_frequencies():
    """A chi-square test with 20 000 draws: 9 degrees of freedom, 99.9 % of right programs stay below 27.9."""
    target, draft = distributions(1, 3, 10), distributions(2, 2, 10)
    rng, counts = np.random.default_rng(3), np.zeros(10)
    for _ in range(20_000):
        drafts = [sampling.draw(row, rng) for row in draft]
        accepted, following = acceptance.accept(drafts, draft, target, rng)
        counts[drafts[0] if accepted else following] += 1
    expected = 20_000 * target[0]
    assert np.sum((counts - expected) ** 2 / expected) < 27.9


def test_a_draft_stands_with_probability_p_over_q():
    target, draft = np.array([[0.3, 0.7]] * 2), np.array([[0.6, 0.4]])
    assert acceptance.accept([0], draft, target, Script(0.49))[0] == 1
    assert acceptance.accept([0], draft, target, Script(0.5)) == (0, 1)
    assert acceptance.accept([1], draft, target, Script(0.999999))[0] == 1


def test_drafts_behind_the_first_rejection_are_not_looked_at():
    target = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    draft = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert acceptance.accept([0, 0], draft, target, Script(0.0)) == (0, 1)


def test_after_a_rejection_the_token_comes_from_the_residual():
    """P = (.5, .5), Q = (.8, .2): what is left of P − Q is token 1 only, though P itself gives 0 half the time."""
    rng = np.random.default_rng(0)
    target, draft = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([[0.8, 0.2]])
    results = [acceptance.accept([0], draft, target, rng) for _ in range(400)]
    assert {following for accepted, following in results if not accepted} == {1}


def test_equal_distributions_leave_the_target_as_residual():
    p = np.array([0.25, 0.75])
    np.testing.assert_array_equal(acceptance.residual(p, p), p)


def test_all_drafts_standing_give_one_more_token():
    target = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert acceptance.accept([0, 1], target[:2], target, Script(0.9, 0.9)) == (2, 1)


def test_greedy_acceptance_is_acceptance_of_one_hot_distributions():
    rng = np.random.default_rng(4)
    for _ in range(50):
        logits = rng.standard_normal((6, 4))
        drafts = rng.integers(0, 4, 5)
        one_hot = np.eye(4)[drafts]
        expected = acceptance.accept(drafts, one_hot, sampling.probabilities(logits, 0), np.random.default_rng(0))
        assert acceptance.accept_greedy(drafts, logits) == expected


def test_a_draft_its_distribution_excludes_is_an_error():
    with pytest.raises(ValueError, match="the distribution that the draft was drawn from"):
        acceptance.accept([1], np.array([[1.0, 0.0]]), np.ones((2, 2)) / 2, np.random.default_rng(0))


def test_a_missing_distribution_is_an_error():
    with pytest.raises(ValueError, match="1 drafts need"):
        acceptance.accept([1], np.ones((1, 2)) / 2, np.ones((1, 2)) / 2, np.random.default_rng(0))


def test_expected_tokens_add_the_survivals():
    """.94 + .94·.88 + … = 3.2247 drafts and one token of the backbone's own."""
    assert abs(acceptance.expected_tokens([0.94, 0.88, 0.81, 0.73, 0.61]) - 4.2247) < 5e-5


def test_draws_have_the_frequencies_of_the_softmax():
    logits, rng = np.array([0.0, 1.0, 2.0, -1.0]), np.random.default_rng(5)
    for temperature in (0.5, 1.0, 2.0):
        weights = np.exp(logits / temperature)
        expected = 6000 * weights / weights.sum()
        counts = np.bincount([sampling.sample(logits, temperature, rng) for _ in range(6000)], minlength=4)
        assert np.sum((counts - expected) ** 2 / expected) < 16.3  # 3 degrees of freedom, 99.9 %


def test_temperature_zero_takes_the_most_likely_token_and_uses_no_randomness():
    assert sampling.sample(np.array([1.0, 3.0, 3.0]), 0.0, None) == 1
    np.testing.assert_array_equal(sampling.probabilities(np.array([[1.0, 3.0], [2.0, 0.0]]), 9e-6), [[0, 1], [1, 0]])


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf")])
def test_a_temperature_that_means_nothing_is_refused(temperature):
    with pytest.raises(ValueError, match="temperature must be 0 or more"):
        sampling.probabilities(np.zeros(2), temperature)
