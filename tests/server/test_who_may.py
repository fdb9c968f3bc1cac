"""Tokens, the states of a server, and that no route gets past the one place that decides."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.support.served_here import InProcess, refused

from omnigraph.api.maintenance import Maintenance
from omnigraph.errors import InvalidRequestError
from omnigraph.server.graphs import Authority, Graphs
from omnigraph.server.main import build_parser, build_settings
from omnigraph.server.maintenance import create_maintenance
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import Tokens, load_tokens

TOKENS = load_tokens({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"act-a": "alpha", "act-b": "beta"})})
QUERY = {"query": "query q() { match { $b: Book } return { $b.isbn } }"}
INSERT = {"query": 'query q() { insert Author { name: "New" } }'}
# Enough of a body for every operation that takes one, so that nothing but the decision can refuse it.
BODIES: dict[str, Any] = {
    "cluster_query": QUERY,
    "cluster_read": {"query_source": QUERY["query"]},
    "cluster_explain": QUERY,
    "cluster_getEntities": {"type": "Person", "ids": ["a"]},
    "cluster_export": {},
    "cluster_mutate": INSERT,
    "cluster_change": INSERT,
    "cluster_mutate_if_graph_commit": INSERT,
    "cluster_load": {"data": ""},
    "cluster_ingest": {"data": ""},
    "cluster_applySchema": {"schema_source": "node A { name: String @key }"},
    "cluster_planSchema": {"schema_source": "node A { name: String @key }"},
    "cluster_createBranch": {"name": "new"},
    "cluster_mergeBranches": {"source": "other"},
    "cluster_captureChangeBaseline": {},
    "cluster_revert": {"commit": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
    "cluster_createTag": {"name": "new"},
}
PARAMETERS = {
    "entity": "node",
    "type": "Book",
    "id": "0-1",
    "property": "cover",
    "branch": "main",
    "from": "main",
    "to": "main",
    "commit": "main",
}
# Asked of anybody, whatever the policy says: it only tells a caller what it may do.
ABOUT_THE_CALLER = {"cluster_getPermissions"}
READ_ONLY_POLICY = """
version: 1
groups: { readers: [act-a] }
rules:
  - id: read
    allow: { actors: { group: readers }, actions: [read, invoke_query] }
"""
# One of the two is somebody in it, and allowed nothing.
NOBODY_POLICY = """
version: 1
groups: { others: [act-z], idle: [act-a] }
rules:
  - id: read
    allow: { actors: { group: others }, actions: [read] }
