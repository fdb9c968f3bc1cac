"""The steps between two schemas, with the rows and values they lose."""

from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.branch.merge.schema_costs import costed_steps
from omnigraph.model.schema_cost import CostedStep

SCHEMA = """
interface Named { title: String? }
node Person implements Named { name: String @key  age: I32?  photo: Blob? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=OpenOptions(durability="process")) as made:
        people = [{"name": "Ann", "age": 1, "photo": b"x"}, {"name": "Ben", "age": 2}, {"name": "Cid"}]
        made.write(
            {"Person": people, "City": [{"name": "Oslo"}, {"name": "Rome"}]},
            {"Knows": [{"from": "Ann", "to": "Ben"}]},
        )
        made.branches.create("side")
        yield made


def costs(graph: Graph, text: str, *, validated: bool = False) -> tuple[CostedStep, ...]:
    """The steps from main to what a branch makes of it."""
    graph.schema_apply(text, branch="side", validated=validated, allow_data_loss=True)
    main, side = graph.snapshot(), graph.snapshot(branch="side")
    return costed_steps(graph._parts.tables, main.schema, main.record, side.schema)


def test_a_dropped_property_costs_the_values_it_has(graph: Graph) -> None:
    found = costs(graph, SCHEMA.replace("age: I32?  photo: Blob?", ""))
    assert [(each.to_dict()["property_name"], each.values_lost, each.rows_lost) for each in found] == [
        ("age", 2, 0),
        ("photo", 1, 0),
    ]
    assert str(found[0]) == "drop property 'Person.age' of node 'Person' (soft mode): loses 2 values"
    assert str(found[1]).endswith(": loses 1 value")


def test_a_dropped_type_costs_its_rows(graph: Graph) -> None:
    [city, knows] = costs(graph, SCHEMA.split("node City", maxsplit=1)[0])
    assert (city.rows_lost, knows.rows_lost) == (2, 1)
    assert str(city) == "drop node type 'City' (soft mode): loses 2 rows"


def test_a_property_dropped_from_a_renamed_type_is_counted_under_the_old_name(graph: Graph) -> None:
    renamed = SCHEMA.replace("age: I32?", "").replace("Person implements", 'Human @rename_from("Person") implements')
    found = costs(graph, renamed.replace("Person -> Person", "Human -> Human"))
    assert [each.values_lost for each in found] == [0, 2]


def test_other_steps_cost_nothing(graph: Graph) -> None:
    [added] = costs(graph, SCHEMA.replace("age: I32?", "age: I32?  mail: String?"))
    assert (added.rows_lost, added.values_lost) == (0, 0)
    assert CostedStep.from_dict(added.to_dict()) == added
    assert added.to_dict()["text"] == str(added) == "add property 'Person.mail' (String?) on node 'Person'"


def test_what_gives_way_to_another_of_the_same_name_is_dropped_for_it(graph: Graph) -> None:
    texts = {
        "main": SCHEMA.replace("age: I32?", "age: I32?  mail: String?") + "node Sign { name: String @key }\n",
        "side": SCHEMA.replace("age: I32?", "age: I32?  mail: I32?") + "node Sign { code: I64 @key }\n",
    }
    for branch, text in texts.items():
        graph.schema_apply(text, branch=branch)
    graph.write({"Person": [{"name": "Dan", "mail": "dan@"}, {"name": "Eva"}], "Sign": [{"name": "a"}, {"name": "b"}]})
    chosen = {"schema": {"node:Person.mail": "source", "node:Sign": "source"}}
    found = graph.merge("side", resolutions=chosen, preview=True).schema_steps
    assert [(step.step.kind, step.values_lost, step.rows_lost) for step in found] == [
        ("add_property", 0, 0),
        ("drop_property", 1, 0),
        ("add_type", 0, 0),
        ("drop_type", 0, 2),
    ]
    graph.merge("side", resolutions=chosen)
    assert graph.count("Sign") == 0
