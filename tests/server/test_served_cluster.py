"""A server of a cluster: several graphs, each with its queries and its policy."""

import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.support.served_here import LIBRARY, InProcess, refused

from omnigraph.cluster.apply import apply
from omnigraph.cluster.commands import import_
from omnigraph.errors import InvalidRequestError
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import load_tokens

CLUSTER = """
version: 1
graphs:
  library: { schema: library.pg, queries: queries/ }
  second: { schema: library.pg }
policies:
  team: { file: team.policy.yaml, applies_to: [library] }
  top: { file: top.policy.yaml, applies_to: [cluster] }
"""
QUERIES = """
query books_of($author: String, $years: [I32]?) @description("Their books.") {
  match { $a: Author { name: $author }  $a wrote $b }
  return { $b.title }
}
query add($name: String) { insert Author { name: $name } }
"""
TEAM = """
version: 1
groups: { team: [act-a], readers: [act-b] }
rules:
  - id: write
    allow: { actors: { group: team }, actions: [read, change, invoke_query, schema_apply] }
  - id: read
    allow: { actors: { group: readers }, actions: [read] }
"""
TOP = """
version: 1
groups: { team: [act-a] }
rules:
  - id: list
    allow: { actors: { group: team }, actions: [graph_list] }
"""
TOKENS = load_tokens(
    {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"act-a": "alpha", "act-b": "beta", "act-c": "gamma"})}
)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    folder = tmp_path / "cluster"
    (folder / "queries").mkdir(parents=True)
    for name, text in (
        ("cluster.yaml", CLUSTER),
        ("library.pg", LIBRARY),
        ("queries/all.gq", QUERIES),
        ("team.policy.yaml", TEAM),
        ("top.policy.yaml", TOP),
    ):
        (folder / name).write_text(text)
    assert import_(folder).is_ok
    outcome = apply(folder)
    assert outcome.is_ok, outcome.document
    return folder


@pytest.fixture
def alice(serve: InProcess, cluster: Path) -> TestClient:
    return serve.at(ServerSettings(cluster=str(cluster), tokens=TOKENS), token="alpha")


def test_the_graphs_of_a_cluster_are_listed_to_whom_its_policy_allows(alice: TestClient) -> None:
    listed = alice.get("http://testserver/graphs")
    denied = alice.get("http://testserver/graphs", headers={"Authorization": "Bearer beta"})

    assert [each["graph_id"] for each in listed.json()["graphs"]] == ["library", "second"]
    assert all(each["uri"].endswith(f"/graphs/{each['graph_id']}.omni") for each in listed.json()["graphs"])
    refused(denied, 403, "policy denied action 'graph_list' for unknown actor 'act-b'", "forbidden")


def test_graphs_that_are_ready_are_named_only_to_those_who_could_be_allowed_to_use_them(alice: TestClient) -> None:
    def named(token: str) -> dict[str, str]:
        answer = alice.get("http://testserver/readyz", headers={"Authorization": token})
        assert (answer.status_code, answer.json()["status"]) == (200, "ready")
        graphs: dict[str, str] = answer.json()["graphs"]
        return graphs

    assert named("Bearer beta") == {"library": "ready", "second": "ready"}
    assert named("Bearer gamma") == {"second": "ready"}  # the policy of the other does not know them
    for nobody in ("", "Bearer guessed", "Basic beta"):
        assert named(nobody) == {}


