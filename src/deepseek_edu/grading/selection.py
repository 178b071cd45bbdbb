"""Keep of a notebook's code only what its graded functions need.

A notebook also draws, prints and grades itself. `keep_needed` keeps the statements of the top level that bind a name
the functions use, directly or through other such statements, and blanks all other lines, so that line numbers stay.
"""

import ast


def keep_needed(source, functions):
    """Blank every top-level statement that none of the functions needs; source with a syntax error stays as it is.

    >>> keep_needed("import math\\nprint(1)\\ndef f(x):\\n    return math.sqrt(x)", ["f"])
    'import math\\n\\ndef f(x):\\n    return math.sqrt(x)'
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    binders = {}
    for node in tree.body:
        for name in _bound_by(node):
            binders.setdefault(name, []).append(node)
    needed, todo = set(), list(functions)
    seen = set(todo)
    while todo:
        for node in binders.get(todo.pop(), []):
            needed.add(node)
            used = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
            todo.extend(used - seen)
            seen |= used
    kept = {line for node in tree.body if node in needed for line in _lines(node)}
    dropped = {line for node in tree.body if node not in needed for line in _lines(node)}
    lines = source.split("\n")
    return "\n".join("" if number in dropped - kept else line for number, line in enumerate(lines, 1))


def _lines(node):
    first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])
    return range(first, node.end_lineno + 1)


def _bound_by(node):
    """Names a statement of the top level binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Expr):
        return set()
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
