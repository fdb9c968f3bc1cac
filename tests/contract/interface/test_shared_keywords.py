"""A point in time and the options of a write are one value each; the same names work as keywords, everywhere."""

import pytest
from tests.support.either_library import ADD, AUTHORS

from omnigraph import Graph, InvalidRequestError, Point, PreconditionError, RemoteGraph, WriteOptions

Either = Graph | RemoteGraph


def test_a_point_reads_what_its_fields_read(graph: Either, line: str) -> None:
    before = graph.snapshot(branch=line)
    graph.mutate(ADD, {"name": "Lem"}, branch=line)
    for point, fields in (
        (Point(branch=line), {"branch": line}),
        (Point(commit=before.commit), {"commit": before.commit}),
        (Point(branch=line, number=before.number), {"branch": line, "number": before.number}),
    ):
        assert graph.query(AUTHORS, point=point).to_pylist() == graph.query(AUTHORS, **fields).to_pylist()
        assert graph.count("Author", point=point) == graph.count("Author", **fields)


def test_a_point_and_its_fields_together_are_refused(graph: Either, line: str) -> None:
    with pytest.raises(InvalidRequestError, match="a point, or its fields"):
        graph.count("Author", point=Point(branch=line), branch=line)
    with pytest.raises(InvalidRequestError, match="must be a Point, got str"):
        graph.count("Author", point="main")  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(TypeError, match="unexpected keyword argument 'brnch'"):
        graph.count("Author", brnch=line)  # type: ignore[call-arg]  # the mistake under test


def test_options_are_taken_as_one_value_and_keywords_win(graph: Either, line: str) -> None:
    options = WriteOptions(message="as a value", idempotency_key=f"key of {line}")
    first = graph.mutate(ADD, {"name": "Lem"}, branch=line, write=options)
    again = graph.mutate(ADD, {"name": "Lem"}, branch=line, write=options)
    other = graph.mutate(ADD, {"name": "Strugatsky"}, branch=line, write=options, idempotency_key=f"other {line}")
    assert (again.commit, again.replayed) == (first.commit, True)
    assert other.commit != first.commit
    assert {commit.message for commit in graph.commits.list(line, limit=2)} == {"as a value"}
    with pytest.raises(PreconditionError):
        graph.write({"Author": [{"name": "Dick"}]}, branch=line, write=WriteOptions(if_commit=first.commit))


def test_options_that_a_write_cannot_honour_are_refused(graph: Either, line: str) -> None:
    head = graph.snapshot(branch=line)
    versions = WriteOptions(expected_table_versions=head.table_versions)
    for act in (
        lambda: graph.merge(line, write=versions),
        lambda: graph.merge(line, idempotency_key="key"),
        lambda: graph.revert(head.commit, branch=line, write=versions),
        lambda: graph.schema_apply(graph.schema_text(branch=line), branch=line, write=versions),
    ):
        with pytest.raises(InvalidRequestError, match=r"^this write does not support (expected_|idempotency_key)"):
            act()
    with pytest.raises(InvalidRequestError, match="write must be WriteOptions, got dict"):
        graph.mutate(ADD, {"name": "Lem"}, branch=line, write={})  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(TypeError, match="unexpected keyword argument 'mesage'"):
        graph.mutate(ADD, {"name": "Lem"}, branch=line, mesage="")  # type: ignore[call-arg]  # the mistake under test
    assert graph.snapshot(branch=line).commit == head.commit
