"""What runs beside a learner's code: load a submission, run one case, turn the answer into plain data.

The same file runs in the grader's child process and in the page's worker (Pyodide), so it uses the standard library
only. It never sees an expected value: it answers with what the function returned, and the comparison happens
elsewhere.

Plain data travels as JSON with tags where JSON is too narrow: ``{"$float": "nan"|"inf"|"-inf"}``, ``{"$int": "..."}``
beyond 2**53, ``{"$bytes": "hex"}`` and ``{"$dict": [[key, value], ...]}`` for keys that are not text. Tuples become
lists.
"""

import ast
import builtins
import io
import json
import math
import sys
import threading

FILENAME = "submission.py"
FORBIDDEN = ("deepseek_edu",)
MAX_DEPTH = 64
MAX_ITEMS = 200_000
MAX_TEXT = 1_000_000
MAX_STDOUT = 4_000
SAFE_INT = 2**53

# Bound now: a submission that replaces these names in their modules or in builtins changes nothing here.
_dumps = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_compile, _exec, _isinstance, _type, _str = compile, exec, isinstance, type, str
_namespace_of_builtins = vars(builtins)
_original_builtins = dict(_namespace_of_builtins)


def _restore_builtins():
    """Undo what a submission did to the names every other line here relies on."""
    _namespace_of_builtins.update(_original_builtins)


class Unsupported(ValueError):
    """The value is not plain data: it cannot leave the submission's process."""


class SubmissionError(ValueError):
    """The submission cannot be loaded.

    Attributes:
        line: 1-based line in the submission, or None where no line is to blame.
        kind: "syntax", "empty", "missing", "duplicate", "forbidden" or the name of the exception that stopped it.
    """

    def __init__(self, message, line=None, kind="error"):
        super().__init__(message)
        self.message = message
        self.line = line
        self.kind = kind

    def as_dict(self):
        """JSON form: ``{"type", "message", "line"}``, the same keys as an error of a case."""
        return {"type": self.kind, "message": self.message, "line": self.line}


def encode(value):
    """Plain data as JSON-able data with tags.

    Numbers and arrays of NumPy are read through their ``tolist``. Raises Unsupported for anything else, for more than
    64 levels of nesting and for more than 200 000 items.

    >>> encode([1, -0.0, float("nan"), b"\\x0f"])
    [1, -0.0, {'$float': 'nan'}, {'$bytes': '0f'}]
    """
    return _encode(value, 0, [MAX_ITEMS])


def _encode(value, depth, left):
    left[0] -= 1
    if left[0] < 0:
        raise Unsupported(f"the answer holds more than {MAX_ITEMS} items")
    if depth > MAX_DEPTH:
        raise Unsupported(f"the answer is nested deeper than {MAX_DEPTH} levels")
    if value is None or value is True or value is False:
        return value
    if (_type(value).__module__ or "").partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()
    if _isinstance(value, bool):
        return value
    if _isinstance(value, int):
        number = int.__index__(value)
        return number if -SAFE_INT <= number <= SAFE_INT else {"$int": _int_text(number)}
    if _isinstance(value, float):
        number = float.__pos__(value)
        if math.isfinite(number):
            return number
        return {"$float": "nan" if number != number else "inf" if number > 0 else "-inf"}
    if _isinstance(value, str):
        if str.__len__(value) > MAX_TEXT:
            raise Unsupported(f"the answer holds a text of more than {MAX_TEXT} characters")
        return "".join(str.__iter__(value))
    if _isinstance(value, (bytes, bytearray)):
        if len(value) > MAX_TEXT:
            raise Unsupported(f"the answer holds more than {MAX_TEXT} bytes")
        return {"$bytes": value.hex()}
    if _isinstance(value, (list, tuple)):
        items = list.__iter__(value) if _isinstance(value, list) else tuple.__iter__(value)
        return [_encode(item, depth + 1, left) for item in items]
    if _isinstance(value, dict):
        pairs = [(key, _encode(item, depth + 1, left)) for key, item in dict.items(value)]
        if all(_type(key) is str and not key.startswith("$") for key, _ in pairs):
            return dict(pairs)
        return {"$dict": [[_encode(key, depth + 1, left), item] for key, item in pairs]}
    raise Unsupported(f"the answer holds a {_type(value).__name__}: return numbers, text, lists or dictionaries")


def _int_text(number):
    try:
        return _str(number)
    except ValueError:
        raise Unsupported("the answer holds an integer of thousands of digits") from None


def decode(data, depth=0):
    """The inverse of `encode`; tuples come back as lists. Raises ValueError for data `encode` cannot have made."""
    if depth > MAX_DEPTH + 2:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if data is None or _isinstance(data, (bool, int, float, str)):
        return data
    if _isinstance(data, list):
        return [decode(item, depth + 1) for item in data]
    if not _isinstance(data, dict):
        raise ValueError(f"not plain data: {_type(data).__name__}")
    if len(data) == 1:
        ((tag, body),) = data.items()
        if tag == "$float" and body in ("nan", "inf", "-inf"):
            return float(body)
        if tag == "$int" and _isinstance(body, str):
            return int(body)
        if tag == "$bytes" and _isinstance(body, str):
            return bytes.fromhex(body)
        if tag == "$dict" and _isinstance(body, list) and all(_isinstance(p, list) and len(p) == 2 for p in body):
            try:
                return {decode(key, depth + 1): decode(item, depth + 1) for key, item in body}
            except TypeError as error:
                raise ValueError(f"a key of a dictionary is not plain data: {error}") from None
    if any(key.startswith("$") for key in data):
        raise ValueError(f"unknown tag among {sorted(data)}")
    return {key: decode(item, depth + 1) for key, item in data.items()}


