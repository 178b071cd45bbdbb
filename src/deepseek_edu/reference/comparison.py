"""Comparing two columns of scores: differences, errors that are left, signs, and what chance alone could do.

A table of results is read row by row, with the rule of its authors for "the same", and then as a whole. What it cannot
tell (how far a second run would move, what caused a difference) is computed here only as far as assumptions that are
named allow.

Left out: tests for paired answers. They need the answers to every question, which a table of averages does not hold.

Source: report, section 4.3.2 and table 1 (scores at most 0.3 apart count as the same level). The exact sign test and
the spread of a share of n answers are standard statistics.
"""

import math

SAME_LEVEL = 0.3  # points; scores no further apart count as equal


def difference(before, after):
    """Return after − before in points, rounded where only binary arithmetic differs.

    >>> difference(44.7, 45.2)
    0.5
    """
    return round(after - before, 9)


def direction(before, after, same_level=SAME_LEVEL):
    """Return where the scores went from `before` to `after`: "up", "down" or "same" (at most `same_level` apart).

    >>> direction(85.7, 80.2), direction(44.7, 45.0)
    ('down', 'same')
    """
    gap = difference(before, after)
    if abs(gap) <= same_level:
        return "same"
    return "up" if gap > 0 else "down"


def error_reduction(before, after):
    """Return the share of the errors that is gone, for scores `before` and `after` in percent; negative if they grew.

    >>> round(error_reduction(80.0, 90.0), 6)
    0.5
    """
    return difference(before, after) / (100 - before)


def direction_counts(rows, same_level=SAME_LEVEL):
    """Count directions over rows of (before, after): {"up", "same", "down"}; `same_level` as in `direction`."""
    found = [direction(before, after, same_level) for before, after in rows]
    return {name: found.count(name) for name in ("up", "same", "down")}


def sign_test(up, down):
    """Return how often a split at least as uneven as `up` against `down` comes from fair coins (two-sided, exact).

    It asks of the rows that they are independent and were not chosen after looking.

    >>> sign_test(4, 0)
    0.125
    """
    coins = up + down
    tail = sum(math.comb(coins, heads) for heads in range(max(up, down), coins + 1))
    return min(1.0, 2 * tail / 2**coins)


def chance_band(before, after, questions, factor=1.96):
    """Return how many points a difference can come to by the choice of questions alone.

    Args:
        before: score in percent; after: the other one.
        questions: how many questions each score is the share of.
        factor: standard deviations; 1.96 covers 95 of 100 draws.

    Returns:
        float, points. It takes each question as one draw and the two scores as independent; on the same questions they
        are not, and the true band is mostly narrower.
    """
    spread = sum(share * (1 - share) for share in (before / 100, after / 100))
    return 100 * factor * math.sqrt(spread / questions)


def judge(holds, needs, told):
    """Judge a claim by a table: (whether the table supports it, what it would need beside the table).

    Args:
        holds: whether the numbers agree with the claim.
        needs: the kinds of evidence that the claim rests on.
        told: the kinds of evidence that the table holds.

    >>> judge(True, ("scores", "cost"), ("scores",))
    (False, ('cost',))
    """
    missing = tuple(kind for kind in needs if kind not in told)
    return holds and not missing, missing
