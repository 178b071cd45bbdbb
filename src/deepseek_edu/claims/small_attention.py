"""Checks of the claims about the small attention model."""

from deepseek_edu.widgets import toy_attention

IDS, CHANGED = (12, 37, 9), (12, 37, 200)


def rows_that_move() -> str:
    """At which positions the logits move when the last id is changed, with and without the causal mask."""
    words = []
    for causal in (True, False):
        gaps = toy_attention.moved(toy_attention.arrays(CHANGED, causal), toy_attention.arrays(IDS, causal))["logits"]
        words.append(", ".join(str(row) for row, gap in enumerate(gaps) if gap))
    return f"logits move at {words[0]} with the mask and at {words[1]} without it"


def checks_without_a_mask() -> str:
    """Names of the checks that fail without the mask; all pass with it."""
    failed = {causal: [name for name, _, gap in toy_attention.checks(IDS, causal) if gap] for causal in (True, False)}
    return ", ".join(failed[False]) if not failed[True] else "with the mask too"
