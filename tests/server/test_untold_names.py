"""Whoever may not see a branch learns from no answer whether it, its commits or its tags are there."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.support.served_here import Answered, InProcess, refused

from omnigraph.server.tokens import load_tokens

TOKENS = load_tokens({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"act-a": "alpha", "act-b": "beta"})})
# Two branches that one of the actors sees nothing of; only one of them is there.
POLICY = """
version: 1
groups: { team: [act-a], all: [act-b] }
protected_branches: [hidden, absent]
rules:
  - id: work
    allow: { actors: { group: team }, actions: [read, export, change], branch_scope: unprotected }
  - id: invoke
    allow: { actors: { group: team }, actions: [invoke_query] }
  - id: everything
    allow: { actors: { group: all }, actions: [read, export, change], branch_scope: any }
"""
ABSENT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
QUERY = "query q() { match { $b: Book } return { $b.isbn } }"
INSERT = 'query q() { insert Author { name: "New" } }'
SCHEMA = "node A { name: String @key }"
# What every operation that takes a body needs beside names.
BODIES: dict[str, dict[str, Any]] = {
    "cluster_read": {"query_source": QUERY},
    "cluster_mutate": {"query": INSERT},
    "cluster_change": {"query": INSERT},
    "cluster_mutate_if_graph_commit": {"query": INSERT},
    "cluster_load": {"data": ""},
    "cluster_ingest": {"data": ""},
    "cluster_applySchema": {"schema_source": SCHEMA},
    "cluster_planSchema": {"schema_source": SCHEMA},
    "cluster_createBranch": {"name": "new"},
    "cluster_mergeBranches": {"source": "other"},
    "cluster_captureChangeBaseline": {},
    "cluster_createTag": {"name": "new"},
    "cluster_complete": {"text": ""},
    "cluster_export": {},
}
PARAMETERS = {"entity": "node", "type": "Book", "id": "0-1", "property": "cover", "from": "main", "to": "main"}
# By the name of a parameter or a member: what is hidden, as (kind of name) below.
NAMES = {
    "branch": ["branch"],
    "source": ["branch"],
    "target": ["branch"],
    "snapshot": ["commit"],
    "commit": ["commit"],
    "last": ["commit"],
    "commit_id": ["commit"],
    "if_commit": ["commit"],
    "if_source_commit": ["commit"],
    "tag": ["tag"],
    "from": ["branch", "earlier"],
    "to": ["branch", "earlier", "commit", "tag"],
}
# Where a name is one to be made: that it is taken is said to all who may make one.
MADE = {("cluster_createTag", "name"), ("cluster_createBranch", "name")}


class Hidden:
    """A library with a branch that only one of two actors sees."""

    def __init__(self, client: TestClient) -> None:
        app: Any = client.app
        graph = app.state.server.graphs.get("library").graph
        self.own = graph.mutate(INSERT).commit
        graph.branches.create("hidden")
        commit = graph.mutate('query q() { insert Author { name: "Secret" } }', branch="hidden").commit
        graph.tags.create("hidden-tag", branch="hidden")
        self.client = client
        self.pairs = {
            "branch": ("hidden", "absent"),
            "earlier": ("hidden@1", "absent@1"),
            "commit": (commit, ABSENT),
            "tag": ("hidden-tag", "absent-tag"),
        }

    def operations(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Every operation on a graph."""
        document = self.client.get("http://testserver/openapi.json").json()
        self.schemas = document["components"]["schemas"]
        return [
            (method, path.removeprefix("/graphs/{graph_id}/"), operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if "{graph_id}" in path
        ]

    def places(self, operation: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Where an operation takes names: in which part of a request, and as what."""
        for each in operation.get("parameters", ()):
            if each["name"] in NAMES:
                yield each["in"], each["name"]
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if content is not None:
            [reference] = [
                each["$ref"].rpartition("/")[2]
                for each in (content["schema"], *content["schema"].get("anyOf", ()))
                if "$ref" in each
            ]
            for name in self.schemas[reference]["properties"]:
                if name in NAMES:
                    yield "body", name

    def ask(self, method: str, path: str, operation: dict[str, Any], place: tuple[str, str], name: str) -> Answered:
        """Ask for something by a name."""
        where, what = place
        kind = operation["operationId"]
        filled = path.replace(f"{{{what}}}", name) if where == "path" else path
        for other, usual in (("branch", "main"), ("tag", "t"), ("commit_id", ABSENT), ("name", "q")):
            filled = filled.replace(f"{{{other}}}", usual)
        wanted = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
        params = {key: value for key, value in PARAMETERS.items() if key in wanted}
        headers = {"Omnigraph-If-Graph-Commit": ABSENT} if "if-graph-commit" in path else {}
        if where == "query":
            params[what] = name
        if "application/x-ndjson" in operation.get("requestBody", {}).get("content", {}):
            headers["content-type"] = "application/x-ndjson"
            return self.client.request(method, filled, params=params, content=b"", headers=headers)
        body: Any = None
        if "requestBody" in operation:
            body = dict(BODIES.get(kind, {"query": QUERY}))
            if kind == "cluster_revert":
                body["commit"] = self.own
            if where == "body":
                body[what] = name
        return self.client.request(method, filled, params=params, json=body, headers=headers)


def plain(text: str) -> str:
    """An answer without the ids, numbers and times that no two writes have in common."""
    return re.sub(r"\d+", "0", re.sub(r"\b[0-9A-Z]{26}\b", "ID", text))


@pytest.fixture
def hidden(serve: InProcess, tmp_path: Path) -> Hidden:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Hidden(serve(tokens=TOKENS, policy=str(policy), token="alpha"))


def test_no_answer_tells_whether_a_name_that_may_not_be_seen_is_there(hidden: Hidden) -> None:
    asked = set()
    for method, path, operation in hidden.operations():
        for place in hidden.places(operation):
            if (operation["operationId"], place[1]) in MADE:
                continue
            for kind in NAMES[place[1]]:
                there, absent = hidden.pairs[kind]
                answers = [hidden.ask(method, path, operation, place, name) for name in (there, absent)]
                told = [
                    (answer.status_code, plain(answer.text.replace(name.partition("@")[0], "NAME")))
                    for answer, name in zip(answers, (there, absent), strict=True)
                ]
                assert told[0] == told[1], (method, path, place, kind)
                assert "Secret" not in told[0][1]
                asked.add((operation["operationId"], place[1]))

    # A part of what must have been asked; the document names the rest.
    assert asked >= {
        ("cluster_diff", "from"),
        ("cluster_query", "snapshot"),
        ("cluster_query", "tag"),
        ("cluster_getBlob", "snapshot"),
        ("cluster_getCommit", "commit_id"),
        ("cluster_getCommitChanges", "commit_id"),
        ("cluster_getTag", "tag"),
        ("cluster_deleteTag", "tag"),
        ("cluster_deleteBranch", "branch"),
        ("cluster_createTag", "commit"),
        ("cluster_createBranch", "tag"),
        ("cluster_export", "snapshot"),
        ("cluster_loadNdjson", "from"),
        ("cluster_revert", "commit"),
        ("cluster_drawDiff", "to"),
    }


def test_those_who_may_see_a_branch_are_told_what_is_wrong_with_what_they_ask(hidden: Hidden) -> None:
    bob = {"Authorization": "Bearer beta"}
    client = hidden.client
    commit, _ = hidden.pairs["commit"]

    assert client.get("diff", params={"from": "hidden", "to": "main"}, headers=bob).status_code == 200
    for params in ({"snapshot": commit}, {"tag": "hidden-tag"}, {"branch": "hidden"}):
        assert client.get("count", params={"type": "Author", **params}, headers=bob).json()["count"] == 4
    refused(
        client.get("diff", params={"from": "hidden@99", "to": "main"}, headers=bob),
        404,
        "has no commit number 99",
        "not_found",
    )
    refused(client.get("count", params={"type": "Author", "tag": "none"}, headers=bob), 404, "tag 'none'", "not_found")
    assert client.delete("tags/hidden-tag", headers=bob).status_code == 200


def test_what_may_be_seen_and_not_be_done_is_refused_as_such(serve: InProcess, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("actions: [read, export, change], branch_scope: any", "actions: [read]"))
    hidden = Hidden(serve(tokens=TOKENS, policy=str(policy), token="beta"))
    commit, _ = hidden.pairs["commit"]

    refused(
        hidden.client.delete("tags/hidden-tag"), 403, "policy denied action 'change' on branch 'hidden'", "forbidden"
    )
    refused(hidden.client.post("export", json={"snapshot": commit}), 403, "policy denied action 'export'", "forbidden")
