"""The routes, one file per noun."""

from omnigraph.server.routes import branches, health, loads, mutations, queries, schemas, snapshots

ROUTERS = (
    health.router,
    snapshots.router,
    queries.router,
    mutations.router,
    loads.json_router,
    loads.router,
    schemas.router,
    branches.router,
)
"""All of them, in the order of the API document."""
