"""What becomes of a write when another was faster: every kind against every kind.

The tables below are the promise. The test that carries out every cell and the page of the documentation that shows
them are both made from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tests.support import write_model as model
from tests.support.operations import COMPANY, PERSON, Rows
from tests.support.write_model import Act


class Outcome(StrEnum):
    """What becomes of the second write; in each case the first one stands."""

    REBASE = "rebase"
    """It is published on top of the first without running again."""
    REDO = "redo"
    """It runs again on the new head, and is published."""
    TAKEN = "taken"
    """It runs again on the new head, and then is refused: what it was to add is there."""
    REFUSE = "refuse"
    """It is refused: what it had read has changed, and only its caller can say what that means."""


class Relation(StrEnum):
    """How far two writes are from each other."""

    SAME_ROWS = "the same rows"
    OTHER_ROWS = "other rows of the same type"
    OTHER_TYPE = "another type"


# Downwards the second write, which had begun when the first one landed; across the first.
_TABLES = {
    Relation.SAME_ROWS: """
              insert append upsert update upd-where delete del-where overwrite add-col add-type rm-type index  compact
    insert    taken  rebase taken  rebase rebase    rebase rebase    taken     refuse  refuse   refuse  rebase rebase
    append    rebase rebase rebase rebase rebase    rebase rebase    redo      refuse  refuse   refuse  rebase rebase
    upsert    redo   rebase redo   redo   redo      redo   redo      redo      refuse  refuse   refuse  rebase rebase
    update    refuse rebase refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  rebase rebase
    upd-where refuse refuse refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  rebase rebase
    delete    refuse rebase refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  rebase rebase
    del-where refuse refuse refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  rebase rebase
    overwrite refuse refuse refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  rebase rebase
    add-col   refuse refuse refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  refuse refuse
    add-type  rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    rm-type   refuse refuse refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  rebase rebase
    index     rebase rebase rebase rebase rebase    rebase rebase    redo      refuse  refuse   refuse  redo   redo
    compact   rebase rebase rebase rebase rebase    rebase rebase    redo      refuse  refuse   refuse  redo   redo
    """,
    Relation.OTHER_ROWS: """
              insert append upsert update upd-where delete del-where overwrite add-col add-type rm-type index  compact
    insert    rebase rebase rebase rebase rebase    rebase rebase    redo      refuse  refuse   refuse  rebase rebase
    append    rebase rebase rebase rebase rebase    rebase rebase    redo      refuse  refuse   refuse  rebase rebase
    upsert    rebase rebase rebase rebase rebase    rebase rebase    redo      refuse  refuse   refuse  rebase rebase
    update    rebase rebase rebase rebase rebase    rebase rebase    refuse    refuse  refuse   refuse  rebase rebase
    upd-where refuse refuse refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  rebase rebase
    delete    rebase rebase rebase rebase rebase    rebase rebase    refuse    refuse  refuse   refuse  rebase rebase
    del-where refuse refuse refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  rebase rebase
    overwrite refuse refuse refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  rebase rebase
    add-col   refuse refuse refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  refuse refuse
    add-type  rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    rm-type   refuse refuse refuse refuse refuse    refuse refuse    refuse    refuse  refuse   refuse  rebase rebase
    index     rebase rebase rebase rebase rebase    rebase rebase    redo      refuse  refuse   refuse  redo   redo
    compact   rebase rebase rebase rebase rebase    rebase rebase    redo      refuse  refuse   refuse  redo   redo
    """,
    Relation.OTHER_TYPE: """
              insert append upsert update upd-where delete del-where overwrite add-col add-type rm-type index  compact
    insert    rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    append    rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    upsert    rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    update    rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    upd-where rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    delete    rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    del-where rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    overwrite rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    add-col   rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    add-type  rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    rm-type   rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    index     rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    compact   rebase rebase rebase rebase rebase    rebase rebase    rebase    refuse  refuse   refuse  rebase rebase
    """,
}  # fmt: skip

KINDS: Mapping[str, str] = {
    "insert": "insert: adds entities whose ids must be free",
    "append": "append: adds entities under ids made for them, which nobody else can have",
    "upsert": "upsert: inserts or replaces by id; loads in merge mode do the same",
    "update": "update: changes the entities with certain ids",
    "upd-where": "update where: changes every entity that meets a condition, so it reads the whole type",
    "delete": "delete: removes the entities with certain ids",
    "del-where": "delete where: removes every entity that meets a condition, so it reads the whole type",
    "overwrite": "overwrite: replaces the whole content of a type",
    "add-col": "add column: changes the columns of a type, and with them the schema",
    "add-type": "add type: brings a new type, and with it another schema",
    "rm-type": "remove type: takes a type out of the schema",
    "index": "index: builds an index, which changes no answer",
    "compact": "compact: puts small fragments together, which changes no answer",
}

CONTENT: Mapping[str, Rows] = {"first fragment": {"a": 1, "b": 2}, "second fragment": {"c": 3, "d": 4}}
"""What both types hold before either write."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One case.

    Attributes:
        first: kind of the write that lands while the other is under way.
        second: kind of the write that was under way.
        relation: how far they are from each other.
        outcome: what becomes of the second.
    """

    first: str
    second: str
    relation: Relation
    outcome: Outcome

    def __str__(self) -> str:
        return f"{self.second} after {self.first}, {self.relation}: {self.outcome}"

    def acts(self) -> tuple[Act, Act]:
        """The two writes, on a graph that holds `CONTENT`."""
        first = _act(self.first, PERSON, old="a", new="n", own="f1", value=1, to=10)
        match self.relation:
            case Relation.SAME_ROWS:
                return first, _act(self.second, PERSON, old="a", new="n", own="f2", value=1, to=20)
            case Relation.OTHER_ROWS:
                return first, _act(self.second, PERSON, old="b", new="m", own="f2", value=2, to=20)
            case Relation.OTHER_TYPE:
                return first, _act(self.second, COMPANY, old="a", new="n", own="f2", value=1, to=20)


def _act(kind: str, type_key: str, *, old: str, new: str, own: str, value: int, to: int) -> Act:
    """A write of a kind that is about one old and one new entity of a type.

    By-id kinds name the new one too, before it exists: an insert by somebody else is then a change of what they read.
    """
    acts = {
        "insert": model.insert(type_key, {new: to}),
        "append": model.append(type_key, {own: to}),
        "upsert": model.upsert(type_key, {old: to, new: to}),
        "update": model.update(type_key, (old, new), to),
        "upd-where": model.update_where(type_key, value, to),
        "delete": model.delete(type_key, (old, new)),
        "del-where": model.delete_where(type_key, value),
        "overwrite": model.overwrite(type_key, {old: to, new: to}),
        "add-col": model.add_column(type_key, f"w{to}"),
        "add-type": model.add_type(f"{type_key}Kind", {new: to}),
        "rm-type": model.remove_type(type_key),
        "index": model.build_index(type_key),
        "compact": model.compact(type_key),
    }
    return acts[kind]


def cells() -> list[Cell]:
    """Every cell of every table.

    Returns:
        list[Cell]: table by table, row by row.
    """
    found = []
    for relation, text in _TABLES.items():
        header, *rows = (line.split() for line in text.strip().splitlines())
        assert header == list(KINDS), relation
        assert [row[0] for row in rows] == list(KINDS), relation
        for second, *outcomes in rows:
            found += [
                Cell(first, second, relation, Outcome(outcome)) for first, outcome in zip(header, outcomes, strict=True)
            ]
    return found
