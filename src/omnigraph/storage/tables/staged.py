"""What a caller hands over to be staged, and what comes back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import NO_ADDRESSES, Addresses


@dataclass(frozen=True, slots=True)
class Places:
    """Where some rows of one version lie, known before anybody looks.

    Attributes:
        version: of which version; addresses mean nothing in another.
        by_id: the addresses.
    """

    version: int
    by_id: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RowsToStage:
    """The changes of one write to one table. No id may occur twice among all of them.

    Attributes:
        upserts: rows that replace the row of the same id where there is one, and are inserted where there is none.
        appends: rows whose ids the caller knows to be new; they are not looked up.
        deleted_ids: rows to remove; ids that do not exist are ignored.
        replaces: the table's content becomes exactly `upserts` and `appends`, be they empty.
        places: where rows that `upserts` and `deleted_ids` name lie; those it has are not looked up.
    """

    upserts: pa.Table | None = None
    appends: pa.Table | None = None
    deleted_ids: tuple[str, ...] = ()
    replaces: bool = False
    places: Places | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What a small write has done to the rows of a table, so that who keeps track of them need not read it back.

    Attributes:
        rows: the rows written, whole; None where it has only deleted.
        addresses: where each of them lies in the new version.
        gone_ids: the ids whose old row is gone, replaced or deleted.
        gone: where these lay in the base.
    """

    rows: pa.Table | None
    addresses: Addresses
    gone_ids: tuple[str, ...] = ()
    gone: Addresses = field(default_factory=lambda: NO_ADDRESSES)

    @property
    def changes(self) -> int:
        """How many rows came and went."""
        return len(self.addresses) + len(self.gone_ids)


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
        written: tells what was done to rows, where that is little and certain; None where it has to be read.
    """

    base: Pin
    pin: Pin
    inserted_ids: Sequence[str] = ()
    updated_ids: Sequence[str] = ()
    deleted_ids: Sequence[str] = ()
    files: tuple[str, ...] = ()
    written: Callable[[], Written | None] | None = field(default=None, compare=False)

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing was staged because nothing changes."""
        return self.pin.version == self.base.version