def test_numbers_of_a_graph_are_shown_to_those_who_could_use_it_or_may_list_all(alice: TestClient) -> None:
    def graphs(token: str) -> set[str]:
        answer = alice.get("http://testserver/metrics", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200
        assert "omnigraph_requests_total{" in answer.text  # those of the process are everybody's who has a token
        return set(re.findall(r'graph="([^"]+)"', answer.text))

    for name in ("library", "second"):
        assert alice.get(f"http://testserver/graphs/{name}/schema").status_code == 200

    assert graphs("alpha") == {"library", "second"}
    assert graphs("beta") == {"library", "second"}
    assert graphs("gamma") == {"second"}  # the policy of the other does not know them
    assert alice.get("http://testserver/metrics", headers={"Authorization": ""}).status_code == 401


def test_stored_queries_are_catalogued_and_called_by_name(alice: TestClient) -> None:
    catalogue = alice.get("queries").json()["queries"]
    made = alice.post("queries/add", json={"params": {"name": "Russ"}, "expect_mutation": True})
    read = alice.post("queries/books_of", json={"params": {"author": "Russ"}})

    assert [each["name"] for each in catalogue] == ["add", "books_of"]
    assert catalogue[1] == {
        "name": "books_of",
        "tool_name": "books_of",
        "description": "Their books.",
        "mutation": False,
        "params": [
            {"name": "author", "kind": "string", "nullable": False},
            {"name": "years", "kind": "list", "item_kind": "int", "nullable": True},
        ],
    }
    assert (made.json()["affected_nodes"], made.json()["actor_id"]) == (1, "act-a")
    assert (read.json()["query_name"], read.json()["rows"]) == ("books_of", [])


def test_a_stored_query_is_refused_in_the_words_of_the_contract(alice: TestClient) -> None:
    head = alice.get("commits").json()["commits"][0]["graph_commit_id"]
    condition = {"Omnigraph-If-Graph-Commit": head}

    refused(alice.post("queries/nothing"), 404, "stored query not found", "not_found")
    refused(
        alice.post("queries/add", headers={"Authorization": "Bearer beta"}), 404, "stored query not found", "not_found"
    )
    refused(
        alice.post("queries/add", json={"expect_mutation": False}),
        400,
        "'add' is a mutation — use omnigraph mutate add",
    )
    refused(
        alice.post("queries/books_of", json={"expect_mutation": True}),
        400,
        "'books_of' is a read — use omnigraph query books_of",
    )
    refused(alice.post("queries/add", json={"snapshot": head}), 400, "stored mutation cannot target a snapshot")
    refused(
        alice.post("queries/books_of/if-graph-commit", headers=condition),
        400,
        "the graph-commit conditional route applies only to stored mutations",
    )
    refused(alice.post("queries/add", json=[]), 400, "invalid stored-query invocation body: ")
    for body in (None, "null"):
        answer = alice.post("queries/add", content=body, headers={"content-type": "application/json"})
        refused(answer, 400, "name")
    done = alice.post("queries/add/if-graph-commit", json={"params": {"name": "Russ"}}, headers=condition)
    late = alice.post("queries/add/if-graph-commit", json={"params": {"name": "Delany"}}, headers=condition)
    assert done.status_code == 200
    refused(late, 412, "precondition failed on branch 'main'", None)


def test_the_schema_of_a_clusters_graph_is_not_changed_through_the_server(alice: TestClient) -> None:
    answer = alice.post("schema/apply", json={"schema_source": LIBRARY})

    refused(answer, 409, "cluster apply", "conflict")


def test_a_graph_without_a_policy_of_its_own_may_only_be_read(alice: TestClient) -> None:
    path = "http://testserver/graphs/second"

    assert alice.get(f"{path}/schema").status_code == 200
    body = {"query": 'query q() { insert Author { name: "x" } }'}
    refused(alice.post(f"{path}/mutate", json=body), 403, "server runs in default-deny mode", "forbidden")


def test_a_damaged_graph_is_put_aside_and_the_others_are_served(serve: InProcess, cluster: Path) -> None:
    (cluster / "graphs" / "second.omni" / "__format.json").write_text("{")
    settings = ServerSettings(cluster=str(cluster), tokens=TOKENS)

    client = serve.at(settings, token="alpha")

    listed = client.get("http://testserver/graphs").json()["graphs"]
    assert [each["graph_id"] for each in listed] == ["library"]
    refused(client.get("http://testserver/graphs/second/schema"), 404, "graph 'second' not found", "not_found")
    with pytest.raises(Exception, match=r"format|damaged|JSON"):
        serve.at(ServerSettings(cluster=str(cluster), tokens=TOKENS, require_all_graphs=True))


def test_a_policy_without_tokens_stops_a_clusters_server(serve: InProcess, cluster: Path) -> None:
    with pytest.raises(InvalidRequestError, match="there are no bearer tokens"):
        serve.at(ServerSettings(cluster=str(cluster), unauthenticated=True))
