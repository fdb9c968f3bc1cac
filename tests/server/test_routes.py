"""The routes as clients know them: bodies, statuses, headers, and the words of refusals."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from fastapi import Request
from fastapi.testclient import TestClient
from tests.support.served_here import InProcess, refused

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.server.routes.mutations import read_if_commit

INSERT = "query add($isbn: String, $t: String) { insert Book { isbn: $isbn, title: $t } }"
TITLES = "query titles() { match { $b: Book } return { $b.title } order { $b.title } }"
RENAME = 'query rename($t: String) { update Book set { title: $t } where isbn = "0-1" }'
LINES = {"content-type": "application/x-ndjson"}
COMMIT = {
    "graph_commit_id",
    "graph_branch",
    "graph_manifest_version",
    "parent_commit_id",
    "merged_parent_commit_id",
    "actor_id",
    "created_at",
}


def added(client: TestClient, isbn: str, **more: object) -> dict[str, Any]:
    answer = client.post("mutate", json={"query": INSERT, "params": {"isbn": isbn, "t": isbn}, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_query_answers_with_its_rows_and_the_commit_they_are_of(shelf: TestClient) -> None:
    body = shelf.post("query", json={"query": TITLES}).json()

    assert list(body) == ["query_name", "target", "row_count", "columns", "rows", "graph_commit_id"]
    assert body["rows"] == [{"b.title": "Kindred"}, {"b.title": "The Dispossessed"}]
    assert body["target"] == {"branch": "main", "snapshot": None}


def test_a_query_at_a_commit_sees_that_commit(serve: InProcess) -> None:
    client = serve()
    before = client.post("query", json={"query": TITLES}).json()["graph_commit_id"]
    added(client, "9-9")

    then = client.post("query", json={"query": TITLES, "snapshot": before}).json()
    now = client.post("query", json={"query": TITLES}).json()

    assert (then["row_count"], now["row_count"]) == (2, 3)
    assert then["target"] == {"branch": None, "snapshot": before}


def test_a_large_result_is_sent_in_pieces_and_is_the_same_document(serve: InProcess) -> None:
    rows = "".join(
        json.dumps({"type": "Book", "data": {"isbn": f"1-{n}", "title": f"é{n}"}}) + "\n" for n in range(9_000)
    )
    client = serve(rows=rows)

    answer = client.post("query", json={"query": TITLES})

    body = answer.json()
    assert "content-length" not in answer.headers
    assert (body["row_count"], len(body["rows"])) == (9_000, 9_000)
    assert {row["b.title"] for row in body["rows"]} == {f"é{n}" for n in range(9_000)}
    assert len(body["graph_commit_id"]) == 26


@pytest.mark.parametrize(
    ("route", "body", "message"),
    [
        (
            "query",
            {"query": TITLES, "branch": "main", "snapshot": "x"},
            "request may specify branch or snapshot, not both",
        ),
        (
            "query",
            {"query": 'query q() { insert Author { name: "x" } }'},
            "query 'q' contains mutations (insert/update/delete); use POST /mutate for write queries",
        ),
        (
            "read",
            {"query_source": 'query q() { insert Author { name: "x" } }'},
            "mutation query cannot be typechecked with read-query API",
        ),
        ("query", {"query": "query q() {"}, "parse error"),
        ("query", {"query": "query q() { match { $a: Nothing } return { $a } }"}, "type error"),
        ("mutate", {}, "query"),
        ("mutate", {"query": 5}, "query"),
        ("export", {"nothing": 1}, "invalid export request: "),
        ("load", {"data": "{", "mode": "maybe"}, "mode"),
        (
            "load",
            {"data": '{"type":"Author","data":{"name":"Delany","born":"1942-04-31"}}'},
            "record 1: invalid Date literal '1942-04-31' for property 'born'",
        ),
        (
            "ingest",
            {"data": '{"type":"Book","data":{"isbn":"7","title":"x","pages":2147483648}}'},
            "record 1: property 'pages' value 2147483648 exceeds Int32 range",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(
    shelf: TestClient, route: str, body: Mapping[str, Any], message: str
) -> None:
    refused(shelf.post(route, json=body), 400, message)


def test_routes_of_old_answer_and_name_their_successors(serve: InProcess) -> None:
    client = serve()

    read = client.post("read", json={"query_source": TITLES, "query_name": "titles"})
    change = client.post("change", json={"query_source": INSERT, "params": {"isbn": "7", "t": "x"}})
    ingest = client.post("ingest", json={"data": '{"type":"Author","data":{"name":"Delany"}}'})

    assert "graph_commit_id" not in read.json()
    for answer, successor in ((read, "query"), (change, "mutate"), (ingest, "load")):
        assert answer.status_code == 200
        assert answer.headers["deprecation"] == "true"
        assert answer.headers["link"] == f'<{successor}>; rel="successor-version"'


def test_a_mutation_tells_what_it_did_and_a_second_one_that_it_did_nothing(serve: InProcess) -> None:
    client = serve()

    first = client.post("mutate", json={"query": RENAME, "params": {"t": "New"}}).json()
    gone = client.post("mutate", json={"query": 'query d() { delete Book where isbn = "none" }'}).json()

    assert (first["affected_nodes"], first["affected_edges"], first["actor_id"]) == (1, 0, None)
    assert set(first["commit"]) >= COMMIT
    assert (gone["affected_nodes"], gone["commit"]) == (0, None)


def test_the_same_idempotency_key_writes_once(serve: InProcess) -> None:
    client = serve()
    key = {"Idempotency-Key": "k-1"}

    answers = [
        client.post("mutate", json={"query": INSERT, "params": {"isbn": "5", "t": "x"}}, headers=key).json()
        for _ in range(2)
    ]
    loads = [
        client.post(
            "load/ndjson?mode=append",
            content='{"type":"Author","data":{"name":"N"}}',
            headers={**LINES, "Idempotency-Key": "k-2"},
        ).json()
        for _ in range(2)
    ]

    assert answers[0]["commit"] == answers[1]["commit"]
    assert [each["replayed"] for each in answers] == [False, True]
    assert loads[0]["commit"] == loads[1]["commit"]
    assert client.get("count", params={"type": "Author"}).json()["count"] == 3


def test_a_conditional_mutation_goes_through_at_its_commit_only(serve: InProcess) -> None:
    client = serve()
    seen = client.get("commits").json()["commits"][0]["graph_commit_id"]
    body = {"query": INSERT, "params": {"isbn": "6", "t": "x"}}

    done = client.post("mutate/if-graph-commit", json=body, headers={"Omnigraph-If-Graph-Commit": seen})
    late = client.post("mutate/if-graph-commit", json=body, headers={"Omnigraph-If-Graph-Commit": seen})

    now = done.json()["commit"]["graph_commit_id"]
    found = refused(
        late, 412, f"precondition failed on branch 'main': expected head '{seen}' but current is {now}", None
    )
    assert found["precondition_failure"] == {"expected": seen, "actual": now}


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ([], "is required on this conditional mutation route"),
        ([b"a", b"b"], "must be sent exactly once"),
        ([b" "], "must name a graph commit id"),
        ([b'"x"'], "must contain one raw graph commit id, not entity-tag syntax"),
        ([b"*"], "must contain one raw graph commit id, not entity-tag syntax"),
        ([b"W/x"], "must contain one raw graph commit id, not entity-tag syntax"),
        ([b"x, y"], "must contain one raw graph commit id, not entity-tag syntax"),
    ],
)
def test_a_condition_is_one_commit_id_and_nothing_else(shelf: TestClient, headers: list[bytes], message: str) -> None:
    sent = [(b"Omnigraph-If-Graph-Commit", each) for each in headers]

    answer = shelf.post("mutate/if-graph-commit", json={"query": INSERT}, headers=sent)

    refused(answer, 400, f"Omnigraph-If-Graph-Commit {message}")


def test_a_condition_that_is_no_text_is_refused() -> None:
    request = Request({"type": "http", "headers": [(b"omnigraph-if-graph-commit", b"\xff\xfe")]})

    with pytest.raises(InvalidRequestError, match="Omnigraph-If-Graph-Commit is not valid UTF-8"):
        read_if_commit(request)


def test_a_condition_elsewhere_is_refused_and_not_passed_over(shelf: TestClient) -> None:
    answer = shelf.post("mutate", json={"query": INSERT}, headers={"Omnigraph-If-Graph-Commit": "x"})

    refused(answer, 400, "Omnigraph-If-Graph-Commit")


def test_a_load_forks_its_branch_and_says_so(serve: InProcess) -> None:
    client = serve()

    made = client.post(
        "load/ndjson?branch=import/one&from=main&mode=append",
        content='{"type":"Author","data":{"name":"Delany"}}\n',
        headers=LINES,
    ).json()
    again = client.post(
        "load", json={"branch": "import/one", "data": '{"type":"Author","data":{"name":"Russ"}}'}
    ).json()

    assert "uri" not in made
    assert (made["branch"], made["base_branch"], made["branch_created"], made["mode"]) == (
        "import/one",
        "main",
        True,
        "append",
    )
    assert made["nodes"] == [{"name": "Author", "entities_loaded": 1}]
    assert (again["base_branch"], again["branch_created"], again["mode"], again["total_entities"]) == (
        None,
        False,
        "merge",
        1,
    )
    assert again["uri"].startswith("memory://")
    assert client.get("branches").json() == {"branches": ["import/one", "main"]}


def test_a_load_of_lines_refuses_other_media_types_and_other_texts(shelf: TestClient) -> None:
    refused(
        shelf.post("load/ndjson", content="{}", headers={"content-type": "application/json"}),
        415,
        "graph-batch load requires Content-Type: application/x-ndjson",
    )
    refused(
        shelf.post("load/ndjson", content=b"\xff", headers=LINES), 400, "graph-batch request body must be valid UTF-8"
    )
    body = refused(
        shelf.post(
            "load/ndjson?mode=append", content='{"type":"Book","data":{"isbn":"0-1","title":"x"}}', headers=LINES
        ),
        409,
        "node type 'Book' already has id '0-1'",
        "conflict",
    )
    assert body["key_conflict"] == {"entity_kind": "node", "type_name": "Book", "entity_id": "0-1"}


def test_branches_are_made_merged_and_deleted_with_slashes_in_their_names(serve: InProcess) -> None:
    client = serve()

    made = client.post("branches", json={"name": "a/b"}).json()
    added(client, "8", branch="a/b")
    preview = client.post("branches/merge", json={"source": "a/b", "preview": True}).json()
    merged = client.post("branches/merge", json={"source": "a/b", "delete_branch": True}).json()
    client.post("branches", json={"name": "c/d", "from": "main"})
    deleted = client.delete("branches/c%2Fd")

    assert (made["from"], made["name"], made["actor_id"]) == ("main", "a/b", None)
    assert (preview["preview"], preview["changes"]) == (
        True,
        {"node:Book": {"inserted": 1, "updated": 0, "deleted": 0}},
    )
    assert (merged["outcome"], merged["branch_deleted"]) == ("fast_forward", True)
    assert deleted.json()["name"] == "c/d"
    client.post("branches", json={"name": "taken"})
    refused(client.post("branches", json={"name": "taken"}), 409, "taken", "conflict")
    refused(client.delete("branches/c%2Fd"), 404, "branch 'c/d' not found", "not_found")


def test_a_merge_that_conflicts_lists_everything_and_can_be_decided(serve: InProcess) -> None:
    client = serve()
    client.post("branches", json={"name": "other"})
    for branch, title in (("main", "One"), ("other", "Two")):
        client.post("mutate", json={"query": RENAME, "params": {"t": title}, "branch": branch})

    conflicted = refused(client.post("branches/merge", json={"source": "other"}), 409, "merge conflicts: ", "conflict")
    seen = client.post("branches/merge", json={"source": "other", "preview": True}).json()["conflicts"]
    decided = client.post("branches/merge", json={"source": "other", "resolve": {"node:Book": {"0-1": "source"}}})

    [conflict] = conflicted["merge_conflicts"]
    assert (conflict["entity_kind"], conflict["type_name"], conflict["entity_id"]) == ("node", "Book", "0-1")
    assert conflict["kind"] == "divergent_update"
    assert (seen[0]["source"]["title"], seen[0]["target"]["title"]) == ("Two", "One")
    assert (decided.json()["outcome"], decided.json()["resolved"]) == ("merged", 1)
    assert {"b.title": "Two"} in client.post("query", json={"query": TITLES}).json()["rows"]


def test_commits_are_listed_shown_and_told_change_by_change(serve: InProcess) -> None:
    client = serve()
    commit = added(client, "8")["commit"]

    listed = client.get("commits").json()["commits"]
    shown = client.get(f"commits/{commit['graph_commit_id']}").json()
    changes = client.get(f"commits/{commit['graph_commit_id']}/changes").json()
    first = listed[-1]["graph_commit_id"]

    for found in (listed[0], shown):
        assert {key: found[key] for key in COMMIT} == {key: commit[key] for key in COMMIT}
    assert changes["cause"]["authored_branch"] == "main"
    [change] = changes["changes"]
    assert (change["kind"], change["type"]["name"], change["id"], change["op"]) == ("node", "Book", "8", "insert")
    assert "before" not in change and change["after"]["properties"]["title"] == "8"
    body = refused(client.get(f"commits/{first}/changes"), 409, "", "conflict")
    assert body["change_diff_refusal"]["reason"] == "parentless_commit"
    refused(client.get("commits/01ARZ3NDEKTSV4RRFFQ69G5FAV"), 404, "not found", "not_found")


def test_a_long_list_of_commits_comes_in_pages(serve: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    client = serve()
    for number in range(4):
        added(client, str(number))
    whole = client.get("commits").json()["commits"]
    monkeypatch.setattr(limits, "SERVER_COMMITS_MAX", 2)

    found: list[dict[str, Any]] = []
    token = None
    while token is not None or not found:
        page = client.get("commits", params={} if token is None else {"page_token": token}).json()
        assert len(page["commits"]) <= 2
        found += page["commits"]
        token = page.get("next_page_token")

    assert found == whole


def test_the_feed_goes_on_from_a_baseline_and_misses_nothing(serve: InProcess) -> None:
    client = serve()

    *state, end = client.post("changes/baseline", json={}).text.splitlines()
    added(client, "8")
    page = client.get("changes", params={"cursor": json.loads(end)["baseline"]["resume_cursor"]}).json()

    assert len(state) == 5
    assert [change["id"] for block in page["blocks"] for change in block["changes"]] == ["8"]
    assert page["caught_up"] is True
    refused(client.get("changes", params={"cursor": "nonsense"}), 400, "change cursor rejected: ")


def test_what_was_pruned_is_gone_and_the_feed_says_where_it_breaks(serve: InProcess) -> None:
    client = serve()
    cursor = client.get("changes").json()["cursor"]
    added(client, "8")
    added(client, "9", prune_previous=True)

    answer = client.get("changes", params={"cursor": cursor})

    body = refused(answer, 410, "change feed gap at commit '", None)
    assert len(body["change_feed_gap"]["first_unreadable_commit_id"]) == 26


def test_an_export_is_lines_that_a_load_takes_back(serve: InProcess) -> None:
    client = serve()

    answer = client.post("export", json={})
    only = client.post("export", json={"type_names": ["Author"]}).text
    again = serve(rows="").post("load/ndjson?mode=append", content=answer.content, headers=LINES).json()

    assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert again["total_entities"] == 5
    assert {json.loads(line)["type"] for line in only.splitlines()} == {"Author"}
    refused(client.post("export", json={"type_names": ["Nothing"]}), 400, "Nothing")


def test_the_schema_is_shown_planned_and_applied(serve: InProcess) -> None:
    client = serve()
    text = client.get("schema").json()["schema_source"]
    wanted = {"schema_source": text.replace("born: Date?", "born: Date?  died: Date?")}

    planned = client.post("schema/plan", json=wanted).json()
    applied = client.post("schema/apply", json=wanted).json()
    again = client.post("schema/apply", json=wanted).json()

    assert (planned["supported"], planned["step_count"]) == (True, 1)
    assert (applied["supported"], applied["applied"], applied["step_count"]) == (True, True, 1)
    assert (again["applied"], again["step_count"]) == (False, 0)


def test_a_change_that_the_data_must_allow_is_made_when_it_is_asked_for(serve: InProcess) -> None:
    client = serve()
    text = client.get("schema").json()["schema_source"]
    filled = {"schema_source": text.replace("born: Date?", "born: Date?  rank: I32 @default(3)")}
    strict = {"schema_source": text.replace("born: Date?", "born: Date"), "validated": True}

    refused(client.post("schema/apply", json=filled), 400, "OG-MF-103")
    refused(client.post("schema/apply", json=strict), 400, "correct them first")
    assert client.post("schema/apply", json={**filled, "validated": True}).json()["applied"] is True


def test_a_snapshot_lists_the_tables_edges_first(shelf: TestClient) -> None:
    body = shelf.get("snapshot").json()

    assert [each["type_name"] for each in body["datasets"]] == ["Wrote", "Author", "Book"]
    assert (body["graph_branch"], body["internal_schema_version"]) == ("main", 6)
    refused(shelf.get("snapshot?branch=nothing"), 404, "branch 'nothing' not found", "not_found")


def test_what_is_not_there_is_told_in_the_one_shape_of_errors(shelf: TestClient) -> None:
    for path in ("http://testserver/graphs/nothing/schema", "http://testserver/graphs/a..b/schema"):
        graph = path.split("/")[4]
        refused(shelf.get(path), 404, f"graph '{graph}' not found", "not_found")
    refused(shelf.get("nothing"), 404, "", "not_found")
    refused(shelf.put("schema"), 405, "", "method_not_allowed")
    refused(shelf.get("http://testserver/graphs"), 403, "", "forbidden")


def test_history_diff_tags_and_undoing_go_beyond_the_contract(serve: InProcess) -> None:
    client = serve()
    commit = added(client, "8")["commit"]["graph_commit_id"]
    client.post("branches", json={"name": "old"})
    tag = client.post("tags", json={"name": "v1"}).json()
    undone = client.post("revert", json={"commit": commit}).json()

    diff = client.get("diff", params={"from": "v1", "to": "main"}).json()
    history = client.get("history").json()

    assert tag["graph_commit_id"] == commit
    assert undone["changes"] == {"node:Book": {"inserted": 0, "updated": 0, "deleted": 1}}
    assert [(each["op"], each["id"]) for each in diff["changes"]] == [("delete", "8")]
    assert history["branches"] == {"main": undone["head"], "old": commit}
    assert history["tags"] == {"v1": commit}
    assert history["commits"][0]["kind"] == "revert"
    assert client.get("entity/log", params={"type": "Book", "id": "8"}).json()["events"][0]["op"] == "delete"
    assert client.get("neighbourhood", params={"type": "Author", "id": "Le Guin"}).json()["edges"][0]["type"] == "Wrote"
    assert client.post("explain", json={"query": TITLES}).json()["plan"][0] == "read titles()"
