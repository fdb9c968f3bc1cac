"""Why a write was refused, as values that name type, expected and actual."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExpectedVersionMismatch:
    """A table is not at the version the caller expected; `actual` is 0 where the table is unknown."""

    table_key: str
    expected: int
    actual: int


@dataclass(frozen=True, slots=True)
class ReadSetChanged:
    """Somebody changed what this write had read: a type key, `schema` or `branch`."""

    member: str
    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class KeyConflict:
    """An entity that was to be new exists already."""

    type_key: str
    entity_id: str


@dataclass(frozen=True, slots=True)
class DeclaredDead:
    """Recovery took this writer for dead and undid its work; running it again is safe."""

    intent: str
    by_commit: str


Conflict = ExpectedVersionMismatch | ReadSetChanged | KeyConflict | DeclaredDead
