"""One case of a lab: plain data in, plain data out, and the error every malformed lab ends in."""

from dataclasses import dataclass, replace
from pathlib import Path

from deepseek_edu.grading.harness import Unsupported, encode


class LabError(ValueError):
    """A lab folder is wrong. Names the file, what was found and what is allowed."""

    def __init__(self, where, found, allowed):
        super().__init__(f"{where}: {found}. {allowed}")
        self.where = str(where)
        self.found = found
        self.allowed = allowed


@dataclass(frozen=True)
class Case:
    """A call of one function and the value it has to return.

    Attributes:
        id: short name, unique in the lab, such as ``encode-ties``.
        function: name of the submission's function.
        args: arguments, plain data (numbers, text, None, bytes, lists, dictionaries).
        expected: the right answer, plain data.
        tolerance: largest accepted ``|got - expected|`` for numbers; 0 means exact, with the sign of zero.
        points: weight of the case inside the lab.
        note: one sentence for the learner: what this case is about.
        replay: token that regenerates a hidden case, None for a visible one.
        hidden: whether the case runs only at grading.
    """

    id: str
    function: str
    args: tuple
    expected: object
    tolerance: float = 0.0
    points: float = 1.0
    note: str = ""
    replay: str | None = None
    hidden: bool = False

    def page_data(self):
        """The case as the page gets it, with tagged values."""
        return {
            "id": self.id,
            "function": self.function,
            "args": [encode(arg) for arg in self.args],
            "expected": encode(self.expected),
            "tolerance": self.tolerance,
            "points": self.points,
            "note": self.note,
        }

    def as_hidden(self, replay=None):
        """The same case, marked as hidden."""
        return replace(self, hidden=True, replay=replay)


def check_case(case, functions, where: Path):
    """Return the case if it is well formed, else raise LabError.

    Args:
        case: what ``visible()``, ``generate(rng, index)`` or an overlay's ``hidden()`` made.
        functions: the lab's functions.
        where: the file to name.
    """
    if not isinstance(case, Case):
        raise LabError(where, f"a case is a {type(case).__name__}", "Return deepseek_edu.grading.Case objects")
    if not isinstance(case.id, str) or not case.id.replace("-", "").replace("_", "").isalnum():
        raise LabError(where, f"a case has the id {case.id!r}", "Use letters, digits and hyphens, as in encode-ties")
    if case.function not in functions:
        raise LabError(where, f"case {case.id} calls {case.function!r}", f"Allowed: {', '.join(functions)}")
    if not isinstance(case.args, tuple | list):
        raise LabError(where, f"case {case.id} has args of type {type(case.args).__name__}", "Use a tuple of arguments")
    for name, smallest in (("tolerance", 0), ("points", 0)):
        value = getattr(case, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not smallest <= value < float("inf"):
            raise LabError(where, f"case {case.id} has {name} = {value!r}", "Use a number that is zero or larger")
    for name, value in (("args", list(case.args)), ("expected", case.expected)):
        try:
            encode(value)
        except Unsupported as error:
            raise LabError(where, f"{name} of case {case.id}: {error}", "Cases are plain data") from None
    return case
