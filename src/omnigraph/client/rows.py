"""Fetch the rows of a query as an Arrow stream."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pyarrow as pa
from pyarrow import ipc

from omnigraph.api.query_result import Result, ResultStream
from omnigraph.client.wire import ServerRequest, Wire

ARROW = "application/vnd.apache.arrow.stream"
_ABOUT = b"omnigraph"


@dataclass(frozen=True, slots=True)
class About:
    """The query and the state that rows come from.

    Attributes:
        query_name: the query's name.
        branch: whose head was read; None for a read at a commit.
        commit: the commit that was read.
        engine: what found the rows.
    """

    query_name: str
    branch: str | None
    commit: str
    engine: str = "local"


def fetch_rows(wire: Wire, body: dict[str, object]) -> Result:
    """Fetch all rows of a query."""
    answer = wire.send(_query_request(body))
    with ipc.open_stream(pa.py_buffer(answer.content)) as reader:
        plain = reader.schema.remove_metadata()
        table = pa.Table.from_batches([_with_schema(plain, batch) for batch in reader], plain)
        about = _about(reader.schema)
    return Result(table, query_name=about.query_name, branch=about.branch, commit=about.commit, engine=about.engine)


def stream_rows(wire: Wire, body: dict[str, object]) -> ResultStream:
    """Fetch the rows of a query as a stream."""
    pieces = _batches(wire, body)
    schema = next(pieces)
    assert isinstance(schema, pa.Schema)
    about = _about(schema)
    batches: Any = pieces
    return ResultStream(
        schema.remove_metadata(), batches, query_name=about.query_name, branch=about.branch, commit=about.commit
    )


def _batches(wire: Wire, body: dict[str, object]) -> Iterator[pa.Schema | pa.RecordBatch]:
    """Yield the schema, then the batches."""
    with (
        wire.open_stream(_query_request(body)) as answer,
        ipc.open_stream(pa.PythonFile(io.BufferedReader(_Body(answer)), mode="r")) as reader,
    ):
        yield reader.schema
        plain = reader.schema.remove_metadata()
        for batch in reader:
            if batch.num_rows:
                yield _with_schema(plain, batch)


def _query_request(body: dict[str, object]) -> ServerRequest:
    return ServerRequest("POST", "query", json=body, headers={"Accept": ARROW}, media=ARROW)


def _about(schema: pa.Schema) -> About:
    metadata: Any = schema.metadata
    return About(**json.loads(metadata[_ABOUT]))


def _with_schema(plain: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with a schema without metadata."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=plain)


class _Body(io.RawIOBase):
    """The body of an answer as a file, read as it arrives."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__()
        self._pieces = answer.iter_bytes()
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  (whatever can be written to)
        """Read some bytes; return 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
