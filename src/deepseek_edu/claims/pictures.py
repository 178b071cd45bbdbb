"""Check of the claim about the kinds of things that pictures show."""

from deepseek_edu.drawing import kit


def kinds() -> int:
    """How many kinds the drawing kit knows."""
    return len(kit.KINDS)
