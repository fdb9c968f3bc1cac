"""Omnigraph: a typed property graph on Lance tables, versioned and branched as one.

    graph = omnigraph.init("library", schema_text)
    with omnigraph.open("library") as graph: ...
    with omnigraph.connect("https://host", graph="library") as graph: ...

Names are imported when they are first used: importing the package costs next to nothing.
"""

from importlib import import_module

_WHERE = {
    "init": "omnigraph.api.open",
    "open": "omnigraph.api.open",
    "verify": "omnigraph.api.open",
    "connect": "omnigraph.client.connect",
    "Branches": "omnigraph.api.history",
    "EngineStats": "omnigraph.execution.engine",
    "Commit": "omnigraph.api.commit",
    "EntityChange": "omnigraph.branch.entity_change",
    "Diff": "omnigraph.branch.diff",
    "Blame": "omnigraph.branch.history_values",
    "EntityEvent": "omnigraph.branch.history_values",
    "FeedPage": "omnigraph.branch.history_values",
    "Graph": "omnigraph.api.graph",
    "LoadProgress": "omnigraph.pipeline.load.how_far",
    "LoadResult": "omnigraph.api.results",
    "Maintenance": "omnigraph.api.maintenance",
    "MaintenanceReport": "omnigraph.api.maintenance",
    "MergeConflict": "omnigraph.model.conflict",
    "MergeResult": "omnigraph.api.results",
    "Mode": "omnigraph.transaction.mode",
    "MutationResult": "omnigraph.api.results",
    "Neighbourhood": "omnigraph.api.neighbourhood",
    "Blob": "omnigraph.api.blob",
    "AllowedBase": "omnigraph.storage.external_blobs",
    "BlobScope": "omnigraph.storage.external_blobs",
    "ExternalBlobPolicy": "omnigraph.storage.external_blobs",
    "OpenOptions": "omnigraph.api.options",
    "OptimizeReport": "omnigraph.api.optimize",
    "Point": "omnigraph.branch.point",
    "PreparedQuery": "omnigraph.api.prepared",
    "QueryLimits": "omnigraph.execution.query_limits",
    "Result": "omnigraph.api.query_result",
    "ResultStream": "omnigraph.api.query_result",
    "RevertResult": "omnigraph.api.results",
    "RemoteGraph": "omnigraph.client.graph",
    "RevertConflict": "omnigraph.model.conflict",
    "Snapshot": "omnigraph.api.snapshot",
    "Tag": "omnigraph.branch.history_values",
    "VerifyReport": "omnigraph.api.verify",
    "WriteOptions": "omnigraph.transaction.options",
    "WriteResult": "omnigraph.api.results",
    "AlreadyExistsError": "omnigraph.errors",
    "BlobSourceError": "omnigraph.errors",
    "ChangeGapError": "omnigraph.errors",
    "ChangeRefusedError": "omnigraph.errors",
    "ClockError": "omnigraph.errors",
    "ConflictError": "omnigraph.errors",
    "ConstraintError": "omnigraph.errors",
    "FormatError": "omnigraph.errors",
    "GraphError": "omnigraph.errors",
    "InternalError": "omnigraph.errors",
    "InvalidRequestError": "omnigraph.errors",
    "LimitError": "omnigraph.errors",
    "MergeConflictError": "omnigraph.errors",
    "NotFoundError": "omnigraph.errors",
    "OutcomeUnknownError": "omnigraph.errors",
    "ParseError": "omnigraph.errors",
    "PermissionDeniedError": "omnigraph.errors",
    "PreconditionError": "omnigraph.errors",
    "ReclaimedError": "omnigraph.errors",
    "RevertConflictError": "omnigraph.errors",
    "UnavailableError": "omnigraph.errors",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> object:
    """A public name, imported now."""
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'omnigraph' has no attribute '{name}'")
    found: object = getattr(import_module(where), name)
    globals()[name] = found  # from now on without this detour
    return found


def __dir__() -> list[str]:
    """The public names."""
    return sorted({*globals(), *__all__})
