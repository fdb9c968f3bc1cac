"""What a caller hands over to be staged, and what comes back."""

from dataclasses import dataclass

import pyarrow as pa

from omnigraph.model.commit import Pin


@dataclass(frozen=True, slots=True)
class RowsToStage:
    """The changes of one write to one table. No id may occur twice among all of them.

    Attributes:
        upserts: rows that replace the row of the same id where there is one, and are inserted where there is none.
        appends: rows whose ids the caller knows to be new; they are not looked up.
        deleted_ids: rows to remove; ids that do not exist are ignored.
        replaces: the table's content becomes exactly `upserts` and `appends`, be they empty.
    """

    upserts: pa.Table | None = None
    appends: pa.Table | None = None
    deleted_ids: tuple[str, ...] = ()
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class StagedTable:
    """A new version of one table, written and seen by nobody.

    Attributes:
        base: the version it was made from.
        pin: the new version; equal to `base` when nothing changed.
        inserted_ids: ids that the base does not have and the new version has.
        updated_ids: ids that both have, with a new row.
        deleted_ids: ids that only the base has.
        files: paths under the graph's root that the new version needs and its base does not.
    """

    base: Pin
    pin: Pin
    inserted_ids: tuple[str, ...] = ()
    updated_ids: tuple[str, ...] = ()
    deleted_ids: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing was staged because nothing changes."""
        return self.pin.version == self.base.version
