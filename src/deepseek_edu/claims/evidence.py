"""Checks of the claims about the report's table of base models.

Source: technical report of DeepSeek-V4.1-Flash, section 4.3.2, table 1.
"""

from deepseek_edu.reference import comparison
from deepseek_edu.widgets.evidence_data import ROWS, scores


def directions_of_the_rows() -> str:
    """Rows that went up, stayed the same, went down."""
    return "/".join(map(str, comparison.direction_counts([scores(key) for key in ROWS]).values()))


def same_level() -> float:
    """The largest gap that counts as the same, in points."""
    return comparison.SAME_LEVEL


def sign_test_of_the_rows() -> float:
    """The exact sign test over the rows that moved."""
    counts = comparison.direction_counts([scores(key) for key in ROWS])
    return comparison.sign_test(counts["up"], counts["down"])


def rows_beyond_chance() -> int:
    """Rows whose difference is larger than the band for 500 questions."""
    return sum(abs(comparison.difference(*scores(key))) > comparison.chance_band(*scores(key), 500) for key in ROWS)