def check_source(source, functions=(), forbidden=FORBIDDEN):
    """Parse a submission without running it and return its code object.

    Args:
        source: the text of the submission.
        functions: names that may be defined at top level only once.
        forbidden: packages that a submission may not import.

    Raises:
        SubmissionError: with the line, for a syntax error, an empty file, a repeated function, a forbidden import.
    """
    if not source.strip():
        raise SubmissionError("the file is empty", 1, "empty")
    try:
        tree = ast.parse(source, FILENAME)
        code = _compile(tree, FILENAME, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise SubmissionError(f"{error.msg}{_quote(error.text)}", error.lineno, "syntax") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SubmissionError(f"Python cannot read the file: {error}", None, "syntax") from None
    if not tree.body:
        raise SubmissionError("the file holds no code, only comments", 1, "empty")
    for node in ast.walk(tree):
        names = ()
        if _isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif _isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            if name.partition(".")[0] in forbidden:
                raise SubmissionError(
                    f"a submission may not import {name}: write the function yourself", node.lineno, "forbidden"
                )
    defined = _defined(tree)
    for name in functions:
        found = defined.get(name, [])
        if len(found) > 1:
            raise SubmissionError(
                f"{name} is defined {len(found)} times, on lines {', '.join(map(_str, found))}: keep one",
                found[1],
                "duplicate",
            )
    return code


def _defined(tree):
    """Line numbers of the functions and classes of the top level, by name."""
    lines = {}
    for node in tree.body:
        if _isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            lines.setdefault(node.name, []).append(node.lineno)
    return lines


def missing_function(source, name):
    """The SubmissionError that says which functions are there instead of the one that is not."""
    defined = _defined(ast.parse(source, FILENAME))
    there = ", ".join(f"{other} (line {lines[0]})" for other, lines in defined.items())
    alike = [lines[0] for other, lines in defined.items() if other.lower() == name.lower()]
    return SubmissionError(
        f"there is no function {name}; functions here: {there or 'none'}", alike[0] if alike else 1, "missing"
    )


def _quote(text):
    text = (text or "").strip()
    return f": {text[:80]}" if text else ""


def load_submission(source, functions=(), forbidden=FORBIDDEN, partial=False):
    """Run the top level of a submission and return its namespace.

    Args:
        source, functions, forbidden: as for `check_source`.
        partial: accept a submission that lacks some of the functions, but not all of them.

    Raises:
        SubmissionError: what `check_source` raises, a missing function, any exception of the top level with its line.
    """
    code = check_source(source, functions, forbidden)
    namespace = {"__name__": "submission", "__file__": FILENAME, "__builtins__": builtins}
    try:
        with _Captured():
            _exec(code, namespace)
        _restore_builtins()
    except BaseException as error:  # SystemExit and KeyboardInterrupt are the submission's too
        _restore_builtins()
        about = describe_error(error)
        message = f"{about['type']} while loading: {about['message']}"
        raise SubmissionError(message, about["line"], about["type"]) from None
    absent = [name for name in functions if not callable(namespace.get(name))]
    if absent and (not partial or len(absent) == len(functions)):
        raise missing_function(source, absent[0])
    return namespace


def run_case(namespace, function, args):
    """Call one function on tagged arguments.

    Returns:
        ``{"status": "returned", "value"}``, ``{"status": "raised", "error": {"type", "message", "line"}}`` or
        ``{"status": "unsupported", "error"}``, each with "stdout" (the first 4 000 characters) and "threads" (how many
        threads the call left running).
    """
    if not callable(namespace.get(function)):
        error = {"type": "missing", "message": f"there is no function {function}", "line": None}
        return {"status": "raised", "error": error, "stdout": "", "threads": 0}
    before = threading.active_count()
    captured = _Captured()
    try:
        arguments = [decode(item) for item in args]
        with captured:
            value = namespace[function](*arguments)
            _restore_builtins()
            answer = {"status": "returned", "value": encode(value)}
    except Unsupported as error:
        answer = {"status": "unsupported", "error": {"type": "Unsupported", "message": _str(error), "line": None}}
    except BaseException as error:  # SystemExit and KeyboardInterrupt are the submission's too
        _restore_builtins()
        answer = {"status": "raised", "error": describe_error(error)}
    answer["stdout"] = captured.text()
    answer["threads"] = max(0, threading.active_count() - before)
    return answer


def dump_answer(answer):
    """An answer as one line of JSON."""
    return _dumps(answer)


def describe_error(error):
    """Give ``{"type", "message", "line"}`` of an exception; the line is the last one inside the submission."""
    try:
        message = _str(error)[:500]
    except BaseException:  # an exception whose own text raises
        message = "(the exception has no readable text)"
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return {"type": _type(error).__name__[:80], "message": message, "line": line}


class _Captured(io.TextIOBase):
    """Stands in for standard output and error and keeps only the beginning of what is printed."""

    def __init__(self):
        super().__init__()
        self._parts, self._left, self._dropped = [], MAX_STDOUT, 0

    def writable(self):
        return True

    def write(self, text):
        kept = text[: self._left]
        if kept:
            self._parts.append(kept)
            self._left -= len(kept)
        self._dropped += len(text) - len(kept)
        return len(text)

    def text(self):
        more = f"\n… {self._dropped} more characters" if self._dropped else ""
        return "".join(self._parts) + more

    def __enter__(self):
        self._saved = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self
        return self

    def __exit__(self, *_):
        sys.stdout, sys.stderr = self._saved
