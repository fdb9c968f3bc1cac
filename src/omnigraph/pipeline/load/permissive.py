"""Permissive reader for older scripts: a stream of JSON values, forgiving where the strict one is not."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.model.keys import derive_id, list_key_columns
from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType, NodeType, Property, Schema
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.pipeline.load.batches import Batch
from omnigraph.pipeline.load.problems import MalformedError, Phase, Problem
from omnigraph.pipeline.load.strict import DATA, EDGE, FROM, TO, TYPE, Record
from omnigraph.storage.conform import from_python

_BLANK = " \t\r\n"
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
# The JSON types that a scalar but Bool can be written in; numbers by default.
_KINDS: dict[Scalar, tuple[type, ...]] = {
    Scalar.STRING: (str,),
    Scalar.BLOB: (str,),
    Scalar.DATE: (str, int, float),
    Scalar.DATETIME: (str, int, float),
}


@dataclass(slots=True)
class _Found:
    """Records of one type, and the number of each."""

    entity: EntityType
    rows: list[dict[str, Any]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


def permissive_records(body: bytes, schema: Schema, source: int) -> Iterator[Batch | Problem]:
    """Read a stream of JSON values, which may each span lines.

    Args:
        body: all of it.
        schema: the types there are.
        source: the number of the file.

    Yields:
        Batch | Problem: records of one type, or why a value is none. Nothing follows a value that is no JSON: where
            the next one begins cannot be known.
    """
    found: dict[str, _Found] = {}
    names = _Names()
    number = 0
    try:
        for number, value in enumerate(_values(body), start=1):
            try:
                entity, row = _record(value, schema, names)
            except GraphError as error:
                yield Problem(Phase.READING, source, number, error)
                continue
            mine = found.setdefault(entity.type_key, _Found(entity))
            mine.rows.append(row)
            mine.numbers.append(number)
    except MalformedError as error:
        yield Problem(Phase.READING, source, number + 1, error)
    for item in found.values():
        rows, numbers = item.rows, item.numbers
        if isinstance(item.entity, EdgeType):
            rows, numbers = [], []
            for row, at in zip(item.rows, item.numbers, strict=True):
                try:
                    rows.append(_edge_row(item.entity, row, schema, names))
                    numbers.append(at)
                except GraphError as error:
                    yield Problem(Phase.READING, source, at, error)
        yield Batch(item.entity, rows, np.array(numbers, np.int64))


def _values(body: bytes) -> Iterator[object]:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise MalformedError(f"not UTF-8: {fault.reason} at byte {fault.start + 1}") from None
    decoder = json.JSONDecoder()
    at = 0
    while True:
        while at < len(text) and text[at] in _BLANK:
            at += 1
        if at == len(text):
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as fault:
            raise MalformedError(
                f"{fault.msg.removesuffix(' at')} at line {fault.lineno}, column {fault.colno}"
            ) from None
        except RecursionError:
            raise MalformedError("nested too deeply") from None
        except ValueError as fault:  # a number with more digits than Python reads
            raise MalformedError(str(fault)) from None
        yield value


def _record(value: object, schema: Schema, names: "_Names") -> Record:
    entity, row = _entity(value, schema)
    data = value.get(DATA) if isinstance(value, dict) else None
    given = data if isinstance(data, dict) else {}
    for item in entity.properties:
        row[item.name] = _fitting(item, given.get(item.name))
    own_id = given.get(ID)
    if isinstance(own_id, str):
        row[ID] = own_id
    if isinstance(entity, NodeType) and entity.is_keyed:
        _settle_id(entity, row, names)
    return entity, row


def _entity(value: object, schema: Schema) -> Record:
    if isinstance(value, dict):
        name = value.get(TYPE)
        if isinstance(name, str):
            node = schema.node(name)
            if node is None:
                raise InvalidRequestError(f"unknown node type '{name}'")
            return node, {}
        name = value.get(EDGE)
        if isinstance(name, str):
            edge = schema.edge(name)
            if edge is None:
                raise InvalidRequestError(f"unknown edge type '{name}'")
            return edge, {SRC: _end(value, FROM), DST: _end(value, TO)}
    raise InvalidRequestError("expected 'type' or 'edge' field")


def _end(value: dict[str, Any], field: str) -> str:
    found = value.get(field)
    if not isinstance(found, str):
        raise InvalidRequestError(f"edge missing '{field}'")
    return found


def _fitting(of: Property, value: object) -> object:
    """A value, or nothing where it is of another JSON type and need not be there; its content is judged later."""
    if value is None or of.type.list or of.type.is_vector or not of.type.nullable:
        return value
    if of.type.scalar is Scalar.BOOL or isinstance(value, bool):
        return value if of.type.scalar is Scalar.BOOL and isinstance(value, bool) else None
    return value if isinstance(value, _KINDS.get(of.type.scalar, (int, float))) else None


# -- ids --------------------------------------------------------------------------------------------------------------


class _Names:
    """What the ids of nodes in the payload stand for, as edges there use them."""

    def __init__(self) -> None:
        self._meant: dict[tuple[str, str], set[str]] = {}
        self._read: dict[tuple[str, str], str] = {}

    def add(self, node: NodeType, given: str, canonical: str) -> None:
        """Take down an id of a node of the payload."""
        self._meant.setdefault((node.name, given), set()).add(canonical)

    def id_of(self, node: NodeType, given: str) -> str:
        """The id that an edge means: that of the node with this id in the payload, else what the text reads as."""
        meant = self._meant.get((node.name, given), set())
        if len(meant) > 1:
            first, second, *_ = sorted(meant)
            raise InvalidRequestError(
                f"'{given}' is the id of several {node.name} nodes, '{first}' and '{second}' among them; name the one "
                "the edge is about by that"
            )
        if meant:
            return next(iter(meant))
        known = self._read.get((node.name, given))
        if known is None:
            known = self._read[node.name, given] = next(_readings(node, given), given)
        return known


def _edge_row(edge: EdgeType, row: dict[str, Any], schema: Schema, names: _Names) -> dict[str, Any]:
    """A row whose ends are canonical ids, and whose own id, where it follows from the ends, follows them."""
    ends = {}
    for end, of in ((SRC, edge.from_type), (DST, edge.to_type)):
        node = schema.node(of.type_name)
        ends[end] = row[end] if node is None or not node.is_keyed else names.id_of(node, row[end])
    if edge.is_keyed and ID in row and row[ID] == derive_id(edge, _typed(edge, row)):
        row = {name: value for name, value in row.items() if name != ID}
    return row | ends


def _settle_id(node: NodeType, row: dict[str, Any], names: _Names) -> None:
    """Take an id that means the key, in whatever spelling, for it."""
    for item in node.key:
        if row.get(item.name) is None:
            raise InvalidRequestError(f"node {node.name} missing @key property '{item.name}'")
    explicit = row.pop(ID, None)
    typed = _typed(node, row)
    canonical = derive_id(node, typed)
    names.add(node, canonical if explicit is None else explicit, canonical)
    if explicit is None or explicit == canonical or canonical in _readings(node, explicit):
        return
    if any(typed[item.name] in _values_of(item.type, explicit) for item in node.key):
        return
    which = f"@key property '{node.key[0].name}'" if len(node.key) == 1 else "@key"
    raise InvalidRequestError(
        f"node {node.name} has explicit id '{explicit}' that does not match {which} canonical value '{canonical}'"
    )


def _typed(entity: EntityType, row: dict[str, Any]) -> dict[str, Any]:
    """The values of a key in the types of its properties."""
    return {name: from_python([row.get(name)], of, name)[0].as_py() for name, of in list_key_columns(entity)}


def _readings(node: NodeType, text: str) -> Iterator[str]:
    """The canonical ids that a text can be read as: every part of the key in another spelling of its value."""
    parts = list_key_columns(node)
    texts: list[object] = [text]
    if len(parts) > 1:
        found = next(_json(text), None)
        texts = found if isinstance(found, list) else []
    if len(texts) != len(parts):
        return
    for values in product(*(_values_of(of, item) for (_, of), item in zip(parts, texts, strict=True))):
        yield derive_id(node, dict(zip((name for name, _ in parts), values, strict=True)))


def _values_of(of: PropertyType, given: object) -> list[Any]:
    """What a part of an id can stand for in the type of its property: the text itself, or the number in it."""
    spellings = [given]
    if isinstance(given, str) and of.scalar is not Scalar.STRING:
        spellings += [int(given)] if _WHOLE.fullmatch(given) else _json(given)
    found = []
    for item in spellings:
        try:
            found.append(from_python([item], of, "id")[0].as_py())
        except InvalidRequestError:
            continue
    return found


def _json(text: str) -> Iterator[object]:
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        return