"""


def operations(client: TestClient) -> list[tuple[str, str, dict[str, Any]]]:
    """Every operation on a graph: method, path, and what the document says of it."""
    document = client.get("http://testserver/openapi.json").json()
    return [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if "{graph_id}" in path
    ]


def call(client: TestClient, method: str, path: str, operation: dict[str, Any]) -> Any:  # noqa: ANN401  (the client's answer)
    filled = path.replace("{graph_id}", "library")
    for name in ("branch:path", "tag:path", "branch", "tag", "name", "commit_id"):
        filled = filled.replace(f"{{{name}}}", "main" if name == "branch" else "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    wanted = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    params = {name: PARAMETERS[name] for name in wanted if name in PARAMETERS and name != "commit"}
    headers = {"Omnigraph-If-Graph-Commit": "01ARZ3NDEKTSV4RRFFQ69G5FAV"} if "if-graph-commit" in path else {}
    body: Any = BODIES.get(operation["operationId"])
    if "application/x-ndjson" in operation.get("requestBody", {}).get("content", {}):
        headers["content-type"] = "application/x-ndjson"
        return client.request(method, f"http://testserver{filled}", params=params, content=b"", headers=headers)
    if body is None and "requestBody" in operation:
        body = {"text": "", **QUERY}
    return client.request(method, f"http://testserver{filled}", params=params, json=body, headers=headers)


def test_every_operation_on_a_graph_asks_for_a_token(serve: InProcess) -> None:
    client = serve(tokens=TOKENS)

    for method, path, operation in operations(client):
        answer = call(client, method, path, operation)
        assert answer.status_code == 401, (method, path, answer.text)
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("token", ["alpha", "beta"], ids=["allowed nothing", "unknown"])
def test_every_operation_on_a_graph_is_refused_to_whom_the_policy_allows_nothing(
    serve: InProcess, tmp_path: Path, token: str
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(NOBODY_POLICY)
    client = serve(tokens=TOKENS, policy=str(policy), token=token)

    asked = [each for each in operations(client) if each[2]["operationId"] not in ABOUT_THE_CALLER]
    assert len(asked) > 20
    for method, path, operation in asked:
        answer = call(client, method, path, operation)
        # Where the names of commits, tags and stored queries are nobody's business, they are not there at all.
        assert answer.status_code in (403, 404), (method, path, answer.text)
        if answer.status_code == 404:
            assert any(word in path for word in ("{commit_id}", "{tag", "{name}", "revert", "queries")), (method, path)


def test_whom_the_policy_does_not_know_is_told_so(serve: InProcess, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(NOBODY_POLICY)
    client = serve(tokens=TOKENS, policy=str(policy), token="beta")

    refused(client.get("schema"), 403, "policy denied action 'read' for unknown actor 'act-b'", "forbidden")


def test_without_a_policy_those_with_a_token_may_only_read(serve: InProcess) -> None:
    client = serve(tokens=TOKENS, token="alpha")

    assert client.post("query", json=QUERY).status_code == 200
    assert client.get("branches").status_code == 200
    for route, body in (("mutate", INSERT), ("branches", {"name": "x"}), ("export", {}), ("load", {"data": ""})):
        refused(client.post(route, json=body), 403, "server runs in default-deny mode", "forbidden")
    refused(client.delete("branches/x"), 403, "server runs in default-deny mode", "forbidden")
    assert client.get("branches").json() == {"branches": ["main"]}


def test_a_policy_decides_by_the_name_a_branch_is_stored_under(serve: InProcess, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        """
version: 1
groups: { team: [act-a] }
protected_branches: [main]
rules:
  - id: write
    allow: { actors: { group: team }, actions: [change], branch_scope: unprotected }
  - id: make
    allow: { actors: { group: team }, actions: [branch_create], target_branch_scope: unprotected }
"""
    )
    client = serve(tokens=TOKENS, policy=str(policy), token="alpha")

    assert client.post("branches", json={"name": "review"}).status_code == 200
    assert client.post("mutate", json={**INSERT, "branch": "review"}).json()["actor_id"] == "act-a"
    for spelled in ("main", " main ", "main\t"):
        answer = client.post("mutate", json={**INSERT, "branch": spelled})
        refused(answer, 403, "policy denied action 'change' on branch 'main' for actor 'act-a'", "forbidden")


def test_a_commit_of_a_branch_that_may_not_be_read_is_not_there(serve: InProcess, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        READ_ONLY_POLICY.replace("actions: [read, invoke_query] }", "actions: [read], branch_scope: protected }")
        + "protected_branches: [other]\n"
    )
    client = serve(tokens=TOKENS, policy=str(policy), token="alpha")
    absent = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    app: Any = client.app
    served = app.state.server.graphs.get("library")
    there = served.graph.commits.list()[0].id

    answers = [client.get(f"commits/{commit}/changes") for commit in (there, absent)]

    assert [each.status_code for each in answers] == [404, 404]
    assert [each.json()["error"] for each in answers] == [f"commit '{there}' not found", f"commit '{absent}' not found"]


def test_undoing_brings_nothing_over_from_a_branch_that_may_not_be_read(serve: InProcess, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        """
version: 1
groups: { team: [act-a] }
protected_branches: [main]
rules:
  - id: work
    allow: { actors: { group: team }, actions: [read, change], branch_scope: protected }
