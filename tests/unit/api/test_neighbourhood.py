"""What surrounds a node: bounded, fair to every edge type, at one commit."""

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.ids import UlidSource

SCHEMA = """
node Person { name: String @key  age: I32?  face: Vector(2)?  photo: Blob? }
node City { name: String @key }
node Note { text: String }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City
"""


@pytest.fixture
def graph() -> Graph:
    graph = omnigraph.init(f"memory://near-{UlidSource().new()}", SCHEMA)
    people = [{"name": name, "age": age, "face": [0.5, 1.0]} for age, name in enumerate(("ada", "bob", "cyd", "dee"))]
    knows = [("ada", "bob", 1), ("bob", "cyd", 2), ("cyd", "dee", 3), ("dee", "dee", 4)]
    graph.write(
        nodes={"Person": people, "City": [{"name": "ada"}]},
        edges={
            "Knows": [{"from": source, "to": target, "since": since} for source, target, since in knows],
            "LivesIn": [{"from": "ada", "to": "ada"}, {"from": "dee", "to": "ada"}],
        },
    )
    return graph


def names(found: omnigraph.Neighbourhood) -> dict[tuple[str, str], int]:
    return {(each.type_name, each.id): each.distance for each in found.nodes}


def test_the_nodes_at_both_ends_of_every_edge_are_told_with_their_properties(graph: Graph) -> None:
    found = graph.neighbourhood("Person", "bob")
    assert names(found) == {("Person", "bob"): 0, ("Person", "ada"): 1, ("Person", "cyd"): 1}
    assert {(each.source[1], each.target[1], each.properties["since"]) for each in found.edges} == {
        ("ada", "bob", 1),
        ("bob", "cyd", 2),
    }
    assert dict(found.nodes[0].properties) == {"age": 1, "name": "bob"}, "neither vectors nor blobs"
    assert not found.is_cut
    assert found.commit == graph.snapshot().commit


def test_further_steps_go_further_and_a_node_has_its_shortest_distance(graph: Graph) -> None:
    far = graph.neighbourhood("Person", "bob", depth=2)
    assert names(far) == {
        ("Person", "bob"): 0,
        ("Person", "ada"): 1,
        ("Person", "cyd"): 1,
        ("City", "ada"): 2,
        ("Person", "dee"): 2,
    }
    farther = graph.neighbourhood("Person", "bob", depth=3)
    loops = [each for each in farther.edges if each.source == each.target == ("Person", "dee")]
    assert len(loops) == 1, "an edge to itself is there once"


def test_nodes_of_two_types_with_one_id_are_two_nodes(graph: Graph) -> None:
    found = graph.neighbourhood("City", "ada")
    assert names(found) == {("City", "ada"): 0, ("Person", "ada"): 1, ("Person", "dee"): 1}
    [edge] = [each for each in found.edges if each.source == ("Person", "ada")]
    assert edge.target == ("City", "ada")


def test_only_the_edges_asked_for_are_followed_whatever_their_case(graph: Graph) -> None:
    assert names(graph.neighbourhood("Person", "ada", edges=["livesIn"])) == {("Person", "ada"): 0, ("City", "ada"): 1}


def test_a_type_with_many_edges_does_not_hide_the_others(graph: Graph) -> None:
    graph.write(
        nodes={"Person": [{"name": f"fan {at}"} for at in range(50)]},
        edges={"Knows": [{"from": f"fan {at}", "to": "ada"} for at in range(50)]},
    )
    found = graph.neighbourhood("Person", "ada", limit=5)
    assert len(found.nodes) == 5
    assert ("City", "ada") in names(found)
    assert found.is_cut
    told = {(each.type_name, each.id) for each in found.nodes}
    assert all(each.source in told and each.target in told for each in found.edges)


def test_ids_with_quotes_are_ids_and_nothing_else(graph: Graph) -> None:
    odd = "o'neil\" OR 1=1 --"
    graph.write(nodes={"Person": [{"name": odd}]}, edges={"Knows": [{"from": odd, "to": "bob"}]})
    assert names(graph.neighbourhood("Person", odd)) == {("Person", odd): 0, ("Person", "bob"): 1}
    with pytest.raises(NotFoundError, match="there is no Person"):
        graph.neighbourhood("Person", "x' OR '1'='1")


def test_the_state_that_is_asked_for_is_the_one_that_is_told(graph: Graph) -> None:
    before = graph.snapshot().commit
    graph.mutate('query q() { delete Knows where to = "cyd" }')
    assert ("Person", "cyd") not in names(graph.neighbourhood("Person", "bob"))
    assert ("Person", "cyd") in names(graph.neighbourhood("Person", "bob", commit=before))


def test_a_node_without_edges_is_alone(graph: Graph) -> None:
    graph.mutate('query q() { insert Note { text: "hm" } }')
    [row] = graph.query("query q() { match { $n: Note } return { $n as id } }")
    found = graph.neighbourhood("Note", row["id"])
    assert [dict(each.properties) for each in found.nodes] == [{"text": "hm"}]
    assert found.edges == ()


def test_what_is_not_there_or_makes_no_sense_is_refused(graph: Graph) -> None:
    for wrong in ("Nothing", "node:Nothing"):
        with pytest.raises(NotFoundError) as unknown:
            graph.neighbourhood(wrong, "ada")
        assert unknown.value.code == "type_not_found"
    with pytest.raises(NotFoundError) as missing:
        graph.neighbourhood("Person", "nobody")
    assert missing.value.code == "entity_not_found"
    with pytest.raises(NotFoundError, match="there is no edge type 'Likes'"):
        graph.neighbourhood("Person", "ada", edges=["Likes"])
    with pytest.raises(InvalidRequestError, match="is an edge type"):
        graph.neighbourhood("Knows", "ada")
    for depth, limit in ((0, 9), (99, 9), (1, 0), (1, 10**6)):
        with pytest.raises(InvalidRequestError, match="must be 1 to"):
            graph.neighbourhood("Person", "ada", depth=depth, limit=limit)
