"""A staged table together with what this process need not read again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.model.commit import Pin
from omnigraph.storage.tables.blob_columns import folders_made
from omnigraph.storage.tables.effect import Effect
from omnigraph.storage.tables.files import in_table, manifest_file
from omnigraph.storage.tables.handles import Handle, plain_uri
from omnigraph.storage.tables.indexes import SegmentChange
from omnigraph.storage.tables.rewriting import Rewriting
from omnigraph.storage.tables.staged import StagedTable, Written


@dataclass(frozen=True, slots=True)
class Staging:
    """A staged table, open, and what it has against its base.

    Attributes:
        staged: what the caller gets.
        handle: the new version, open.
        effect: what it has against its base.
        replaces: whether it took the place of whatever the base held.
        segments: what became of indexes, by their names.
        rewriting: which fragments it wrote again, where it changed nothing but how rows lie.
    """

    staged: StagedTable
    handle: Handle
    effect: Effect = field(default_factory=Effect)
    replaces: bool = False
    segments: Mapping[str, SegmentChange] = field(default_factory=dict)
    rewriting: Rewriting | None = None


def unchanged(base: Pin, handle: Handle) -> Staging:
    """What comes out when there is nothing to do: the base."""
    return Staging(StagedTable(base, base), handle)


def as_staged(
    base: Pin,
    made: Handle,
    files: Iterable[str],
    *,
    inserted_ids: Sequence[str] = (),
    updated_ids: Sequence[str] = (),
    deleted_ids: Sequence[str] = (),
    written: Callable[[], Written | None] | None = None,
) -> StagedTable:
    """What a caller gets of a version just made.

    Args:
        base (Pin): what it was made from.
        made (Handle): the version; the base itself when nothing changed.
        files (Iterable[str]): files it needs besides its manifest, under the table's folder.
        inserted_ids (Sequence[str]): ids it has and the base has not.
        updated_ids (Sequence[str]): ids whose row is another.
        deleted_ids (Sequence[str]): ids it has no more.
        written (Callable[[], Written | None] | None): tells what was done to rows, where that is known.

    Returns:
        StagedTable: with rows and bytes filled in.
    """
    if made.version == base.version:
        return StagedTable(base, base)
    named = {*files, manifest_file(made.version)}
    if made.has_blobs and made.is_local:
        named |= folders_made(plain_uri(made.dataset), named)
    return StagedTable(
        base=base,
        pin=made.pin(),
        inserted_ids=inserted_ids,
        updated_ids=updated_ids,
        deleted_ids=deleted_ids,
        files=in_table(made.table, named),
        written=written,
    )
