"""One line at a time: what a record must look like, and the word to say when it does not.

This is the slow way, for lines that the columnar way does not take: those that are wrong, and those that are right in
an unusual manner. Whatever both take, both take alike.
"""

import json
from collections.abc import Sequence
from typing import Any

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import DST, ID, SRC, EntityType, Schema
from omnigraph.pipeline.load.blocks import line_too_long, too_much
from omnigraph.pipeline.load.problems import MalformedError
from omnigraph.storage.single_values import shown
from omnigraph.transaction.incoming import RESERVED_COLUMNS

TYPE, EDGE, FROM, TO, DATA = "type", "edge", "from", "to", "data"
_NODE_FIELDS = frozenset({TYPE, DATA})
_EDGE_FIELDS = frozenset({EDGE, FROM, TO, DATA})
_STRUCTURE = str.maketrans("", "", "{}[],:")

Record = tuple[EntityType, dict[str, Any]]


class _NotOnceError(ValueError):
    """A member that an object has twice."""


def strict_record(line: bytes, schema: Schema) -> Record:
    """The record in a line.

    Args:
        line: without the end of the line.
        schema: the types there are.

    Returns:
        Record: the type, and its properties by name; of an edge, its ends as `src` and `dst`.

    Raises:
        MalformedError: it is no JSON.
        InvalidRequestError: it is no record.
        LimitError: it is too long.
    """
    value = _parsed(line)
    if not isinstance(value, dict):
        raise InvalidRequestError("graph batch record must be one JSON object")
    if (TYPE in value) == (EDGE in value):
        raise InvalidRequestError("graph batch record must contain exactly one of 'type' or 'edge'")
    allowed = _NODE_FIELDS if TYPE in value else _EDGE_FIELDS
    for name in value:
        if name in RESERVED_COLUMNS:
            raise InvalidRequestError(f"top-level field '{name}' is reserved physical state")
        if name not in allowed:
            raise InvalidRequestError(f"unknown top-level graph batch field '{name}'")
    entity, ends = _node(value, schema) if TYPE in value else _edge(value, schema)
    data = value.get(DATA, {})
    if not isinstance(data, dict):
        raise InvalidRequestError(f"graph batch field 'data' must be an object, got {shown(data)}")
    for name in data:
        if ends and name in ends:
            raise InvalidRequestError(f"edge data field '{name}' is reserved structural state")
        if name in RESERVED_COLUMNS:
            raise InvalidRequestError(f"input field '{name}' is reserved physical state")
        if name != ID and entity.property_named(name) is None:
            raise InvalidRequestError(f"unknown input field '{name}' for '{entity.type_key}'")
    own_id = data.get(ID)
    if own_id is not None and not isinstance(own_id, str):
        raise InvalidRequestError(
            f"input entity of type '{entity.name}' field 'id' must be a string, got {shown(own_id)}"
        )
    return entity, data | ends


def _parsed(line: bytes) -> object:
    if len(line) > limits.LOAD_LINE_BYTES_MAX:
        raise line_too_long(len(line))
    try:
        text = line.decode()
    except UnicodeDecodeError as fault:
        raise MalformedError(f"not UTF-8: {fault.reason} at byte {fault.start + 1} of the line") from None
    _check_structure(text)
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=float)
    except json.JSONDecodeError as fault:
        raise MalformedError(f"{fault.msg.removesuffix(' at')} at column {fault.colno}") from None
    except (_NotOnceError, RecursionError) as fault:
        raise MalformedError(str(fault) if isinstance(fault, _NotOnceError) else "nested too deeply") from None
    except ValueError as fault:  # a number with more digits than Python reads
        raise MalformedError(str(fault)) from None


def _check_structure(text: str) -> None:
    if len(text) <= limits.LOAD_LINE_SLOTS_MAX:
        return
    slots = len(text) - len(text.translate(_STRUCTURE))
    if slots > limits.LOAD_LINE_SLOTS_MAX:
        raise too_much("graph_batch_json_structural_slots", slots, limits.LOAD_LINE_SLOTS_MAX)


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _NotOnceError(f"duplicate JSON member '{name}'")
            seen.add(name)
    return found


def _node(value: dict[str, Any], schema: Schema) -> tuple[EntityType, dict[str, str]]:
    name = _text(value, TYPE)
    node = schema.node(name)
    if node is None:
        raise InvalidRequestError(f"unknown node type '{name}'")
    return node, {}


def _edge(value: dict[str, Any], schema: Schema) -> tuple[EntityType, dict[str, str]]:
    name, source, target = _text(value, EDGE), _text(value, FROM), _text(value, TO)
    edge = schema.edge(name)
    if edge is None:
        raise InvalidRequestError(f"unknown edge type '{name}'")
    return edge, {SRC: source, DST: target}


def _text(value: dict[str, Any], field: str) -> str:
    if field not in value:
        raise InvalidRequestError(f"graph batch record requires field '{field}'")
    found = value[field]
    if not isinstance(found, str):
        raise InvalidRequestError(f"graph batch field '{field}' must be a string, got {shown(found)}")
    return found
