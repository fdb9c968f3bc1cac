"""The OpenAPI document: FastAPI's own, corrected to match this server."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from omnigraph.server.middleware import PUBLIC_PATHS

_METHODS = ("get", "head", "post", "put", "patch", "delete")
_GRAPH_ID = {
    "name": "graph_id",
    "in": "path",
    "required": True,
    "description": "Graph id.",
    "schema": {"type": "string", "pattern": "^[a-zA-Z0-9-]{1,64}$"},
}
_TAGS = {
    "health": "State of the process.",
    "management": "Served graphs.",
    "queries": "Read the graph.",
    "mutations": "Write to the graph.",
    "branches": "Branches: independent lines of commits.",
    "commits": "Commit history.",
    "changes": "Change feed of a branch.",
    "snapshots": "Contents of a branch by type.",
    "blobs": "Large binary values.",
    "schema": "Types and their properties.",
    "history": "Diff, revert, entity log and blame. Beyond the contract.",
    "tags": "Immutable names of commits. Beyond the contract.",
    "explorer": "Used by the explorer page. Beyond the contract.",
}


def build_openapi(app: FastAPI, *, has_tokens: bool) -> dict[str, Any]:
    """Build the OpenAPI 3.1 document of an application."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        description="Typed property graphs, versioned and branched as one.",
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in _TAGS.items()],
    )
    for path, operation in _operations(document):
        # Invalid requests get status 400 with the common error body.
        operation["responses"].pop("422", None)
        if "{graph_id}" in path:
            operation["parameters"] = [_GRAPH_ID, *operation.get("parameters", ())]
        if has_tokens and path not in PUBLIC_PATHS:
            operation["security"] = [{"bearer_token": []}]
    components = document.setdefault("components", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        components.get("schemas", {}).pop(unused, None)
    if has_tokens:
        components["securitySchemes"] = {"bearer_token": {"type": "http", "scheme": "bearer"}}
    return document


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document.get("paths", {}).items():
        for method in _METHODS:
            if method in methods:
                yield path, methods[method]
