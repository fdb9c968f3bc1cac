"""What a branch holds."""

from fastapi import Response

from omnigraph.server.answers import answered
from omnigraph.server.call import Served
from omnigraph.server.documents import snapshot_told
from omnigraph.server.responses import SnapshotOutput
from omnigraph.server.routing import READING, failing, graph_router
from omnigraph.server.states import State

router = graph_router("snapshots")


@router.get(
    "/snapshot",
    operation_id="cluster_getSnapshot",
    response_model=SnapshotOutput,
    responses=failing(*READING),
)
def snapshot(call: Served, state: State) -> Response:
    """What a branch holds, type by type."""
    return answered(snapshot_told(call.graph.snapshot(**call.reads_at(state)).record))
