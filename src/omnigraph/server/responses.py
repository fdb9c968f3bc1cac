"""Build HTTP responses: JSON documents, query rows as JSON or Arrow, and chunked streams."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from fastapi import Response
from fastapi.responses import StreamingResponse
from pyarrow import Table, ipc
from starlette.concurrency import iterate_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from omnigraph import limits
from omnigraph.api import documents
from omnigraph.api.documents import full_commit_document
from omnigraph.api.query_result import Result
from omnigraph.model.commit import Record
from omnigraph.server.graph_call import GraphCall

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
NDJSON_UTF8 = "application/x-ndjson; charset=utf-8"
# The key of the Arrow schema metadata that holds the query name, branch and commit.
ARROW_METADATA_KEY = b"omnigraph"
# Made once: `json.dumps` makes a new one for every call with options.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def json_bytes(document: object) -> bytes:
    """Serialize a document as compact JSON."""
    return _ENCODER.encode(document).encode()


def json_response(document: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Build a JSON response. Called in the worker thread: the event loop only sends the bytes."""
    return Response(json_bytes(document), status_code=status, headers=headers, media_type=JSON)


def snapshot_document(record: Record) -> dict[str, Any]:
    """Describe a snapshot by type: the contract's fields, then sizes, the commit id and its log entry."""
    document = documents.snapshot_document(record)
    for dataset in document["datasets"]:
        dataset["bytes"] = record.tables[f"{dataset['entity_kind']}:{dataset['type_name']}"].bytes
    return {**document, "graph_commit_id": record.head_commit, "entry": full_commit_document(record)}


# --- rows of queries --------------------------------------------------------------------------------------------------


def rows_response(
    result: Result, call: GraphCall, *, headers: Mapping[str, str] | None = None, legacy: bool = False
) -> Response:
    """Build the JSON response of a query; many rows are serialized in chunks while they are sent.

    Args:
        result: rows of one commit.
        call: reserves memory for a large result.
        headers: added to the response.
        legacy: omit the commit id, as the deprecated route does.

    Raises:
        Refusal: the memory budget for results is used up.
    """
    rows = _rows_per_chunk(result)
    if result.row_count <= rows:
        document = result.to_json()
        if legacy:
            document.pop("graph_commit_id")
        return json_response(document, headers=headers)
    return _stream_result(_json_chunks(result, rows, legacy=legacy), result, call, media_type=JSON, headers=headers)


def arrow_response(result: Result, call: GraphCall) -> Response:
    """Build the Arrow response of a query; many rows are sent in chunks.

    Few rows are one response, built in the worker thread: each chunk of a stream goes through a thread and back, which
    costs more than most queries.
    """
    chunks = _arrow_chunks(result)
    if result.row_count <= _rows_per_chunk(result):
        return Response(b"".join(chunks), media_type=ARROW)
    return _stream_result(chunks, result, call, media_type=ARROW)


def _stream_result(
    chunks: Iterator[bytes],
    result: Result,
    call: GraphCall,
    *,
    media_type: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    call.result_memory.take(result.to_arrow().nbytes)
    # From here on it counts as a result: slow readers must not block the memory of queries.
    call.query_memory.close()
    return ChunkedResponse(chunks, media_type=media_type, headers=headers)


def _rows_per_chunk(result: Result) -> int:
    """Return how many rows to serialize at once: fewer if rows are large."""
    row_bytes = result.to_arrow().nbytes // max(1, result.row_count)
    return max(1, min(limits.SERVER_ROWS_AT_ONCE, limits.SERVER_ROWS_BYTES_AT_ONCE // max(1, row_bytes)))


def _arrow_chunks(result: Result) -> Iterator[bytes]:
    metadata = {"query_name": result.query_name, "branch": result.branch, "commit": result.commit}
    if result.engine != "local":
        # Clients of earlier releases do not know the field.
        metadata["engine"] = result.engine
    table = result.to_arrow()
    buffer = io.BytesIO()
    with ipc.new_stream(buffer, table.schema.with_metadata({ARROW_METADATA_KEY: json_bytes(metadata)})) as writer:
        for batch in table.to_batches(max_chunksize=limits.SERVER_ROWS_AT_ONCE):
            writer.write_batch(batch)
            yield _drain(buffer)
    yield _drain(buffer)


def _drain(buffer: io.BytesIO) -> bytes:
    """Return what was written to the buffer, and empty it."""
    written = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return written


def _json_chunks(result: Result, rows_per_chunk: int, *, legacy: bool) -> Iterator[bytes]:
    table = result.to_arrow()

    def with_rows(rows: Table) -> Result:
        return Result(
            rows, query_name=result.query_name, branch=result.branch, commit=result.commit, engine=result.engine
        )

    document = with_rows(table.slice(0, 0)).to_json() | {"row_count": result.row_count}
    commit = document.pop("graph_commit_id")
    document.pop("rows")
    yield json_bytes(document)[:-1] + b',"rows":['
    for start in range(0, table.num_rows, rows_per_chunk):
        rows = json_bytes(with_rows(table.slice(start, rows_per_chunk)).to_pylist())[1:-1]
        yield (b"," if start else b"") + rows
    yield b"]}" if legacy else b'],"graph_commit_id":' + json_bytes(commit) + b"}"


# --- streams ----------------------------------------------------------------------------------------------------------


class ChunkedResponse(StreamingResponse):
    """A streamed response in small chunks, each with a timeout: a client that stops reading is disconnected."""

    def __init__(
        self,
        chunks: Iterator[bytes | memoryview],
        *,
        media_type: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(_split(chunks), status_code=status, headers=headers, media_type=media_type)
        self._on_close = on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, then run the close callback in any case."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_close()

    async def stream_response(self, send: Send) -> None:
        """Send the chunks, each within the timeout."""

        async def send_within_timeout(message: Message) -> None:
            async with asyncio.timeout(limits.SERVER_STREAM_STALL_S):
                await send(message)

        await super().stream_response(send_within_timeout)


def fetch_first(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Compute the first chunk now, so that an error in it can still become an error response."""
    first = next(chunks, None)
    return chunks if first is None else chain((first,), chunks)


async def _split(chunks: Iterator[bytes | memoryview]) -> AsyncIterator[bytes | memoryview]:
    size = limits.SERVER_STREAM_CHUNK_BYTES
    async for chunk in iterate_in_threadpool(chunks):
        view = memoryview(chunk)
        for start in range(0, len(view), size):
            yield view[start : start + size]
