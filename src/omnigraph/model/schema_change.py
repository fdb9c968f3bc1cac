"""Schema migration steps, as values that describe themselves in a sentence."""

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import Annotation, Check, Constraint, Index, Key, Range, Schema, TypeKind, Unique
from omnigraph.model.types import PropertyType

# How careful a change of the catalogue has to be: looked at in the data first, or losing some of it.
_TIERS = {"OG-MF-103": "validated", "OG-MF-104": "validated", "OG-MF-106": "destructive"}
_UNKNOWN_TIER = "destructive"


class DropMode(StrEnum):
    """Retention of dropped data in older commits."""

    SOFT = "soft"
    HARD = "hard"


@dataclass(frozen=True, slots=True)
class AddType:
    """Add a type."""

    kind: ClassVar[str] = "add_type"
    type_kind: TypeKind
    name: str

    def __str__(self) -> str:
        return f"add {self.type_kind} type '{self.name}'"


@dataclass(frozen=True, slots=True)
class RenameType:
    """Rename a type and keep its data."""

    kind: ClassVar[str] = "rename_type"
    type_kind: TypeKind
    from_name: str
    to_name: str

    def __str__(self) -> str:
        return f"rename {self.type_kind} type '{self.from_name}' -> '{self.to_name}'"


@dataclass(frozen=True, slots=True)
class AddProperty:
    """Add an optional property; existing entities have no value."""

    kind: ClassVar[str] = "add_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    property_type: PropertyType

    def __str__(self) -> str:
        path = f"{self.type_name}.{self.property_name}"
        return f"add property '{path}' ({self.property_type}) on {self.type_kind} '{self.type_name}'"


@dataclass(frozen=True, slots=True)
class RenameProperty:
    """Rename a property and keep its data."""

    kind: ClassVar[str] = "rename_property"
    type_kind: TypeKind
    type_name: str
    from_name: str
    to_name: str

    def __str__(self) -> str:
        was, now = f"{self.type_name}.{self.from_name}", f"{self.type_name}.{self.to_name}"
        return f"rename property '{was}' -> '{now}' on {self.type_kind} '{self.type_name}'"


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """Add a constraint that existing data cannot violate, or was validated against."""

    kind: ClassVar[str] = "add_constraint"
    type_kind: TypeKind
    type_name: str
    constraint: Constraint

    def __str__(self) -> str:
        return f"add constraint {format_constraint(self.constraint)} on {self.type_kind} '{self.type_name}'"


@dataclass(frozen=True, slots=True)
class ExtendEnum:
    """Add values to an enum."""

    kind: ClassVar[str] = "extend_enum"
    type_kind: TypeKind
    type_name: str
    property_name: str
    added_values: tuple[str, ...]

    def __str__(self) -> str:
        path, added = f"{self.type_name}.{self.property_name}", ", ".join(f"+{value}" for value in self.added_values)
        return f"extend enum '{path}' ({added}) on {self.type_kind} '{self.type_name}'"


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata:
    """Replace the description or instruction of a type; `annotations` is the complete new set."""

    kind: ClassVar[str] = "update_type_metadata"
    type_kind: TypeKind
    name: str
    annotations: tuple[Annotation, ...]

    def __str__(self) -> str:
        return f"update metadata on {self.type_kind} '{self.name}'{_format_annotations(self.annotations)}"


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata:
    """Replace the description of a property; `annotations` is the complete new set."""

    kind: ClassVar[str] = "update_property_metadata"
    type_kind: TypeKind
    type_name: str
    property_name: str
    annotations: tuple[Annotation, ...]

    def __str__(self) -> str:
        path = f"{self.type_name}.{self.property_name}"
        return f"update metadata on property '{path}' of {self.type_kind} '{self.type_name}'" + _format_annotations(
            self.annotations
        )


@dataclass(frozen=True, slots=True)
class FillProperty:
    """Add a required property; existing entities get its `@default`."""

    kind: ClassVar[str] = "fill_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    property_type: PropertyType
    value: str

    def __str__(self) -> str:
        path = f"{self.type_name}.{self.property_name}"
        filled = json.dumps(self.value, ensure_ascii=False)
        return (
            f"add property '{path}' ({self.property_type}) on {self.type_kind} '{self.type_name}', filled with {filled}"
        )


@dataclass(frozen=True, slots=True)
class ChangePropertyType:
    """Change the type of a property and convert every existing value."""

    kind: ClassVar[str] = "change_property_type"
    type_kind: TypeKind
    type_name: str
    property_name: str
    from_type: PropertyType
    to_type: PropertyType

    def __str__(self) -> str:
        path = f"{self.type_name}.{self.property_name}"
        return f"change property '{path}' ({self.from_type} -> {self.to_type}) on {self.type_kind} '{self.type_name}'"


