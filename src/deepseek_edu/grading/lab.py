"""The lab contract: one folder per lab, read and checked.

``labs/<id>/`` holds ``lab.toml``, ``statement.md``, ``starter.py``, ``solution.py``, ``cases.py``, ``wrong/*.py`` and
optionally ``alternative/*.py``. ``cases.py`` defines ``visible() -> list[Case]``, ``HIDDEN`` (how many cases run at
grading) and ``generate(rng, index) -> Case``, the same case for the same random state and index.

A hidden case has its own seed, derived from the instructor's: showing it lets a learner replay that one case and
tells nothing about the others.
"""

import hashlib
import json
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

from deepseek_edu.grading.case import Case, LabError, check_case
from deepseek_edu.grading.lab_files import Limits, call_list, import_file, read_limits, read_settings, read_text

ROOT_VARIABLE = "DEEPSEEK_EDU_ROOT"
_FILES = ("lab.toml", "statement.md", "starter.py", "solution.py", "cases.py")


@dataclass(frozen=True)
class Lab:
    """A lab folder that has been read and checked. Make one with `load_lab`."""

    id: str
    path: Path
    title: str
    points: float
    chapter: str
    mechanism: tuple
    functions: tuple
    statement: str
    starter: str
    solution: str
    limits: Limits
    solutions: str
    attempts: int
    visible: tuple
    hidden_count: int
    version: str
    _generate: object = field(repr=False, default=None)

    def page_data(self):
        """What the page needs to run the visible cases. Holds no solution, no hidden case, no seed."""
        return {
            "id": self.id,
            "version": self.version,
            "title": self.title,
            "points": self.points,
            "chapter": self.chapter,
            "mechanism": list(self.mechanism),
            "functions": list(self.functions),
            "starter": self.starter,
            "limits": {"seconds": self.limits.seconds, "memory_mb": self.limits.memory_mb},
            "cases": [case.page_data() for case in self.visible],
            "hidden": self.hidden_count,
        }

    def promise(self):
        """The sentence a learner reads first: how many cases are visible and how many run at grading.

        The count of an instructor's overlay is not part of it.
        """
        return f"{len(self.visible)} visible cases, {self.hidden_count} hidden cases run at grading"

    def hidden(self, seed):
        """The hidden cases of one secret seed (text or integer)."""
        return [self.replay(f"{index}-{_case_seed(self.id, seed, index)}") for index in range(self.hidden_count)]

    def replay(self, token):
        """The one hidden case of a replay token such as ``7-3f9a0c2d41b6``; raises LabError for a malformed token."""
        index, _, seed = token.partition("-")
        if not (index.isdecimal() and int(index) < self.hidden_count and len(seed) == 12 and _is_hex(seed)):
            raise LabError(
                f"replay {token!r}",
                "this is not the replay token of a case of this lab",
                "Copy it whole from a report, as in 7-3f9a0c2d41b6",
            )
        where = self.path / "cases.py"
        try:
            case = self._generate(random.Random(f"{self.id}/{token}"), int(index))
        except LabError:
            raise
        except Exception as error:
            raise LabError(
                where,
                f"generate(rng, {index}) raised {type(error).__name__}: {error}",
                "It has to return a Case for every index below HIDDEN",
            ) from error
        return check_case(case, self.functions, where).as_hidden(f"{int(index)}-{seed}")

    def overlay(self, folder):
        """Extra hidden cases an instructor keeps in ``<folder>/<lab id>/cases.py`` as ``hidden() -> list[Case]``."""
        where = Path(folder) / self.id / "cases.py"
        if not where.is_file():
            raise LabError(
                where, "there is no such file", "An overlay holds <lab id>/cases.py with hidden() -> list of Case"
            )
        module = import_file(where, f"overlay_{self.id}")
        cases = call_list(module, "hidden", where)
        taken = {case.id for case in self.visible}
        return [_unique(check_case(case, self.functions, where), taken, where).as_hidden() for case in cases]


