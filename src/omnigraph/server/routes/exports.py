"""Exports: entities out, as lines."""

from collections.abc import Callable, Iterator
from typing import Any

from fastapi import Response

from omnigraph.policy.rules import Action
from omnigraph.server.call import Call, Served
from omnigraph.server.requests import ChangeBaselineRequest, ExportRequest
from omnigraph.server.routing import READING, WITH_BODY, failing, graph_router
from omnigraph.server.streams import NDJSON_UTF8, PieceStream, begun

router = graph_router()


_LINES: dict[int | str, dict[str, Any]] = {
    **failing(*READING, *WITH_BODY),
    200: {
        "description": "One JSON object per line. A stream that breaks off has to be thrown away.",
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
    },
}


@router.post("/export", operation_id="cluster_export", tags=["queries"], response_class=Response, responses=_LINES)
def export(body: ExportRequest, call: Served) -> Response:
    """Entities of one commit as JSON lines, which a load takes back."""
    state = call.acts_at(Action.EXPORT, body)

    def pieces() -> Iterator[bytes]:
        return (piece.to_pybytes() for piece in call.graph.export_lines(types=body.type_names, **state))

    return _streamed(call, pieces)


@router.post(
    "/changes/baseline",
    operation_id="cluster_captureChangeBaseline",
    tags=["changes"],
    response_class=Response,
    responses=_LINES,
)
def baseline(body: ChangeBaselineRequest, call: Served) -> Response:
    """A whole state of a branch, and at the end the cursor that goes on exactly after it."""
    where = "main" if body.branch is None else body.branch
    call.authorize(Action.EXPORT, branch=where)
    return _streamed(
        call, lambda: call.graph.changes.baseline(where, kinds=body.kind, types=body.type, ops=body.op).lines()
    )


def _streamed(call: Call, pieces: Callable[[], Iterator[bytes]]) -> Response:
    give_back = call.server.streams.take(call.served.id)
    try:
        with call.admitted():
            first = begun(pieces())
    except BaseException:
        give_back()
        raise
    return PieceStream(first, media_type=NDJSON_UTF8, done=give_back)
