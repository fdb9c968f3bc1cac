"""Conflicts of writes, merges and reverts, as values that name the cause."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class ExpectedVersionMismatch:
    """A table is not at the version the caller expected; `actual` is 0 where the table is unknown."""

    table_key: str
    expected: int
    actual: int


@dataclass(frozen=True, slots=True)
class ReadSetChanged:
    """Another write changed what this write had read: a type key, `schema` or `branch`."""

    member: str
    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class KeyConflict:
    """An entity to be inserted exists already."""

    type_key: str
    entity_id: str

    def __str__(self) -> str:
        kind, _, name = self.type_key.partition(":")
        return f"{kind} type '{name}' already has id '{self.entity_id}'"


@dataclass(frozen=True, slots=True)
class DeclaredDead:
    """Recovery declared this writer dead and undid its work; a retry is safe."""

    intent: str
    by_commit: str


@dataclass(frozen=True, slots=True)
class BasePruned:
    """The commit this write started from was pruned meanwhile; a retry on a fresh base is safe."""

    branch: str
    base_number: int
    floor: int


Conflict = ExpectedVersionMismatch | ReadSetChanged | KeyConflict | DeclaredDead | BasePruned


class MergeConflictKind(StrEnum):
    """Reason why a merge cannot decide by itself."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"
    DIVERGENT_SCHEMA = "divergent_schema"


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """Changes of two branches that contradict each other.

    Attributes:
        kind: reason of the conflict.
        type_key: type in conflict, like `node:Person`; `schema` for a schema conflict.
        entity_id: id of the entity; for a schema conflict `node:Person`, `node:Person.age`, or `*` for all of it.
            None if several entities are involved.
        message: explanation for people.
        base: JSON values of the entity at the common ancestor; None if it did not exist.
        source: JSON values on the source branch; None if it does not exist.
        target: JSON values on the target branch; None if it does not exist.
        properties: properties that both branches set to different values.
    """

    kind: MergeConflictKind
    type_key: str
    entity_id: str | None
    message: str
    base: Mapping[str, object] | None = None
    source: Mapping[str, object] | None = None
    target: Mapping[str, object] | None = None
    properties: tuple[str, ...] = ()


class RevertConflictKind(StrEnum):
    """Reason why a commit cannot be reverted."""

    CHANGED_SINCE = "changed_since"
    SCHEMA_CHANGED = "schema_changed"
    CONSTRAINT = "constraint_violation"


@dataclass(frozen=True, slots=True)
class RevertConflict:
    """An entity or constraint that prevents a revert.

    Attributes:
        kind: reason of the conflict.
        type_key: type in conflict; `schema` if it concerns all types.
        entity_id: id of the entity; None if several are involved.
        message: explanation for people.
        before: JSON values before the commit; None if it did not exist.
        after: JSON values after the commit; None if it did not exist.
        current: JSON values now; None if it does not exist.
    """

    kind: RevertConflictKind
    type_key: str
    entity_id: str | None
    message: str
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
    current: Mapping[str, object] | None = None
