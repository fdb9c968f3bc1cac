"""Names, ids, parameters and addresses that somebody means badly."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.served_here import InProcess, refused

from omnigraph.server.settings import ServerSettings

SCHEMA = "node Thing { key: String @key  note: String? }\nedge Near: Thing -> Thing"
INSERT = "query q($k: String, $n: String?) { insert Thing { key: $k, note: $n } }"
BY_KEY = "query q($k: String) { match { $t: Thing { key: $k } } return { $t.key, $t.note } }"
BY_NOTE = "query q($n: String) { match { $t: Thing  $t.note = $n } return { $t.key, $t.note } }"
DELETE = "query q($k: String) { delete Thing where key = $k }"
NASTY = [
    "' OR 1=1 --",
    "'; DROP TABLE Thing; --",
    '" OR ""="',
    "it's",
    "\\' or true",
    "a\x00b",
    "\x00",
    "\u202etxet",
    "𝕌𝕟𝕚😀",
    "é" * 5_000,
    "%27 or 1=1",
    "$k",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "../../etc/passwd",
    "..",
    ".",
    "/",
    "\\",
    "a/b",
    "a\nb",
    "\r\nX-Injected: 1",
    "NULL",
    "null",
    "true",
    "*",
    "?",
    "%",
    "_",
    " ",
    "",
    "id",
    "key = key",
    "x" * 100_000,
]
LONG = 1_000
_KEYS = itertools.count()
texts = st.one_of(st.sampled_from(NASTY), st.text(max_size=40), st.text(alphabet="'\"\\%_;-\x00 \n", max_size=12))


@pytest.fixture(scope="module")
def things() -> Iterator[TestClient]:
    made = InProcess()
    yield made(schema=SCHEMA, rows='{"type":"Thing","data":{"key":"kept","note":"kept"}}')
    made.close()


def rows(client: TestClient, query: str, **params: str) -> list[dict[str, Any]]:
    answer = client.post("query", json={"query": query, "params": params})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["rows"])


@settings(
    max_examples=60,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=texts)
def test_an_id_or_a_parameter_means_itself_and_nothing_else(things: TestClient, text: str) -> None:
    made = things.post("mutate", json={"query": INSERT, "params": {"k": text, "n": text}})

    assert made.status_code in (200, 400), made.text
    found = rows(things, BY_KEY, k=text)
    assert found == ([{"t.key": text, "t.note": text}] if made.status_code == 200 else [])
    noted = [row for row in rows(things, BY_NOTE, n=text) if row["t.key"] != "kept"]
    assert [row["t.note"] for row in noted] == [text] * len(found)
    for route, params in (
        ("entity/log", {"type": "Thing", "id": text}),
        ("neighbourhood", {"type": "Thing", "id": text}),
        ("blob", {"entity": "node", "type": "Thing", "id": text, "property": "note"}),
    ):
        assert things.get(route, params=params).status_code < 500
    gone = things.post("mutate", json={"query": DELETE, "params": {"k": text}})
    if text != "kept":
        assert gone.json().get("affected_nodes") == len(found), gone.text
        assert rows(things, BY_KEY, k="kept") == [{"t.key": "kept", "t.note": "kept"}]


@settings(
    max_examples=40,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(name=texts.filter(lambda text: len(text) < LONG))
def test_a_name_of_a_type_branch_tag_or_query_is_a_name_or_refused(things: TestClient, name: str) -> None:
    asked = [
        things.get("snapshot", params={"branch": name}),
        things.get("count", params={"type": name}),
        things.get("commits", params={"branch": name, "actor": name}),
        things.get("changes", params={"branch": name, "type": name, "cursor": name}),
        things.get("diff", params={"from": name, "to": "main"}),
        things.post("query", json={"query": BY_KEY, "params": {"k": name}, "name": name}),
        things.post("query", json={"query": BY_KEY, "params": {name: name}}),
        things.post("export", json={"type_names": [name]}),
    ]
    assert all(each.status_code < 500 for each in asked), [each.text for each in asked]
    made = things.post("branches", json={"name": name})
    assert made.status_code in (200, 400, 409), made.text
    if made.status_code == 200:
        assert name.strip() in things.get("branches").json()["branches"]
        things.post("branches/merge", json={"source": name, "delete_branch": True})
        assert things.get("branches").json() == {"branches": ["main"]}


@settings(
    max_examples=30,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=texts.filter(lambda text: len(text) < LONG))
def test_what_is_said_beside_a_write_means_itself_or_is_refused(things: TestClient, text: str) -> None:
    sendable = "".join(each for each in text if " " <= each <= "~").strip() or "x"
    key = {"Idempotency-Key": f"{next(_KEYS)} {sendable}", "X-Request-Id": sendable, "Accept": sendable}
    body = {"query": INSERT, "params": {"k": f"said {text}", "n": None}, "message": text}

    first, second = (things.post("mutate", json=body, headers=key) for _ in range(2))

    assert first.status_code in (200, 400), first.text
    if first.status_code == 200:
        assert first.json()["commit"]["message"] == text
        assert (second.status_code, second.json()["replayed"]) == (200, True), second.text
        things.post("mutate", json={"query": DELETE, "params": {"k": f"said {text}"}})
    for answer in (
        things.post(f"queries/{quote(text, safe='')}", json={"params": {text: text}}),
        things.get(f"tags/{quote(text, safe='') or 'x'}"),
        things.get(f"commits/{quote(text, safe='') or 'x'}/changes", params={"page_token": text, "kind": text}),
        things.get("blob", params={"entity": "node", "type": text, "id": "kept", "property": text, "snapshot": text}),
        things.post("tags", json={"name": "x", "commit": text}),
        things.post("revert", json={"commit": text, "last": text}),
        things.post("branches/merge", json={"source": "main", "target": text, "resolve": {text: {text: text}}}),
        things.post("mutate/if-graph-commit", json=body, headers={"Omnigraph-If-Graph-Commit": sendable}),
    ):
        assert 400 <= answer.status_code < 500, (str(answer.url), answer.text)
    assert rows(things, BY_KEY, k="kept") == [{"t.key": "kept", "t.note": "kept"}]


@pytest.mark.parametrize(
    "name", ["..", "../..", "../../outside", "/etc/passwd", "a/../../..", "%2e%2e%2f", "..\\..", "."]
)
def test_no_name_leads_out_of_the_graphs_root(serve: InProcess, library: str, name: str) -> None:
    root = Path(library)
    beside = sorted(each.name for each in root.parent.iterdir())
    client = serve.at(ServerSettings(store=library, graph_id="library", unauthenticated=True))

    for answer in (
        client.post("branches", json={"name": name}),
        client.post("tags", json={"name": name}),
        client.post("load", json={"branch": name, "from": "main", "data": '{"type":"Author","data":{"name":"X"}}'}),
        client.post(
            "mutate",
            json={"query": 'query q() { insert Author { name: "Y" } }', "branch": name},
            headers={"Idempotency-Key": name},
        ),
    ):
        assert answer.status_code < 500, answer.text

    assert sorted(each.name for each in root.parent.iterdir()) == beside
    assert not [path for path in root.rglob("*") if not path.resolve().is_relative_to(root.resolve())]


@pytest.mark.parametrize(
    "path",
    [
        "/graphs/../library/schema",
        "/graphs/%2e%2e/schema",
        "/graphs/..%2f..%2fetc/schema",
        "/graphs//schema",
        "/graphs/library%00/schema",
        "/graphs/LIBRARY/schema",
    ],
)
def test_no_id_leads_to_another_graph(shelf: TestClient, path: str) -> None:
    assert shelf.get(f"http://testserver{path}").status_code == 404


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "file:///etc/./passwd",
        "http://169.254.169.254/latest/meta-data",
        "s3://somebody-elses/key",
    ],
)
def test_a_blob_that_lies_elsewhere_is_neither_fetched_nor_kept_unless_the_operator_allows_the_place(
    serve: InProcess, address: str
) -> None:
    client = serve()
    insert = 'query q($c: Blob) { insert Book { isbn: "9", title: "x", cover: $c } }'

    answers = [
        client.post("mutate", json={"query": insert, "params": {"c": address}}),
        client.post(
            "load", json={"data": json.dumps({"type": "Book", "data": {"isbn": "9", "title": "x", "cover": address}})}
        ),
    ]

    for answer in answers:
        refused(answer, 400, "")
        assert "root:" not in answer.text
    assert client.get("count", params={"type": "Book"}).json()["count"] == 2


def test_a_text_in_a_load_is_data_and_never_a_file_to_read(shelf: TestClient) -> None:
    answer = shelf.post("load", json={"data": "/etc/passwd"})

    refused(answer, 400, "")
    assert "root:" not in answer.text


def test_headers_of_a_request_do_not_come_back_and_ids_of_requests_are_plain(shelf: TestClient) -> None:
    kept = shelf.get("schema", headers={"X-Request-Id": "abc-1.2_3"})
    made_up = shelf.get("schema", headers={"X-Request-Id": "a b\tc"})

    assert kept.headers["x-request-id"] == "abc-1.2_3"
    assert len(made_up.headers["x-request-id"]) == 26
