"""Writing rows by the frame."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import ConflictError, ConstraintError, Graph, InvalidRequestError, OpenOptions
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.ids import is_ulid
from omnigraph.model.conflict import KeyConflict

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique  born: Date?  level: enum(low, high)? }
node Note { text: String  at: DateTime?  place: Vector(2)?  tags: [String]? }
node Reading { sensor: String  at: DateTime  value: F64?  @key(sensor, at) }
node Price { amount: F32 @key }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Person @card(0..1)
"""
FAST = OpenOptions(durability="process")
MODES = ("append", "merge", "overwrite")


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=FAST) as made:
        yield made


def rows(graph: Graph, type_name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = graph.export_arrow(type_name).read_all().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def ages(graph: Graph) -> dict[str, int | None]:
    return {row["name"]: row["age"] for row in rows(graph, "Person")}


def people(**known: int | None) -> dict[str, Any]:
    return {"Person": [{"name": name, "age": age} for name, age in known.items()]}


class Stream:
    """Anything that only knows how to hand over an Arrow stream, as data frames of other libraries do."""

    def __init__(self, table: pa.Table) -> None:
        self._table: Any = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


# -- modes ------------------------------------------------------------------------------------------------------------


def test_append_refuses_what_is_there_and_writes_nothing(graph: Graph) -> None:
    graph.write(people(Ada=1))
    before = graph.snapshot()
    with pytest.raises(ConflictError) as refused:
        graph.write(people(Ada=99, Bob=2), mode="append")
    assert (refused.value.code, refused.value.conflicts) == ("key_conflict", (KeyConflict("node:Person", "Ada"),))
    assert graph.snapshot().record == before.record


def test_merge_replaces_whole_rows_and_inserts_the_rest(graph: Graph) -> None:
    graph.write({"Person": [{"name": "Ada", "age": 30, "email": "a@x"}, {"name": "Bob", "age": 25}]})
    graph.write(people(Ada=31, Cy=35), mode="merge")
    assert ages(graph) == {"Ada": 31, "Bob": 25, "Cy": 35}
    assert [row["email"] for row in rows(graph, "Person")] == [None, None, None]


def test_merging_the_same_rows_again_and_again_keeps_one_of_each(graph: Graph) -> None:
    for age in range(3):
        graph.write({"Person": [{"name": f"p{number}", "age": age} for number in range(30)]}, mode="merge")
    assert ages(graph) == {f"p{number}": 2 for number in range(30)}


def test_overwrite_replaces_the_types_it_is_given_and_no_others(graph: Graph) -> None:
    graph.write({**people(Ada=1, Bob=2), "Note": [{"text": "kept"}]})
    result = graph.write(people(Cy=3), mode="overwrite")
    assert ages(graph) == {"Cy": 3}
    assert [row["text"] for row in rows(graph, "Note")] == ["kept"]
    assert (result.mode, result.nodes) == ("overwrite", {"Person": 1})


def test_overwriting_with_nothing_empties_a_type(graph: Graph) -> None:
    graph.write(people(Ada=1))
    graph.write({"Person": []}, mode="overwrite")
    assert graph.count("Person") == 0
    graph.write(people(Bob=1))
    assert ages(graph) == {"Bob": 1}


def test_overwriting_nodes_that_edges_need_is_refused(graph: Graph) -> None:
    graph.write(people(Ada=1, Bob=2), {"Knows": [{"from": "Ada", "to": "Bob"}]})
    before = graph.snapshot()
    with pytest.raises(ConstraintError, match="dst 'Bob' not found in Person"):
        graph.write(people(Ada=1), mode="overwrite")
    assert graph.snapshot().record == before.record
    graph.write(people(Ada=5, Bob=6), mode="overwrite")
    assert ages(graph) == {"Ada": 5, "Bob": 6}
    graph.write(people(Cy=1), {"Knows": [{"from": "Cy", "to": "Cy"}]}, mode="overwrite")
    assert graph.count("Knows") == 1


def test_every_write_makes_a_commit_even_of_nothing(graph: Graph) -> None:
    for mode in MODES:
        before = graph.snapshot().number
        result = graph.write(mode=mode)
        assert result.number == before + 1 == graph.snapshot().number
        assert result.commit == graph.snapshot().commit
    graph.write(people(Ada=1))
    before = graph.snapshot().number
    graph.write(people(Ada=1), mode="merge")
    assert graph.snapshot().number == before + 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", [Failpoint.WRITE_PREPARED, Failpoint.WRITE_MADE_DURABLE])
def test_a_write_cut_off_before_its_entry_is_as_if_it_never_ran(graph: Graph, mode: str, place: Failpoint) -> None:
    def die() -> None:
        raise Crash

    graph.write(people(Ada=1))
    before = graph.snapshot()
    with armed(place, die), pytest.raises(Crash):
        graph.write(people(Bob=2), mode=mode)
    assert graph.snapshot().record == before.record
    graph.write(people(Bob=2), mode=mode)


def test_an_unknown_mode_is_refused(graph: Graph) -> None:
    with pytest.raises(InvalidRequestError, match="unknown mode 'replace'; one of append, merge, overwrite"):
        graph.write(mode="replace")


# -- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_one_key_twice_in_a_write_is_refused_in_every_mode(graph: Graph, mode: str) -> None:
    twice = {"Person": [{"name": "Ada", "age": 1}, {"name": "Bob"}, {"name": "Ada", "age": 2}]}
    with pytest.raises(ConstraintError) as refused:
        graph.write(twice, mode=mode)
    assert refused.value.message == "@unique violation on Person.name: value 'Ada' held by 'Ada' and 'Ada'"
    moment = {"sensor": "s", "at": "2024-01-01"}
    with pytest.raises(ConstraintError) as refused:
        graph.write({"Reading": [moment, moment]}, mode=mode)
    assert refused.value.message == (
        "@unique violation on Reading.(at, sensor): value '(2024-01-01T00:00:00.000Z, s)' "
        'held by \'["1704067200000","s"]\' and \'["1704067200000","s"]\''
    )
    assert graph.snapshot().number == 1


@pytest.mark.parametrize("mode", MODES)
def test_one_unique_value_twice_in_a_write_is_refused_in_every_mode(graph: Graph, mode: str) -> None:
    twice = {"Person": [{"name": "Ada", "email": "x"}, {"name": "Bob", "email": "x"}]}
    with pytest.raises(ConstraintError, match=r"@unique violation on Person\.email: value 'x' held by 'Ada' and 'Bob'"):
        graph.write(twice, mode=mode)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_one_explicit_id_twice_is_refused_where_the_last_cannot_win(graph: Graph, mode: str) -> None:
    with pytest.raises(ConflictError, match="node:Note 'n' occurs twice in one write") as refused:
        graph.write({"Note": [{"id": "n", "text": "1"}, {"id": "n", "text": "2"}]}, mode=mode)
    assert refused.value.code == "key_conflict"


def test_of_one_explicit_id_twice_in_a_merge_the_last_wins(graph: Graph) -> None:
    graph.write(people(Ada=1, Bob=1))
    edges = [{"id": "w", "from": "Ada", "to": "Bob"}, {"id": "w", "from": "Ada", "to": "Ada"}]
    graph.write({"Note": [{"id": "n", "text": "1"}, {"id": "n", "text": "2"}]}, {"WorksAt": edges}, mode="merge")
    assert [row["text"] for row in rows(graph, "Note")] == ["2"]
    assert [row["dst"] for row in rows(graph, "WorksAt")] == ["Ada"]


def test_ids_are_derived_given_or_made(graph: Graph) -> None:
    graph.write(
        {
            "Person": [{"name": "Ada", "id": "Ada"}, {"name": "Bob"}],
            "Note": [{"id": "mine", "text": "a"}, {"text": "b"}],
            "Reading": [{"sensor": "s", "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}],
            "Price": [{"amount": 0.1}, {"amount": 1e20}],
        },
        {"Knows": [{"id": "e", "from": "Ada", "to": "Bob"}, {"from": "Bob", "to": "Ada"}]},
    )
    assert [row["id"] for row in rows(graph, "Person")] == ["Ada", "Bob"]
    made = [row["id"] for row in rows(graph, "Note")]
    assert "mine" in made
    assert sum(is_ulid(each) for each in made) == 1
    assert [row["id"] for row in rows(graph, "Reading")] == ['["1000","s"]']
    assert [row["id"] for row in rows(graph, "Price")] == ["0.1", "100000000000000000000"]
    assert [row["src"] for row in rows(graph, "Knows") if row["id"] == "e"] == ["Ada"]


def test_many_made_ids_are_ulids_in_rising_order_and_all_different(graph: Graph) -> None:
    graph.write({"Note": pa.table({"text": [str(number) for number in range(5_000)]})})
    graph.write({"Note": pa.table({"text": [str(number) for number in range(5_000)]})})
    table = graph.export_arrow("Note", columns=["id"]).read_all()
    made = [str(each) for each in table.column("id").to_pylist()]
    assert len(set(made)) == 10_000
    assert all(map(is_ulid, made))


def test_an_explicit_id_that_is_not_the_keys_own_is_refused(graph: Graph) -> None:
    with pytest.raises(
        InvalidRequestError, match="node Person explicit id 'Eve' does not match its canonical @key id 'Ada'"
    ):
        graph.write({"Person": [{"name": "Ada", "id": "Eve"}]})


# -- what rows may come in --------------------------------------------------------------------------------------------


TABLE = pa.table(
    {
        "name": pa.array(["Ada", "Bob"], pa.large_string()),
        "age": pa.array([36, None], pa.int64()),
        "born": pa.array(["1815-12-10", None]),
        "level": pa.array(["low", None]).dictionary_encode(),
    }
)


@pytest.mark.parametrize(
    "given",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        Stream(TABLE),
        TABLE.to_pylist(),
        tuple(TABLE.to_pylist()),
        TABLE.to_pydict(),
        [{"name": "Ada", "age": 36, "born": date(1815, 12, 10), "level": "low"}, {"name": "Bob"}],
    ],
    ids=lambda given: type(given).__name__,
)
def test_rows_may_come_in_anything_with_columns(graph: Graph, given: object) -> None:
    result = graph.write({"Person": given})
    assert result.nodes == {"Person": 2}
    assert rows(graph, "Person") == [
        {"id": "Ada", "name": "Ada", "age": 36, "email": None, "born": date(1815, 12, 10), "level": "low"},
        {"id": "Bob", "name": "Bob", "age": None, "email": None, "born": None, "level": None},
    ]


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ({"Persn": []}, {}, "unknown node type 'Persn'"),
        ({"person": []}, {}, "unknown node type 'person'"),
        ({}, {"Loves": []}, "unknown edge type 'Loves'"),
        ({"Person": [{"nam": "Ada"}]}, {}, "unknown input field 'nam' for 'node:Person'"),
        ({"Person": [{"name": "Ada", "_rowid": 1}]}, {}, "input field '_rowid' is reserved physical state"),
        ({"Person": [{"age": 1}]}, {}, "non-nullable property 'name' has null or invalid values"),
        ({"Person": [{"name": None}]}, {}, "non-nullable property 'name' has null or invalid values"),
        ({"Person": [{"name": "A", "age": "1"}]}, {}, "strict property 'age' expects Int32, got \"1\""),
        ({"Person": [{"name": "A", "id": 1}]}, {}, "strict property 'id' expects Utf8, got 1"),
        ({"Person": "Ada"}, {}, "node:Person rows must be an Arrow table, a data frame or a sequence of dictionaries"),
        ({"Person": ["Ada"]}, {}, "node:Person rows must be dictionaries, got str"),
        ({"Person": 7}, {}, "node:Person rows must be an Arrow table"),
        ({"Person": {"name": ["Ada", 1]}}, {}, "node:Person rows cannot be read"),
        ({"Person": {"name": "Ada"}}, {}, "node:Person column 'name' must be a sequence of values, got str"),
        ({"Person": {"name": b"Ada"}}, {}, "node:Person column 'name' must be a sequence of values, got bytes"),
        ({"Person": {"name": 7}}, {}, "node:Person rows cannot be read"),
        ({"Person": {"name": ["Ada"], "age": [1, 2]}}, {}, "node:Person rows cannot be read"),
        ({"Person": [{"name": "\ud800"}]}, {}, "strict property 'name' expects Utf8, got"),
        ({}, {"Knows": [{"from": "Ada"}]}, "edge Knows missing 'to'"),
        ({}, {"Knows": [{"from": "Ada", "to": None}]}, "non-nullable property 'to' has null or invalid values"),
        ({}, {"Knows": [], "knows": []}, "edge type 'Knows' is given twice, once as 'knows'"),
    ],
    ids=str,
)
def test_what_cannot_be_written_is_told(
    graph: Graph, nodes: dict[str, Any], edges: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        graph.write(nodes, edges)
    assert refused.value.message.startswith(message)
    assert graph.snapshot().number == 1


def test_two_columns_of_one_name_are_refused(graph: Graph) -> None:
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["name", "name"])
    with pytest.raises(InvalidRequestError, match="node:Person has two columns of one name"):
        graph.write({"Person": twice})


