"""Which graph of which server, and who asks: names, profiles, tokens."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.command_line import run

import omnigraph
from omnigraph.cluster.apply import apply
from omnigraph.cluster.commands import import_
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import load_tokens

SCHEMA = "node Author { name: String @key }\n"
ADD = 'query q() { insert Author { name: "Lem" } }'
POLICY = """\
version: 1
groups: { writers: [ann], readers: [ann, bob] }
rules:
  - id: write
    allow: { actors: { group: writers }, actions: [change], branch_scope: any }
  - id: read
    allow: { actors: { group: readers }, actions: [read], branch_scope: any }
"""
LISTING = """\
version: 1
groups: { listers: [ann] }
rules: [{ id: list, allow: { actors: { group: listers }, actions: [graph_list] } }]
"""
CLUSTER = """\
version: 1
graphs: { library: { schema: library.pg }, second: { schema: library.pg } }
policies:
  all: { file: all.yaml, applies_to: [library, second] }
  listing: { file: listing.yaml, applies_to: [cluster] }
"""
TOKENS = load_tokens({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ann": "token-a", "bob": "token-b"})})
pytestmark = pytest.mark.usefixtures("operator_home")


@pytest.fixture
def url(serve: Callable[[ServerSettings], str], tmp_path: Path) -> str:
    """A server of one graph, where ann writes and bob reads."""
    omnigraph.init(tmp_path / "library", SCHEMA).close()
    (tmp_path / "policy.yaml").write_text(POLICY)
    store, policy = str(tmp_path / "library"), str(tmp_path / "policy.yaml")
    return serve(ServerSettings(store=store, policy=policy, tokens=TOKENS))


@pytest.fixture
def many(serve: Callable[[ServerSettings], str], tmp_path: Path) -> str:
    """A server of two graphs."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    for name, text in (
        ("cluster.yaml", CLUSTER),
        ("library.pg", SCHEMA),
        ("all.yaml", POLICY),
        ("listing.yaml", LISTING),
    ):
        (folder / name).write_text(text)
    assert import_(folder).is_ok
    assert apply(folder).is_ok
    return serve(ServerSettings(cluster=str(folder), tokens=TOKENS))


def test_a_token_is_remembered_for_a_server_and_tells_who_writes(url: str, operator_home: Path) -> None:
    (operator_home / "config.yaml").write_text(
        f"servers: {{ prod: {{ url: {url} }} }}\nprofiles: {{ work: {{ server: prod, default_graph: library }} }}\n"
    )
    assert run("login", "prod", "--token", "token-a").code == 0

    done = run("mutate", "--profile", "work", "-e", ADD)
    listed = run("commit", "list", "--server", "prod", "--graph", "library")

    assert (done.code, done.out) == (0, "changed main via q: 1 nodes, 0 edges\nactor_id: ann\n")
    assert " actor=ann kind=mutation " in listed.out.splitlines()[0]


def test_who_may_not_write_is_told_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where = ("--server", url, "--graph", "library")
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "token-b")
    denied = run("mutate", *where, "-e", ADD)
    allowed = run("branch", "list", *where)
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "nobody's")
    unknown = run("branch", "list", *where)
    monkeypatch.delenv("OMNIGRAPH_BEARER_TOKEN")
    missing = run("branch", "list", *where)

    assert (denied.code, denied.err.splitlines()[0]) == (
        1,
        "error: policy denied action 'change' on branch 'main' for actor 'bob'",
    )
    assert (allowed.code, allowed.out) == (0, "main\n")
    assert (unknown.code, unknown.err.splitlines()[0]) == (1, "error: invalid bearer token")
    assert (missing.code, missing.err.splitlines()[0]) == (1, "error: missing bearer token")


def test_nobody_is_somebody_by_saying_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "token-a")

    ended = run("mutate", "--server", url, "--graph", "library", "--as", "bob", "-e", ADD)

    assert ended.code == 1
    assert "--as does not apply to a served graph: the bearer token decides the actor" in ended.err


def test_destroying_something_on_a_server_needs_a_yes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "token-a")

    ended = run("branch", "delete", "review", "--server", url, "--graph", "library")

    assert ended.code == 1
    assert f"refusing destructive `branch delete` against non-local target {url} without confirmation" in ended.err


def test_a_server_of_several_graphs_names_them(many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "token-a")
    ended = run("branch", "list", "--server", many)
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "token-b")
    unlisted = run("branch", "list", "--server", many)
    named = run("branch", "list", "--server", f"{many}/graphs/second")

    assert ended.code == 1
    assert f"which graph? name one of {many} with --graph: library, second" in ended.err
    assert unlisted.code == 1
    assert "has several graphs, name one: library, second" in unlisted.err
    assert (named.code, named.out) == (0, "main\n")


def test_a_server_of_one_graph_needs_no_name(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "token-b")

    assert run("branch", "list", "--server", url).out == "main\n"


def test_commands_that_need_the_storage_say_so(url: str) -> None:
    ended = run("optimize", "--server", url, "--graph", "library")

    assert ended.code == 1
    assert "`optimize` is a direct (storage-native) command" in ended.err
