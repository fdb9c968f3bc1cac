"""What every engine that checks the rules of a schema must do, and one class per engine that does it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import ConstraintError, InvalidRequestError
from omnigraph.language.schema import accept
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.model.schema import Schema
from omnigraph.storage.conform import from_python
from omnigraph.storage.layout import system_columns, table_schema, table_schemas
from omnigraph.transaction import constraints
from omnigraph.transaction.constraint_rules.rules import rules_of
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.root import init
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet

SCHEMA = """
node Person {
  name: String @key  age: I32?  score: F64?  email: String? @unique  first: String?  born: Date?
  level: enum(low, high)?
  @unique(first, born)  @range(age, 0..150)  @range(score, ..0.5)  @check(name, "^[A-Za-z0-9 ]+$")
}
node Company { name: String @key  kind: enum(big, small)? }
edge Knows: Person -> Person { since: I32?  kind: enum(old, new)? @unique(src, dst) }
edge Likes: Person -> Person
edge WorksAt: Person -> Company @card(0..1)
edge Owns: Person -> Company @card(1..2)
"""

Rows = Sequence[Mapping[str, object]]
Content = Mapping[str, Rows]


@dataclass(frozen=True, slots=True)
class Change:
    """What a write does, by type key.

    Attributes:
        upserts: rows that are inserted, or take the place of those with the same id.
        deletes: ids that go.
        overwrites: rows that take the place of everything.
    """

    upserts: Content = field(default_factory=dict)
    deletes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    overwrites: Content = field(default_factory=dict)


def person(name: str, **values: object) -> dict[str, object]:
    return {"id": name, "name": name, **values}


def company(name: str, **values: object) -> dict[str, object]:
    return {"id": name, "name": name, **values}


def edge(id_: str, src: str, dst: str, **values: object) -> dict[str, object]:
    return {"id": id_, "src": src, "dst": dst, **values}


ADA, BOB, ACME = person("Ada"), person("Bob"), company("Acme")
TWO: Content = {"node:Person": [ADA, BOB], "node:Company": [ACME]}


class ConstraintsContract(ABC):
    """What every engine must say of a change to a graph."""

    @abstractmethod
    def breach(self, committed: Content, change: Change, schema: str = SCHEMA) -> str | None:
        """The first rule the change breaks, as a sentence; None if it breaks none."""

    # -- values -------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ({"level": "medium"}, "invalid enum value 'medium' for Person.level (expected: high, low)"),
            ({"level": ""}, "invalid enum value '' for Person.level (expected: high, low)"),
            ({"age": -1}, "@range violation on Person.age: value -1 < min 0"),
            ({"age": 151}, "@range violation on Person.age: value 151 > max 150"),
            ({"score": 0.75}, "@range violation on Person.score: value 0.75 > max 0.5"),
            ({"score": 2.0}, "@range violation on Person.score: value 2 > max 0.5"),
            (
                {"id": "a%", "name": "a%"},
                "@check violation on Person.name: value 'a%' does not match pattern '^[A-Za-z0-9 ]+$'",
            ),
        ],
    )
    def test_a_value_outside_its_rule_is_named(self, row: dict[str, object], message: str) -> None:
        change = Change({"node:Person": [ADA, {**person("Eve"), **row}]})
        assert self.breach({}, change) == message

    @pytest.mark.parametrize(
        "row", [{}, {"age": 0}, {"age": 150}, {"score": 0.5}, {"score": -1e300}, {"level": "low"}, {"level": "high"}]
    )
    def test_a_value_on_the_bound_and_an_absent_one_are_allowed(self, row: dict[str, object]) -> None:
        assert self.breach({}, Change({"node:Person": [person("Ada", **row)]})) is None

    def test_enums_of_edges_are_checked_too(self) -> None:
        change = Change({"edge:Knows": [edge("k", "Ada", "Bob", kind="older")]})
        assert self.breach(TWO, change) == "invalid enum value 'older' for Knows.kind (expected: new, old)"

    def test_a_pattern_need_only_be_found_somewhere(self) -> None:
        schema = 'node A { s: String? @check(s, "b+") }'
        assert self.breach({}, Change({"node:A": [{"id": "1", "s": "abbc"}, {"id": "2"}]}), schema) is None
        assert self.breach({}, Change({"node:A": [{"id": "1", "s": "ac"}]}), schema) == (
            "@check violation on A.s: value 'ac' does not match pattern 'b+'"
        )

    def test_a_pattern_takes_time_in_proportion_to_the_text(self) -> None:
        schema = 'node A { s: String @check(s, "^(a+)+$") }'
        text = "a" * 50_000 + "!"
        found = self.breach({}, Change({"node:A": [{"id": "1", "s": text}]}), schema)
        assert found is not None
        assert found.startswith("@check violation on A.s: value 'aaa")

    def test_a_pattern_that_is_none_stops_every_write_to_its_type_and_no_other(self) -> None:
        schema = 'node A { s: String? @check(s, "(?=x)") } node B { n: I32 }'
        assert self.breach({}, Change({"node:B": [{"id": "1", "n": 1}]}), schema) is None
        found = self.breach({}, Change({"node:A": [{"id": "1"}]}), schema)
        assert found is not None
        assert found.startswith("@check on A.s has invalid regex")

    def test_only_rows_the_write_touches_are_checked(self) -> None:
        committed = {"node:Person": [person("Ada", age=-5, email="x"), person("Bob", email="x")]}
        assert self.breach(committed, Change({"node:Person": [person("Eve", age=5)]})) is None

    # -- uniqueness ---------------------------------------------------------------------------------------------------

    def test_a_value_another_entity_has_is_refused(self) -> None:
        committed = {"node:Person": [person("Ada", email="a@x")]}
        assert self.breach(committed, Change({"node:Person": [person("Bob", email="a@x")]})) == (
            "@unique violation on Person.email: value 'a@x' held by 'Ada' and 'Bob'"
        )

    def test_one_value_twice_in_a_write_is_refused(self) -> None:
        change = Change({"node:Person": [person("Ada", email="a@x"), person("Bob", email="a@x")]})
        assert self.breach({}, change) == "@unique violation on Person.email: value 'a@x' held by 'Ada' and 'Bob'"

    def test_an_absent_value_is_shared_by_any_number(self) -> None:
        committed = {"node:Person": [ADA, person("Cy", first="C")]}
        assert self.breach(committed, Change({"node:Person": [BOB, person("Di", first="C")]})) is None

    def test_writing_an_entity_again_with_its_own_value_is_allowed(self) -> None:
        committed = {"node:Person": [person("Ada", email="a@x")]}
        assert self.breach(committed, Change({"node:Person": [person("Ada", email="a@x", age=36)]})) is None

    def test_a_value_freed_by_the_write_can_be_taken_by_it(self) -> None:
        committed = {"node:Person": [person("Ada", email="a@x"), person("Bob", email="b@x")]}
        freed = Change({"node:Person": [person("Ada", email="new@x"), person("Eve", email="a@x")]})
        assert self.breach(committed, freed) is None
        swapped = Change({"node:Person": [person("Ada", email="b@x"), person("Bob", email="a@x")]})
        assert self.breach(committed, swapped) is None
        deleted = Change({"node:Person": [person("Eve", email="a@x")]}, deletes={"node:Person": ["Ada"]})
        assert self.breach(committed, deleted) is None

    def test_tuples_are_compared_as_tuples(self) -> None:
        committed = {"node:Person": [person("Ada", first="A", born="1815-12-10")]}
        other = person("Bob", first="A", born="1815-12-11")
        assert self.breach(committed, Change({"node:Person": [other]})) is None
        same = person("Bob", first="A", born="1815-12-10")
        assert self.breach(committed, Change({"node:Person": [same]})) == (
            "@unique violation on Person.(first, born): value '(A, 1815-12-10)' held by 'Ada' and 'Bob'"
        )

    def test_components_do_not_run_into_each_other(self) -> None:
        schema = "node A { x: String?  y: String?  @unique(x, y) }"
        rows = [{"id": "1", "x": "a", "y": "bc"}, {"id": "2", "x": "ab", "y": "c"}, {"id": "3", "x": "1:a", "y": "b"}]
        assert self.breach({}, Change({"node:A": rows}), schema) is None

    @pytest.mark.parametrize(
        ("type_", "one", "other", "shown"),
        [
            ("I64", -(2**63), 1, "-9223372036854775808"),
            ("U64", 2**64 - 1, 1, "18446744073709551615"),
            ("F64", 0.1, 0.2, "0.1"),
            ("Bool", True, False, "true"),
            ("Date", "2024-02-29", "2024-03-01", "2024-02-29"),
            ("DateTime", "2024-02-29T10:00:00.123Z", "2024-02-29T10:00:00.124Z", "2024-02-29T10:00:00.123Z"),
            ("DateTime", "0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "0001-01-01T00:00:00.000Z"),
            ("String", "it's `x`", "its", "it's `x`"),
        ],
    )
    def test_values_of_every_type_can_be_unique(self, type_: str, one: object, other: object, shown: str) -> None:
        schema = f"node A {{ camelCase: {type_}? @unique }}"
        committed = {"node:A": [{"id": "1", "camelCase": one}]}
        assert self.breach(committed, Change({"node:A": [{"id": "2", "camelCase": other}]}), schema) is None
        assert self.breach(committed, Change({"node:A": [{"id": "2", "camelCase": one}]}), schema) == (
            f"@unique violation on A.camelCase: value '{shown}' held by '1' and '2'"
        )

    def test_both_zeros_are_one_value(self) -> None:
        schema = "node A { x: F64? @unique }"
        committed = {"node:A": [{"id": "1", "x": 0.0}]}
        assert self.breach(committed, Change({"node:A": [{"id": "2", "x": -0.0}]}), schema) is not None

    def test_edges_can_be_unique_by_their_ends(self) -> None:
        committed = {**TWO, "edge:Knows": [edge("k1", "Ada", "Bob")]}
        assert self.breach(committed, Change({"edge:Knows": [edge("k2", "Bob", "Ada")]})) is None
        assert self.breach(committed, Change({"edge:Knows": [edge("k2", "Ada", "Bob")]})) == (
            "@unique violation on Knows.(src, dst): value '(Ada, Bob)' held by 'k1' and 'k2'"
        )

    def test_more_values_than_one_lookup_takes_are_checked(self) -> None:
        committed = {"node:Person": [person(f"p{n}", email=f"e{n}") for n in range(1_100)]}
        fresh = [person(f"q{n}", email=f"f{n}") for n in range(1_100)]
        assert self.breach(committed, Change({"node:Person": fresh})) is None
        clash = person("r", email="e1099")
        assert self.breach(committed, Change({"node:Person": [*fresh, clash]})) == (
            "@unique violation on Person.email: value 'e1099' held by 'p1099' and 'r'"
        )

    # -- ends ---------------------------------------------------------------------------------------------------------

    def test_an_edge_needs_both_its_nodes(self) -> None:
        assert self.breach(TWO, Change({"edge:Knows": [edge("k", "Ada", "Bob")]})) is None
        assert self.breach(TWO, Change({"edge:Knows": [edge("k", "Eve", "Bob")]})) == "src 'Eve' not found in Person"
        assert self.breach(TWO, Change({"edge:Knows": [edge("k", "Ada", "Eve")]})) == "dst 'Eve' not found in Person"
        assert self.breach(TWO, Change({"edge:WorksAt": [edge("w", "Ada", "Ada")]})) == "dst 'Ada' not found in Company"

    def test_an_edge_may_end_at_a_node_of_the_same_write(self) -> None:
        assert self.breach({}, Change({"node:Person": [ADA, BOB], "edge:Knows": [edge("k", "Ada", "Bob")]})) is None

    def test_a_node_that_goes_must_take_its_edges_along(self) -> None:
        committed = {**TWO, "edge:Knows": [edge("k", "Ada", "Bob")]}
        assert self.breach(committed, Change(deletes={"node:Person": ["Ada"]})) == "src 'Ada' not found in Person"
        assert self.breach(committed, Change(deletes={"node:Person": ["Bob"]})) == "dst 'Bob' not found in Person"
        both = Change(deletes={"node:Person": ["Ada"], "edge:Knows": ["k"]})
        assert self.breach(committed, both) is None

    def test_new_content_is_judged_by_itself(self) -> None:
        committed = {**TWO, "edge:Knows": [edge("k", "Ada", "Bob")]}
        alone = Change(overwrites={"node:Person": [ADA]})
        assert self.breach(committed, alone) == "dst 'Bob' not found in Person"
        both = Change(overwrites={"node:Person": [ADA, person("Eve")], "edge:Knows": [edge("k2", "Ada", "Eve")]})
        assert self.breach(committed, both) is None
        gone = Change(overwrites={"node:Person": [ADA], "edge:Knows": [edge("k2", "Ada", "Bob")]})
        assert self.breach(committed, gone) == "dst 'Bob' not found in Person"

    # -- how many -----------------------------------------------------------------------------------------------------

    def test_edges_beyond_the_most_are_refused(self) -> None:
        committed = {**TWO, "node:Company": [ACME, company("Beta")], "edge:WorksAt": [edge("w1", "Ada", "Acme")]}
        change = Change({"edge:WorksAt": [edge("w2", "Ada", "Beta")]})
        assert self.breach(committed, change) == "@card violation on edge WorksAt: source 'Ada' has 2 edges (max 1)"
        assert self.breach(committed, Change({"edge:WorksAt": [edge("w2", "Bob", "Beta")]})) is None

    def test_edges_of_one_write_are_counted_together(self) -> None:
        change = Change({"edge:WorksAt": [edge("w1", "Ada", "Acme"), edge("w2", "Ada", "Acme")]})
        assert self.breach(TWO, change) == "@card violation on edge WorksAt: source 'Ada' has 2 edges (max 1)"

    def test_an_edge_and_its_replacement_count_once(self) -> None:
        committed = {**TWO, "node:Company": [ACME, company("Beta")], "edge:WorksAt": [edge("w1", "Ada", "Acme")]}
        assert self.breach(committed, Change({"edge:WorksAt": [edge("w1", "Ada", "Beta")]})) is None

    def test_too_few_edges_are_refused_when_one_goes(self) -> None:
        committed = {**TWO, "edge:Owns": [edge("o1", "Ada", "Acme"), edge("o2", "Ada", "Acme")]}
        assert self.breach(committed, Change(deletes={"edge:Owns": ["o1"]})) is None
        assert self.breach(committed, Change(deletes={"edge:Owns": ["o1", "o2"]})) == (
            "@card violation on edge Owns: source 'Ada' has 0 edges (min 1)"
        )

    def test_moving_the_last_edge_away_breaks_the_minimum_of_the_node_it_left(self) -> None:
        committed = {**TWO, "edge:Owns": [edge("o1", "Ada", "Acme")]}
        assert self.breach(committed, Change({"edge:Owns": [edge("o1", "Bob", "Acme")]})) == (
            "@card violation on edge Owns: source 'Ada' has 0 edges (min 1)"
        )

    def test_fewer_than_the_least_are_refused_when_the_first_is_added(self) -> None:
        schema = "node A { n: I32 } edge E: A -> A @card(2..)"
        committed = {"node:A": [{"id": "1", "n": 1}]}
        assert self.breach(committed, Change({"edge:E": [edge("e", "1", "1")]}), schema) == (
            "@card violation on edge E: source '1' has 1 edges (min 2)"
        )

    def test_a_node_that_goes_owes_no_edges(self) -> None:
        committed = {**TWO, "edge:Owns": [edge("o1", "Ada", "Acme")]}
        assert self.breach(committed, Change(deletes={"node:Person": ["Ada"], "edge:Owns": ["o1"]})) is None

    def test_a_node_that_never_had_an_edge_owes_none(self) -> None:
        assert (
            self.breach(TWO, Change({"node:Person": [person("Eve")], "edge:Owns": [edge("o", "Ada", "Acme")]})) is None
        )

    def test_replacing_all_edges_is_checked_for_the_nodes_they_left(self) -> None:
        committed = {**TWO, "edge:Owns": [edge("o1", "Ada", "Acme")]}
        assert self.breach(committed, Change(overwrites={"edge:Owns": []})) == (
            "@card violation on edge Owns: source 'Ada' has 0 edges (min 1)"
        )

    # -- order --------------------------------------------------------------------------------------------------------

    def test_values_come_before_uniqueness_before_ends_before_numbers(self) -> None:
        level, age, email = person("Eve", level="x"), person("Eve", age=-1), person("Eve", email="a@x")
        committed = {**TWO, "node:Person": [person("Ada", email="a@x"), BOB]}
        dangling = edge("k", "Ada", "Nobody")
        crowd = [edge("w1", "Ada", "Acme"), edge("w2", "Ada", "Acme")]
        wrong: dict[str, list[dict[str, object]]] = {"edge:Knows": [dangling], "edge:WorksAt": crowd}
        told = [
            self.breach(committed, Change({**wrong, "node:Person": [{**level, **age, **email}]})),
            self.breach(committed, Change({**wrong, "node:Person": [{**age, **email}]})),
            self.breach(committed, Change({**wrong, "node:Person": [email]})),
            self.breach(committed, Change(wrong)),
            self.breach(committed, Change({"edge:WorksAt": crowd})),
        ]
        assert [each.split(":")[0].split("'")[0] if each else each for each in told] == [
            "invalid enum value ",
            "@range violation on Person.age",
            "@unique violation on Person.email",
            "dst ",
            "@card violation on edge WorksAt",
        ]

    def test_enums_come_before_ranges_before_patterns(self) -> None:
        bad = {"id": "%", "name": "%", "age": -1, "level": "x"}
        found = self.breach({}, Change({"node:Person": [bad]}))
        assert found is not None
        assert found.startswith("invalid enum value")
        found = self.breach({}, Change({"node:Person": [{**bad, "level": "low"}]}))
        assert found is not None
        assert found.startswith("@range violation")

    def test_nodes_come_before_edges_and_names_decide_among_them(self) -> None:
        change = Change(
            {
                "edge:Knows": [edge("k", "Ada", "Bob", kind="x")],
                "node:Person": [person("Eve", level="x")],
                "node:Company": [company("Beta", kind="x")],
            }
        )
        assert self.breach(TWO, change) == "invalid enum value 'x' for Company.kind (expected: big, small)"

    def test_the_first_row_is_told(self) -> None:
        change = Change({"node:Person": [person("Ada"), person("Bob", age=-2), person("Eve", age=-1)]})
        assert self.breach({}, change) == "@range violation on Person.age: value -2 < min 0"


@cache
def _accepted(text: str) -> Schema:
    return accept(text)


class TestInProcess(ConstraintsContract):
    """Arrow, over staged rows."""

    def breach(self, committed: Content, change: Change, schema: str = SCHEMA) -> str | None:
        accepted = _accepted(schema)
        parts = init("memory://", table_schemas(accepted), settings=Settings(durability="process"))
        if committed:
            _commit(parts, accepted, committed)
        staging = WriteSet(parts.snapshot(parts.log.live_head(MAIN)))
        for key, rows in change.upserts.items():
            staging.upsert(key, _table(accepted, key, rows))
        for key, ids in change.deletes.items():
            staging.delete(key, ids)
        for key, rows in change.overwrites.items():
            staging.overwrite(key, _table(accepted, key, rows))
        try:
            constraints.check(staging, rules_of(accepted))
        except ConstraintError as broken:
            return broken.message
        except InvalidRequestError as unusable:
            return unusable.message
        return None


def _commit(parts: GraphContext, schema: Schema, content: Content) -> None:
    def run(staging: WriteSet) -> None:
        for key, rows in content.items():
            staging.upsert(key, _table(schema, key, rows))

    write(parts, MAIN, Operation(CommitKind.LOAD, frozenset(content), run, redoable=True))


def _table(schema: Schema, type_key: str, rows: Rows) -> pa.Table:
    entity = schema.entity(type_key)
    assert entity is not None
    columns: list[Any] = [pa.array([row[name] for row in rows], pa.string()) for name in system_columns(entity)]
    columns += [from_python([row.get(each.name) for row in rows], each.type, each.name) for each in entity.properties]
    return pa.Table.from_arrays(columns, schema=table_schema(entity))
