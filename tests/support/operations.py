"""Small writes over plain tables, for tests of the store below the languages.

Every type here has two columns, `id` and `v`. Rows are given as `{id: v}`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.tables.tables import IndexKind, IndexSpec
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.root import create_table, init
from omnigraph.transaction.write import IntentPolicy, Operation
from omnigraph.transaction.write_set import WriteSet
from omnigraph.transaction.write_set.pending import TableChange

COLUMNS = pa.schema([pa.field("id", pa.string(), nullable=False)]).append(pa.field("v", pa.int64()))
PERSON = "node:Person"
COMPANY = "node:Company"
KNOWS = "edge:Knows"
TYPES = (PERSON, COMPANY, KNOWS)

Rows = Mapping[str, int | None]


def new_graph(
    where: str | ObjectStore, *, types: Sequence[str] = TYPES, settings: Settings | None = None, **more: object
) -> GraphContext:
    """A graph with an empty two-column table per type."""
    return init(where, dict.fromkeys(types, COLUMNS), settings=settings, **more)  # type: ignore[arg-type]  # options as they are


def table_of(rows: Rows) -> pa.Table:
    """Rows as a table."""
    return pa.table({"id": list(rows), "v": list(rows.values())}, schema=COLUMNS)


def rows_of(parts: GraphContext, type_key: str, branch: str = MAIN) -> dict[str, int | None]:
    """Everything a type holds at the head of a branch."""
    return rows_at(parts, type_key, parts.log.live_head(branch))


def rows_at(parts: GraphContext, type_key: str, entry: Record) -> dict[str, int | None]:
    """Everything a type holds at one entry; an id that occurs twice is an error."""
    found = parts.snapshot(entry).scan(type_key).to_pylist()
    rows = {row["id"]: row["v"] for row in found}
    assert len(rows) == len(found), f"{type_key} holds an id twice: {sorted(row['id'] for row in found)}"
    return rows


def contents(parts: GraphContext, branch: str = MAIN) -> dict[str, dict[str, int | None]]:
    """Everything on a branch."""
    head = parts.log.live_head(branch)
    return {key: rows_at(parts, key, head) for key in sorted(head.tables)}


def _operation(
    run: Callable[[WriteSet], None], *type_keys: str, redoable: bool, kind: CommitKind = CommitKind.MUTATION
) -> Operation:
    return Operation(kind, frozenset(type_keys), run, redoable=redoable)


def insert(type_key: str, rows: Rows) -> Operation:
    """Add entities that must be new."""
    return _operation(lambda staging: staging.insert(type_key, table_of(rows)), type_key, redoable=True)


def append(type_key: str, rows: Rows) -> Operation:
    """Add entities under ids that nobody else makes."""
    return _operation(lambda staging: staging.insert(type_key, table_of(rows), fresh_ids=True), type_key, redoable=True)


def upsert(type_key: str, rows: Rows) -> Operation:
    """Insert or replace."""
    return _operation(lambda staging: staging.upsert(type_key, table_of(rows)), type_key, redoable=True)


def upsert_many(rows: Mapping[str, Rows], *, kind: CommitKind = CommitKind.LOAD) -> Operation:
    """Insert or replace in several types at once; always makes a commit, as a load does."""

    def run(staging: WriteSet) -> None:
        for type_key, some in rows.items():
            staging.upsert(type_key, table_of(some))

    return Operation(kind, frozenset(rows), run, redoable=True, always_commits=kind is CommitKind.LOAD)


def update(type_key: str, ids: Sequence[str], v: int | None) -> Operation:
    """Set `v` of the entities with these ids, where they exist."""

    def run(staging: WriteSet) -> None:
        found = staging.rows(type_key, ids)["id"].to_pylist()
        if found:
            staging.upsert(type_key, table_of(dict.fromkeys(map(str, found), v)))

    return _operation(run, type_key, redoable=False)


def update_where(type_key: str, filter: str, v: int | None) -> Operation:
    """Set `v` of every entity that matches."""

    def run(staging: WriteSet) -> None:
        found = staging.scan(type_key, columns=["id"], filter=filter)["id"].to_pylist()
        if found:
            staging.upsert(type_key, table_of(dict.fromkeys(map(str, found), v)))

    return _operation(run, type_key, redoable=False)


def delete(type_key: str, ids: Sequence[str]) -> Operation:
    """Delete the entities with these ids."""

    def run(staging: WriteSet) -> None:
        staging.rows(type_key, ids, columns=["id"])
        staging.delete(type_key, ids)

    return _operation(run, type_key, redoable=False)


def delete_where(type_key: str, filter: str) -> Operation:
    """Delete every entity that matches."""

    def run(staging: WriteSet) -> None:
        found = staging.scan(type_key, columns=["id"], filter=filter)["id"].to_pylist()
        staging.delete(type_key, list(map(str, found)))

    return _operation(run, type_key, redoable=False)


def overwrite(type_key: str, rows: Rows) -> Operation:
    """Make these rows the type's whole content."""
    return _operation(
        lambda staging: staging.overwrite(type_key, table_of(rows)), type_key, redoable=False, kind=CommitKind.LOAD
    )


