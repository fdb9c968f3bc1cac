"""Upkeep among other work: what it leaves, what it does not touch, and what it asks for."""

from collections.abc import Iterator
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.tables.tables import Tables
from omnigraph.testing.stores import CountingStore

QUIET = OpenOptions(durability="process", auto_compact=False)
SCHEMA = "node Person { name: String @key  mail: String? @unique }\nedge Knows: Person -> Person"
NAMES = "query names() { match { $p: Person } return { $p.name as name } order { name } }"


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(LocalStore(tmp_path / "graph", durability=Durability.PROCESS))


@pytest.fixture
def graph(store: CountingStore) -> Iterator[Graph]:
    with omnigraph.init(store, SCHEMA, options=QUIET) as made:
        yield made


def add(graph: Graph, *names: str) -> None:
    for name in names:
        graph.write({"Person": [{"name": name, "mail": f"{name}@example.org"}]})


def names(graph: Graph, **where: str) -> list[str]:
    return [str(row["name"]) for row in graph.query(NAMES, **where)]  # type: ignore[arg-type]  # passed on as they are


def test_after_it_schemas_are_changed_and_rows_updated_under_expected_versions_as_before(graph: Graph) -> None:
    add(graph, "a", "b", "c", "d")
    assert graph.optimize().commit is not None
    before = names(graph)

    graph.schema_apply(SCHEMA.replace("mail:", "age: I32?  mail:"))
    versions = {"node:Person": graph.snapshot().record.tables["node:Person"].version}
    graph.mutate('query q() { update Person set { age: 7 } where name = "a" }', expected_table_versions=versions)

    assert names(graph) == before
    assert graph.verify(deep=True).is_whole


def test_it_deletes_no_version_though_a_table_says_that_old_ones_may_go(graph: Graph) -> None:
    add(graph, "a", "b", "c")
    commits = [(each.id, names(graph, commit=each.id)) for each in graph.commits.list()]
    table = lance.dataset(f"{graph.uri}/{graph.snapshot().record.tables['node:Person'].table}")
    table.update_config({"lance.auto_cleanup.interval": "1", "lance.auto_cleanup.older_than": "0ms"})

    for _ in range(3):
        add(graph, f"later{graph.count('Person')}")
        graph.optimize()

    for commit, expected in commits:
        assert names(graph, commit=commit) == expected
    with omnigraph.open(graph.uri, read_only=True) as fresh:
        assert [names(fresh, commit=commit) for commit, _ in commits] == [expected for _, expected in commits]
    assert graph.verify(deep=True).is_whole


def test_in_an_empty_graph_and_where_all_is_done_no_version_and_no_intent_is_made(
    graph: Graph, store: CountingStore
) -> None:
    def written() -> set[str]:
        return {path.relative_to(store.uri).as_posix() for path in Path(store.uri).rglob("*") if path.is_file()}

    before = written()
    store.reset()
    assert graph.optimize().commit is None
    assert {path.rpartition("/")[0] for path in written() - before} <= {"__manifest/digests"}
    assert [kind for kind, path in store.requests() if path.startswith("__recovery/") and kind != "list"] == []

    add(graph, "a", "b")
    graph.optimize()
    before = written()
    store.reset()
    assert graph.optimize().commit is None
    assert (store.durable, written()) == (0, before)


def test_indexes_are_built_for_a_type_that_was_renamed(graph: Graph) -> None:
    add(graph, "a", "b")
    graph.schema_apply(
        'node Human @rename_from("Person") { name: String @key  mail: String? @unique  nick: String? @index }\n'
        "edge Knows: Human -> Human"
    )

    report = graph.optimize()

    assert report.commit is not None
    built = {each.name: each for each in graph.snapshot()._pinned.table("node:Human").indexes()}
    assert {"name_btree", "mail_btree", "nick_btree"} <= built.keys()
    assert {each.rows_missing for each in built.values()} == {0}


def test_looking_for_unique_values_costs_the_same_for_few_rows_and_many(
    graph: Graph, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(graph, "a", "b", "c")
    opened: list[object] = []
    plain = Tables.open

    def counted(tables: Tables, pin: object) -> object:
        opened.append(pin)
        return plain(tables, pin)  # type: ignore[arg-type]  # passed on as it is

    monkeypatch.setattr(Tables, "open", counted)
    costs = []
    for count in (4, 64):
        rows = [{"name": f"{count}-{each}", "mail": f"{count}-{each}@example.org"} for each in range(count)]
        store.reset()
        opened.clear()
        graph.write({"Person": rows})
        costs.append((store.reset(), len(opened)))

    assert costs[0] == costs[1]
    with pytest.raises(omnigraph.ConstraintError):
        graph.write({"Person": [{"name": "x", "mail": "4-1@example.org"}]})
