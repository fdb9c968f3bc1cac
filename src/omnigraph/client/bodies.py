"""Encode rows and files as the JSON lines that a server loads."""

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


def encode_rows(nodes: Mapping[str, object], edges: Mapping[str, object]) -> bytes:
    """Encode rows of any number of types as JSON lines.

    Args:
        nodes: rows by node type: anything Arrow takes, or a sequence of dictionaries.
        edges: rows by edge type.

    Raises:
        InvalidRequestError: the rows have another form.
        LimitError: they are larger than a server accepts in one request.
    """
    lines = [
        {"type": name, "data": row} for name, given in nodes.items() for row in _dictionaries(given, f"node:{name}")
    ]
    for name, given in edges.items():
        for row in _dictionaries(given, f"edge:{name}"):
            ends = {"from": _taken(row, _FROM), "to": _taken(row, _TO)}
            lines.append({"edge": name, **ends, "data": row})
    return _checked(b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines))


def read_files(data: object, *, format: str | None, strict: bool) -> bytes:
    """Read files of JSON lines.

    Args:
        data: anything that `Graph.load` takes: files, folders, patterns, bytes or an open file.
        format: by default from the names of the files.
        strict: require one object on every line.

    Raises:
        InvalidRequestError: a file has another format, or is compressed.
        NotFoundError: there is no such file.
        LimitError: they are larger than a server accepts in one request.
    """
    found = sources_of(data, format=format, strict=strict)
    _check_size(sum(source.size for source in found))
    return _checked(b"\n".join(_read(source) for source in found))


def _checked(body: bytes) -> bytes:
    _check_size(len(body))
    return body


def _check_size(size: int) -> None:
    """Raise a `LimitError` before sending a body that the server would refuse."""
    if size > limits.SERVER_LOAD_BODY_BYTES_MAX:
        raise beyond_limit("graph_batch_request_bytes", actual=size, limit=limits.SERVER_LOAD_BODY_BYTES_MAX)


def _read(source: Source) -> bytes:
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
        raise InvalidRequestError(f"the rows of {what} cannot be read as an Arrow table: {fault}") from None
    names = table.column_names
    for batch in table.to_batches():
        columns = [_column(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield dict(zip(names, row, strict=True))


def _column(column: Any) -> list[Any]:  # noqa: ANN401  (an Arrow array)
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [_value(value) for value in column.to_pylist()]
    return to_json(column)


def _value(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{BASE64}{base64.b64encode(bytes(value)).decode()}"
    return value


def _taken(row: dict[str, Any], names: tuple[str, ...]) -> Any:  # noqa: ANN401  (an id)
    """Remove and return the end of an edge, under any of its names; the server validates it."""
    return next((row.pop(name) for name in names if name in row), None)
