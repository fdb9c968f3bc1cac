"""Strict YAML parser for configuration files: a tree of values with their source positions.

A subset of YAML without surprises: no aliases, no tags, no duplicate keys, and `yes` or `no` are strings. A plain
scalar is a number, `true`, `false` or `null`; everything else is a string.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from omnigraph import limits
from omnigraph.errors import InvalidRequestError

_NULL = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class YamlDocumentError(InvalidRequestError):
    """A file is invalid at `line` and `column`, counted from one."""

    code = "invalid_yaml"

    def __init__(self, message: str, *, line: int = 1, column: int = 1, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.line = line
        self.column = column

    def __str__(self) -> str:
        """Return the message with its position."""
        return f"{self.message} (line {self.line}, column {self.column})"


@dataclass(frozen=True, slots=True)
class Place:
    """Position in a file, counted from one."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, number, boolean or null."""

    value: str | int | float | bool | None
    place: Place


@dataclass(frozen=True, slots=True)
class Items:
    """A sequence."""

    values: tuple["Value", ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping, in the order of the file.

    Attributes:
        places: the position of every key.
        place: the position of the first key.
    """

    values: Mapping[str, "Value"]
    place: Place
    places: Mapping[str, Place] = field(default_factory=dict)


Value = Scalar | Items | Entries


def read(text: str) -> Value:
    """Parse a YAML file into a tree.

    Raises:
        YamlDocumentError: the text is not YAML of the supported subset; the code is `duplicate_yaml_key` for a
            duplicate key.
    """
    if len(text) > limits.YAML_CHARACTERS_MAX:
        raise YamlDocumentError(f"the file is longer than {limits.YAML_CHARACTERS_MAX} characters")
    try:
        _refuse_unsupported(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
        raise YamlDocumentError(f"not YAML: {fault.problem or fault.context}", line=line, column=column) from None
    except yaml.YAMLError as fault:
        raise YamlDocumentError(f"not YAML: {' '.join(str(fault).split())}") from None
    return Scalar(None, Place()) if root is None else _value(root)


def _refuse_unsupported(text: str) -> None:
    """Check the event stream first, so that no large or deep tree is built."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise _wrong(event.start_mark, "aliases are not allowed here")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > limits.YAML_DEPTH_MAX:
                raise _wrong(event.start_mark, f"nested more than {limits.YAML_DEPTH_MAX} deep")
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None) is not None:
            raise _wrong(event.start_mark, f"tags like {event.tag} are not allowed here")


def _value(node: yaml.Node) -> Value:
    place = _place(node.start_mark)
    if isinstance(node, yaml.ScalarNode):
        return Scalar(_plain(node.value) if node.style is None else node.value, place)
    if isinstance(node, yaml.SequenceNode):
        return Items(tuple(_value(item) for item in node.value), place)
    values: dict[str, Value] = {}
    places: dict[str, Place] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _wrong(key.start_mark, "a key must be a text")
        if key.value in values:
            raise _wrong(key.start_mark, f"duplicate key '{key.value}'", code="duplicate_yaml_key")
        values[key.value] = _value(value)
        places[key.value] = _place(key.start_mark)
    return Entries(values, place, places)


def _plain(text: str) -> str | int | float | bool | None:
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _place(mark: yaml.Mark) -> Place:
    return Place(mark.line + 1, mark.column + 1)


def _wrong(mark: yaml.Mark, message: str, *, code: str | None = None) -> YamlDocumentError:
    place = _place(mark)
    return YamlDocumentError(message, line=place.line, column=place.column, code=code)
