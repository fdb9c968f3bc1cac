"""The routes, one file per noun."""

from omnigraph.server.routes import (
    blobs,
    branches,
    bulk,
    commits,
    health,
    history,
    mutations,
    queries,
    schemas,
    stored_queries,
)

ROUTERS = (
    health.router,
    health.scheduled_router,
    queries.snapshot_router,
    blobs.router,
    queries.router,
    bulk.export_router,
    mutations.router,
    stored_queries.router,
    schemas.router,
    bulk.json_router,
    bulk.ndjson_router,
    branches.router,
    commits.router,
    commits.changes_router,
    history.router,
    history.tags_router,
)
"""All routers, in the order of the API document."""
