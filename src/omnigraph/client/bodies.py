"""Rows and files as the lines that a server loads."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from omnigraph import limits
from omnigraph.api.params import json_params
from omnigraph.errors import InvalidRequestError, beyond_limit
from omnigraph.pipeline.load.sources import Format, Packing, Source, sources_of
from omnigraph.storage.blob_values import BASE64
from omnigraph.storage.input_files import opened
from omnigraph.storage.json_values import to_json

_FROM, _TO = ("from", "src"), ("to", "dst")


def lines_of_rows(nodes: Mapping[str, object], edges: Mapping[str, object]) -> bytes:
    """Rows of any number of types, as JSON lines.

    Args:
        nodes (Mapping[str, object]): by node type, rows: anything Arrow takes, or a sequence of dictionaries.
        edges (Mapping[str, object]): likewise by edge type.

    Raises:
        InvalidRequestError: they are none of these.
        LimitError: they are more than a server takes at once.
    """
    pieces = [
        {"type": name, "data": row} for name, given in nodes.items() for row in _dictionaries(given, f"node:{name}")
    ]
    for name, given in edges.items():
        for row in _dictionaries(given, f"edge:{name}"):
            ends = {"from": _taken(row, _FROM), "to": _taken(row, _TO)}
            pieces.append({"edge": name, **ends, "data": row})
    return bounded(b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in pieces))


def lines_of_files(data: object, *, format: str | None, strict: bool) -> bytes:
    """What files hold, where that is JSON lines.

    Args:
        data (object): what a load takes: files, folders, patterns, bytes or an open file.
        format (str | None): what they are; by their names by default.
        strict (bool): whether every line is one object.

    Raises:
        InvalidRequestError: they hold something else.
        NotFoundError: there is no such file.
        LimitError: they are more than a server takes at once.
    """
    found = sources_of(data, format=format, strict=strict)
    bounded_size(sum(each.size for each in found))
    return bounded(b"\n".join(_content(each) for each in found))


def bounded(body: bytes) -> bytes:
    """A body that a server takes.

    Raises:
        LimitError: it is too large.
    """
    bounded_size(len(body))
    return body


def bounded_size(size: int) -> None:
    """Refuse a body that a server would refuse, before it is sent.

    Raises:
        LimitError: it is too large.
    """
    if size > limits.SERVER_LOAD_BODY_BYTES_MAX:
        raise beyond_limit("graph_batch_request_bytes", actual=size, limit=limits.SERVER_LOAD_BODY_BYTES_MAX)


def _content(source: Source) -> bytes:
    if source.format is not Format.JSONL or source.packing is not Packing.NONE:
        raise InvalidRequestError(
            f"a server takes JSON lines, and {source.name} is {source.format}"
            f"{'' if source.packing is Packing.NONE else f' in {source.packing}'}: load it at the graph's storage",
            code="json_lines_only",
        )
    if source.body is not None:
        return source.body
    with opened(source.uri, source.size) as file:
        return file.read()


def _dictionaries(given: object, what: str) -> Iterator[dict[str, Any]]:
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        for row in given:
            if not isinstance(row, Mapping):
                raise InvalidRequestError(f"a row of {what} must be a dictionary, not {type(row).__name__}")
            yield {name: _value(value) for name, value in (json_params(row) or {}).items()}
        return
    try:
        table: Any = given if isinstance(given, pa.Table) else pa.table(given)
    except (TypeError, ValueError, pa.ArrowInvalid) as fault:
        raise InvalidRequestError(f"the rows of {what} are no frame: {fault}") from None
    names = table.column_names
    for batch in table.to_batches():
        columns = [_column(each) for each in batch.columns]
        for row in zip(*columns, strict=True):
            yield dict(zip(names, row, strict=True))


def _column(column: Any) -> list[Any]:  # noqa: ANN401  (an Arrow array)
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [_value(each) for each in column.to_pylist()]
    return to_json(column)


def _value(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{BASE64}{base64.b64encode(bytes(value)).decode()}"
    return value


def _taken(row: dict[str, Any], names: tuple[str, ...]) -> Any:  # noqa: ANN401  (an id)
    """The end of an edge, under whichever name; what it is not is for the server to say."""
    return next((row.pop(name) for name in names if name in row), None)