def _is_hex(text):
    return all(letter in "0123456789abcdef" for letter in text)


def _case_seed(lab_id, seed, index):
    return hashlib.sha256(f"deepseek-edu/{lab_id}/{index}/{seed}".encode()).hexdigest()[:12]


def find_root(start=None):
    """The project folder: $DEEPSEEK_EDU_ROOT, else the first folder upwards with labs/, else the one of this package.

    Raises:
        LabError: when none of them holds a labs folder.
    """
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        if (Path(named) / "labs").is_dir():
            return Path(named).resolve()
        raise LabError(f"{ROOT_VARIABLE}={named}", "there is no labs folder in it", "Name the folder that holds labs/")
    here = Path(start or Path.cwd()).resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[3]):
        if any(folder.glob("labs/*/lab.toml")):
            return folder
    raise LabError(
        here, "no labs folder here or above", f"Run this inside the course's repository, or set {ROOT_VARIABLE} to it"
    )


def find_labs(root=None):
    """Folders of all labs, by name."""
    folder = Path(root) if root else find_root()
    return sorted(path.parent for path in folder.glob("labs/*/lab.toml"))


def load_lab(lab, root=None):
    """Read and check one lab.

    Args:
        lab: a Lab (returned as it is), the id of a lab, or the path of its folder.
        root: project folder to look for an id in; default `find_root`.

    Raises:
        LabError: naming the file, what was found and what is allowed.
    """
    if isinstance(lab, Lab):
        return lab
    path = Path(lab)
    if not path.is_dir():
        if len(path.parts) > 1:
            raise LabError(path, "there is no such lab folder", f"Labs: {_known(root)}")
        path = (Path(root) if root else find_root()) / "labs" / str(lab)
        if not path.is_dir():
            raise LabError(str(lab), "there is no lab of this name", f"Labs: {_known(root)}")
    path = path.resolve()
    for name in _FILES:
        if not (path / name).is_file():
            raise LabError(path / name, "the file is missing", f"A lab holds {', '.join(_FILES)} and wrong/*.py")
    table = read_settings(path / "lab.toml")
    limits = read_limits(table.get("limits", {}), path / "lab.toml")
    where = path / "cases.py"
    module = import_file(where, f"lab_{path.name}")
    taken = set()
    functions = tuple(table["functions"])
    visible = tuple(
        _unique(check_case(case, functions, where), taken, where) for case in call_list(module, "visible", where)
    )
    if not visible:
        raise LabError(where, "visible() returned no case", "Give the learner at least one")
    hidden_count = getattr(module, "HIDDEN", None)
    if isinstance(hidden_count, bool) or not isinstance(hidden_count, int) or hidden_count < 0:
        raise LabError(where, f"HIDDEN = {hidden_count!r}", "Set it to how many cases generate(rng, index) makes")
    if not callable(getattr(module, "generate", None)):
        raise LabError(where, "there is no function generate", "Define generate(rng, index) -> Case")
    texts = {name: read_text(path / name) for name in ("statement.md", "starter.py", "solution.py")}
    version = _version(texts["statement.md"], texts["starter.py"], functions, visible)
    return Lab(
        path.name,
        path,
        table["title"],
        table["points"],
        table["chapter"],
        tuple(table["mechanism"]),
        functions,
        texts["statement.md"],
        texts["starter.py"],
        texts["solution.py"],
        limits,
        table.get("solutions", "none"),
        table.get("attempts", 3),
        visible,
        hidden_count,
        version,
        module.generate,
    )


def _known(root):
    try:
        return ", ".join(path.name for path in find_labs(root)) or "none"
    except LabError:
        return "none found"


def _unique(case: Case, taken, where):
    if case.id in taken:
        raise LabError(where, f"two cases have the id {case.id}", "Ids are unique in a lab")
    taken.add(case.id)
    return case


def _version(statement, starter, functions, visible):
    """Twelve hexadecimal digits over what a learner's saved work depends on."""
    content = [statement, starter, list(functions), [case.page_data() for case in visible]]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
