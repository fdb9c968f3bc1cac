"""Queries that a server keeps, called by their names there and by the operator's own names for them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import command_line
from tests.support.command_line import Run

from omnigraph.client.connect import connect
from omnigraph.testing.server import RunningServer, served

CLUSTER = """\
version: 1
graphs:
  library: { schema: library.pg, queries: queries/ }
policies:
  listing: { file: listing.policy.yaml, applies_to: [cluster] }
  calling: { file: calling.policy.yaml, applies_to: [library] }
"""
POLICIES = {
    "listing": "{ id: list, allow: { actors: { group: leads }, actions: [graph_list] } }",
    "calling": "{ id: call, allow: { actors: { group: leads }, actions: [invoke_query] } }\n"
    "  - { id: all, allow: { actors: { group: leads }, actions: [read, change], branch_scope: any } }",
}
TOKEN = "of-ada"
SERVED = ("--server", "prod", "--graph", "library")
SCHEMA = """\
node Author { name: String @key }
node Book { title: String @key  pages: I32? }
edge Wrote: Author -> Book
"""
QUERIES = """\
query books_of($author: String, $least: I32) {
  match { $a: Author { name: $author }  $a wrote $b  $b.pages >= $least }
  return { $b.title as title, $b.pages as pages }
  order { title }
}
query add($author: String, $title: String, $pages: I32) {
  insert Author { name: $author }
  insert Book { title: $title, pages: $pages }
  insert Wrote { from: $author, to: $title }
}
"""
CONFIG = """\
servers: {{ prod: {{ url: "{url}" }} }}
aliases:
  books:
    {{ server: prod, graph: library, query: books_of, args: [author, least], params: {{ least: 100 }}, format: csv }}
  add: {{ server: prod, graph: library, query: add }}
  elsewhere: {{ server: nowhere, query: books_of }}
  wrong: {{ server: prod }}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of a cluster with one graph, two stored queries and a book."""
    folder = tmp_path_factory.mktemp("brain")
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "library.pg").write_text(SCHEMA)
    (folder / "queries").mkdir()
    (folder / "queries" / "library.gq").write_text(QUERIES)
    for name, rules in POLICIES.items():
        text = f"version: 1\ngroups: {{ leads: [act-ada] }}\nrules:\n  - {rules}\n"
        (folder / f"{name}.policy.yaml").write_text(text)
    for verb in ("import", "apply"):
        assert command_line.run("cluster", verb, "--config", str(folder)).code == 0
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"act-ada": TOKEN, "act-bob": "of-bob"})}
    with served("--cluster", str(folder), environment=tokens) as running:
        with connect(running.url, graph="library", token=TOKEN) as graph:
            graph.invoke("add", {"author": "Le Guin", "title": "The Dispossessed", "pages": 341}, expect_mutation=True)
        yield running


@pytest.fixture
def configured(server: RunningServer, operator_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator who knows that server, and is known there."""
    (operator_home / "config.yaml").write_text(CONFIG.format(url=server.url))
    monkeypatch.setenv("OMNIGRAPH_TOKEN_PROD", TOKEN)


def test_a_stored_query_is_called_by_its_name(run: Run, configured: None) -> None:
    params = '{"author": "Le Guin", "least": 1}'
    ended = run("query", "books_of", *SERVED, "--params", params)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "1 rows from branch main via books_of\ntitle            | pages\n-----------------+------\n"
        "The Dispossessed |   341\n"
    )


def test_a_stored_mutation_is_called_by_its_name_and_a_lost_race_ends_with_code_4(run: Run, configured: None) -> None:
    params = '{"author": "Lem", "title": "Solaris", "pages": 204}'
    words = ["mutate", "add", *SERVED, "--params", params, "--json"]
    ended = run(*words, "--if-commit", "01AAAAAAAAAAAAAAAAAAAAAAAA")
    assert ended.code == 4
    assert json.loads(ended.out)["precondition_failure"]["expected"] == "01AAAAAAAAAAAAAAAAAAAAAAAA"
    document = json.loads(run(*words).out)
    assert (document["query_name"], document["affected_nodes"], document["affected_edges"]) == ("add", 2, 1)
    assert document["commit"]["graph_commit_id"]


def test_the_verb_says_which_kind_of_query_is_meant(run: Run, configured: None) -> None:
    ended = run("query", "add", *SERVED)
    assert ended.code == 1
    assert "'add' is a mutation — use omnigraph mutate add" in ended.err
    ended = run("mutate", "books_of", *SERVED)
    assert ended.code == 1
    assert "'books_of' is a read — use omnigraph query books_of" in ended.err
    assert "stored query not found" in run("query", "nothing", *SERVED).err


def test_an_alias_has_values_of_its_own_takes_those_that_are_typed_and_prints_as_it_says(
    run: Run, configured: None
) -> None:
    ended = run("alias", "books", "Le Guin")
    assert (ended.code, ended.out, ended.err) == (0, "title,pages\nThe Dispossessed,341\n", "")
    assert run("alias", "books", "Le Guin", "500").out == "title,pages\n"
    given = run("alias", "books", "--params", '{"author": "Le Guin"}', "--format", "jsonl")
    assert given.out.splitlines()[1:] == ['{"title":"The Dispossessed","pages":341}']
    assert json.loads(run("alias", "books", "Le Guin", "--json").out)["row_count"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "unknown alias 'nothing' (not defined under `aliases:` in "),
        (["books", "a", "1", "x"], "the alias 'books' takes 2 arguments (author, least), not 3"),
        (["add"], "'add' is a mutation — use omnigraph mutate add"),
        (["elsewhere"], "unknown server 'nowhere'"),
        (["wrong"], "must be a mapping with a 'server' and a 'query'"),
        (["books", "--store", "x"], "`alias` is a local command; --store addresses one graph's storage"),
        (["books", "--params", "[]"], "the parameters must be one JSON object"),
    ],
)
def test_an_alias_that_cannot_be_called_says_why(run: Run, configured: None, words: list[str], said: str) -> None:
    ended = run("alias", *words)
    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err


def test_the_graphs_of_a_server_are_listed_to_those_who_may_see_them(
    run: Run, configured: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = json.loads(run("graphs", "list", "--server", "prod", "--json").out)["graphs"]
    assert [each["graph_id"] for each in listed] == ["library"]
    assert run("graphs", "list", "--server", "prod").out == f"library\t{listed[0]['uri']}\n"
    monkeypatch.setenv("OMNIGRAPH_TOKEN_PROD", "of-bob")
    ended = run("graphs", "list", "--server", "prod")
    assert (ended.code, ended.out) == (1, "")
    assert "graph_list" in ended.err
