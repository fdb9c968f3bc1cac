"""What a branch holds."""

from fastapi import Response

from omnigraph.api.documents import snapshot_document
from omnigraph.server.answers import answered
from omnigraph.server.call import Served
from omnigraph.server.responses import SnapshotOutput
from omnigraph.server.routing import READING, failing, graph_router

router = graph_router("snapshots")


@router.get(
    "/snapshot",
    operation_id="cluster_getSnapshot",
    response_model=SnapshotOutput,
    responses=failing(*READING),
)
def snapshot(call: Served, branch: str = "main") -> Response:
    """What a branch holds, type by type."""
    call.reads(branch)
    at = call.graph.snapshot(branch=branch)
    return answered({**snapshot_document(at.record), "graph_commit_id": at.commit})
