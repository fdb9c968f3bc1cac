"""Answers: documents and rows as JSON."""

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import Response
from pyarrow import ipc

from omnigraph import limits
from omnigraph.api.query_result import Result
from omnigraph.server.call import Call
from omnigraph.server.streams import PieceStream

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
# Where the schema of Arrow rows says whose they are.
ARROW_ABOUT = b"omnigraph"


def json_bytes(document: object) -> bytes:
    """A document as JSON, as short as it can be."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def answered(document: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A document as an answer. Built here, in the thread of the call: sending it is nobody's work but the loop's."""
    return Response(json_bytes(document), status_code=status, headers=headers, media_type=JSON)


def rows_answered(
    result: Result, call: Call, *, headers: Mapping[str, str] | None = None, legacy: bool = False
) -> Response:
    """The rows of a query as an answer; many rows are made into JSON some at a time, while they are sent.

    Args:
        result: of the query.
        call: whose it is.
        headers: of the answer.
        legacy: leave the commit out, as answers of old did.

    Raises:
        Refusal: there is no room for it.
    """
    rows = _rows_at_once(result)
    if result.row_count <= rows:
        document = result.to_json()
        if legacy:
            document.pop("graph_commit_id")
        return answered(document, headers=headers)
    return _streamed(_pieces(result, rows, legacy=legacy), result, call, media_type=JSON, headers=headers)


def arrow_answered(result: Result, call: Call) -> Response:
    """The rows of a query as an Arrow stream, for whoever wants them typed; many rows are sent some at a time.

    Few rows are one answer, made in the thread of the call: pieces of their own would each go through a thread and
    back, which costs more than most queries.
    """
    pieces = _arrow_pieces(result)
    if result.row_count <= _rows_at_once(result):
        return Response(b"".join(pieces), media_type=ARROW)
    return _streamed(pieces, result, call, media_type=ARROW)


def _streamed(
    pieces: Iterator[bytes], result: Result, call: Call, *, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    call.results.take(result.to_arrow().nbytes)
    # From here on it is a result, and those who read slowly keep no query from running.
    call.memory.close()
    return PieceStream(pieces, media_type=media_type, headers=headers)


def _rows_at_once(result: Result) -> int:
    """How many of the rows are made into JSON at once: fewer where they are large."""
    each = result.to_arrow().nbytes // max(1, result.row_count)
    return max(1, min(limits.SERVER_ROWS_AT_ONCE, limits.SERVER_ROWS_BYTES_AT_ONCE // max(1, each)))


def _arrow_pieces(result: Result) -> Iterator[bytes]:
    about = {"query_name": result.query_name, "branch": result.branch, "commit": result.commit}
    table = result.to_arrow()
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema.with_metadata({ARROW_ABOUT: json_bytes(about)})) as writer:
        for batch in table.to_batches(max_chunksize=limits.SERVER_ROWS_AT_ONCE):
            writer.write_batch(batch)
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    """What was written since it was last taken."""
    written = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return written


def _pieces(result: Result, rows_at_once: int, *, legacy: bool) -> Iterator[bytes]:
    table = result.to_arrow()

    def part(rows: Any) -> Result:  # noqa: ANN401  (an Arrow table)
        return Result(rows, query_name=result.query_name, branch=result.branch, commit=result.commit)

    document = part(table.slice(0, 0)).to_json() | {"row_count": result.row_count}
    commit = document.pop("graph_commit_id")
    document.pop("rows")
    yield json_bytes(document)[:-1] + b',"rows":['
    for start in range(0, table.num_rows, rows_at_once):
        rows = json_bytes(part(table.slice(start, rows_at_once)).to_pylist())[1:-1]
        yield (b"," if start else b"") + rows
    yield b"]}" if legacy else b'],"graph_commit_id":' + json_bytes(commit) + b"}"
