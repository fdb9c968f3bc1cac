"""What every way of following edges must do: through memory, through the edge table, through files beside the graph."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

import pytest
from tests.support.brute_force import answer
from tests.support.graphs import PlainGraph, StoredGraph, small_schema, store_graph
from tests.support.result_agreement import disagreement

from omnigraph import limits
from omnigraph.execution.adjacency_cache import ExpandStrategy
from omnigraph.execution.engine import QueryEngine
from omnigraph.language.plan.pattern import Read
from omnigraph.language.query.compile import bind_params, compile

SCHEMA = small_schema()


class Ask(Protocol):
    """Asks one query and returns its rows, sorted."""

    def __call__(self, pattern: str, returned: str, **params: object) -> list[tuple[Any, ...]]: ...


def person(name: str, **more: object) -> dict[str, Any]:
    return {"id": name, "name": name, **more}


def edges(*ends: tuple[str, str], **more: object) -> list[dict[str, Any]]:
    return [{"id": f"e{at:03d}", "src": src, "dst": dst, "since": at, **more} for at, (src, dst) in enumerate(ends)]


# a → b twice, b → c, c → a (a cycle), a → a and d → d (loops), e alone; a and b live somewhere.
GRAPH = PlainGraph(
    SCHEMA,
    {
        "Person": [person(name, age=age) for name, age in zip("abcde", (1, 2, 3, None, 5), strict=True)],
        "Place": [{"id": str(code), "code": code, "title": f"t{code}"} for code in (1, 2)],
    },
    {
        "Knows": edges(("a", "b"), ("a", "b"), ("b", "c"), ("c", "a"), ("a", "a"), ("d", "d"), ("c", "d")),
        "LivesIn": edges(("a", "1"), ("b", "1"), ("b", "2"), ("b", "2")),
    },
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredGraph:
    graph = store_graph(str(tmp_path_factory.mktemp("expand")), SCHEMA, GRAPH.tables())
    graph.index("edge:Knows", "src", "dst")
    return graph


class ExpandContract:
    """Every traversal, whichever way its edges are followed."""

    @pytest.fixture
    def engine(self, stored: StoredGraph) -> Iterator[QueryEngine]:
        raise NotImplementedError

    @pytest.fixture
    def rows(self, stored: StoredGraph, engine: QueryEngine) -> Ask:
        def run(pattern: str, returned: str, **params: object) -> list[tuple[Any, ...]]:
            names = ", ".join(f"${name}: String" for name in params)
            compiled = compile(f"query q({names}) {{ match {{ {pattern} }} return {{ {returned} }} }}", SCHEMA)
            bound = bind_params(compiled, params)
            result = engine.run(stored.snapshot(), compiled, bound, schema=SCHEMA)
            read = compiled.bound.body
            assert isinstance(read, Read)
            # What is written below is also what plain loops say.
            wrong = disagreement(read, result, answer(read, GRAPH, bound.values))
            assert wrong is None, wrong
            return sorted(zip(*(column.to_pylist() for column in result.columns), strict=True), key=repr)

        return run

    def test_parallel_edges_are_one_neighbour(self, rows: Ask) -> None:
        assert rows("$p: Person { name: $n } $p knows $q", "$q", n="a") == [("a",), ("b",)]

    def test_with_an_edge_variable_every_record_is_a_row(self, rows: Ask) -> None:
        found = rows("$p: Person { name: $n } $p $e: knows $q", "$q, $e.since", n="a")
        assert found == [("a", 4), ("b", 0), ("b", 1)]

    def test_edges_are_followed_backwards_from_a_bound_target(self, rows: Ask) -> None:
        assert rows("$q: Person { name: $n } $p knows $q", "$p", n="a") == [("a",), ("c",)]

    def test_the_types_of_the_ends_decide_the_direction(self, rows: Ask) -> None:
        assert rows("$x: Place { title: $n } $x livesIn $p", "$p", n="t1") == [("a",), ("b",)]

    def test_undirected_edges_lead_both_ways_and_to_each_neighbour_once(self, rows: Ask) -> None:
        assert rows("$p: Person { name: $n } $p <knows> $q", "$q", n="a") == [("a",), ("b",), ("c",)]

    def test_an_undirected_loop_is_one_record(self, rows: Ask) -> None:
        found = rows("$p: Person { name: $n } $p $e: <knows> $q", "$q, $e.since", n="d")
        assert found == [("c", 6), ("d", 5)]

    def test_hops_reach_each_node_once_at_its_shortest_distance(self, rows: Ask) -> None:
        assert rows("$p: Person { name: $n } $p knows{1,3} $q", "$q", n="b") == [("a",), ("c",), ("d",)]
        assert rows("$p: Person { name: $n } $p knows{2,2} $q", "$q", n="b") == [("a",), ("d",)]

    def test_the_source_is_reached_by_its_own_loop_but_not_round_a_cycle(self, rows: Ask) -> None:
        assert rows("$p: Person { name: $n } $p knows{1,5} $q", "$q", n="a") == [("a",), ("b",), ("c",), ("d",)]
        assert ("a",) not in rows("$p: Person { name: $n } $p knows{2,5} $q", "$q", n="a")
        assert ("c",) not in rows("$p: Person { name: $n } $p knows{1,5} $q", "$q", n="c")

    def test_a_node_one_hop_too_near_is_reached_by_its_own_loop(self, rows: Ask) -> None:
        # b → c → d, d → d; c → a, a → a.
        for bounds in ("{2,2}", "{2,4}"):
            found = rows(f"$p: Person {{ name: $n }} $p knows{bounds} $q", "$q", n="c")
            assert found == [("a",), ("b",), ("d",)]
        assert rows("$p: Person { name: $n } $p knows{3,3} $q", "$q", n="b") == [("a",), ("d",)]
        assert rows("$p: Person { name: $n } $p knows{3,3} $q", "count($q) as n", n="b") == [(2,)]
        assert rows("$p: Person { name: $n } $p <knows>{3,3} $q", "$q", n="b") == [("d",)]
        assert rows("$p: Person { name: $n } $p knows{2,2} $q", "$q", n="d") == []

    def test_the_loop_is_the_one_of_the_pattern_s_second_end(self, rows: Ask) -> None:
        # Whichever end is bound first: c → d is one hop, d has a loop and c has none.
        assert rows("$q: Person { name: $n } $p knows{2,2} $q", "$p", n="d") == [("b",), ("c",)]
        assert rows("$q: Person { name: $n } $p knows{2,2} $q", "count($p) as n", n="d") == [(2,)]
        assert rows("$q: Person { name: $n } $p knows{2,2} $q", "$p", n="c") == [("a",)]
        assert rows("$p: Person { name: $n } $q: Person { name: $m } $p knows{2,2} $q", "$q", n="c", m="d") == [("d",)]
        assert rows("$p: Person { name: $n } $q: Person { name: $m } $p knows{2,2} $q", "$q", n="b", m="c") == []

    def test_a_loop_counts_under_not(self, rows: Ask) -> None:
        assert rows("$p: Person not { $p knows{2,2} $_ }", "$p") == [("d",), ("e",)]
        pattern = "$p: Person $q: Person { name: $n } not { $p knows{2,3} $q }"
        assert rows(pattern, "$p", n="d") == [("d",), ("e",)]

    def test_a_shortest_path_that_is_too_short_ends_with_a_loop(self, rows: Ask) -> None:
        found = rows("$p: Person { name: $n } shortest $p knows{2,2} $q as $way", "$q, nodes($way)", n="c")
        assert found == [("a", ["c", "a", "a"]), ("b", ["c", "a", "b"]), ("d", ["c", "d", "d"])]
        found = rows("$q: Person { name: $n } shortest $p knows{2,2} $q as $way", "$p, nodes($way)", n="d")
        assert found == [("b", ["b", "c", "d"]), ("c", ["c", "d", "d"])]
        both = "$p: Person { name: $n } $q: Person { name: $m } shortest $p knows{3,4} $q as $way"
        assert rows(both, "nodes($way)", n="b", m="d") == [(["b", "c", "d", "d"],)]
        assert rows(both, "nodes($way)", n="a", m="c") == []

    def test_between_different_types_there_is_only_one_hop(self, rows: Ask) -> None:
        assert rows("$p: Person { name: $n } $p livesIn{1,3} $x", "$x.code", n="b") == [(1,), (2,)]
        assert rows("$p: Person { name: $n } $p livesIn{2,3} $x", "$x.code", n="b") == []

    def test_two_bound_ends_are_a_test_and_not_a_source_of_rows(self, rows: Ask) -> None:
        pattern = "$p: Person { name: $n } $q: Person { name: $m } $p knows $q"
        assert rows(pattern, "$p, $q", n="a", m="b") == [("a", "b")]
        assert rows(pattern, "$p, $q", n="b", m="a") == []
        far = "$p: Person { name: $n } $q: Person { name: $m } $p knows{1,2} $q"
        assert rows(far, "$p, $q", n="b", m="a") == [("b", "a")]

    def test_between_two_bound_ends_an_edge_variable_is_a_row_for_each_record(self, rows: Ask) -> None:
        pattern = "$p: Person { name: $n } $q: Person { name: $m } $p $e: knows $q"
        assert rows(pattern, "$e.since", n="a", m="b") == [(0,), (1,)]

    def test_a_variable_at_both_ends_means_loops(self, rows: Ask) -> None:
        assert rows("$p: Person $p knows $p", "$p") == [("a",), ("d",)]

    def test_an_anonymous_end_makes_a_row_for_each_neighbour(self, rows: Ask) -> None:
        assert rows("$p: Person { name: $n } $p knows $_", "$p", n="a") == [("a",), ("a",)]

    def test_conditions_on_edges_and_targets_drop_rows(self, rows: Ask) -> None:
        assert rows("$p: Person $p $e: knows $q $e.since >= 2 $q.age < 3", "$p, $q") == [("a", "a"), ("c", "a")]

    def test_counting_agrees_with_listing(self, rows: Ask) -> None:
        listed = Counter(row[0] for row in rows("$p: Person $p knows $q $q knows $r", "$p, $q, $r"))
        assert dict(rows("$p: Person $p knows $q $q knows $r", "$p, count($r) as n")) == listed
        assert rows("$p: Person $p knows $q $q knows $r", "count(*) as n") == [(sum(listed.values()),)]

    def test_triangles_are_found_by_any_of_their_edges(self, rows: Ask) -> None:
        closed = "$p: Person $p knows $q $q knows $r $p knows $r"
        assert rows(closed, "count(*) as n") == [(len(rows(closed, "$p, $q, $r")),)]
        assert ("a", "a", "b") in rows(closed, "$p, $q, $r")

    def test_a_shortest_path_names_its_nodes(self, rows: Ask) -> None:
        pattern = "$p: Person { name: $n } $q: Person { name: $m } shortest $p knows{1,4} $q as $way"
        assert rows(pattern, "length($way) as l, nodes($way) as ids", n="b", m="d") == [(2, ["b", "c", "d"])]
        assert rows(pattern, "length($way) as l, nodes($way) as ids", n="d", m="d") == [(1, ["d", "d"])]
        assert rows(pattern, "length($way) as l, nodes($way) as ids", n="d", m="a") == []

    def test_shortest_paths_lead_to_every_node_within_reach(self, rows: Ask) -> None:
        found = rows("$p: Person { name: $n } shortest $p knows{1,4} $q as $way", "$q, length($way) as l", n="a")
        assert found == [("a", 1), ("b", 1), ("c", 2), ("d", 3)]

    def test_a_node_without_edges_has_no_neighbours(self, rows: Ask) -> None:
        assert rows("$p: Person { name: $n } $p <knows>{1,3} $q", "$q", n="e") == []
        assert rows("$p: Person not { $p <knows> $_ }", "$p") == [("e",)]


class TestInMemory(ExpandContract):
    @pytest.fixture
    def engine(self, stored: StoredGraph) -> Iterator[QueryEngine]:
        yield QueryEngine(stored.parts.tables, strategy=ExpandStrategy.IN_MEMORY)


class TestLookedUpInTheTable(ExpandContract):
    @pytest.fixture
    def engine(self, stored: StoredGraph) -> Iterator[QueryEngine]:
        yield QueryEngine(stored.parts.tables, strategy=ExpandStrategy.LOOKED_UP)


class TestFromFiles(ExpandContract):
    """Files of one edge each, written by another engine before."""

    @pytest.fixture
    def engine(self, stored: StoredGraph) -> Iterator[QueryEngine]:
        with patch.multiple(limits, READ_WHOLE_ROWS_MAX=0, ADJACENCY_FILE_EDGES_MIN=1, ADJACENCY_CHUNK_EDGES=1):
            writer = QueryEngine(stored.parts.tables, stored.parts.store, read_only=False)
            for edge in ("knows", "livesIn"):
                everything = compile(f"query q() {{ match {{ $p: Person $p {edge} $q }} return {{ $p, $q }} }}", SCHEMA)
                writer.run(stored.snapshot(), everything, schema=SCHEMA)
            # Looking up costs nothing here, so that it never becomes too dear.
            with (
                patch("omnigraph.execution.adjacency_cache._SECONDS_PER_LOOKUP", 0.0),
                patch("omnigraph.execution.adjacency_cache._SECONDS_PER_NODE_LOOKED_UP", 0.0),
            ):
                engine = QueryEngine(stored.parts.tables, stored.parts.store)
                yield engine
            stats = engine.stats().adjacency
            assert stats.chunks > 0, stats
            assert stats.made == stats.loaded == stats.looked_up == 0, stats


def test_an_engine_that_only_reads_leaves_no_files_behind(tmp_path: Path) -> None:
    graph = store_graph(str(tmp_path), SCHEMA, GRAPH.tables())
    before = sorted(each.path for each in graph.parts.store.list(""))
    with patch.multiple(limits, ADJACENCY_FILE_EDGES_MIN=1):
        engine = QueryEngine(graph.parts.tables, graph.parts.store, read_only=True)
        everything = compile("query q() { match { $p: Person $p knows $q } return { $p, $q } }", SCHEMA)
        engine.run(graph.snapshot(), everything, schema=SCHEMA)
    assert engine.stats().adjacency.written == 0
    assert sorted(each.path for each in graph.parts.store.list("")) == before
