"""Changes to stage, and the staged version that comes back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import NO_ADDRESSES, Addresses
from omnigraph.storage.tables.blobs import folders_made
from omnigraph.storage.tables.compact import Rewriting
from omnigraph.storage.tables.delta import FragmentDelta
from omnigraph.storage.tables.files import in_table, manifest_file
from omnigraph.storage.tables.handles import Handle, plain_uri
from omnigraph.storage.tables.indexes import SegmentChange


@dataclass(frozen=True, slots=True)
class RowAddresses:
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
        known_addresses: where rows that `upserts` and `deleted_ids` name lie; those it has are not looked up.
    """

    upserts: pa.Table | None = None
    appends: pa.Table | None = None
    deleted_ids: tuple[str, ...] = ()
    replaces: bool = False
    known_addresses: RowAddresses | None = None


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
class StagedVersion:
    """A new version of one table, written but not visible yet.

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


@dataclass(frozen=True, slots=True)
class OpenStagedVersion:
    """A staged table, open, and what it has against its base.

    Attributes:
        staged: what the caller gets.
        handle: the new version, open.
        effect: what it has against its base.
        replaces: whether it took the place of whatever the base held.
        segments: what became of indexes, by their names.
        rewriting: which fragments it wrote again, where it changed nothing but how rows lie.
    """

    staged: StagedVersion
    handle: Handle
    effect: FragmentDelta = field(default_factory=FragmentDelta)
    replaces: bool = False
    segments: Mapping[str, SegmentChange] = field(default_factory=dict)
    rewriting: Rewriting | None = None


def unchanged(base: Pin, handle: Handle) -> OpenStagedVersion:
    """What comes out when there is nothing to do: the base."""
    return OpenStagedVersion(StagedVersion(base, base), handle)


def as_staged(
    base: Pin,
    made: Handle,
    files: Iterable[str],
    *,
    inserted_ids: Sequence[str] = (),
    updated_ids: Sequence[str] = (),
    deleted_ids: Sequence[str] = (),
    written: Callable[[], Written | None] | None = None,
) -> StagedVersion:
    """What a caller gets of a version just made.

    Args:
        files: files it needs besides its manifest, under the table's folder.
        written: tells what was done to rows, where that is known.
    """
    if made.version == base.version:
        return StagedVersion(base, base)
    named = {*files, manifest_file(made.version)}
    if made.has_blobs and made.is_local:
        named |= folders_made(plain_uri(made.dataset), named)
    return StagedVersion(
        base=base,
        pin=made.pin(),
        inserted_ids=inserted_ids,
        updated_ids=updated_ids,
        deleted_ids=deleted_ids,
        files=in_table(made.table, named),
        written=written,
    )
