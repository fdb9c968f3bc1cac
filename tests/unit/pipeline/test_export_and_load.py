"""What was exported and loaded again is what was there."""

import io
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph

SCHEMA = """
node Person { name: String @key age: I32? big: U64? weight: F64? small: F32? ok: Bool? born: Date? at: DateTime? }
node Thing { tags: [String]? counts: [I64]? face: Vector(2)? raw: Blob? }
edge Knows: Person -> Person { since: Date? note: String? }
edge Owns: Person -> Thing
"""
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(  # noqa: DTZ001  (the strategy wants bounds without a zone)
    lambda when: when.replace(tzinfo=UTC, microsecond=when.microsecond // 1000 * 1000)
)


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


PEOPLE = st.fixed_dictionaries(
    {
        "name": NAMES,
        "age": some(st.integers(-(2**31), 2**31 - 1)),
        "big": some(st.integers(0, 2**64 - 1)),
        "weight": some(st.floats(allow_nan=False, allow_infinity=False)),
        "small": some(st.floats(width=32, allow_nan=False, allow_infinity=False)),
        "ok": some(st.booleans()),
        "born": some(st.dates()),
        "at": some(INSTANTS),
    }
)
THINGS = st.fixed_dictionaries(
    {
        "id": NAMES,
        "tags": some(st.lists(TEXTS, max_size=3)),
        "counts": some(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3)),
        "face": some(st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=2)),
        "raw": some(st.binary(max_size=5)),
    }
)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    people = draw(st.lists(PEOPLE, min_size=1, max_size=5, unique_by=lambda row: row["name"]))
    things = draw(st.lists(THINGS, min_size=1, max_size=4, unique_by=lambda row: row["id"]))
    person = st.sampled_from([row["name"] for row in people])
    thing = st.sampled_from([row["id"] for row in things])
    known = st.fixed_dictionaries({"from": person, "to": person, "since": some(st.dates()), "note": some(TEXTS)})
    owned = st.fixed_dictionaries({"from": person, "to": thing})
    edges = {"Knows": draw(st.lists(known, max_size=4)), "Owns": draw(st.lists(owned, max_size=4))}
    return {"Person": people, "Thing": things}, {name: rows for name, rows in edges.items() if rows}


def exported(graph: Graph) -> bytes:
    stream = io.BytesIO()
    graph.export(stream)
    return stream.getvalue()


@settings(max_examples=25)
@given(graphs())
def test_loading_what_was_exported_makes_the_same_graph(rows: tuple[dict[str, Any], dict[str, Any]]) -> None:
    graph = omnigraph.init("memory://", SCHEMA)
    graph.write(*rows)
    before = exported(graph)
    other = omnigraph.init("memory://", SCHEMA)

    other.load(before, mode="overwrite", format="jsonl", engine="local")

    assert exported(other) == before
    # Once more over what is there: nothing changes but the commit.
    other.load(before, mode="overwrite", format="jsonl", engine="local")
    assert exported(other) == before
