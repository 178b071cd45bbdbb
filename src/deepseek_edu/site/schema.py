"""Checked YAML: values that remember their lines, and a small description of what a block may contain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from deepseek_edu.site.errors import SourceError, one_of
from deepseek_edu.site.source import Place


class Lines(dict):
    """A mapping of a YAML block. `line_of` tells the line of a key in its file."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.places: dict[str, Place] = {}

    def line_of(self, key: str) -> Place:
        return self.places.get(key, self.place)


@dataclass(frozen=True)
class Key:
    """One key of a block: what its value must be, in words and as a test."""

    kind: str
    required: bool = False


TESTS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str) and value.strip() != "",
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "number or expression": lambda value: isinstance(value, int | float | str) and not isinstance(value, bool),
    "true or false": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list) and len(value) > 0,
    "mapping": lambda value: isinstance(value, dict),
}


def load(text: str, place: Place) -> Any:
    """Parse YAML whose first line lies at `place`.

    Raises:
        SourceError: the text is not YAML, or a mapping names a key twice.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = place.line + (mark.line if mark else 0)
        raise SourceError(
            place.file, line, f"malformed YAML ({error.problem})", "YAML, values with ': ' or '#' inside quotes"
        ) from error
    return None if node is None else _value(node, place)


def _value(node: yaml.Node, start: Place) -> Any:
    place = start.after(node.start_mark.line)
    if isinstance(node, yaml.MappingNode):
        mapping = Lines(place)
        for key_node, value_node in node.value:
            key = str(_scalar(key_node))
            at = start.after(key_node.start_mark.line)
            if key in mapping:
                raise SourceError(at.file, at.line, f"the key {key} a second time", "each key once")
            mapping[key] = _value(value_node, start)
            mapping.places[key] = at
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, start) for item in node.value]
    return _scalar(node)


def _scalar(node: yaml.Node) -> Any:
    return yaml.SafeLoader("").construct_object(node)


def check(value: Any, keys: Mapping[str, Key], what: str, place: Place) -> Lines:
    """Return `value` if it is a mapping with exactly the allowed keys and kinds of values.

    Raises:
        SourceError: naming the key, its line, what was found, and what is allowed.
    """
    if not isinstance(value, Lines):
        found = "nothing" if value is None else f"{type(value).__name__} {value!r}"
        raise SourceError(place.file, place.line, f"{found} as {what}", f"a mapping with the keys {one_of(keys)}")
    for key, item in value.items():
        at = value.line_of(key)
        if key not in keys:
            raise SourceError(at.file, at.line, f"the unknown key {key} in {what}", one_of(keys, key))
        kind = keys[key].kind
        if not TESTS[kind](item):
            raise SourceError(at.file, at.line, f"{key}: {item!r} in {what}", f"{key}: {kind}")
    for key, rule in keys.items():
        if rule.required and key not in value:
            at = value.place
            raise SourceError(at.file, at.line, f"{what} without {key}", f"{what} with the key {key} ({rule.kind})")
    return value
