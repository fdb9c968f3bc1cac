"""What routes have in common: where they are mounted, and which answers they document."""

from typing import Any

from fastapi import APIRouter

from omnigraph.server.bodies import BoundedRoute
from omnigraph.server.responses import ErrorOutput

GRAPH = "/graphs/{graph_id}"
# Whatever is asked, these can be the answer.
_ALWAYS = (400, 401, 403, 404, 429, 500, 503)
_MEANINGS = {
    400: "The request is wrong.",
    401: "There is no bearer token, or it is nobody's.",
    403: "The actor may not do this.",
    404: "There is no such thing.",
    408: "The body came too slowly.",
    409: "Somebody else's change stands in the way.",
    410: "It was pruned.",
    412: "A precondition does not hold.",
    413: "It is more than may be asked for at once.",
    415: "The body is of another media type.",
    416: "The range is outside the blob.",
    424: "Bytes that lie elsewhere cannot be reached.",
    429: "Too much is under way.",
    500: "A fault of the server.",
    503: "The store does not answer now, or an interrupted write has to be finished first.",
}
WITH_BODY = (408, 413, 415)
READING = (410, 413)
WRITING = (*WITH_BODY, 409, 410, 412)


def graph_router(*tags: str, route_class: type[BoundedRoute] = BoundedRoute) -> APIRouter:
    """A router for one noun of a graph, its operations under these tags."""
    return APIRouter(prefix=GRAPH, tags=list(tags), route_class=route_class)


def failing(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a route documents, beside those that every route has."""
    return {
        status: {"model": ErrorOutput, "description": _MEANINGS[status]} for status in sorted({*_ALWAYS, *statuses})
    }
