"""A commit pinned for reading: every table at one version, for the snapshot's whole life."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import NotFoundError
from omnigraph.model.commit import UNKNOWN, Pin, Record
from omnigraph.storage.tables.tables import Table, Tables


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One commit and the tables it pins. Opaque: nothing on it writes."""

    record: Record
    _tables: Tables

    @property
    def commit(self) -> str:
        """The id of the commit this is the state of."""
        return self.record.head_commit

    @property
    def type_keys(self) -> tuple[str, ...]:
        """The types there are, in order."""
        return tuple(sorted(self.record.tables))

    def table(self, type_key: str) -> Table:
        """The table of a type, at this commit's version."""
        pin = self.record.tables.get(type_key)
        if pin is None:
            raise NotFoundError(
                f"there is no {type_key} at commit {self.commit} of branch '{self.record.branch}'",
                code="type_not_found",
                type_key=type_key,
            )
        return self._tables.open(pin)

    def open_pin(self, pin: Pin) -> Table:
        """A table at a version that is not, or not yet, part of this commit."""
        return self._tables.open(pin)

    def scan(
        self,
        type_key: str,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Rows of one type."""
        return self.table(type_key).scan(columns=columns, filter=filter, limit=limit)

    def count(self, type_key: str) -> int:
        """How many entities of a type there are; costs no request where the record knows, and all but the oldest do."""
        table = self.table(type_key)
        return table.pin.rows if table.pin.rows != UNKNOWN else table.count()