def test_edge_types_are_found_whatever_their_case(graph: Graph) -> None:
    result = graph.write(people(Ada=1), {"knows": [{"src": "Ada", "dst": "Ada"}]})
    assert result.edges == {"Knows": 1}


def test_what_was_exported_can_be_written_elsewhere_and_is_the_same(graph: Graph) -> None:
    graph.write(
        {
            "Person": TABLE,
            "Note": [{"text": "a", "at": "2024-02-29T10:00:00Z", "place": [1, 2], "tags": ["x"]}, {"text": "b"}],
        },
        {"Knows": [{"from": "Ada", "to": "Bob", "since": 1843}]},
    )
    with omnigraph.init("memory://", SCHEMA, options=FAST) as copy:
        copy.write(
            {name: graph.export_arrow(name) for name in ("Person", "Note")}, {"Knows": graph.export_arrow("Knows")}
        )
        for name in ("Person", "Note", "Knows"):
            assert rows(copy, name) == rows(graph, name)
        copy.write({"Note": graph.export_arrow("Note")}, mode="overwrite")
        assert rows(copy, "Note") == rows(graph, "Note")


# -- rules ------------------------------------------------------------------------------------------------------------


def test_edges_of_a_write_may_name_its_nodes_and_must_name_some(graph: Graph) -> None:
    graph.write(people(Ada=1, Bob=2), {"Knows": [{"from": "Ada", "to": "Bob"}]})
    before = graph.snapshot()
    with pytest.raises(ConstraintError, match="dst 'Eve' not found in Person"):
        graph.write(people(Cy=1), {"Knows": [{"from": "Cy", "to": "Eve"}]})
    assert graph.snapshot().record == before.record
    graph.write(people(Cy=1), {"Knows": [{"from": "Cy", "to": "Ada"}]})
    assert graph.count("Knows") == 2


