"""Checks of the claims about the trained baseline; each gets the record of the run."""


def _at(record: dict, step: int) -> list[dict]:
    """The figures of one step, for each seed."""
    return [next(figures for figures in run["steps"] if figures["step"] == step) for run in record["runs"]]


def own_colour_when_the_curve_looks_flat(record: dict) -> float:
    """Probability of the thing's own colour at step 100 of the first seed."""
    return _at(record, 100)[0]["same_colour"]


def own_colour_at_the_end(record: dict) -> list[float]:
    """The same at the reported step, for each seed."""
    return [figures["same_colour"] for figures in _at(record, record["reported"])]


def samples_are_sentences(record: dict) -> bool:
    """Whether at least 3/4 of the samples are well formed, and 1/8 to 1/5 of all were never trained on."""
    final = _at(record, record["reported"])
    return all(f["well_formed"] >= 3 / 4 and 1 / 8 <= f["never_seen"] <= 1 / 5 for f in final)


def final_is_lowest(record: dict) -> list[float]:
    """Held-out losses of the reported step; those of the lowest step where that is another one."""
    return [min(figures["held_out"] for figures in run["steps"]) for run in record["runs"]]
