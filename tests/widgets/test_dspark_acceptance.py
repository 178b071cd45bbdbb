"""Sampled rounds of the dspark widget against exact distributions, the chi-square test, and rules that are wrong."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.widgets import dspark_acceptance, dspark_rounds

from .test_dspark import edited, numbers, raw, view

TARGET = [Fraction(n, 100) for n in (40, 25, 20, 10, 5)]
DRAFT = [Fraction(n, 100) for n in (60, 10, 10, 15, 5)]


def emitted(rule: str) -> list[Fraction]:
    """The exact output distribution of a rule, for TARGET and DRAFT."""
    share = sum(map(min, TARGET, DRAFT))
    positive = [max(p - q, 0) for p, q in zip(TARGET, DRAFT, strict=True)]
    left = [v / sum(positive) for v in positive]
    kept = [min(p, q) for p, q in zip(TARGET, DRAFT, strict=True)]
    if rule == "equality":
        return [Fraction(1), *[Fraction(0)] * 4]
    if rule == "unseen":
        return DRAFT
    if rule == "resample":
        return [k + (1 - share) * p for k, p in zip(kept, TARGET, strict=True)]
    if rule == "confidence":
        return [share * q + (1 - share) * v for q, v in zip(DRAFT, left, strict=True)]
    if rule == "other":
        roots = [math.sqrt(q) for q in DRAFT]
        used = [r / math.fsum(roots) for r in roots]
        kept = [float(q) * min(1, float(p) / u) for p, q, u in zip(TARGET, DRAFT, used, strict=True)]
        positive = [max(float(p) - u, 0) for p, u in zip(TARGET, used, strict=True)]
        return [k + (1 - math.fsum(kept)) * v / math.fsum(positive) for k, v in zip(kept, positive, strict=True)]
    return TARGET


@pytest.mark.parametrize("rule", dspark_rounds.RULES)
def test_every_rule_emits_what_it_should_and_only_the_right_one_the_target(rule):
    """A sample of 4,000 lies within 4.5 standard deviations of each rule's exact distribution."""
    for sample in (1, 5, 8):
        shown = view(part="acceptance", rule=rule, sample=sample)
        found = shown.parts[0].raw
        counts = np.array(found["kept"]) + np.array(found["replaced"])
        assert counts.sum() == 4000
        for count, share in zip(counts, map(float, emitted(rule)), strict=True):
            assert abs(count - 4000 * share) <= 4.5 * math.sqrt(4000 * share * (1 - share)) + 1e-9
        statistic = math.fsum(
            (c - 4000 * float(p)) ** 2 / (4000 * float(p)) for c, p in zip(counts, TARGET, strict=True)
        )
        values = numbers(shown)
        assert values["χ²"] == pytest.approx(statistic, rel=1e-12)
        assert found["overlap"] == pytest.approx(0.75, abs=1e-12)
        assert (values["p-value"] < 0.001) == (rule != "exact")
        assert any(getattr(part, "role", "") == "warn" for part in shown.parts) == (rule != "exact")


def test_samples_of_the_right_rule_are_unusual_as_often_as_they_should_be():
    """Of 200 p-values about a twentieth lies below 0.05, and half below one half (4 standard deviations)."""
    p, q = (np.array([float(x) for x in values]) for values in (TARGET, DRAFT))
    chances = []
    for sample in range(100, 300):
        kept, replaced = dspark_rounds.run("exact", p, q, 400, sample).counts(5)
        chances.append(dspark_rounds.chi_square(kept + replaced, p).chance)
    assert sum(c < 0.05 for c in chances) <= 10 + 4 * math.sqrt(9.5)
    assert abs(sum(c < 0.5 for c in chances) - 100) <= 4 * math.sqrt(50)


@pytest.mark.parametrize(
    ("freedom", "share", "quantile"),
    [
        (1, 0.05, 3.841458821),
        (2, 0.05, 5.991464547),
        (3, 0.05, 7.814727903),
        (4, 0.05, 9.487729037),
        (5, 0.05, 11.07049769),
        (4, 0.001, 18.46682695),
        (3, 0.5, 2.365973884),
    ],
)
def test_the_tail_of_chi_square_agrees_with_printed_tables(freedom, share, quantile):
    assert dspark_rounds.tail(quantile, freedom) == pytest.approx(share, rel=1e-8)
    assert dspark_rounds.critical(freedom, share) == pytest.approx(quantile, rel=1e-8)


