"""Grading: the lab contract, an isolated runner for submissions, comparison in the grader's process, and reports.

Names are imported when first used, so that `deepseek_edu.grading.harness` alone stays light enough for the page's
worker.

>>> from deepseek_edu.grading import grade          # doctest: +SKIP
>>> grade("fp4-codes", choose_scale, encode, decode, pack)  # doctest: +SKIP
"""

from importlib import import_module

_HOMES = {
    "Case": "case",
    "Lab": "lab",
    "LabError": "case",
    "Report": "report",
    "find_labs": "lab",
    "grade": "api",
    "load_lab": "lab",
}
__all__ = sorted(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
