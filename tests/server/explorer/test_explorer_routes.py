"""What the explorer asks for, asked without it: its files, and the routes that are its own."""

import re
from importlib.resources import files

import httpx
import pytest
from tests.support.served_here import InProcess

from omnigraph import limits
from omnigraph.testing.server import RunningServer

STATIC = files("omnigraph.server.explorer").joinpath("static")
NAMES = sorted(each.name for each in STATIC.iterdir() if each.is_file())


# --- files ------------------------------------------------------------------------------------------------------------


def test_the_page_lets_nothing_in_from_elsewhere(library_server: RunningServer) -> None:
    with library_server.client() as client:
        page = client.get("/")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        policy = page.headers["content-security-policy"]
        assert policy.split("; ")[0] == "default-src 'self'"
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        again = client.get("/", headers={"If-None-Match": page.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_no_file_names_another_host_and_every_module_it_names_is_there(library_server: RunningServer) -> None:
    assert "app.js" in NAMES
    with library_server.client() as client:
        for name in NAMES:
            answer = client.get(f"/explorer/{name}")
            assert answer.status_code == 200, name
            if name != "icon.svg":  # the name of a vocabulary looks like an address
                assert re.findall(r"https?:|[\"'(]//|@import|url\(", answer.text) == [], name
            for module in re.findall(r'from "\./([\w.]+)"', answer.text):
                assert client.get(f"/explorer/{module}").headers["content-type"] == "text/javascript; charset=utf-8"
            for inline in (r"<script(?![^>]*src=)", r"\sstyle=", r"\son\w+="):
                assert name != "index.html" or re.search(inline, answer.text) is None


@pytest.mark.parametrize(
    "path",
    ["nothing.js", "..%2Fapp.py", "%2e%2e/routes.py", "../files.py", "static/app.js", "app.js%00", "__init__.py"],
)
def test_no_other_file_is_given_away(library_server: RunningServer, path: str) -> None:
    with library_server.client() as client:
        assert client.get(f"/explorer/{path}").status_code == 404


# --- routes -----------------------------------------------------------------------------------------------------------


def test_types_come_with_their_properties_and_counts(client: httpx.Client) -> None:
    answer = client.get("types").json()
    [book] = [each for each in answer["types"] if each["name"] == "Book"]
    assert (book["kind"], book["key"], book["properties"]["pages"]) == ("node", ["isbn"], "I32?")
    [wrote] = [each for each in answer["types"] if each["name"] == "Wrote"]
    assert (wrote["from"], wrote["to"], wrote["properties"]) == ("Author", "Book", {"year": "I32?"})
    same = client.get("types", params={"snapshot": answer["graph_commit_id"]})
    assert same.json() == answer


def test_permissions_tell_what_the_caller_may_do(client: httpx.Client) -> None:
    told = client.get("permissions").json()
    assert told["actor_id"] is None
    assert told["actions"]["change"] is True
    assert "graph_list" not in told["actions"]


def test_words_that_could_come_next_are_told_with_what_is_begun(client: httpx.Client) -> None:
    told = client.post("complete", json={"text": "query q() { match { $a: Author  $a wr"}).json()
    assert told == {"partial": "wr", "suggestions": [{"text": "wrote", "about": "Author -> Book"}]}
    assert client.post("complete", json={"text": 'match { $a: Author { name: "A'}).json()["suggestions"] == []
    long = client.post("complete", json={"text": "x" * (limits.COMPLETED_TEXT_MAX + 1)})
    assert long.status_code == 400


def test_a_pattern_is_drawn(client: httpx.Client) -> None:
    query = 'query q() { match { $a: Author { name: "Le Guin" }  $a wrote $b } return { $a } }'
    drawn = client.post("drawings/query", json={"query": query}).json()
    assert [(each["group"], each["id"]) for each in drawn["nodes"]] == [("Author", "Le Guin"), ("Book", "0-1")]
    assert [(each["source"], each["target"], each["label"]) for each in drawn["links"]] == [(0, 1, "Wrote")]
    wrong = client.post("drawings/query", json={"query": "query q() { match { $a: Autor } return { $a } }"})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "bad_request")
    writes = client.post("drawings/query", json={"query": 'query q() { delete Author where name = "x" }'})
    assert writes.status_code == 400
    assert client.post("drawings/query", json={"query": query, "limit": 10**9}).status_code == 400


def test_surroundings_are_drawn(client: httpx.Client) -> None:
    drawn = client.get("drawings/neighbourhood", params={"type": "Book", "id": "0-1"}).json()
    assert [each["label"] for each in drawn["nodes"]] == ["The Dispossessed", "Le Guin"]
    assert client.get("drawings/neighbourhood", params={"type": "Book", "id": "9"}).status_code == 404
    assert client.get("drawings/neighbourhood", params={"type": "Book", "id": "0-1", "depth": 99}).status_code == 400


def test_schema_history_and_differences_are_drawn(client: httpx.Client) -> None:
    assert client.post("branches", json={"name": "drawn"}).status_code == 200
    change = {"query": 'query q() { update Book set { pages: 1 } where isbn = "0-2" }', "branch": "drawn"}
    assert client.post("mutate", json=change).status_code == 200
    cards = client.get("drawings/schema").json()["nodes"]
    assert {"◆ isbn: String", "title: String"} <= set(next(each for each in cards if each["group"] == "Book")["lines"])
    [node] = client.get("drawings/diff", params={"from": "main", "to": "drawn", "type": "Book"}).json()["nodes"]
    assert (node["mark"], node["details"]["pages"]) == ("updated", {"before": 264, "after": 1})
    assert client.get("drawings/diff", params={"from": "main", "to": "nothing"}).status_code == 404
    history = client.get("drawings/history").json()
    assert any(each["label"].startswith("[drawn]") for each in history["nodes"])
    assert history["layout"] == "timeline"


def test_a_history_of_very_many_branches_is_drawn_within_bounds(
    serve: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()
    for name in ("a", "b", "c"):
        assert client.post("branches", json={"name": name}).status_code == 200
        change = {"query": f'query q() {{ insert Author {{ name: "{name}" }} }}', "branch": name}
        assert client.post("mutate", json=change).status_code == 200
    monkeypatch.setattr(limits, "DRAWN_BRANCHES_MAX", 2)
    drawn = client.get("drawings/history").json()
    assert {each["group"] for each in drawn["nodes"]} == {"main", "a"}
    assert len(client.get("drawings/history", params={"limit": 1}).json()["nodes"]) == 2
