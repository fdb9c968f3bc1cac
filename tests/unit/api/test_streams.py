"""Results a batch at a time, and what reads keep in memory."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import OpenOptions
from omnigraph.api.graph import Graph
from omnigraph.errors import InvalidRequestError, LimitError, ParseError
from omnigraph.execution.query_limits import QueryLimits

SCHEMA = "node Person { name: String @key  born: Date? }  edge Knows: Person -> Person"
FAST = OpenOptions(durability="process")
PEOPLE = 40
ALL = "query everybody() { match { $p: Person } return { $p.name as name, $p.born as born } }"
PAIRS = "query pairs() { match { $p: Person $q: Person } return { $p.name as p, $q.name as q } }"


def filled(options: OpenOptions = FAST) -> Graph:
    graph = omnigraph.init("memory://", SCHEMA, options=options)
    people = [{"name": f"p{at:02d}", "born": "2000-01-01" if at % 2 else None} for at in range(PEOPLE)]
    edges = [{"from": f"p{at:02d}", "to": f"p{(at + 1) % PEOPLE:02d}"} for at in range(PEOPLE)]
    graph.write({"Person": people}, {"Knows": edges})
    return graph


@pytest.fixture
def graph() -> Iterator[Graph]:
    with filled() as made:
        yield made


def test_a_stream_has_the_rows_of_the_result(graph: Graph) -> None:
    whole = graph.query(ALL)
    stream = graph.stream(ALL, limits=QueryLimits(batch_rows=7))
    assert (stream.query_name, stream.branch, stream.commit) == (whole.query_name, whole.branch, whole.commit)
    assert stream.columns == whole.columns == ["name", "born"]
    assert stream.schema == whole.to_arrow().schema
    assert list(stream) == whole.to_pylist()


def test_batches_are_handed_over_as_they_are_found(graph: Graph) -> None:
    sizes = [batch.num_rows for batch in graph.stream(ALL, limits=QueryLimits(batch_rows=7)).batches()]
    assert sum(sizes) == PEOPLE
    assert max(sizes) <= 7


def test_a_stream_needs_little_memory_for_a_result_that_does_not_fit(graph: Graph) -> None:
    little = QueryLimits(memory_bytes=4_000, batch_rows=50)
    with pytest.raises(LimitError) as refused:
        graph.query(PAIRS, limits=little, engine="local")
    assert refused.value.code == "query_memory"
    assert sum(batch.num_rows for batch in graph.stream(PAIRS, limits=little).batches()) == PEOPLE**2


def test_a_stream_shows_one_commit_whatever_is_written_meanwhile(graph: Graph) -> None:
    stream = graph.stream(ALL, limits=QueryLimits(batch_rows=10))
    batches = stream.batches()
    first = next(batches)
    graph.mutate('query q() { delete Person where name = "p39" }')
    rest = [str(name) for batch in (first, *batches) for name in batch.column(0).to_pylist()]
    assert sorted(rest) == [f"p{at:02d}" for at in range(PEOPLE)]
    assert graph.count("Person") == PEOPLE - 1


def test_the_rows_of_a_stream_come_once(graph: Graph) -> None:
    stream = graph.stream(ALL)
    assert len(list(stream)) == PEOPLE
    with pytest.raises(InvalidRequestError) as refused:
        list(stream)
    assert refused.value.code == "stream_consumed"


def test_a_stream_is_an_arrow_stream(graph: Graph) -> None:
    assert pa.table(graph.stream(ALL)).equals(graph.query(ALL).to_arrow())
    assert graph.stream(ALL).to_reader().read_all().equals(graph.query(ALL).to_arrow())


def test_a_stream_of_nothing_has_columns(graph: Graph) -> None:
    stream = graph.stream('query q() { match { $p: Person { name: "nobody" } } return { $p.born } }')
    assert stream.columns == ["p.born"]
    assert list(stream) == []


def test_what_is_wrong_is_told_before_the_first_row_is_asked_for(graph: Graph) -> None:
    with pytest.raises(ParseError):
        graph.stream("query q() { match { $p: Nobody } return { $p } }")
    with pytest.raises(InvalidRequestError):
        graph.stream('query q() { insert Person { name: "x" } }')
    with pytest.raises(InvalidRequestError):
        graph.stream("query q($n: String) { match { $p: Person { name: $n } } return { $p } }")


def test_a_snapshot_can_be_streamed(graph: Graph) -> None:
    before = graph.snapshot()
    graph.mutate('query q() { delete Person where name = "p00" }')
    assert len(list(before.stream(ALL))) == PEOPLE
    assert len(list(graph.stream(ALL, commit=before.commit))) == PEOPLE
    assert "everybody" in repr(before.stream(ALL))


# -- what is kept -----------------------------------------------------------------------------------------------------

NEAR: dict[str, Any] = {
    "query": "query q($n: String) { match { $p: Person { name: $n } $p knows $q } return { $q.name as name } }",
    "params": {"n": "p00"},
}


def test_what_reads_keep_can_be_seen(graph: Graph) -> None:
    with omnigraph.init("memory://", SCHEMA, options=FAST) as untouched:
        assert untouched.stats().cache.values == 0
    # Rows that were just written may be kept; nothing was read yet.
    written = graph.stats()
    assert (written.cache.hits, written.adjacency.made, written.plans, written.walks) == (0, 0, 0, 0)
    for _ in range(3):
        assert graph.query(**NEAR).to_pylist() == [{"name": "p01"}]
    stats = graph.stats()
    assert stats.cache.values > written.cache.values
    assert written.cache.bytes < stats.cache.bytes <= stats.cache.bytes_max
    assert stats.cache.hits > 0
    assert stats.adjacency.made == 1
    assert stats.plans == 1
    assert stats.walks >= 1


def test_how_much_is_kept_can_be_chosen() -> None:
    with filled() as roomy:
        roomy.query(**NEAR)
        wanted = roomy.stats().cache.bytes
    with filled(OpenOptions(durability="process", cache_bytes=wanted - 1)) as narrow:
        for _ in range(3):
            assert narrow.query(**NEAR).to_pylist() == [{"name": "p01"}]
        stats = narrow.stats().cache
        assert stats.bytes <= stats.bytes_max == wanted - 1
        assert stats.evictions > 0


def test_texts_with_another_name_in_each_are_answered_one_by_one(graph: Graph) -> None:
    for at in range(PEOPLE):
        found = graph.query(
            f'query q() {{ match {{ $p: Person {{ name: "p{at:02d}" }} $p knows $q }} return {{ $q }} }}'
        )
        assert found.to_pylist() == [{"q": f"p{(at + 1) % PEOPLE:02d}"}]
    # The first text has a plan of its own; all later ones share one.
    assert graph.stats().plans == 2
