"""The reader that scripts of old rely on: a stream of JSON values, forgiving where the strict one is not."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.model.keys import derived_id
from omnigraph.model.schema import DST, ID, SRC, EntityType, NodeType, Property, Schema
from omnigraph.pipeline.load.batches import Batch
from omnigraph.pipeline.load.problems import MalformedError, Phase, Problem
from omnigraph.pipeline.load.strict import DATA, EDGE, FROM, TO, TYPE, Record
from omnigraph.storage.blob_values import BASE64
from omnigraph.storage.conform import from_python

_BLANK = " \t\r\n"


def permissive_records(body: bytes, schema: Schema, source: int) -> Iterator[Batch | Problem]:
    """The records of a stream of JSON values, which may each span lines.

    Args:
        body (bytes): all of it.
        schema (Schema): the types there are.
        source (int): the number of the file.

    Yields:
        Batch | Problem: records of one type, or why a value is none. Nothing follows a value that is no JSON: nobody
            knows where the next one begins.
    """
    found: dict[str, tuple[EntityType, list[dict[str, Any]], list[int]]] = {}
    number = 0
    try:
        for number, value in enumerate(_values(body), start=1):
            try:
                entity, row = _record(value, schema)
            except GraphError as error:
                yield Problem(Phase.READING, source, number, error)
                continue
            _, rows, numbers = found.setdefault(entity.type_key, (entity, [], []))
            rows.append(row)
            numbers.append(number)
    except MalformedError as error:
        yield Problem(Phase.READING, source, number + 1, error)
    for entity, rows, numbers in found.values():
        yield Batch(entity, rows, np.array(numbers, np.int64))


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
        yield value


def _record(value: object, schema: Schema) -> Record:
    entity, row = _entity(value, schema)
    data = value.get(DATA) if isinstance(value, dict) else None
    given = data if isinstance(data, dict) else {}
    for each in entity.properties:
        row[each.name] = _fitting(each, given.get(each.name))
    own_id = given.get(ID)
    if isinstance(own_id, str):
        row[ID] = own_id
    if isinstance(entity, NodeType) and entity.is_keyed:
        _settle_id(entity, row)
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
    """A value, or nothing where it does not fit and need not be there."""
    if value is None or not of.type.nullable:
        return value
    if of.type.is_blob and isinstance(value, str) and not value.startswith(BASE64):
        # An address is no misfit: whether it is allowed is told later, and a refusal is not passed over.
        return value
    try:
        from_python([value], of.type, of.name)
    except InvalidRequestError:
        return None
    return value


def _settle_id(node: NodeType, row: dict[str, Any]) -> None:
    """An id that means the key, in whatever spelling, is taken for it."""
    for each in node.key:
        if row.get(each.name) is None:
            raise InvalidRequestError(f"node {node.name} missing @key property '{each.name}'")
    explicit = row.pop(ID, None)
    if explicit is None:
        return
    canonical = derived_id(node, {each.name: _key_value(each, row[each.name]) for each in node.key})
    if explicit == canonical or any(_means(each, explicit, row[each.name]) for each in node.key):
        return
    which = f"@key property '{node.key[0].name}'" if len(node.key) == 1 else "@key"
    raise InvalidRequestError(
        f"node {node.name} has explicit id '{explicit}' that does not match {which} canonical value '{canonical}'"
    )


def _key_value(of: Property, value: object) -> Any:  # noqa: ANN401  (a value of whatever type the property has)
    return from_python([value], of.type, of.name)[0].as_py()


def _means(of: Property, text: str, value: object) -> bool:
    """Whether a text is one spelling of a key's value."""
    wanted = _key_value(of, value)
    for candidate in (text, *_numbers(text)):
        try:
            if _key_value(of, candidate) == wanted:
                return True
        except InvalidRequestError:
            continue
    return False


def _numbers(text: str) -> Iterator[object]:
    try:
        yield json.loads(text)
    except ValueError:
        return