def test_rare_tokens_share_a_bin_and_an_impossible_token_needs_no_test():
    verdict = dspark_rounds.chi_square(np.array([60, 38, 2]), np.array([0.5, 0.48, 0.02]))
    assert verdict.freedom == 1, "two tokens are too few for a bin of their own"
    assert verdict.statistic == pytest.approx((60 - 50) ** 2 / 50 + (40 - 50) ** 2 / 50)
    assert dspark_rounds.chi_square(np.array([9, 1]), np.array([1.0, 0.0])).chance == 0
    shown = view(part="acceptance", pair="own", rule="unseen", weights=[1, 1, 0, 0, 0, 0, 0, 0, 0, 1])
    assert "“purple” was emitted, and the target never says it" in shown.parts[3].text


@settings(max_examples=40, deadline=None)
@given(weights=st.lists(st.integers(0, 100), min_size=10, max_size=10), sample=st.integers(1, 8))
def test_any_pair_of_distributions_keeps_the_targets_output(weights, sample):
    """The share of a token is bounded by 5.5 standard deviations, so that no example fails by chance."""
    shown = view(part="acceptance", pair="own", weights=weights, sample=sample)
    found = shown.parts[0].raw
    halves = [[Fraction(w) for w in half] if sum(half) else [Fraction(1)] * 5 for half in (weights[:5], weights[5:])]
    target, draft = ([w / sum(half) for w in half] for half in halves)
    assert found["overlap"] == pytest.approx(float(sum(map(min, target, draft))), abs=1e-12)
    for p, kept, replaced in zip(map(float, target), found["kept"], found["replaced"], strict=True):
        assert abs(kept + replaced - 4000 * p) <= 5.5 * math.sqrt(4000 * p * (1 - p)) + 1e-9


def test_rounds_decided_at_once_end_as_the_reference_decides_them_one_by_one(monkeypatch):
    p, q = (np.array([float(x) for x in values]) for values in (TARGET, DRAFT))
    at_once = dspark_rounds.run("exact", p, q, 1000, 3)
    monkeypatch.setattr(dspark_rounds, "CHECKED", 1000)
    decided = []
    accept = dspark_rounds.acceptance.accept
    monkeypatch.setattr(
        dspark_rounds.acceptance, "accept", lambda *arguments: decided.append(accept(*arguments)) or decided[-1]
    )
    dspark_rounds.run("exact", p, q, 1000, 3)
    assert len(decided) == 1000, "one disagreed, so all were run again"
    assert [bool(accepted) for accepted, _ in decided] == at_once.stood.tolist()
    assert [token for accepted, token in decided if not accepted] == at_once.emitted[~at_once.stood].tolist()


def test_weights_are_divided_by_their_sum_and_nothing_counts_as_equal():
    assert dspark_acceptance.normalised([1, 3]).tolist() == [0.25, 0.75]
    assert dspark_acceptance.normalised([0, 0, 0, 0]).tolist() == [0.25] * 4


# Wrong mechanisms


def failed(found: dict) -> bool:
    counts = np.array(found["kept"]) + np.array(found["replaced"])
    return dspark_rounds.chi_square(counts, np.array(found["target"])).chance < 1e-6


def test_the_edit_that_the_page_suggests_turns_the_output_wrong():
    assert failed(
        edited("sampling.draw(residual(target, draft), rng)", "sampling.draw(target, rng)", part="acceptance")
    )
    assert not failed(raw(part="acceptance"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return min(1.0, target[token] / draft[token])", "return 1.0"),
        ("return min(1.0, target[token] / draft[token])", "return min(1.0, draft[token] / target[token])"),
        ("if rng.random() >= acceptance_probability", "if rng.random() < acceptance_probability"),
        ("np.maximum(target - draft, 0)", "np.abs(target - draft)"),
        ("for position, token in enumerate(drafts):", "for position, token in enumerate(drafts[1:], 1):"),
    ],
)
def test_other_wrong_rules_of_acceptance_are_seen_in_the_sample(old, new):
    assert failed(edited(old, new, part="acceptance"))
