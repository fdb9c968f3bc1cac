"""What one commit did to the entities of each type."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TypeChange:
    """Counts of one type's changes, and the ids themselves where they are few.

    Attributes:
        inserted: how many entities were added.
        updated: how many were replaced.
        deleted: how many were removed.
        inserted_ids: which, when the whole change set is inline; else None.
        updated_ids: likewise.
        deleted_ids: likewise.
    """

    inserted: int
    updated: int
    deleted: int
    inserted_ids: tuple[str, ...] | None = None
    updated_ids: tuple[str, ...] | None = None
    deleted_ids: tuple[str, ...] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return not (self.inserted or self.updated or self.deleted)


@dataclass(frozen=True, slots=True)
class Changes:
    """A commit's changes by type key, inline or in a file of their own.

    Attributes:
        types: per type key; types without change are absent.
        file: path of the change file that holds the ids, when they are too many for the record.
    """

    types: dict[str, TypeChange]
    file: str | None = None


NO_CHANGES = Changes({})
