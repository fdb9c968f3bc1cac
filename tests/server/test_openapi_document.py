"""The API document: operations by the names that clients generated code for."""

from typing import Any

from fastapi.testclient import TestClient
from tests.support.served_here import InProcess

from omnigraph.server.tokens import load_tokens
from omnigraph.version import VERSION

CONTRACT = {
    "health": "GET /healthz",
    "listGraphs": "GET /graphs",
    "cluster_getSnapshot": "GET snapshot",
    "cluster_getBlob": "GET blob",
    "cluster_headBlob": "HEAD blob",
    "cluster_query": "POST query",
    "cluster_read": "POST read",
    "cluster_export": "POST export",
    "cluster_mutate": "POST mutate",
    "cluster_change": "POST change",
    "cluster_mutate_if_graph_commit": "POST mutate/if-graph-commit",
    "cluster_list_queries": "GET queries",
    "cluster_invoke_query": "POST queries/{name}",
    "cluster_invoke_query_if_graph_commit": "POST queries/{name}/if-graph-commit",
    "cluster_getSchema": "GET schema",
    "cluster_applySchema": "POST schema/apply",
    "cluster_load": "POST load",
    "cluster_ingest": "POST ingest",
    "cluster_loadNdjson": "POST load/ndjson",
    "cluster_listBranches": "GET branches",
    "cluster_createBranch": "POST branches",
    "cluster_deleteBranch": "DELETE branches/{branch}",
    "cluster_mergeBranches": "POST branches/merge",
    "cluster_listCommits": "GET commits",
    "cluster_getCommit": "GET commits/{commit_id}",
    "cluster_getCommitChanges": "GET commits/{commit_id}/changes",
    "cluster_pollChanges": "GET changes",
    "cluster_captureChangeBaseline": "POST changes/baseline",
}


def document_of(client: TestClient) -> dict[str, Any]:
    return dict(client.get("http://testserver/openapi.json").json())


def operations(document: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    found = {}
    for path, methods in document["paths"].items():
        short = path.removeprefix("/graphs/{graph_id}/")
        for method, operation in methods.items():
            assert operation["operationId"] not in found, "an operation id means one operation"
            found[operation["operationId"]] = (f"{method.upper()} {short}", operation)
    return found


def test_the_operations_of_the_contract_have_its_names(shelf: TestClient) -> None:
    document = document_of(shelf)

    found = {name: where for name, (where, _) in operations(document).items() if name in CONTRACT}

    assert found == CONTRACT
    assert (document["openapi"], document["info"]["title"]) == ("3.1.0", "Omnigraph API")
    assert document["info"]["version"] == VERSION


def test_operations_of_old_are_marked_and_every_tag_is_explained(shelf: TestClient) -> None:
    document = document_of(shelf)
    found = operations(document)

    old = {name for name, (_, operation) in found.items() if operation.get("deprecated")}
    used = {tag for _, operation in found.values() for tag in operation["tags"]}

    assert old == {"cluster_read", "cluster_change", "cluster_ingest"}
    assert used <= {tag["name"] for tag in document["tags"]}
    assert all("422" not in operation["responses"] for _, operation in found.values())


def test_a_token_is_asked_for_where_there_are_tokens_and_nowhere_else(serve: InProcess) -> None:
    tokens = load_tokens({"OMNIGRAPH_SERVER_BEARER_TOKEN": "x"})

    guarded, unguarded = document_of(serve(tokens=tokens, rows="")), document_of(serve(rows=""))

    assert guarded["components"]["securitySchemes"] == {"bearer_token": {"type": "http", "scheme": "bearer"}}
    secured = {name for name, (_, operation) in operations(guarded).items() if "security" in operation}
    assert secured == set(operations(guarded)) - {"health", "ready"}
    assert "securitySchemes" not in unguarded["components"]
    assert not any("security" in operation for _, operation in operations(unguarded).values())
