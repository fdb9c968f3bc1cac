"""Why a write, a merge or the undoing of a commit was refused: values that name what is in the way."""

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
    """Somebody changed what this write had read: a type key, `schema` or `branch`."""

    member: str
    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class KeyConflict:
    """An entity that was to be new exists already."""

    type_key: str
    entity_id: str

    def __str__(self) -> str:
        kind, _, name = self.type_key.partition(":")
        return f"{kind} type '{name}' already has id '{self.entity_id}'"


@dataclass(frozen=True, slots=True)
class DeclaredDead:
    """Recovery took this writer for dead and undid its work; running it again is safe."""

    intent: str
    by_commit: str


@dataclass(frozen=True, slots=True)
class BasePruned:
    """The commit this write started from was pruned while it ran; running it again on a fresh one is safe."""

    branch: str
    base_number: int
    floor: int


Conflict = ExpectedVersionMismatch | ReadSetChanged | KeyConflict | DeclaredDead | BasePruned


class MergeConflictKind(StrEnum):
    """Why a merge cannot decide by itself."""

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
    """Something two branches did that cannot both stand.

    Attributes:
        kind: which sort.
        type_key: the type it is about, like `node:Person`; `schema` where it is about the schema.
        entity_id: the entity; of the schema, the item: `node:Person`, `node:Person.age`, or `*` for all of it. None
            where it is about more than one.
        message: what it is, for people.
        base: the entity at the common ancestor, as JSON shows its values; None where it was not there.
        source: the entity on the branch brought in; None where it is not there.
        target: the entity on the branch changed; None where it is not there.
        properties: what both branches set, differently, where both have the entity.
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
    """Why a commit cannot be undone."""

    CHANGED_SINCE = "changed_since"
    SCHEMA_CHANGED = "schema_changed"
    CONSTRAINT = "constraint_violation"


@dataclass(frozen=True, slots=True)
class RevertConflict:
    """Something that keeps a commit from being undone.

    Attributes:
        kind: which sort.
        type_key: the type it is about; `schema` where it is about all of them.
        entity_id: the entity; None where it is about more than one.
        message: what it is, for people.
        before: the entity before the commit, as JSON shows its values; None where it was not there.
        after: the entity as the commit left it; None where it was not there.
        current: the entity now; None where it is not there.
    """

    kind: RevertConflictKind
    type_key: str
    entity_id: str | None
    message: str
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
    current: Mapping[str, object] | None = None