def both(first: Operation, second: Operation) -> Operation:
    """Two operations as one commit, the second seeing what the first did."""

    def run(staging: WriteSet) -> None:
        first.run(staging)
        second.run(staging)

    return Operation(first.kind, first.type_keys | second.type_keys, run, redoable=first.redoable and second.redoable)


def noted(operation: Operation) -> Operation:
    """The same under an intent, whatever its size."""
    return replace(operation, intent=IntentPolicy.ALWAYS)


# -- tables, columns and layout; these need the graph's tables at hand ------------------------------------------------


def add_table(parts: GraphContext, type_key: str, rows: Rows | None = None, *, schema: str | None = None) -> Operation:
    """A new type, with its first rows in the same commit."""

    def run(staging: WriteSet) -> None:
        staging.accept_schema(schema or f"with {type_key}")
        staging.add_table(type_key, create_table(parts, type_key, COLUMNS))
        if rows:
            staging.upsert(type_key, table_of(rows))

    return _operation(run, type_key, redoable=False, kind=CommitKind.SCHEMA)


def remove_table(type_key: str) -> Operation:
    """A type less."""

    def run(staging: WriteSet) -> None:
        staging.accept_schema(f"without {type_key}")
        staging.remove_table(type_key)

    return _operation(run, type_key, redoable=False, kind=CommitKind.SCHEMA)


def add_column(parts: GraphContext, type_key: str, name: str) -> Operation:
    """A column more, empty."""
    column = pa.field(name, pa.int64())
    return _schema_change(type_key, f"with {name}", lambda pin: parts.tables.stage_add_column(pin, column))


def rename_column(parts: GraphContext, type_key: str, old: str, new: str) -> Operation:
    """A column under another name."""
    return _schema_change(type_key, f"with {new}", lambda pin: parts.tables.stage_rename_column(pin, old, new))


def drop_column(parts: GraphContext, type_key: str, name: str) -> Operation:
    """A column less."""
    return _schema_change(type_key, f"without {name}", lambda pin: parts.tables.stage_drop_column(pin, name))


def build_index(parts: GraphContext, type_key: str, column: str = "v") -> Operation:
    """An index, which changes no answer."""
    spec = IndexSpec(f"{column}_index", column, IndexKind.BTREE)
    return _layout_change(type_key, CommitKind.INDEX, lambda pin: parts.tables.stage_index(pin, spec))


def compact(parts: GraphContext, type_key: str) -> Operation:
    """Small fragments made one, which changes no answer."""
    return _layout_change(type_key, CommitKind.COMPACT, parts.tables.stage_compaction)


def _schema_change(type_key: str, schema: str, rework: TableChange) -> Operation:
    def run(staging: WriteSet) -> None:
        staging.accept_schema(schema)
        staging.change_table(type_key, rework, keeps_content=False)

    return _operation(run, type_key, redoable=False, kind=CommitKind.SCHEMA)


def _layout_change(type_key: str, kind: CommitKind, rework: TableChange) -> Operation:
    return _operation(
        lambda staging: staging.change_table(type_key, rework, keeps_content=True), type_key, redoable=True, kind=kind
    )


class Counted:
    """An operation that counts how often it runs."""

    def __init__(self, operation: Operation) -> None:
        self.runs = 0
        self._inner = operation

    @property
    def operation(self) -> Operation:
        """The operation, counted."""
        return replace(self._inner, run=self._run)

    def _run(self, staging: WriteSet) -> None:
        self.runs += 1
        self._inner.run(staging)