@dataclass(frozen=True, slots=True)
class RemoveConstraint:
    """Remove a constraint."""

    kind: ClassVar[str] = "remove_constraint"
    type_kind: TypeKind
    type_name: str
    constraint: Constraint

    def __str__(self) -> str:
        return f"remove constraint {format_constraint(self.constraint)} from {self.type_kind} '{self.type_name}'"


@dataclass(frozen=True, slots=True)
class ChangeCardinality:
    """Change the allowed number of edges per node; None is unbounded."""

    kind: ClassVar[str] = "change_cardinality"
    type_kind: TypeKind
    type_name: str
    min: int
    max: int | None

    def __str__(self) -> str:
        bounds = f"{self.min}..{'' if self.max is None else self.max}"
        return f"change cardinality of {self.type_kind} '{self.type_name}' to @card({bounds})"


@dataclass(frozen=True, slots=True)
class DropType:
    """Drop a type."""

    kind: ClassVar[str] = "drop_type"
    type_kind: TypeKind
    name: str
    mode: DropMode = DropMode.SOFT

    def __str__(self) -> str:
        return f"drop {self.type_kind} type '{self.name}' ({self.mode} mode)"


@dataclass(frozen=True, slots=True)
class DropProperty:
    """Drop a property."""

    kind: ClassVar[str] = "drop_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    mode: DropMode = DropMode.SOFT

    def __str__(self) -> str:
        path = f"{self.type_name}.{self.property_name}"
        return f"drop property '{path}' of {self.type_kind} '{self.type_name}' ({self.mode} mode)"


@dataclass(frozen=True, slots=True)
class UnsupportedChange:
    """A change that no step supports.

    Attributes:
        entity: `node:T`, `node:T.p` or `schema`.
        reason: explanation for messages.
        code: code of the lint catalogue, if there is one.
    """

    kind: ClassVar[str] = "unsupported_change"
    entity: str
    reason: str
    code: str | None = None

    def __str__(self) -> str:
        code = f" [{self.code}, {_TIERS.get(self.code, _UNKNOWN_TIER)}]" if self.code is not None else ""
        return f"unsupported change on {self.entity}{code}: {self.reason}"

    @property
    def text(self) -> str:
        """Reason, prefixed with the code."""
        return f"[{self.code}] {self.reason}" if self.code else self.reason


Step = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | AddConstraint
    | ExtendEnum
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | DropType
    | DropProperty
    | FillProperty
    | ChangePropertyType
    | RemoveConstraint
    | ChangeCardinality
    | UnsupportedChange
)


class DiagnosticCode(StrEnum):
    """Kinds of remarks about a valid schema text."""

    IGNORED_RENAME_HINT = "ignored_exact_match_rename_hint"
    INERT_RENAME_HINT = "inert_initialization_rename_hint"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Remark about one declaration or property."""

    code: DiagnosticCode
    entity: str
    message: str


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """Migration from one schema to the next.

    Attributes:
        steps: in order; empty if nothing changes.
        schema: schema after the migration; valid only if the plan is supported.
        diagnostics: remarks about the text.
    """

    steps: tuple[Step, ...]
    schema: Schema
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def supported(self) -> bool:
        """True if every change can be made."""
        return not any(isinstance(step, UnsupportedChange) for step in self.steps)

    @property
    def is_empty(self) -> bool:
        """True if nothing changes."""
        return not self.steps

    def require_supported(self) -> None:
        """Refuse an unsupported plan.

        Raises:
            InvalidRequestError: for the first unsupported change.
        """
        for step in self.steps:
            if isinstance(step, UnsupportedChange):
                raise InvalidRequestError(step.text)

    @property
    def drops_hard(self) -> bool:
        """True if something is dropped from older commits too."""
        return any(isinstance(step, DropType | DropProperty) and step.mode is DropMode.HARD for step in self.steps)

    def with_data_loss(self) -> "SchemaPlan":
        """Return a copy of the plan in which every drop is permanent."""
        steps = (
            replace(step, mode=DropMode.HARD) if isinstance(step, DropType | DropProperty) else step
            for step in self.steps
        )
        return replace(self, steps=tuple(steps))


def _format_annotations(annotations: tuple[Annotation, ...]) -> str:
    """Format annotations as ` (@description("…"))`; empty if there are none."""
    shown = ", ".join(
        f"@{annotation.name}({json.dumps(annotation.value, ensure_ascii=False)})" for annotation in annotations
    )
    return f" ({shown})" if shown else ""


def format_constraint(constraint: Constraint) -> str:
    """Format a constraint approximately as the schema language writes it."""
    match constraint:
        case Range(name, least, most):
            return f"@range({name}, {'' if least is None else least}..{'' if most is None else most})"
        case Check(name, pattern):
            return f'@check({name}, "{pattern}")'
        case Key(names) | Unique(names) | Index(names):
            return f"@{constraint.kind}({', '.join(names)})"
