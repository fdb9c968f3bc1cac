"""A graph at one commit: whatever is written later, every read through it shows the same."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.api.schemas import Schemas
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.execution.accepted import Accepted
from omnigraph.model.commit import Record
from omnigraph.model.schema import EntityType, Schema
from omnigraph.storage.tables.lend import lend
from omnigraph.storage.tables.tables import Table
from omnigraph.transaction import snapshot as pinned
from omnigraph.transaction.parts import Parts


class Snapshot:
    """One commit, pinned for reading. Closing is a courtesy: nothing is held that others would wait for."""

    def __init__(self, parts: Parts, schemas: Schemas, entry: Record, *, branch: str | None) -> None:
        self._pinned: pinned.Snapshot = parts.snapshot(entry)
        self._accepted: Accepted = schemas.of(entry.schema)
        self._branch = branch
        self._closed = False

    @property
    def commit(self) -> str:
        """The id of the commit."""
        return self._pinned.commit

    @property
    def number(self) -> int:
        """The place of its entry in the branch's log."""
        return self._pinned.record.number

    @property
    def branch(self) -> str:
        """The branch in whose log the entry is."""
        return self._pinned.record.branch

    @property
    def record(self) -> Record:
        """The entry itself: who, when, why, and the version of every table."""
        return self._pinned.record

    @property
    def schema(self) -> Schema:
        """The types there are."""
        return self._accepted.schema

    def count(self, type_name: str) -> int:
        """How many nodes or edges of a type there are. Costs no request.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.

        Returns:
            int: the number.

        Raises:
            NotFoundError: there is no such type.
        """
        return self._pinned.count(self._entity(type_name).type_key)

    def export_arrow(self, type_name: str, *, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """All rows of a type, a batch at a time, so that memory does not follow the size of the type.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            columns (Sequence[str] | None): which; by default `id`, for edges `src` and `dst`, and every property.

        Returns:
            pa.RecordBatchReader: the rows, in no promised order. `Graph.write` takes them as they are.

        Raises:
            NotFoundError: there is no such type or column.
        """
        table = self._table(type_name)
        names = table.schema.names if columns is None else list(columns)
        unknown = [name for name in names if name not in table.schema.names]
        if unknown:
            raise NotFoundError(f"{type_name} has no column '{unknown[0]}'", code="column_not_found")
        fields = [table.schema.field(name) for name in names]
        return pa.RecordBatchReader.from_batches(pa.schema(fields), table.batches(columns=names))

    def lance_table(self, type_name: str) -> Any:  # noqa: ANN401  (a `lance.LanceDataset`; lance stays below)
        """The table of a type at this commit, as Lance itself opens it.

        Args:
            type_name (str): a node type, else an edge type; or a type key.

        Returns:
            lance.LanceDataset: for reading. Whatever is done to it never reaches the graph.

        Raises:
            NotFoundError: there is no such type.
        """
        return lend(self._table(type_name))

    def close(self) -> None:
        """Refuse further reads through this object."""
        self._closed = True

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Snapshot of {self.branch} at commit {self.commit}>"

    def _table(self, type_name: str) -> Table:
        return self._open().table(self._entity(type_name).type_key)

    def _entity(self, type_name: str) -> EntityType:
        schema = self.schema
        found = schema.entity(type_name) if ":" in type_name else schema.node(type_name) or schema.edge(type_name)
        if found is None:
            raise NotFoundError(f"there is no type '{type_name}'", code="type_not_found", type=type_name)
        return found

    def _open(self) -> pinned.Snapshot:
        if self._closed:
            raise InvalidRequestError("the snapshot was closed", code="closed")
        return self._pinned


Params = Mapping[str, object]
