"""JSON form of a schema plan: serialize and deserialize."""

from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from typing import Any

from omnigraph.errors import FormatError
from omnigraph.model.schema import Annotation, Check, Constraint, Index, Key, Range, TypeKind, Unique
from omnigraph.model.schema_change import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCardinality,
    ChangePropertyType,
    DropMode,
    DropProperty,
    DropType,
    ExtendEnum,
    FillProperty,
    RemoveConstraint,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.model.schema_document import (
    dump_annotation,
    dump_type,
    load_annotation,
    load_type,
)
from omnigraph.model.types import PropertyType


def dump_plan(steps: tuple[Step, ...]) -> dict[str, Any]:
    """Serialize a plan: whether it is supported, and its steps."""
    supported = not any(isinstance(step, UnsupportedChange) for step in steps)
    return {"supported": supported, "steps": [dump_step(step) for step in steps]}


# Field names of the JSON form that Python or a reader of Python would stumble over.
_JSON_NAMES = {"from_name": "from", "to_name": "to"}


def dump_step(step: Step) -> dict[str, Any]:
    """Serialize one step."""
    document: dict[str, Any] = {"kind": step.kind}
    for field in fields(step):
        value = getattr(step, field.name)
        if field.name == "code" and value is None:
            continue
        document[_JSON_NAMES.get(field.name, field.name)] = _dump_value(value)
    return document


def _dump_value(value: object) -> object:
    match value:
        case PropertyType():
            return dump_type(value)
        case Key() | Unique() | Index() | Range() | Check():
            return _dump_constraint(value)
        case tuple():
            return [
                dump_annotation(annotation) if isinstance(annotation, Annotation) else annotation
                for annotation in value
            ]
        case StrEnum():
            return value.value
        case _:
            return value


def _dump_constraint(constraint: Constraint) -> dict[str, Any]:
    tag = type(constraint).__name__
    match constraint:
        case Range(name, least, most):
            return {tag: {"property": name, "min": least, "max": most}}
        case Check(name, pattern):
            return {tag: {"property": name, "pattern": pattern}}
        case Key(names) | Unique(names) | Index(names):
            return {tag: list(names)}


def load_steps(document: dict[str, Any]) -> tuple[Step, ...]:
    """Deserialize the steps of a plan.

    Raises:
        FormatError: the document is not a plan.
    """
    try:
        return tuple(_load_step(step) for step in document["steps"])
    except (KeyError, TypeError, ValueError, AttributeError) as mistake:
        raise FormatError(f"the schema plan is damaged: {type(mistake).__name__}: {mistake}") from mistake


_STEP_TYPES: dict[str, type[Step]] = {
    step_type.kind: step_type
    for step_type in (
        AddType,
        RenameType,
        AddProperty,
        RenameProperty,
        AddConstraint,
        ExtendEnum,
        UpdateTypeMetadata,
        UpdatePropertyMetadata,
        DropType,
        DropProperty,
        FillProperty,
        ChangePropertyType,
        RemoveConstraint,
        ChangeCardinality,
        UnsupportedChange,
    )
}

STEP_KINDS = tuple(_STEP_TYPES)


def _load_step(document: dict[str, Any]) -> Step:
    step_type = _STEP_TYPES[document["kind"]]
    values: dict[str, Any] = {}
    for field in fields(step_type):
        name = _JSON_NAMES.get(field.name, field.name)
        if name == "code" and name not in document:
            continue
        read = _READERS.get(field.name)
        values[field.name] = read(document[name]) if read else document[name]
    return step_type(**values)


def _load_constraint(document: dict[str, Any]) -> Constraint:
    ((tag, content),) = document.items()
    tuples: dict[str, type[Key | Unique | Index]] = {"Key": Key, "Unique": Unique, "Index": Index}
    if tag in tuples:
        return tuples[tag](tuple(content))
    return Range(**content) if tag == "Range" else Check(**content)


_READERS: dict[str, Callable[[Any], object]] = {
    "type_kind": TypeKind,
    "mode": DropMode,
    "property_type": load_type,
    "from_type": load_type,
    "to_type": load_type,
    "constraint": _load_constraint,
    "annotations": lambda found: tuple(load_annotation(annotation) for annotation in found),
    "added_values": tuple,
}
