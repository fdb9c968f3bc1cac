"""Graphs: making, opening and closing them, reading them at any commit, and what a caller may ask of a write."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pytest
from tests.support.interleaving import once
from tests.support.where import Where

import omnigraph
from omnigraph import (
    AlreadyExistsError,
    ConflictError,
    FormatError,
    Graph,
    InvalidRequestError,
    NotFoundError,
    OpenOptions,
    ParseError,
    PermissionDeniedError,
    PreconditionError,
)
from omnigraph.api.schemas import Schemas
from omnigraph.failpoints import Failpoint, armed
from omnigraph.language.schema import accept
from omnigraph.model.schema_document import digest
from omnigraph.storage import paths
from omnigraph.storage.object_stores import MemoryStore
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.accepted import Accepted, SchemaMovedError
from omnigraph.transaction.root import open_root
from omnigraph.transaction.schema_files import store_schema

SCHEMA = """// people and whom they know
node Person { name: String @key  age: I32?  born: Date?  seen: DateTime?  place: Vector(2)? }
node Company { name: String @key }
edge Knows: Person -> Person
"""
FAST = OpenOptions(durability="process")
INSERT = "query add($n: String, $a: I32?) { insert Person { name: $n, age: $a } }"
NAMES = "query names() { match { $p: Person } return { $p.name as name } order { name } }"
AGES = "query ages() { match { $p: Person } return { $p.name as name, $p.age as age } order { name } }"


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=FAST) as made:
        yield made


def add(graph: Graph, *names: str, branch: str = "main") -> None:
    for name in names:
        graph.mutate(INSERT, {"n": name, "a": len(name)}, branch=branch)


def names(graph: Graph, **where: Unpack[Where]) -> list[str]:
    return [row["name"] for row in graph.query(NAMES, **where)]


# -- making, opening, closing -----------------------------------------------------------------------------------------


def test_a_graph_is_made_once_and_opened_often(tmp_path: Path) -> None:
    where = tmp_path / "library"
    with omnigraph.init(where, SCHEMA, options=FAST) as made:
        add(made, "Ada")
    with omnigraph.open(str(where), options=FAST) as opened:
        assert names(opened) == ["Ada"]
        assert opened.uri == str(where)
        assert opened.schema_text() == SCHEMA
        assert [each.name for each in opened.schema().nodes] == ["Company", "Person"]


def test_a_second_init_touches_nothing(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path, SCHEMA, options=FAST) as made:
        add(made, "Ada")
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
        with pytest.raises(AlreadyExistsError):
            omnigraph.init(tmp_path, "node Other { n: I32 }", options=FAST)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before
        assert names(made) == ["Ada"]


def test_an_init_with_a_wrong_schema_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="unknown source type"):
        omnigraph.init(tmp_path / "graph", "edge E: A -> A", options=FAST)
    assert not (tmp_path / "graph").exists()


def test_opening_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no graph at"):
        omnigraph.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_graph_opened_for_reading_refuses_every_write_and_changes_no_file(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path, SCHEMA, options=FAST) as made:
        add(made, "Ada")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with omnigraph.open(tmp_path, read_only=True) as graph:
        assert graph.read_only
        assert names(graph) == ["Ada"]
        for refused in (
            lambda: add(graph, "Bob"),
            lambda: graph.write({"Person": []}),
            lambda: graph.branches.create("side"),
            lambda: graph.branches.delete("side"),
        ):
            with pytest.raises(PermissionDeniedError):
                refused()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_closed_graph_refuses_calls(graph: Graph) -> None:
    snapshot = graph.snapshot()
    with graph, snapshot:
        assert snapshot.count("Person") == 0
    for call in (
        lambda: graph.count("Person"),
        lambda: graph.query(NAMES),
        lambda: add(graph, "Ada"),
        lambda: graph.branches,
        lambda: snapshot.count("Person"),
        lambda: snapshot.query(NAMES),
        lambda: snapshot.export_arrow("Person"),
    ):
        with pytest.raises(InvalidRequestError, match="was closed"):
            call()


def test_a_process_with_a_graph_in_memory_ends_without_a_word_and_without_a_trace(tmp_path: Path) -> None:
    script = f"import omnigraph; omnigraph.init('memory://', {SCHEMA!r})"
    ended = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", script],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert (ended.stdout, ended.stderr, list(tmp_path.iterdir())) == ("", "", [])


def test_what_a_graph_is_can_be_seen(graph: Graph) -> None:
    assert repr(graph) == f"<Graph at {graph.uri}>"
    assert graph.uri.startswith("memory://")
    assert repr(graph.snapshot()).startswith("<Snapshot of main at commit 01")


# -- schemas ----------------------------------------------------------------------------------------------------------


def test_the_schema_is_on_the_store_before_the_entry_that_names_it() -> None:
    store = MemoryStore()
    stored: list[list[str]] = []
    with armed(Failpoint.INIT_TABLES_CREATED, lambda: stored.append([each.path for each in store.list("")])):
        graph = omnigraph.init(store, SCHEMA, options=FAST)
    name = graph.snapshot().record.schema.removeprefix("sha256:")
    assert {f"__schema/{name}.pg", f"__schema/{name}.json"} <= set(stored[0])
    assert not any(path.startswith(paths.LOGS) for path in stored[0])
    assert graph.snapshot().record.schema == digest(graph.schema())


def test_a_schema_that_is_gone_or_another_is_told() -> None:
    store = MemoryStore()
    with omnigraph.init(store, SCHEMA, options=FAST) as made:
        path = paths.schema_resolved(made.snapshot().record.schema.removeprefix("sha256:"))
    body = store.get(path)
    store.delete(path)
    assert omnigraph.open(store).count("Person") == 0, "the text beside it holds a copy"
    store.put(path.replace(".json", ".pg"), SCHEMA.encode())
    with pytest.raises(FormatError, match="a schema that a commit names is not there"):
        omnigraph.open(store).count("Person")
    document = json.loads(body)
    document["next_identity_id"] += 1
    store.put(path, json.dumps(document).encode())
    with pytest.raises(FormatError, match="the graph is damaged"):
        omnigraph.open(store).count("Person")


# -- requests ---------------------------------------------------------------------------------------------------------


def test_a_warm_mutation_asks_the_store_no_more_than_a_write_must() -> None:
    """One look for the next entry, one listing for interrupted writes, and the put; the schema is known."""
    store = CountingStore(MemoryStore())
    graph = omnigraph.init(store, SCHEMA, options=FAST)
    add(graph, "Ada")
    store.reset()
    add(graph, "Bob")
    assert sorted(kind.name for kind, _ in store.requests()) == ["GET", "LIST", "MAKE_DURABLE", "PUT_IF_ABSENT"]


def test_a_warm_query_asks_the_store_once() -> None:
    store = CountingStore(MemoryStore())
    graph = omnigraph.init(store, SCHEMA, options=FAST)
    add(graph, "Ada")
    names(graph)
    store.reset()
    names(graph)
    assert store.total == 1


# -- points in time ---------------------------------------------------------------------------------------------------


def test_a_snapshot_shows_the_same_whatever_is_written_later(graph: Graph) -> None:
    add(graph, "Ada", "Bob")
    graph.mutate('query q() { insert Knows { from: "Ada", to: "Bob" } }')
    friends = "query q() { match { $p: Person  $p knows $f } return { $p.name as name, $f.name as friend } }"
    lonely = "query q() { match { $p: Person  not { $p knows $_ } } return { $p.name as name } order { name } }"
    old = graph.snapshot()
    for later in (
        'insert Person { name: "Cy" }',
        'update Person set { age: 99 } where name = "Bob"',
        'insert Knows { from: "Bob", to: "Ada" }',
        'delete Person where name = "Ada"',
    ):
        graph.mutate(f"query q() {{ {later} }}")
        assert old.query(AGES).to_pylist() == [{"name": "Ada", "age": 3}, {"name": "Bob", "age": 3}]
        assert old.query(friends).to_pylist() == [{"name": "Ada", "friend": "Bob"}]
        assert old.query(lonely).to_pylist() == [{"name": "Bob"}]
        assert (old.count("Person"), old.count("Knows")) == (2, 1)
    assert graph.query(AGES).to_pylist() == [{"name": "Bob", "age": 99}, {"name": "Cy", "age": None}]
    assert graph.query(friends).to_pylist() == []


def test_every_commit_of_a_chain_can_be_read_by_its_number_and_by_its_id(graph: Graph) -> None:
    chain = [
        graph.snapshot(),
        *(
            graph.snapshot(number=graph.mutate(f"query q() {{ {body} }}").number)
            for body in (
                'insert Person { name: "Ada", age: 22 }',
                'update Person set { age: 50 } where name = "Ada"',
                'delete Person where name = "Ada"',
            )
        ),
    ]
    expected: list[list[dict[str, Any]]] = [[], [{"name": "Ada", "age": 22}], [{"name": "Ada", "age": 50}], []]
    for snapshot, rows in zip(chain, expected, strict=True):
        assert graph.snapshot(number=snapshot.number).query(AGES).to_pylist() == rows
        assert graph.snapshot(commit=snapshot.commit).query(AGES).to_pylist() == rows
        assert graph.query(AGES, commit=snapshot.commit).to_pylist() == rows


@pytest.mark.parametrize("number", [0, -1, 3, 9999])
def test_a_number_that_no_commit_has_is_told(graph: Graph, number: int) -> None:
    add(graph, "Ada")
    with pytest.raises(NotFoundError, match=f"branch 'main' has no commit number {number}; its newest is 2"):
        graph.snapshot(number=number)


def test_a_commit_that_there_is_not_is_told(graph: Graph) -> None:
    add(graph, "Ada", "Bob", "Cy")
    for commit in ("0" * 26, "7" + "Z" * 25, "nonsense", ""):
        with pytest.raises(NotFoundError, match=f"commit '{commit}' not found"):
            graph.snapshot(commit=commit)
    with pytest.raises(InvalidRequestError, match="found by its id alone"):
        graph.snapshot(commit=graph.snapshot().commit, number=1)


def test_every_commit_of_a_long_log_is_found_by_its_id(graph: Graph) -> None:
    made = [graph.write().commit for _ in range(33)]
    for commit in made:
        assert graph.snapshot(commit=commit).commit == commit


# -- branches ---------------------------------------------------------------------------------------------------------


def test_branches_go_their_own_ways(graph: Graph) -> None:
    add(graph, "Ada")
    start = graph.branches.create("feature")
    assert start == graph.snapshot().commit == graph.snapshot(branch="feature").commit
    add(graph, "Eve")
    add(graph, "Flo", branch="feature")
    assert names(graph) == ["Ada", "Eve"]
    assert names(graph, branch="feature") == ["Ada", "Flo"]
    assert names(graph, commit=start) == ["Ada"]
    on_feature = graph.snapshot(branch="feature").commit
    assert names(graph, commit=on_feature) == ["Ada", "Flo"]
    assert graph.branches.list() == list(graph.branches) == ["feature", "main"]
    assert "feature" in graph.branches
    graph.branches.delete("feature")
    assert graph.branches.list() == ["main"]
    with pytest.raises(NotFoundError, match="branch 'feature' not found"):
        names(graph, branch="feature")
    with pytest.raises(NotFoundError, match="branch 'feature' not found"):
        add(graph, "Gil", branch="feature")


# -- what a caller may ask of a write ---------------------------------------------------------------------------------


def test_a_write_can_be_bound_to_the_commit_that_was_read(graph: Graph) -> None:
    read = graph.query(NAMES)
    assert graph.mutate(INSERT, {"n": "Ada"}, if_commit=read.commit).commit is not None
    with pytest.raises(PreconditionError, match="precondition failed on branch 'main': expected head"):
        graph.mutate(INSERT, {"n": "Bob"}, if_commit=read.commit)
    with pytest.raises(PreconditionError):
        graph.write({"Person": [{"name": "Bob"}]}, if_commit=read.commit)
    head = graph.snapshot().commit
    unmatched = graph.mutate('query q() { delete Person where name = "Nobody" }', if_commit=head)
    assert (unmatched.commit, unmatched.head) == (None, head)
    assert names(graph) == ["Ada"]


def test_a_fresh_branch_accepts_the_commit_it_was_made_from(graph: Graph) -> None:
    add(graph, "Ada")
    graph.branches.create("side")
    read = graph.query(NAMES, branch="side")
    assert graph.mutate(INSERT, {"n": "Bob"}, branch="side", if_commit=read.commit).commit is not None


def test_a_request_sent_twice_under_one_key_is_done_once_and_answered_twice(graph: Graph) -> None:
    first = graph.mutate(INSERT, {"n": "Ada", "a": 1}, idempotency_key="k")
    again = graph.mutate(INSERT, {"n": "Ada", "a": 2}, idempotency_key="k")
    assert (first.replayed, again.replayed) == (False, True)
    assert (again.commit, again.number, again.affected_nodes) == (first.commit, first.number, 1)
    assert graph.query(AGES).to_pylist() == [{"name": "Ada", "age": 1}]
    write = graph.write({"Person": [{"name": "Bob"}]}, idempotency_key="w")
    assert graph.write({"Person": [{"name": "Bob"}]}, idempotency_key="w").commit == write.commit


def test_who_and_why_are_in_the_commit(graph: Graph) -> None:
    graph.mutate(INSERT, {"n": "Ada"}, actor="tester", message="because")
    record = graph.snapshot().record
    assert (record.actor, record.message, record.notes["query"]) == ("tester", "because", "add")
    graph.write({"Person": [{"name": "Bob"}]}, actor="loader", message="more")
    record = graph.snapshot().record
    assert (record.kind.value, record.actor, record.message) == ("load", "loader", "more")


def test_a_prepared_query_runs_like_its_text(graph: Graph) -> None:
    insert = graph.prepare(INSERT + NAMES, name="add")
    assert (insert.name, insert.is_mutation, [each.name for each in insert.parameters]) == ("add", True, ["n", "a"])
    graph.mutate(insert, {"n": "Ada"})
    graph.mutate(insert, {"n": "Bob", "a": 3})
    read = graph.prepare(INSERT + NAMES, name="names")
    assert [row["name"] for row in graph.query(read)] == ["Ada", "Bob"]
    assert graph.explain(read) == graph.explain(NAMES)
    with pytest.raises(InvalidRequestError, match="the prepared query is 'names', not 'add'"):
        graph.query(read, name="add")
    with pytest.raises(InvalidRequestError, match="query 'nothing' not found"):
        graph.prepare(NAMES, name="nothing")
    with pytest.raises(InvalidRequestError, match="writes"):
        graph.query(insert, {"n": "Cy"})


def test_a_mutation_can_be_explained_and_is_not_carried_out(graph: Graph) -> None:
    assert "Person" in graph.explain(INSERT)
    assert graph.count("Person") == 0


def test_parameters_may_be_pythons_own_dates_times_and_arrays(graph: Graph) -> None:
    graph.mutate(
        "query q($b: Date, $s: DateTime, $p: Vector(2)) "
        '{ insert Person { name: "Ada", born: $b, seen: $s, place: $p } }',
        {"b": date(1815, 12, 10), "s": datetime(2024, 1, 1, 12, tzinfo=UTC), "p": np.array([1.0, 2.0])},
    )
    [row] = graph.query("query q() { match { $p: Person } return { $p.born as b, $p.seen as s } }")
    assert row == {"b": "1815-12-10", "s": "2024-01-01T12:00:00.000Z"}
    with pytest.raises(InvalidRequestError, match="params must be a JSON object"):
        graph.mutate(INSERT, ["Ada"])  # type: ignore[arg-type]  # the wrong kind, on purpose


# -- tables -----------------------------------------------------------------------------------------------------------


def test_types_are_named_by_name_or_key(graph: Graph) -> None:
    add(graph, "Ada")
    for name in ("Person", "node:Person"):
        assert graph.count(name) == 1
        assert graph.export_arrow(name, columns=["name"]).read_all().to_pylist() == [{"name": "Ada"}]
    assert graph.count("Knows") == graph.count("knows") == graph.count("edge:Knows") == 0
    for name in ("Persn", "node:Knows", "edge:Person", "other:Person"):
        with pytest.raises(NotFoundError, match=f"there is no type '{name}'"):
            graph.count(name)
    with pytest.raises(NotFoundError, match="Person has no column 'nam'"):
        graph.export_arrow("Person", columns=["nam"])


def test_a_table_can_be_read_with_lance_itself_and_not_written_through_it(graph: Graph) -> None:
    add(graph, "Ada", "Bob")
    lent = graph.lance_table("Person")
    assert sorted(map(str, lent.to_table(columns=["name"]).column("name").to_pylist())) == ["Ada", "Bob"]
    assert lent.count_rows(filter="age = 3") == 2
    with pytest.raises(OSError, match="versions"):
        lent.delete("true")
    assert names(graph) == ["Ada", "Bob"]
    add(graph, "Cy")
    assert lent.count_rows() == 2


def test_a_write_that_meets_another_schema_is_made_anew_under_it() -> None:
    store = MemoryStore()
    first = omnigraph.init(store, SCHEMA, options=FAST).snapshot().record.schema
    second = store_schema(store, "node Later { n: I32 }", accept("node Later { n: I32 }"))
    schemas = Schemas(open_root(store))
    tried: list[str] = []

    def make(accepted: Accepted) -> str:
        tried.append(accepted.digest)
        if accepted.digest == first:
            raise SchemaMovedError(second)
        return "made"

    assert schemas.under_the_branch_schema("main", make) == "made"
    assert tried == [first, second]
    assert schemas.under_the_branch_schema("main", make) == "made"
    assert tried == [first, second, second]


def test_a_schema_that_keeps_changing_is_told() -> None:
    store = MemoryStore()
    digest_ = omnigraph.init(store, SCHEMA, options=FAST).snapshot().record.schema

    def make(_: Accepted) -> None:
        raise SchemaMovedError(digest_)

    with pytest.raises(ConflictError, match="keeps changing"):
        Schemas(open_root(store)).under_the_branch_schema("main", make)


def test_a_delete_meets_what_was_written_while_it_ran(graph: Graph) -> None:
    add(graph, "Ada", "Bob")
    edge = 'query q() { insert Knows { from: "Bob", to: "Ada" } }'
    delete = 'query q() { delete Person where name = "Ada" }'
    with armed(Failpoint.WRITE_PREPARED, once(lambda: graph.mutate(edge))), pytest.raises(ConflictError) as refused:
        graph.mutate(delete)
    assert refused.value.code == "read_set_conflict"
    assert graph.mutate(delete).affected_edges == 1
