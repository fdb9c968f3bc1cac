"""Changes of one commit to the entities of each type."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TypeChange:
    """Counts of one type's changes, and the ids where they are few.

    Attributes:
        inserted: number of entities added.
        updated: number of entities replaced.
        deleted: number of entities removed.
        inserted_ids: ids of the inserted entities if the whole change set is inline, else None.
        updated_ids: likewise for updates.
        deleted_ids: likewise for deletes.
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
