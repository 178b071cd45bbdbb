"""Read what a learner handed in: a script or a notebook, whatever its encoding, or say in one line why not.

Nothing is parsed as Python here: that happens in the child process.
"""

import codecs
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 1_000_000
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_WIDE = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class Unreadable(ValueError):
    """The submission cannot be graded; `line` is the 1-based line to look at, or None."""

    def __init__(self, message, line=None):
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True)
class Submission:
    """Code to grade.

    Attributes:
        name: how reports call it.
        source: Python source, UTF-8 text with newlines only.
        notes: what was mended while reading, for the report.
        cells: for a notebook, (first line in source, cell number) of each code cell; empty for a script.
    """

    name: str
    source: str
    notes: tuple = ()
    cells: tuple = ()

    def place(self, line):
        """A line of the source in the learner's words, such as ``line 12`` or ``cell 3, line 4``; "" for None."""
        if line is None:
            return ""
        for first, number in reversed(self.cells):
            if line >= first:
                return f"cell {number}, line {line - first + 1}"
        return f"line {line}"


def read_submission(path, name=None):
    """Read a .py or .ipynb file, or a folder that holds exactly one.

    Raises:
        Unreadable: with a reason a learner can act on.
    """
    path = Path(path)
    name = name or path.name
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise Unreadable(f"the file cannot be opened: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        path = _only_file(path)
        mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise Unreadable("this is not a regular file")
    if path.suffix.lower() not in (".py", ".ipynb"):
        raise Unreadable(f"the name {path.name} does not end in .py or .ipynb: rename the file")
    data = _read_bytes(path)
    if path.suffix.lower() == ".ipynb":
        return _from_notebook(name, data)
    source, notes = _text(data)
    return Submission(name, source, notes)


def _only_file(folder):
    try:
        files = [
            item
            for item in sorted(folder.iterdir())
            if item.is_file()
            and not item.is_symlink()
            and item.suffix.lower() in (".py", ".ipynb")
            and not item.name.startswith(".")
        ]
    except OSError as error:
        raise Unreadable(f"the folder cannot be opened: {error.strerror}") from None
    if len(files) != 1:
        found = ", ".join(item.name for item in files[:5]) or "none"
        raise Unreadable(
            f"this is a folder with {len(files)} files ending in .py or .ipynb ({found}): hand in one file"
        )
    return files[0]


def _read_bytes(path):
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"the file cannot be opened: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        size = path.stat().st_size / 1e6
        raise Unreadable(
            f"the file has {size:.1f} MB, more than the {MAX_BYTES / 1e6:.0f} MB allowed: "
            "remove data and outputs from it",
            1,
        )
    return data


def _text(data):
    """Decode a script: (source, notes)."""
    notes = []
    for mark, wide in _WIDE:
        if data.startswith(mark):
            raise Unreadable(f"the file is saved as {wide}: save it as UTF-8", 1)
    if data.startswith(codecs.BOM_UTF8):
        data = data[3:]
        notes.append("a byte order mark at the beginning was removed")
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise Unreadable("the file holds a zero byte: it is not a text file, or not saved as UTF-8", line)
    encoding = _declared(data) or "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Unreadable(
            f"byte 0x{data[error.start]:02X} is not {encoding.upper()}: save the file as UTF-8", line
        ) from None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        notes.append("line ends were changed to newlines")
    return text, tuple(notes)


def _declared(data):
    """The encoding a coding comment names in the first two lines, if Python knows it."""
    for number, line in enumerate(data.split(b"\n")[:2], 1):
        match = _COOKIE.match(line)
        if match:
            name = match[1].decode("ascii")
            try:
                b" ".decode(name)
            except (LookupError, UnicodeError):
                raise Unreadable(
                    f"the coding comment names {name}, which is no encoding for Python source", number
                ) from None
            return name
    return None


def _from_notebook(name, data):
    source, notes = _text(data)
    try:
        notebook = json.loads(source)
    except json.JSONDecodeError as error:
        raise Unreadable(f"this is not a notebook: {error.msg}", error.lineno) from None
    except (RecursionError, ValueError):
        raise Unreadable("this is not a notebook", 1) from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise Unreadable("this is not a notebook: it has no list of cells (open and save it in JupyterLab)", 1)
    lines, starts = [], []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        text = cell.get("source", "")
        if isinstance(text, list) and all(isinstance(part, str) for part in text):
            text = "".join(text)
        if not isinstance(text, str):
            raise Unreadable(f"cell {number} of the notebook has no readable source", 1)
        starts.append((len(lines) + 1, number))
        lines.extend(_without_magics(text.replace("\r\n", "\n")).split("\n"))
    if not any(line.strip() for line in lines):
        raise Unreadable("the notebook has no code", 1)
    note = "of the notebook's code only what the graded functions need was run"
    return Submission(name, "\n".join(lines), (*notes, note), tuple(starts))


def _without_magics(text):
    """Blank IPython's own lines; a cell in another language (``%%bash``) goes as a whole."""
    first = text.lstrip().partition("\n")[0]
    if first.startswith("%%") and first.split()[0] not in ("%%time", "%%timeit", "%%capture"):
        return "\n" * text.count("\n")
    return "\n".join(
        "" if line.lstrip().startswith(("%", "!", "?")) and not line[0].isspace() else line for line in text.split("\n")
    )
