"""Rows of neighbours: kernels against plain loops, changes against making anew, files that may be gone or damaged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graphs import StoredGraph, power_law, small_schema, store_graph

from omnigraph import limits
from omnigraph.execution.adjacency import Adjacency, build_adjacency, extend_adjacency
from omnigraph.execution.adjacency_cache import AdjacencyCache
from omnigraph.execution.adjacency_files import AdjacencyFiles
from omnigraph.execution.cache import ByteCache
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr, build_csr
from omnigraph.execution.edge_list import EdgeList
from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.traversal import reach
from omnigraph.execution.versions import Versions
from omnigraph.language.plan.pattern import Direction
from omnigraph.language.query.compile import compile
from omnigraph.storage.derived import ADJACENCY, adjacency_folder, sealed, unsealed, version_of
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.tables.fragments import StoredFragment, fragment_rows
from omnigraph.storage.tables.tables import Table
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.root import open_root

QUICK = settings(derandomize=True)
SCHEMA = small_schema()
PERSON, KNOWS, LIVES, PLACE = "node:Person", "edge:Knows", "edge:LivesIn", "node:Place"

pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=25)
some_nodes = st.lists(st.integers(0, 5), max_size=8)


def triples(edges: list[tuple[int, int]]) -> EdgeList:
    sources, targets = ([edge[end] for edge in edges] for end in (0, 1))
    return EdgeList(np.array(sources, np.int32), np.array(targets, np.int32), np.arange(len(edges), dtype=np.int32))


def ordinals(*nodes: int) -> "np.typing.NDArray[np.int32]":
    return np.array(nodes, dtype=np.int32)


# --- kernels ----------------------------------------------------------------------------------------------------------


@QUICK
@given(edges=pairs, nodes=some_nodes)
def test_a_spread_is_what_lies_next_to_each_node(edges: list[tuple[int, int]], nodes: list[int]) -> None:
    rows = build_csr(triples(edges), 6)
    records = rows.expand(ordinals(*nodes), each_record=True)
    assert records.records is not None
    listed = list(zip(records.rows.tolist(), records.targets.tolist(), records.records.tolist(), strict=True))
    assert listed == [
        (row, target, record)
        for row, node in enumerate(nodes)
        for target, record in sorted((to, at) for at, (of, to) in enumerate(edges) if of == node)
    ]
    once = rows.expand(ordinals(*nodes), each_record=False)
    assert list(zip(once.rows.tolist(), once.targets.tolist(), strict=True)) == [
        (row, target) for row, node in enumerate(nodes) for target in sorted({to for of, to in edges if of == node})
    ]
    assert rows.simple.degrees[ordinals(*nodes)].tolist() == [
        len({to for of, to in edges if of == node}) for node in nodes
    ]


@QUICK
@given(edges=pairs, asked=pairs)
def test_an_edge_is_found_exactly_where_there_is_one(
    edges: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    rows = build_csr(triples(edges), 6)
    wanted = triples(asked)
    assert rows.has_edges(wanted.sources, wanted.targets).tolist() == [pair in edges for pair in asked]
    first, stop = rows.edge_ranges(wanted.sources, wanted.targets)
    assert (stop - first).tolist() == [edges.count(pair) for pair in asked]
    likely = set(rows.may_contain(wanted.sources, wanted.targets).tolist())
    assert likely >= {place for place, pair in enumerate(asked) if pair in edges}


def test_a_sketch_tells_most_pairs_that_are_not_joined() -> None:
    chance = np.random.default_rng(1)
    joined = chance.integers(0, 5_000, (2, 20_000)).astype(np.int32)
    rows = build_csr(EdgeList(joined[0], joined[1], np.arange(20_000, dtype=np.int32)), 5_000)
    asked = chance.integers(0, 5_000, (2, 20_000)).astype(np.int32)
    assert len(rows.may_contain(asked[0], asked[1])) < 2_000


@QUICK
@given(
    edges=pairs,
    gone=st.sets(st.integers(0, 24)),
    more=pairs,
    spliced=st.sampled_from([0, 1, 100]),
    patched=st.sampled_from([0, 2, 100]),
    filler=st.sampled_from([0, 300]),
    looked_at=st.booleans(),
)
def test_changed_rows_are_those_made_anew(
    edges: list[tuple[int, int]],
    gone: set[int],
    more: list[tuple[int, int]],
    *,
    spliced: int,
    patched: int,
    filler: int,
    looked_at: bool,
) -> None:
    # Many more edges elsewhere, so that a change is a small one.
    elsewhere = [(place % 6 + 6, place % 5) for place in range(filler)]
    edges = [*edges, *elsewhere]
    before = build_csr(triples(edges), 12)
    if looked_at:
        assert before.simple.count <= before.count
    dropped = np.zeros(len(edges) + len(more), dtype=np.bool_)
    lost = [place for place in sorted(gone) if place < len(edges) - len(elsewhere)]
    dropped[lost] = True
    added = triples(more)
    added = EdgeList(added.sources, added.targets, added.records + np.int32(len(edges)))
    everything = triples([*edges, *more])
    with patch.multiple(limits, CSR_SPLICED_NODES_MAX=spliced, CSR_PATCHED_NODES_MAX=patched):
        # In two steps: the second one changes what the first has changed.
        first = before.updated(ordinals(*lost[::2]), ordinals(*(edges[place][0] for place in lost[::2])), added)
        after = first.updated(ordinals(*lost[1::2]), ordinals(*(edges[place][0] for place in lost[1::2])), triples([]))
    anew = build_csr(everything.where(~dropped), 12)
    nodes = np.arange(12, dtype=np.int32)
    for each_record in (True, False):
        for some in (nodes, nodes[::-1], nodes[:1], nodes[5:6]):
            found, expected = (rows.expand(some, each_record=each_record) for rows in (after, anew))
            assert found.rows.tolist() == expected.rows.tolist()
            assert found.targets.tolist() == expected.targets.tolist()
            if each_record:
                assert found.records is not None
                assert expected.records is not None
                assert found.records.tolist() == expected.records.tolist()
    assert after.degrees.tolist() == anew.degrees.tolist()
    assert after.count == anew.count
    assert after.simple.degrees.tolist() == anew.simple.degrees.tolist()
    wanted = triples([(source, target) for source in range(12) for target in range(12)])
    assert after.has_edges(wanted.sources, wanted.targets).tolist() == (
        anew.has_edges(wanted.sources, wanted.targets).tolist()
    )
    likely = set(after.may_contain(wanted.sources, wanted.targets).tolist())
    assert likely >= set(np.flatnonzero(anew.has_edges(wanted.sources, wanted.targets)).tolist())
    ranges = [
        stop - first for first, stop in (rows.edge_ranges(wanted.sources, wanted.targets) for rows in (after, anew))
    ]
    assert ranges[0].tolist() == ranges[1].tolist()
    for part in ("starts", "neighbours", "records"):
        assert getattr(after.flattened(), part).tolist() == getattr(anew, part).tolist(), part
    # Whoever has the older one still reads the older one.
    assert before.edge_list().records.tolist() == build_csr(triples(edges), 12).edge_list().records.tolist()


def test_records_too_many_to_pack_are_sorted_all_the_same() -> None:
    large = np.array([2**31 - 2, 5, 2**31 - 2, 5], dtype=np.int32)
    edges = EdgeList(np.array([1, 1, 0, 0], dtype=np.int32), large, np.array([2**31 - 2, 9, 8, 7], dtype=np.int32))
    rows = build_csr(edges, 2)
    assert rows.neighbours.tolist() == [5, 2**31 - 2, 5, 2**31 - 2]
    assert rows.records.tolist() == [7, 8, 9, 2**31 - 2]


def test_rows_grow_by_nodes_without_edges() -> None:
    rows = build_csr(triples([(0, 1)]), 2).resized(4)
    assert rows.degrees.tolist() == [1, 0, 0, 0]
    assert rows.expand(ordinals(3, 0), each_record=False).targets.tolist() == [1]


class _Access:
    """Access path over a CSR."""

    def __init__(self, rows: Csr) -> None:
        self.expand = rows.expand


@QUICK
@given(edges=pairs, starts=some_nodes, least=st.integers(1, 3), more=st.integers(0, 3), at_start=st.booleans())
def test_reach_is_breadth_first_and_once_per_start(
    edges: list[tuple[int, int]], starts: list[int], least: int, more: int, *, at_start: bool
) -> None:
    way: Any = _Access(build_csr(triples(edges), 6))
    most = least + more
    found = reach(lambda _: way, ordinals(*starts), least=least, most=most, size=6, loops_at_start=at_start)
    expected = []
    for row, start in enumerate(starts):
        distances = {start: 0}
        frontier = {start}
        for hop in range(1, most + 1):
            frontier = {to for of, to in edges if of in frontier and to not in distances}
            distances.update(dict.fromkeys(frontier, hop))
        looped = {node for node in distances if ((start,) * 2 if at_start else (node,) * 2) in edges}
        reached = {
            node
            for node, distance in distances.items()
            if distance >= least or (distance == least - 1 and node in looped)
        }
        expected += [(row, node) for node in sorted(reached)]
    assert list(zip(found.starts.tolist(), found.nodes.tolist(), strict=True)) == expected


# --- made and extended ------------------------------------------------------------------------------------------------


def rows_of(adjacency: Adjacency, direction: Direction) -> Csr:
    match direction:
        case Direction.OUT:
            return adjacency.outgoing
        case Direction.IN:
            return adjacency.incoming
        case Direction.BOTH:
            return adjacency.undirected()


@dataclass
class Tables:
    """A graph, and its adjacency by ids."""

    graph: StoredGraph
    versions: Versions

    def columns(self, type_key: str) -> Columns:
        return self.versions.at(self.graph.snapshot().record.tables[type_key])

    def now(self) -> tuple[Columns, Columns, Columns]:
        return self.columns(KNOWS), self.columns(PERSON), self.columns(PERSON)

    def people(self, *names: str, age: int = 1) -> pa.Table:
        return self.graph.rows(PERSON, [{"id": name, "name": name, "age": age} for name in names])

    def edges(self, *edges: str) -> pa.Table:
        """`ab1` is the edge 1 from a to b."""
        return self.graph.rows(KNOWS, [{"id": edge, "src": edge[0], "dst": edge[1]} for edge in edges])

    def told(self, adjacency: Adjacency, direction: Direction = Direction.OUT) -> dict[str, list[tuple[str, str]]]:
        """For each node its neighbours and edges, by their ids."""
        told: dict[str, list[tuple[str, str]]] = {}
        nodes, others = adjacency.sources, adjacency.targets
        for node in nodes.numbering.live.tolist():
            spread = rows_of(adjacency, direction).expand(ordinals(node), each_record=True)
            assert spread.records is not None
            ends = others.take("id", spread.targets).to_pylist()
            records = adjacency.edges.take("id", spread.records).to_pylist()
            if ends:
                (name,) = nodes.take("id", ordinals(node)).to_pylist()
                told[str(name)] = sorted((str(end), str(record)) for end, record in zip(ends, records, strict=True))
        return told


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    graph = store_graph(str(tmp_path), SCHEMA)
    made = Tables(graph, Versions(graph.parts.tables, ByteCache(10**9)))
    graph.add({PERSON: made.people(*"abcd"), KNOWS: made.edges("ab1", "ab2", "bc1", "cc1")})
    return made


def test_adjacency_leads_both_ways_and_round_once(tables: Tables) -> None:
    adjacency = build_adjacency(*tables.now())
    assert tables.told(adjacency) == {"a": [("b", "ab1"), ("b", "ab2")], "b": [("c", "bc1")], "c": [("c", "cc1")]}
    assert tables.told(adjacency, Direction.IN) == {
        "b": [("a", "ab1"), ("a", "ab2")],
        "c": [("b", "bc1"), ("c", "cc1")],
    }
    assert tables.told(adjacency, Direction.BOTH)["c"] == [("b", "bc1"), ("c", "cc1")]


CHANGES: dict[str, Any] = {
    "edges come": lambda t: t.graph.add({KNOWS: t.edges("da1", "ba1")}),
    "an edge goes": lambda t: t.graph.change({}, {KNOWS: ["ab1"]}),
    "a node comes, and an edge to it": lambda t: t.graph.add({PERSON: t.people("e"), KNOWS: t.edges("ae1")}),
    "a node is written again": lambda t: t.graph.change({PERSON: t.people("c", age=2)}, {}),
    "two joined nodes are written again": lambda t: t.graph.change({PERSON: t.people("b", "c", age=2)}, {}),
    "a node goes with its edges": lambda t: t.graph.change({}, {PERSON: ["b"], KNOWS: ["ab1", "ab2", "bc1"]}),
    "a node is written again and loses an edge": lambda t: t.graph.change(
        {PERSON: t.people("b", age=2)}, {KNOWS: ["ab1"]}
    ),
    "an edge is written again": lambda t: t.graph.change({KNOWS: t.edges("ab1")}, {}),
    "nodes are compacted": lambda t: (t.graph.add({PERSON: t.people("e")}), t.graph.compact(PERSON)),
    "edges are compacted": lambda t: (t.graph.add({KNOWS: t.edges("dd1")}), t.graph.compact(KNOWS)),
    "an index is built": lambda t: t.graph.index(KNOWS, "src"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_extended_adjacency_is_what_making_it_anew_gives(tables: Tables, what: str) -> None:
    before = build_adjacency(*tables.now())
    CHANGES[what](tables)
    now = tables.now()

    extended = extend_adjacency(before, *now)

    assert extended is not None
    anew = build_adjacency(*now)
    for direction in Direction:
        assert tables.told(extended, direction) == tables.told(anew, direction)
        rows = [rows_of(adjacency, direction).edge_list().targets.tolist() for adjacency in (extended, anew)]
        assert rows[0] == rows[1]


def test_extending_reads_the_ends_of_edges_that_differ_only(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.graph.add(
        {KNOWS: tables.edges(*(f"{source}{target}{n}" for source in "abcd" for target in "ab" for n in "345"))}
    )
    tables.graph.compact(KNOWS)
    before = build_adjacency(*tables.now())
    tables.graph.add({KNOWS: tables.edges("da1")})
    tables.graph.change({}, {KNOWS: ["ab1"]})
    now = tables.now()
    read: list[int] = []

    def counted(table: Table, some: Sequence[StoredFragment], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        read.extend(fragment.rows for fragment in some)
        return fragment_rows(table, some, names)

    monkeypatch.setattr("omnigraph.execution.adjacency.fragment_rows", counted)
    with patch.object(limits, "REMEMBERED_FRAGMENT_ROWS_MAX", 1):
        extended = extend_adjacency(before, *now)
    assert extended is not None
    assert read == []
    assert tables.told(extended) == tables.told(build_adjacency(*now))


@pytest.mark.parametrize("what", CHANGES)
def test_adjacency_of_an_older_version_follows_from_that_of_a_newer_one(tables: Tables, what: str) -> None:
    pins = [tables.graph.snapshot().record.tables[type_key] for type_key in (KNOWS, PERSON, PERSON)]
    CHANGES[what](tables)
    newer = build_adjacency(*tables.now())
    # Opened only now, as when somebody asks about the past.
    then = [tables.versions.at(pin) for pin in pins]

    older = extend_adjacency(newer, *then)

    assert older is not None
    assert tables.told(older) == {"a": [("b", "ab1"), ("b", "ab2")], "b": [("c", "bc1")], "c": [("c", "cc1")]}
    assert tables.told(older, Direction.BOTH) == tables.told(build_adjacency(*then), Direction.BOTH)


def test_an_edge_without_a_node_is_not_there_until_the_node_is(tables: Tables) -> None:
    tables.graph.add({KNOWS: tables.edges("az1")})
    dangling = build_adjacency(*tables.now())
    assert dangling.dangling == 1
    assert ("z", "az1") not in tables.told(dangling)["a"]
    tables.graph.add({PERSON: tables.people("z")})
    assert extend_adjacency(dangling, *tables.now()) is None
    assert ("z", "az1") in tables.told(build_adjacency(*tables.now()))["a"]


def test_adjacency_between_two_types_has_the_ordinals_of_each(tables: Tables) -> None:
    places = tables.graph.rows(PLACE, [{"id": str(code), "code": code} for code in range(3)])
    lives = tables.graph.rows(LIVES, [{"id": "l1", "src": "d", "dst": "2"}])
    tables.graph.add({PLACE: places, LIVES: lives})
    adjacency = build_adjacency(tables.columns(LIVES), tables.columns(PERSON), tables.columns(PLACE))
    assert tables.told(adjacency) == {"d": [("2", "l1")]}
    assert adjacency.incoming.nodes == 3


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny_files() -> Iterator[None]:
    with patch.multiple(limits, ADJACENCY_FILE_EDGES_MIN=1, ADJACENCY_CHUNK_EDGES=2, READ_WHOLE_ROWS_MAX=0):
        yield


def fresh(tables: Tables, *, read_only: bool = False) -> AdjacencyCache:
    """As another process would see it."""
    cache = ByteCache(10**9)
    tables.versions = Versions(tables.graph.parts.tables, cache)
    return AdjacencyCache(cache, tables.versions, AdjacencyFiles(tables.graph.parts.store, read_only=read_only))


def test_another_process_loads_what_one_has_made(tables: Tables, tiny_files: None) -> None:
    one = fresh(tables)
    made = tables.told(one.adjacency(*tables.now()))
    assert one.stats().written == 1
    other = fresh(tables)
    assert tables.told(other.adjacency(*tables.now())) == made
    stats = other.stats()
    assert (stats.loaded, stats.made, stats.written) == (1, 0, 0)


@pytest.mark.parametrize("what", CHANGES)
def test_files_of_an_older_version_are_extended(tables: Tables, tiny_files: None, what: str) -> None:
    fresh(tables).adjacency(*tables.now())
    CHANGES[what](tables)
    other = fresh(tables)
    found = tables.told(other.adjacency(*tables.now()))
    assert found == tables.told(build_adjacency(*tables.now()))
    assert (other.stats().loaded, other.stats().made) == (1, 0)


@pytest.mark.parametrize("damage", ["missing", "short", "changed"])
@pytest.mark.parametrize("file", ["head.json", "out-0", "in-1"])
def test_damaged_files_are_passed_over_and_written_again(
    tables: Tables, tiny_files: None, file: str, damage: str
) -> None:
    made = tables.told(fresh(tables).adjacency(*tables.now()))
    store, pin = tables.graph.parts.store, tables.columns(KNOWS).pin
    path = f"{adjacency_folder(pin.table, pin.version)}{file}"
    body = store.get(path)
    if damage == "missing":
        store.delete(path)
    else:
        store.put(path, body[:-1] if damage == "short" else bytes([body[0] ^ 1]) + body[1:])
    other = fresh(tables)
    assert tables.told(other.adjacency(*tables.now())) == made
    assert (other.stats().made, other.stats().loaded, other.stats().written) == (1, 0, 1)
    assert store.get(path) == body


@pytest.mark.parametrize("file", ["head.json", "out-0", "in-1"])
def test_no_neighbour_depends_on_a_byte_that_was_changed(tables: Tables, tiny_files: None, file: str) -> None:
    made = tables.told(fresh(tables).adjacency(*tables.now()))
    store, pin = tables.graph.parts.store, tables.columns(KNOWS).pin
    path = f"{adjacency_folder(pin.table, pin.version)}{file}"
    body = store.get(path)
    reader = AdjacencyFiles(store, read_only=True)
    for place in range(len(body)):
        store.put(path, body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :])
        if file == "head.json" and place % 50:
            assert reader.read_manifest(tables.columns(KNOWS)) is None, place
            continue  # a whole look takes its time
        other = fresh(tables)
        assert tables.told(other.adjacency(*tables.now())) == made, place
        assert other.stats().loaded == 0, place


def test_a_damaged_file_does_not_stop_a_lookup_of_few_nodes(tables: Tables, tiny_files: None) -> None:
    fresh(tables).adjacency(*tables.now())
    store, pin = tables.graph.parts.store, tables.columns(KNOWS).pin
    store.delete(f"{adjacency_folder(pin.table, pin.version)}out-0")
    other = fresh(tables)
    with patch("omnigraph.execution.adjacency_cache._SECONDS_PER_LOOKUP", -1.0):
        way = other.choose_neighbours(*tables.now(), Direction.OUT, 1)
        start = tables.columns(PERSON).find(["a"])
        found = way.expand(start, each_record=True)
    assert tables.columns(PERSON).take("id", found.targets).to_pylist() == ["b", "b"]
    assert other.stats().made == 1


def test_a_head_of_another_format_is_no_head(tables: Tables, tiny_files: None) -> None:
    fresh(tables).adjacency(*tables.now())
    store, pin = tables.graph.parts.store, tables.columns(KNOWS).pin
    path = f"{adjacency_folder(pin.table, pin.version)}head.json"
    store.put(path, sealed({**unsealed(store.get(path)), "format": 1}))
    other = fresh(tables)
    other.adjacency(*tables.now())
    assert other.stats().loaded == 0


def test_a_small_change_is_not_written_again(tables: Tables, tiny_files: None) -> None:
    process = fresh(tables)
    process.adjacency(*tables.now())
    with patch.object(limits, "ADJACENCY_STALE_SHARE", 0.5):
        tables.graph.add({KNOWS: tables.edges("da1")})
        process.adjacency(*tables.now())
        assert process.stats().written == 1
        tables.graph.add({KNOWS: tables.edges("db1", "dc1", "dd1")})
        process.adjacency(*tables.now())
    assert process.stats().written == 2


def test_derived_paths_tell_the_version_they_belong_to() -> None:
    folder = adjacency_folder("edges/01J0", 2**63 + 5)
    assert version_of(f"{folder}out-0") == ("edges/01J0", 2**63 + 5)
    for other in (folder, ADJACENCY, "edges/01J0/data/x", f"{ADJACENCY}01J0/x/out-0"):
        assert version_of(other) is None


def test_a_cold_process_reads_few_files_for_its_first_hops(tmp_path: Path) -> None:
    """It neither scans the edges nor reads more rows of neighbours than it follows."""
    graph = power_law(2_000, 12_000)
    with patch.multiple(limits, ADJACENCY_FILE_EDGES_MIN=1, ADJACENCY_CHUNK_EDGES=200, READ_WHOLE_ROWS_MAX=1_000):
        stored = store_graph(str(tmp_path), graph.schema, graph.tables)
        warm = QueryEngine(stored.parts.tables, stored.parts.store, read_only=False)
        text = "query q($n: String) { match { $p: Person { name: $n } $p knows{1,2} $q } return { count($q) as n } }"
        compiled = compile(text, graph.schema)
        # The person whom fewest know.
        rare = int(np.argmin(np.bincount(graph.sources, minlength=2_000)))
        params = {"n": graph.tables[PERSON].column("name")[rare].as_py()}
        everything = compile("query q() { match { $p: Person $p knows $q } return { count(*) as n } }", graph.schema)
        warm.run(stored.snapshot(), everything, schema=graph.schema)
        expected = warm.run(stored.snapshot(), compiled, params, schema=graph.schema)

        parts = open_root(str(tmp_path))
        counting = CountingStore(parts.store)
        cold = QueryEngine(parts.tables, counting)
        # As if there were so many edges that reading them all would take long.
        with (
            patch("omnigraph.execution.adjacency_cache._SECONDS_PER_LOOKUP", 0.0),
            patch("omnigraph.execution.adjacency_cache._SECONDS_PER_NODE_LOOKED_UP", 0.0),
        ):
            found = cold.run(parts.snapshot(parts.log.live_head("main")), compiled, params, schema=graph.schema)

    assert found.equals(expected)
    stats = cold.stats().adjacency
    assert (stats.made, stats.loaded, stats.looked_up) == (0, 0, 0)
    assert 0 < stats.chunks < 30
    assert counting.counts()[RequestKind.GET] == stats.chunks + 1
    assert len(list(stored.parts.store.list(ADJACENCY))) > 100
