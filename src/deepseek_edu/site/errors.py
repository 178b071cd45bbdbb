"""Errors of the site generator: each says where, what was found, what is allowed, and the next step."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SiteError(Exception):
    """Something stops the build; the message is one that a person can act on."""


class PlaceError(SiteError):
    """A path to write to is none that may be written; nothing was touched. The command ends with exit code 2."""


class SourceError(SiteError):
    """A page, lab or ledger holds something that is not allowed.

    Attributes:
        file: path relative to the repository.
        line: one-based line, or None if the whole file is meant.
        found: what stands there.
        allowed: what may stand there.
    """

    def __init__(self, file: str, line: int | None, found: str, allowed: str) -> None:
        self.file, self.line, self.found, self.allowed = file, line, found, allowed
        where = file if line is None else f"{file}:{line}"
        super().__init__(f"{where}: found {found}; allowed: {allowed}")


def one_of(names: Iterable[str], found: str | None = None) -> str:
    """List names for an `allowed` text, with the nearest one to what was found.

    >>> one_of(["quiz", "lab"], "quizz")
    'lab, quiz (did you mean quiz?)'
    """
    known = sorted(names)
    text = ", ".join(known) if known else "nothing (none exists yet)"
    close = difflib.get_close_matches(found, known, n=1) if found else []
    return f"{text} (did you mean {close[0]}?)" if close else text