"""
    )
    client = serve(tokens=TOKENS, policy=str(policy), token="alpha")
    app: Any = client.app
    graph = app.state.server.graphs.get("library").graph
    graph.branches.create("hidden")
    graph.mutate('query q() { insert Author { name: "Secret" } }', branch="hidden")
    gone = graph.mutate('query q() { delete Author where name = "Secret" }', branch="hidden").commit
    authors = "query q() { match { $a: Author } return { $a.name } }"
    own = client.post("mutate", json=INSERT).json()["commit"]["graph_commit_id"]

    for body in ({"commit": gone}, {"commit": own, "last": gone}):
        refused(client.post("revert", json=body), 404, f"commit '{gone}' not found", "not_found")
    assert "Secret" not in client.post("query", json={"query": authors}).text
    assert client.post("revert", json={"commit": own, "branch": " main "}).status_code == 200


@pytest.mark.parametrize("may_prune", [False, True])
def test_history_is_pruned_only_by_those_who_administer(serve: InProcess, tmp_path: Path, *, may_prune: bool) -> None:
    actions = "read, change, schema_apply, branch_create, branch_merge" + (", admin" if may_prune else "")
    policy = tmp_path / "policy.yaml"
    policy.write_text(READ_ONLY_POLICY.replace("read, invoke_query", actions))
    client = serve(tokens=TOKENS, policy=str(policy), token="alpha")
    written = client.post("mutate", json=INSERT).json()["commit"]["graph_commit_id"]
    schema = client.get("schema").json()
    assert client.post("branches", json={"name": "review"}).status_code == 200
    lines = {"content": b"", "headers": {"content-type": "application/x-ndjson"}}
    pruning: list[tuple[str, dict[str, Any]]] = [
        ("mutate", {"json": {**INSERT, "prune_previous": True}}),
        ("schema/apply", {"json": {**schema, "prune_previous": True}}),
        ("branches/merge", {"json": {"source": "review", "prune_previous": True}}),
        ("revert", {"json": {"commit": written, "prune_previous": True}}),
        ("load/ndjson?prune_previous=true", lines),
    ]

    for route, body in pruning:
        answer = client.post(route, **body)
        if may_prune:
            assert answer.status_code != 403, (route, answer.text)
        else:
            refused(answer, 403, "policy denied action 'admin' for actor 'act-a'", "forbidden")


def test_tokens_name_actors_and_writes_carry_them(serve: InProcess, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(READ_ONLY_POLICY.replace("[act-a]", "[act-a, act-b]").replace("[read, invoke_query]", "[change]"))
    client = serve(tokens=TOKENS, policy=str(policy), token="beta")

    body = client.post("mutate", json=INSERT).json()

    assert (body["actor_id"], body["commit"]["actor_id"]) == ("act-b", "act-b")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "missing bearer token"),
        ("", "missing bearer token"),
        ("Basic alpha", "missing bearer token"),
        ("Bearer", "missing bearer token"),
        ("Bearer  ", "missing bearer token"),
        ("Bearer alph", "invalid bearer token"),
        ("Bearer alpha2", "invalid bearer token"),
        ("Bearer act-a", "invalid bearer token"),
    ],
)
def test_a_token_that_is_none_is_refused(serve: InProcess, header: str | None, message: str) -> None:
    client = serve(tokens=TOKENS, rows="")
    headers = {} if header is None else {"Authorization": header}

    refused(client.get("schema", headers=headers), 401, message, "unauthorized")
    assert client.get("schema", headers={"Authorization": "bearer alpha"}).status_code == 200


def test_tokens_in_places_where_none_belongs_are_not_written_down() -> None:
    assert TOKENS.redact("/graphs/alpha/schema") == "/graphs/***/schema"
    assert TOKENS.redact("/graphs/alphabet") == "/graphs/alphabet"
    assert Tokens({}).redact("/graphs/alpha") == "/graphs/alpha"


def test_only_digests_of_tokens_are_kept() -> None:
    assert "alpha" not in repr(TOKENS)
    assert all(len(digest) == 32 for digest in TOKENS.actors.values())


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"OMNIGRAPH_SERVER_BEARER_TOKEN": "  "}, "is blank"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"": "secret-1"}'}, "blank actor"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a": "secret-1", "a": "secret-2"}'}, "two bearer tokens"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a": "secret-1", "b": "secret-1"}'}, "of another actor"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '["secret-1"]'}, "JSON object"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": "secret-1"}, "JSON object"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": "/nowhere/tokens.json"}, "cannot be read"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET": "tokens"}, "AWS_ACCESS_KEY_ID is not set"),
    ],
)
def test_tokens_that_cannot_be_right_stop_the_start_and_are_not_repeated(
    environment: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message) as refusal:
        load_tokens(environment)

    assert "secret-" not in str(refusal.value)


def test_one_token_and_a_file_of_them_go_together_and_the_file_wins_over_the_text(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text('{"act-f": "from-file"}')

    found = load_tokens(
        {
            "OMNIGRAPH_SERVER_BEARER_TOKEN": "one",
            "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(file),
            "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"act-j": "from-json"}',
        }
    )

    assert set(found.actors) == {"default", "act-f"}
    assert found.authenticate("Bearer one") == "default"


def test_a_policy_without_tokens_stops_the_start(serve: InProcess, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(NOBODY_POLICY)

    with pytest.raises(InvalidRequestError, match="there is a policy but there are no bearer tokens"):
        serve(policy=str(policy), tokens=Tokens({}))


def test_a_server_refuses_to_start_when_nobody_said_who_may_come_in_or_what_to_serve(serve: InProcess) -> None:
    with pytest.raises(InvalidRequestError, match="no bearer tokens and there is no policy"):
        serve(unauthenticated=False)
    with pytest.raises(InvalidRequestError, match="name what to serve"):
        serve.at(ServerSettings(unauthenticated=True))


def test_flags_and_variables_become_settings() -> None:
    args = build_parser().parse_args(
        ["--store", "./x", "--workers", "3", "--maintain-every", "10m", "--bind", "[::1]:0"]
    )

    found = build_settings(
        args,
        {
            "OMNIGRAPH_UNAUTHENTICATED": "1",
            "OMNIGRAPH_REQUIRE_ALL_GRAPHS": "true",
            "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "4",
            "OMNIGRAPH_PER_ACTOR_BYTES_MAX": "1000",
        },
    )

    assert (found.store, found.workers, found.maintain_every_s) == ("./x", 3, 600)
    assert (found.unauthenticated, found.require_all_graphs) == (True, True)
    assert (found.actor_requests_max, found.actor_bytes_max) == (4, 1_000)
    for wrong in (["--workers", "0"], ["--maintain-every", "soon"], ["--maintain-every", "0s"]):
        with pytest.raises(InvalidRequestError):
            build_settings(build_parser().parse_args(["--store", "./x", *wrong]), {})


def test_the_maintenance_of_a_server_has_its_limits() -> None:
    words = ["--maintain-keep", "5", "--maintain-older-than", "7d", "--maintain-verify", "all"]
    words += ["--maintain-max-time", "30s", "--maintain-max-bytes", "1000"]
    settings = build_settings(build_parser().parse_args(["--store", "./x", "--maintain-every", "1m", *words]), {})

    upkeep = create_maintenance(settings, Graphs({}, authority=Authority(is_open=True)))

    expected = Maintenance(keep=5, older_than=604_800, verify_reads_max=None, seconds_max=30, bytes_max=1_000)
    assert upkeep.policy == expected
    for more, policy in (([], Maintenance()), (["--maintain-verify", "none"], Maintenance(verify=False))):
        settings = build_settings(build_parser().parse_args(["--store", "./x", "--maintain-every", "1m", *more]), {})
        assert create_maintenance(settings, Graphs({}, authority=Authority(is_open=True))).policy == policy
    with pytest.raises(InvalidRequestError, match="--maintain-max-bytes must be at least 1"):
        build_settings(build_parser().parse_args(["--store", "./x", "--maintain-max-bytes", "0"]), {})
