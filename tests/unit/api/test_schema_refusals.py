"""What the data does not allow: every step says how many entities are in its way and shows some, on any branch."""

from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest

import omnigraph
from omnigraph import ConstraintError, Graph, OpenOptions
from omnigraph.errors import MergeConflictError
from omnigraph.storage.tables.table import Table

SCHEMA = """\
interface Named { label: String? }
node Item implements Named {
    code: String @key  label: String?  size: I64?  kind: enum(a, b, c)?  note: String?  old: String?
}
edge Part: Item -> Item { place: I32? }
"""
COUNT = 12
ALL = [f"i{number:02}" for number in range(COUNT)]

# The change, the step that is refused, and those who break it.
REFUSED: dict[str, tuple[Callable[[str], str], str, list[str]]] = {
    "null no more": (
        lambda text: text.replace("size: I64?", "size: I64"),
        "change property 'Item.size' (I64? -> I64) on node 'Item'",
        ALL[9:],
    ),
    "null no more, of an interface": (
        lambda text: text.replace("label: String?", "label: String"),
        "change property 'Item.label' (String? -> String) on node 'Item'",
        ALL,
    ),
    "null no more, under another name": (
        lambda text: text.replace("old: String?", 'new: String @rename_from("old")'),
        "change property 'Item.new' (String? -> String) on node 'Item'",
        ALL[1:],
    ),
    "null no more, and wider": (
        lambda text: text.replace("place: I32?", "place: F64"),
        "change property 'Part.place' (I32? -> F64) on edge 'Part'",
        ["p1", "p2"],
    ),
    "fewer values of an enum": (
        lambda text: text.replace("enum(a, b, c)?", "enum(a, c)?"),
        "change property 'Item.kind' (enum(a, b, c)? -> enum(a, c)?) on node 'Item'",
        ["i01", "i05"],
    ),
    "fewer values of an enum, and none absent": (
        lambda text: text.replace("enum(a, b, c)?", "enum(a, c)"),
        "change property 'Item.kind' (enum(a, b, c)? -> enum(a, c)) on node 'Item'",
        ["i01", "i03", "i05", *ALL[7:]],
    ),
    "a text that becomes an enum": (
        lambda text: text.replace("note: String?", "note: enum(n0, n1)?"),
        "change property 'Item.note' (String? -> enum(n0, n1)?) on node 'Item'",
        ALL[2::3],
    ),
    "a range": (
        lambda text: text.replace("old: String?", "old: String?  @range(size, 2..5)"),
        "add constraint @range(size, 2..5) on node 'Item'",
        ["i00", "i01", "i06", "i07", "i08"],
    ),
    "a pattern": (
        lambda text: text.replace("old: String?", 'old: String?  @check(note, "[01]$")'),
        "add constraint @check(note, \"[01]$\") on node 'Item'",
        ALL[2::3],
    ),
    "unique values": (
        lambda text: text.replace("note: String?", "note: String? @unique"),
        "add constraint @unique(note) on node 'Item'",
        ALL,
    ),
    "unique tuples": (
        lambda text: text.replace("old: String?", "old: String?  @unique(kind, note)"),
        "add constraint @unique(kind, note) on node 'Item'",
        ["i00", "i06"],
    ),
    "unique ends": (
        lambda text: text.replace("{ place: I32? }", "{ place: I32?  @unique(src, dst) }"),
        "add constraint @unique(src, dst) on edge 'Part'",
        ["p0", "p2"],
    ),
    "a default that repeats itself": (
        lambda text: text.replace("old: String?", "old: String?  rank: I32 @default(1) @unique"),
        "add constraint @unique(rank) on node 'Item'",
        ALL,
    ),
    "a default beyond its range": (
        lambda text: text.replace("old: String?", "old: String?  rank: I32 @default(9)  @range(rank, 0..3)"),
        "add constraint @range(rank, 0..3) on node 'Item'",
        ALL,
    ),
    "fewer edges": (
        lambda text: text.replace("-> Item {", "-> Item @card(0..2) {"),
        "change cardinality of edge 'Part' to @card(0..2)",
        ["i00"],
    ),
    "more edges": (
        lambda text: text.replace("-> Item {", "-> Item @card(2..) {"),
        "change cardinality of edge 'Part' to @card(2..)",
        ["i01", *ALL[2:]],
    ),
}


