"""Evaluation for the page's worker: JSON in, JSON out, optionally with an edited mechanism.

The edited text runs inside the mechanism's own module, so every function of the package that uses the mechanism sees
the change; after the call the module is as it was before. A worker runs one call at a time.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from . import get
from .contract import Widget
from .memo import editing, forget
from .parts import plain
from .render import render_parts

EDITED = "<edited mechanism>"
_STDOUT_LIMIT = 4000


def evaluate_json(id: str, values_json: str, source: str | None = None) -> str:
    """Evaluate a widget.

    Args:
        id: the widget.
        values_json: control values as a JSON object; missing controls are at their start value.
        source: edited text of the mechanism's functions, or `None` for the mechanism as it is.

    Returns:
        JSON: `{"ok": true, "summary", "parts": [html], "data"}`, with "missing" (functions of the mechanism that the
        edited text does not define, so that the original ones ran), or
        `{"ok": false, "error": {"type", "message", "line", "traceback"}}`; `line` counts in the edited text and is null
        when the fault was not met there, `message` is empty when the error has none. "stdout" is added to either if the
        edited text printed.
    """
    printed: list[str] = []
    try:
        chosen = get(id)
        values = chosen.canonical(json.loads(values_json))
        with _captured(printed), edited_mechanism(chosen, source) as missing:
            view = chosen.view(values)
        answer = {"ok": True, "summary": view.summary, "parts": render_parts(view), "data": view.data()}
        if missing:
            answer["missing"] = missing
    except (Exception, SystemExit) as error:
        answer = {"ok": False, "error": _describe(error, source)}
    if printed and printed[0]:
        answer["stdout"] = printed[0]
        forget()  # code that prints is run again, so that it prints again
    return json.dumps(plain(answer), ensure_ascii=False, allow_nan=False)


def mechanism_source(widget: Widget) -> str:
    """The text of the mechanism's functions for the editor: as in the package, docstrings cut to their first line.

    Where they come from several modules, a line such as `# deepseek_edu/reference/moe.py` stands above those of each.
    """
    import inspect

    sections = []
    for name, functions in widget.mechanism.items():
        module = import_module(name)
        texts = (_short_docstring(inspect.getsource(getattr(module, function))).rstrip() for function in functions)
        head = f"# {name.replace('.', '/')}.py\n" if len(widget.mechanism) > 1 else ""
        sections.append(head + "\n\n".join(f"{text}\n" for text in texts))
    return "\n\n".join(sections)


@contextmanager
def edited_mechanism(widget: Widget, source: str | None) -> Iterator[list[str]]:
    """Run `source` in the mechanism's modules for the time of the block.

    Yields the functions of the mechanism that `source` did not define; they are the original ones.
    """
    if source is None or not widget.mechanism:
        yield []
        return
    namespaces = {name: import_module(name).__dict__ for name in widget.mechanism}
    before = {name: dict(namespace) for name, namespace in namespaces.items()}
    try:
        for name, text in _sections(widget, source):
            exec(compile(text, EDITED, "exec"), namespaces[name])
        with editing((widget.id, source)):
            yield [
                function
                for name, functions in widget.mechanism.items()
                for function in functions
                if namespaces[name].get(function) is before[name][function]
            ]
    finally:
        for name, namespace in namespaces.items():
            namespace.clear()
            namespace.update(before[name])


def _sections(widget: Widget, source: str) -> Iterator[tuple[str, str]]:
    """The module and the text of each section; blank lines before it keep the line numbers of the whole."""
    heads = {f"# {name.replace('.', '/')}.py": name for name in widget.mechanism}
    current, lines = next(iter(widget.mechanism)), []
    for number, line in enumerate(source.splitlines(keepends=True)):
        if line.strip() in heads:
            yield current, "".join(lines)
            current, lines = heads[line.strip()], ["\n"] * number
        lines.append(line)
    yield current, "".join(lines)


@contextmanager
def _captured(printed: list[str]) -> Iterator[None]:
    import contextlib
    import io

    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            yield
    finally:
        printed.append(out.getvalue()[:_STDOUT_LIMIT])


def _describe(error: BaseException, source: str | None) -> dict:
    """Type, message and the last line of the edited text that took part."""
    line = None
    if isinstance(error, SyntaxError) and error.filename == EDITED:
        line, message = error.lineno, error.msg
    else:
        message = _words(error)
        step = error.__traceback__
        while step is not None:
            if step.tb_frame.f_code.co_filename == EDITED:
                line = step.tb_lineno
            step = step.tb_next
    return {"type": type(error).__name__, "message": message, "line": line, "traceback": _traceback(error, source)}


def _words(error: BaseException) -> str:
    """What an error says, in words where Python has none; may be empty."""
    if isinstance(error, SystemExit):
        return "the code ended Python" + ("" if error.code is None else f" with exit code {error.code}")
    return str(error) or ("the memory limit was reached" if isinstance(error, MemoryError) else "")


def _traceback(error: BaseException, source: str | None) -> str:
    """The traceback as text, with the lines of the edited text in it, bounded in length."""
    import linecache
    import traceback

    if source is not None:
        linecache.cache[EDITED] = (len(source), None, source.splitlines(keepends=True), EDITED)
    try:
        return "".join(traceback.format_exception(error, limit=-12))[-_STDOUT_LIMIT:]
    finally:
        linecache.cache.pop(EDITED, None)


def _short_docstring(text: str) -> str:
    """A function's source with its docstring cut to the first line: an editor is for the code."""
    import ast

    function = ast.parse(text).body[0]
    first = function.body[0]
    if not (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    ):
        return text
    if first.end_lineno == first.lineno:
        return text
    lines = text.splitlines(keepends=True)
    head = lines[first.lineno - 1].rstrip() + '"""\n'
    return "".join(lines[: first.lineno - 1]) + head + "".join(lines[first.end_lineno :])
