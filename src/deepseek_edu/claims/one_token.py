"""Checks of the claims about the walk of one token through V4.

Source: a public walk at toy width, whose printed numbers are in widgets/one_token_data.py.
"""

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import v4_attention
from deepseek_edu.widgets import one_token_walk

FAR = 2**20


def recomputed_numbers() -> int:
    """Printed numbers that are recomputed and lie within their tolerance."""
    _, found = one_token_walk.walk()
    agree = 0
    for name, values in found.items():
        gaps = np.abs(np.ravel(values) - np.ravel(one_token_walk.printed(name)))
        agree += int((gaps <= one_token_walk.tolerance(name)).sum())
    return agree


def entries_of_v4() -> list[int]:
    """Entries that a query of V4-Flash reads at 2^20 tokens: window only, CSA, HCA."""
    config = ModelConfig.v4_flash_0731()
    return [v4_attention.entries_read(FAR - 1, ratio, config) for ratio in (0, 4, 128)]