def item(number: int) -> dict[str, object]:
    return {
        "code": ALL[number],
        "size": number if number < 9 else None,
        "kind": {0: "a", 1: "b", 2: "c", 4: "c", 5: "b", 6: "a"}.get(number),
        "note": f"n{number % 3}",
        "old": "here" if number == 0 else None,
    }


PARTS = [
    {"id": "p0", "from": "i00", "to": "i01", "place": 1},
    {"id": "p1", "from": "i00", "to": "i02"},
    {"id": "p2", "from": "i00", "to": "i01"},
    {"id": "p3", "from": "i01", "to": "i00", "place": 4},
]


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    """One whose branch has the entities in question, and whose main has none."""
    options = OpenOptions(durability="process", auto_compact=False)
    with omnigraph.init("memory://", SCHEMA, options=options) as made:
        made.branches.create("side")
        # In several fragments, so that what is in the way comes in several batches.
        for first in range(0, COUNT, 5):
            made.write({"Item": [item(number) for number in range(first, min(first + 5, COUNT))]}, branch="side")
        made.write(edges={"Part": PARTS}, branch="side")
        yield made


@pytest.mark.parametrize("change", REFUSED)
def test_a_refusal_tells_how_many_are_in_the_way_and_shows_some_of_them(graph: Graph, change: str) -> None:
    edit, step, broken = REFUSED[change]
    text, head = edit(SCHEMA), graph.snapshot(branch="side").commit
    assert text != SCHEMA

    with pytest.raises(ConstraintError) as refused:
        graph.schema_apply(text, validated=True, branch="side")

    shown = refused.value.details["ids"]
    assert refused.value.code == "schema_data_conflict"
    assert refused.value.details["count"] == len(broken)
    assert len(shown) == len(set(shown)) == min(len(broken), 5)
    assert set(shown) <= set(broken)
    listed = ", ".join(f"'{each}'" for each in shown) + (", …" if len(broken) > 5 else "")
    nouns = "entity breaks" if len(broken) == 1 else "entities break"
    assert refused.value.message == f"cannot {step}: {len(broken)} {nouns} it ({listed}); correct them first"
    assert graph.snapshot(branch="side").commit == head, "nothing was written"


@pytest.mark.parametrize("change", REFUSED)
def test_where_nobody_is_in_the_way_the_same_change_is_made(change: str) -> None:
    edit = REFUSED[change][0]
    with omnigraph.init("memory://", SCHEMA, options=OpenOptions(durability="process")) as graph:
        assert not graph.schema_plan(edit(SCHEMA)).supported, "only when asked for"
        assert graph.schema_apply(edit(SCHEMA), validated=True).applied


def test_what_is_judged_row_by_row_is_read_a_batch_at_a_time(graph: Graph) -> None:
    with patch.object(Table, "scan", side_effect=AssertionError("read as a whole")):
        for change in ("null no more", "fewer values of an enum", "a range", "a pattern"):
            with pytest.raises(ConstraintError):
                graph.schema_apply(REFUSED[change][0](SCHEMA), validated=True, branch="side")


def test_a_value_that_an_enum_has_lost_is_refused_from_then_on_and_in_a_merge() -> None:
    narrow = SCHEMA.replace("enum(a, b, c)?", "enum(a, c)?")
    with omnigraph.init("memory://", SCHEMA, options=OpenOptions(durability="process")) as graph:
        graph.write({"Item": [{"code": "x", "kind": "a"}]})
        graph.branches.create("side")
        graph.schema_apply(narrow, validated=True, branch="side")
        with pytest.raises(ConstraintError, match=r"invalid enum value 'b' for Item\.kind"):
            graph.write({"Item": [{"code": "y", "kind": "b"}]}, branch="side")
        graph.write({"Item": [{"code": "z", "kind": "b"}]})
        with pytest.raises(MergeConflictError, match=r"node type 'Item' \(value_constraint_violation\)"):
            graph.merge("side")
        graph.mutate('query q() { update Item set { kind: "c" } where code = "z" }')
        graph.merge("side")
        assert graph.schema_text() == narrow