def test_a_refused_unique_value_takes_the_clean_rows_with_it(graph: Graph) -> None:
    graph.write({"Person": [{"name": "Ada", "email": "x"}]})
    with pytest.raises(ConstraintError, match="held by 'Ada' and 'Cy'"):
        graph.write({"Person": [{"name": "Bob"}, {"name": "Cy", "email": "x"}]})
    assert ages(graph) == {"Ada": None}


def test_an_edge_merged_again_with_another_end_counts_once(graph: Graph) -> None:
    graph.write(people(Ada=1, Bob=1), {"WorksAt": [{"id": "w", "from": "Ada", "to": "Bob"}]})
    graph.write({}, {"WorksAt": [{"id": "w", "from": "Ada", "to": "Ada"}]}, mode="merge")
    assert [row["dst"] for row in rows(graph, "WorksAt")] == ["Ada"]


def test_thousands_of_rows_are_one_commit_and_can_be_merged_again(graph: Graph) -> None:
    count = 3_000
    table = pa.table({"name": [f"p{n}" for n in range(count)], "email": [f"e{n}" for n in range(count)]})
    graph.write({"Person": table}, mode="merge")
    graph.write({"Person": table.append_column("age", pa.array(range(count), pa.int64()))}, mode="merge")
    assert graph.snapshot().number == 3
    assert ages(graph)["p2999"] == 2_999
    with pytest.raises(ConstraintError, match="value 'e7' held by 'p7' and 'late'"):
        graph.write({"Person": [*({"name": f"q{n}"} for n in range(1_500)), {"name": "late", "email": "e7"}]})
