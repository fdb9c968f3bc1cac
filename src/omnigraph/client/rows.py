"""Rows of a query, as they come over the wire: an Arrow stream."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pyarrow as pa
from pyarrow import ipc

from omnigraph.api.query_result import Result, ResultStream
from omnigraph.client.wire import Ask, Wire

ARROW = "application/vnd.apache.arrow.stream"
_ABOUT = b"omnigraph"


@dataclass(frozen=True, slots=True)
class About:
    """Whose rows they are.

    Attributes:
        query_name: the query's name.
        branch: whose head was read; None for a read at a commit.
        commit: the commit that was read.
    """

    query_name: str
    branch: str | None
    commit: str


def rows(wire: Wire, body: dict[str, object]) -> Result:
    """The rows of a query."""
    answer = wire.whole(_ask(body))
    with ipc.open_stream(pa.py_buffer(answer.content)) as reader:
        plain = reader.schema.remove_metadata()
        table = pa.Table.from_batches([_under(plain, each) for each in reader], plain)
        about = _about(reader.schema)
    return Result(table, query_name=about.query_name, branch=about.branch, commit=about.commit)


def row_stream(wire: Wire, body: dict[str, object]) -> ResultStream:
    """The rows of a query, read while they come."""
    pieces = _batches(wire, body)
    schema = next(pieces)
    assert isinstance(schema, pa.Schema)
    about = _about(schema)
    batches: Any = pieces
    return ResultStream(
        schema.remove_metadata(), batches, query_name=about.query_name, branch=about.branch, commit=about.commit
    )


def _batches(wire: Wire, body: dict[str, object]) -> Iterator[pa.Schema | pa.RecordBatch]:
    """The schema, then the rows."""
    with (
        wire.streamed(_ask(body)) as answer,
        ipc.open_stream(pa.PythonFile(io.BufferedReader(_Body(answer)), mode="r")) as reader,
    ):
        yield reader.schema
        plain = reader.schema.remove_metadata()
        for batch in reader:
            if batch.num_rows:
                yield _under(plain, batch)


def _ask(body: dict[str, object]) -> Ask:
    return Ask("POST", "query", json=body, headers={"Accept": ARROW}, media=ARROW)


def _about(schema: pa.Schema) -> About:
    metadata: Any = schema.metadata
    return About(**json.loads(metadata[_ABOUT]))


def _under(plain: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, without what the wire said of them."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=plain)


class _Body(io.RawIOBase):
    """The body of an answer as a file, read as it comes."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__()
        self._pieces = answer.iter_bytes()
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  (whatever can be written to)
        """Some bytes; 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
