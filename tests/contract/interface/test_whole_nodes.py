"""Whole nodes from a graph, open or served: by id, as objects of a query, as all their columns, and around a node."""

from typing import Any

import pytest

from omnigraph import errors

# Either of two classes, which share their methods and no ancestor.
AnyGraph = Any
DISPOSSESSED = {"id": "0-1", "isbn": "0-1", "title": "The Dispossessed", "pages": 341, "mood": [0.5, 1.5], "read": None}
KINDRED = {
    "id": "0-2",
    "isbn": "0-2",
    "title": "Kindred",
    "pages": None,
    "mood": None,
    "read": "2024-05-06T07:08:09.000Z",
}
UNWRITTEN = "match { $b: Book optional { $a wrote $b } } return { $b, $a } order { $b.isbn }"


def test_get_returns_all_properties_but_blobs_in_declared_order(graph: AnyGraph) -> None:
    found = graph.get("Book", "0-1")

    assert found == DISPOSSESSED
    assert list(found) == ["id", "isbn", "title", "pages", "mood", "read"]


def test_get_of_an_edge_has_its_ends(graph: AnyGraph) -> None:
    assert graph.get("Wrote", "w1") == {"id": "w1", "from": "Le Guin", "to": "0-1", "year": 1974}


def test_get_many_answers_in_the_order_of_the_ids(graph: AnyGraph) -> None:
    assert graph.get_many("Book", ["0-2", "nowhere", "0-1", "0-2"]) == [KINDRED, None, DISPOSSESSED, KINDRED]
    assert graph.get_many("Book", []) == []
    assert graph.get_many("Book", "0-1") == [DISPOSSESSED]
    assert graph.get("node:Author", "O'Neil") is None


def test_get_reads_at_any_point(graph: AnyGraph, line: str) -> None:
    before = graph.snapshot(branch=line)
    graph.mutate('query q() { update Book set { pages: 7 } where isbn = "0-1" }', branch=line)

    assert graph.get("Book", "0-1", branch=line)["pages"] == 7
    assert graph.get("Book", "0-1", commit=before.commit)["pages"] == 341
    assert before.get("Book", "0-1") == DISPOSSESSED


def test_get_refuses_unknown_types_and_ids_that_are_no_texts(graph: AnyGraph) -> None:
    with pytest.raises(errors.NotFoundError):
        graph.get("Movie", "0-1")
    with pytest.raises(errors.InvalidRequestError):
        graph.get_many("Book", [7])
    with pytest.raises(errors.InvalidRequestError):
        graph.get("Book", 7)


def test_a_query_returns_nodes_as_objects_on_request(graph: AnyGraph) -> None:
    found = graph.query("query books() { match { $b: Book } return { $b as book } order { $b.isbn } }", nodes="object")

    assert found.columns == ["book"]
    assert found.to_pylist() == [{"book": DISPOSSESSED}, {"book": KINDRED}]


def test_objects_stand_beside_other_columns_and_are_null_where_there_is_no_node(graph: AnyGraph) -> None:
    le_guin = {"id": "Le Guin", "name": "Le Guin", "born": "1929-10-21"}

    assert graph.query(UNWRITTEN, nodes="object").to_pylist() == [
        {"b": DISPOSSESSED, "a": le_guin},
        {"b": KINDRED, "a": None},
    ]
    assert graph.query(UNWRITTEN).to_pylist() == [{"b": "0-1", "a": "Le Guin"}, {"b": "0-2", "a": None}]
    assert list(graph.stream(UNWRITTEN, nodes="object")) == graph.query(UNWRITTEN, nodes="object").to_pylist()


@pytest.mark.parametrize(
    ("returned", "rows"),
    [
        ("return { $a, count($b) as n }", [{"a": {"id": "Le Guin", "name": "Le Guin", "born": "1929-10-21"}, "n": 1}]),
        ("return distinct { $b }", [{"b": DISPOSSESSED}]),
        ("return { collect($b) as all }", [{"all": ["0-1"]}]),
    ],
)
def test_objects_are_grouped_as_their_ids(graph: AnyGraph, returned: str, rows: list[dict[str, object]]) -> None:
    assert graph.query(f"match {{ $a wrote $b }} {returned}", nodes="object").to_pylist() == rows


def test_a_result_without_rows_has_the_columns_of_objects(graph: AnyGraph) -> None:
    query = 'match { $b: Book { isbn: "nowhere" } } return { $b, $b.title }'

    assert graph.query(query, nodes="object").columns == ["b", "b.title"]
    assert list(graph.stream(query, nodes="object")) == []


def test_an_unknown_form_of_nodes_is_refused(graph: AnyGraph) -> None:
    with pytest.raises(errors.InvalidRequestError, match="use id or object"):
        graph.query(UNWRITTEN, nodes="json")


def test_a_star_returns_every_property_as_a_column(graph: AnyGraph) -> None:
    found = graph.query('query q() { match { $b: Book { isbn: "0-1" } $a $w: wrote $b } return { $w.*, $b.* } }')

    assert found.to_pylist() == [
        {"w.year": 1974, **{f"b.{name}": value for name, value in DISPOSSESSED.items() if name != "id"}}
    ]


def test_a_bare_read_is_a_query(graph: AnyGraph) -> None:
    found = graph.query("match { $a: Author } return { $a.name } order { $a.name }")

    assert (found.query_name, found.to_pylist()) == ("query", [{"a.name": "Butler"}, {"a.name": "Le Guin"}])


def test_a_neighbourhood_has_whole_nodes(graph: AnyGraph) -> None:
    whole = {node.id: node.properties for node in graph.neighbourhood("Author", "Le Guin", vectors=True).nodes}
    plain = {node.id: node.properties for node in graph.neighbourhood("Author", "Le Guin").nodes}

    assert whole["0-1"] == {name: value for name, value in DISPOSSESSED.items() if name != "id"}
    assert list(plain["0-1"]) == ["isbn", "title", "pages", "read"]


# --- upsert -----------------------------------------------------------------------------------------------------------


def test_an_upsert_keeps_what_it_does_not_name(graph: AnyGraph, line: str) -> None:
    done = graph.mutate('query q() { upsert Book { isbn: "0-1", pages: 9 } }', branch=line)

    assert done.affected_nodes == 1
    assert graph.get("Book", "0-1", branch=line) == DISPOSSESSED | {"pages": 9}
    assert graph.blob("node", "Book", "0-1", "cover", branch=line).read() == b"hello"


def test_an_upsert_of_a_new_node_needs_what_the_schema_requires(graph: AnyGraph, line: str) -> None:
    with pytest.raises(errors.InvalidRequestError, match="missing required property 'title'"):
        graph.mutate('query q() { upsert Book { isbn: "0-3", pages: 9 } }', branch=line)
    graph.mutate('query q() { upsert Book { isbn: "0-3", title: "Solaris" } }', branch=line)

    assert graph.get("Book", "0-3", branch=line)["title"] == "Solaris"


def test_an_upsert_can_empty_a_property_by_naming_it(graph: AnyGraph, line: str) -> None:
    graph.mutate('query q() { upsert Book { isbn: "0-1", pages: null } }', branch=line)

    assert graph.get("Book", "0-1", branch=line) == DISPOSSESSED | {"pages": None}


def test_an_insert_still_replaces_the_whole_node(graph: AnyGraph, line: str) -> None:
    graph.mutate('query q() { insert Book { isbn: "0-1", title: "New" } }', branch=line)

    assert graph.get("Book", "0-1", branch=line) == dict.fromkeys(DISPOSSESSED) | {
        "id": "0-1",
        "isbn": "0-1",
        "title": "New",
    }
