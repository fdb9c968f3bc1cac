"""The API document: what FastAPI writes, made true to what this server does."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from omnigraph.server.gate import PUBLIC_PATHS

_METHODS = ("get", "head", "post", "put", "patch", "delete")
_GRAPH_ID = {
    "name": "graph_id",
    "in": "path",
    "required": True,
    "description": "Which graph.",
    "schema": {"type": "string", "pattern": "^[a-zA-Z0-9-]{1,64}$"},
}
_TAGS = {
    "health": "The process itself.",
    "management": "What is served.",
    "queries": "Reading.",
    "mutations": "Writing.",
    "branches": "Named lines of commits.",
    "commits": "States of the graph, and how they came about.",
    "changes": "What happened, for whoever follows a branch.",
    "snapshots": "What a branch holds.",
    "blobs": "Large values.",
    "schema": "The types there are.",
    "history": "Comparing, undoing, and who did what. Beyond the contract.",
    "tags": "Names that do not move. Beyond the contract.",
    "explorer": "What the page for people asks. Beyond the contract.",
}


def api_document(app: FastAPI, *, has_tokens: bool) -> dict[str, Any]:
    """The document of an application.

    Args:
        app (FastAPI): with all its routes.
        has_tokens (bool): whether callers need one.

    Returns:
        dict[str, Any]: OpenAPI 3.1.
    """
    document = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        description="Typed property graphs, versioned and branched as one.",
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in _TAGS.items()],
    )
    for path, operation in _operations(document):
        # A request that cannot be understood is answered with 400, in the one shape that errors have.
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
