"""Random mutations against a model: each type a dictionary, each rule a few lines."""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import ConstraintError, Graph, OpenOptions

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique  @range(age, 0..4) }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Person @card(0..1)
edge Owns: Person -> Person @card(1..2)
"""
FAST = OpenOptions(durability="process")
QUICK = settings(derandomize=True, max_examples=40, suppress_health_check=list(HealthCheck))
EDGES = ("Knows", "WorksAt", "Owns")
NAMES = ("A", "B", "C")

Row = dict[str, Any]


@dataclass
class State:
    """What a graph holds: people by name, edges of each type by a number of their own."""

    people: dict[str, Row] = field(default_factory=dict)
    edges: dict[str, dict[int, Row]] = field(default_factory=lambda: {name: {} for name in EDGES})

    def visible(self) -> tuple[dict[str, Row], dict[str, Counter[tuple[Any, ...]]]]:
        edges = {
            name: Counter((row["src"], row["dst"], row.get("since")) for row in rows.values())
            for name, rows in self.edges.items()
        }
        return self.people, edges


class Broken(Exception):  # noqa: N818  (an outcome)
    """A rule does not hold; says which."""


_numbers = count()


# -- statements: the text, and what it does to the model --------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """A predicate of a statement, as text and as a function of a row; unknown is False."""

    text: str
    holds: Callable[[Row], bool]


def _known(test: Callable[[Any], bool], column: str) -> Callable[[Row], bool]:
    return lambda row: row[column] is not None and test(row[column])


def _by_name(name: str) -> Condition:
    return Condition(f'name = "{name}"', lambda row: bool(row["name"] == name))


def _by_age(bound: int) -> Condition:
    return Condition(f"age > {bound}", _known(lambda age: bool(age > bound), "age"))


def _but(name: str, bound: int) -> Condition:
    return Condition(
        f'age <= {bound} and name != "{name}"',
        lambda row: row["age"] is not None and row["age"] <= bound and row["name"] != name,
    )


names = st.sampled_from(NAMES)
ages = st.sampled_from([0, 1, 2, 4]) | st.just(5)
emails = st.sampled_from(["x", "y", "z"])
people_conditions = st.one_of(
    names.map(_by_name),
    st.integers(0, 4).map(_by_age),
    st.builds(_but, names, st.integers(0, 4)),
    st.just(Condition("email is null", lambda row: row["email"] is None)),
    emails.map(lambda email: Condition(f'email = "{email}"', _known(lambda value: bool(value == email), "email"))),
)
edge_conditions = st.one_of(
    names.map(lambda name: Condition(f'from = "{name}"', lambda row: bool(row["src"] == name))),
    names.map(lambda name: Condition(f'to = "{name}"', lambda row: bool(row["dst"] == name))),
    st.builds(
        lambda one, other: Condition(
            f'from = "{one}" and to != "{other}"', lambda row: row["src"] == one and row["dst"] != other
        ),
        names,
        names,
    ),
)


@dataclass(frozen=True)
class Statement:
    """One statement: its text, and what it does to a model; returns how many nodes and edges it affected."""

    text: str
    apply: Callable[[State], tuple[int, int]]


def _insert_person(name: str, values: Row) -> Statement:
    def apply(state: State) -> tuple[int, int]:
        state.people[name] = {"name": name, "age": None, "email": None} | values
        return 1, 0

    given_ = "".join(f", {key}: {_literal(value)}" for key, value in values.items())
    return Statement(f'insert Person {{ name: "{name}"{given_} }}', apply)


def _insert_edge(type_name: str, source: str, target: str) -> Statement:
    def apply(state: State) -> tuple[int, int]:
        state.edges[type_name][next(_numbers)] = {"src": source, "dst": target}
        return 0, 1

    return Statement(f'insert {type_name} {{ from: "{source}", to: "{target}" }}', apply)


def _update(values: Row, condition: Condition) -> Statement:
    def apply(state: State) -> tuple[int, int]:
        found = [row for row in state.people.values() if condition.holds(row)]
        for row in found:
            row.update(values)
        return len(found), 0

    assigned = ", ".join(f"{key}: {_literal(value)}" for key, value in values.items())
    return Statement(f"update Person set {{ {assigned} }} where {condition.text}", apply)


def _delete_people(condition: Condition) -> Statement:
    def apply(state: State) -> tuple[int, int]:
        gone = {name for name, row in state.people.items() if condition.holds(row)}
        edges = 0
        for rows in state.edges.values():
            for number in [n for n, row in rows.items() if row["src"] in gone or row["dst"] in gone]:
                del rows[number]
                edges += 1
        for name in gone:
            del state.people[name]
        return len(gone), edges

    return Statement(f"delete Person where {condition.text}", apply)


def _delete_edges(type_name: str, condition: Condition) -> Statement:
    def apply(state: State) -> tuple[int, int]:
        rows = state.edges[type_name]
        gone = [number for number, row in rows.items() if condition.holds(row)]
        for number in gone:
            del rows[number]
        return 0, len(gone)

    return Statement(f"delete {type_name} where {condition.text}", apply)


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


given_values = st.fixed_dictionaries({}, optional={"age": ages, "email": emails})
some_values = given_values.filter(bool)
inserts = st.builds(_insert_person, names, given_values) | st.builds(_insert_edge, st.sampled_from(EDGES), names, names)
updates = st.builds(_update, some_values, people_conditions)
deletes = st.builds(_delete_people, people_conditions) | st.builds(
    _delete_edges, st.sampled_from(EDGES), edge_conditions
)


@dataclass(frozen=True)
class Mutation:
    """Statements of one query."""

    statements: tuple[Statement, ...]
    ordered: bool

    @property
    def text(self) -> str:
        body = " ".join(each.text for each in self.statements)
        return f"query q() {'@ordered ' if self.ordered else ''}{{ {body} }}"


def _mutations(statements: "st.SearchStrategy[Statement]", *, ordered: bool) -> "st.SearchStrategy[Mutation]":
    several = st.lists(statements, min_size=1, max_size=4).map(tuple)
    return several.map(lambda chosen: Mutation(chosen, ordered))


mutations = st.one_of(
    _mutations(inserts, ordered=False),
    _mutations(inserts | updates, ordered=False),
    _mutations(deletes, ordered=False),
    _mutations(inserts | updates | deletes, ordered=True),
)


# -- rules ------------------------------------------------------------------------------------------------------------


def check(before: State, after: State) -> None:
    """Every rule on what is left, in the order they are told."""
    if any(row["age"] is not None and not 0 <= row["age"] <= 4 for row in after.people.values()):
        raise Broken("@range violation on Person.age")
    held = [row["email"] for row in after.people.values() if row["email"] is not None]
    if len(held) != len(set(held)):
        raise Broken("@unique violation on Person.email")
    for type_name in sorted(EDGES):
        for row in after.edges[type_name].values():
            if row["src"] not in after.people or row["dst"] not in after.people:
                raise Broken("not found in Person")
    for type_name, (least, most) in (("Owns", (1, 2)), ("WorksAt", (0, 1))):
        old, new = before.edges[type_name], after.edges[type_name]
        touched = {row["src"] for number, row in old.items() if number not in new}
        touched |= {row["src"] for number, row in new.items() if number not in old}
        degrees = Counter(row["src"] for row in new.values())
        if any(not least <= degrees[name] <= most for name in touched & after.people.keys()):
            raise Broken(f"@card violation on edge {type_name}")


def visible(graph: Graph) -> tuple[dict[str, Row], dict[str, Counter[tuple[Any, ...]]]]:
    snapshot = graph.snapshot()
    people = {row["name"]: row for row in snapshot.export_arrow("Person").read_all().to_pylist()}
    for name, row in people.items():
        assert row.pop("id") == name
    edges = {
        name: Counter(
            (row["src"], row["dst"], row.get("since")) for row in snapshot.export_arrow(name).read_all().to_pylist()
        )
        for name in EDGES
    }
    return people, edges


@QUICK
@given(st.lists(mutations, min_size=1, max_size=8))
def test_mutations_do_what_the_model_does_and_refuse_what_it_refuses(program: list[Mutation]) -> None:
    follow(program)


@pytest.mark.torture
@settings(QUICK, max_examples=1_500)
@given(st.lists(mutations, min_size=1, max_size=20))
def test_many_more_mutations_do_what_the_model_does(program: list[Mutation]) -> None:
    follow(program)


def follow(program: list[Mutation]) -> None:
    """Let graph and model do the same, and compare them after every step."""
    state = State()
    with omnigraph.init("memory://", SCHEMA, options=FAST) as graph:
        for step in program:
            after = deepcopy(state)
            affected = [each.apply(after) for each in step.statements]
            number = graph.snapshot().number
            try:
                check(state, after)
            except Broken as expected:
                try:
                    graph.mutate(step.text)
                except ConstraintError as refused:
                    assert str(expected) in refused.message, step.text
                else:
                    raise AssertionError(f"{step.text} should break {expected}") from None
                assert graph.snapshot().number == number
            else:
                result = graph.mutate(step.text)
                counted = result.affected_nodes, result.affected_edges
                assert counted == tuple(map(sum, zip(*affected, strict=True))), step.text
                assert (result.commit is None) == (graph.snapshot().number == number)
                state = after
            assert visible(graph) == state.visible(), step.text
