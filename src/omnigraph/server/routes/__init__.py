"""The routes, one file per noun."""

from omnigraph.server.routes import (
    blobs,
    branches,
    commits,
    exports,
    health,
    lines,
    loads,
    mutations,
    queries,
    schemas,
    snapshots,
    stored,
)

ROUTERS = (
    health.router,
    health.waiting_router,
    snapshots.router,
    blobs.router,
    queries.router,
    exports.router,
    mutations.router,
    stored.router,
    schemas.router,
    loads.json_router,
    loads.router,
    branches.router,
    commits.router,
    commits.changes_router,
    lines.router,
    lines.tags_router,
)
"""All of them, in the order of the API document."""
