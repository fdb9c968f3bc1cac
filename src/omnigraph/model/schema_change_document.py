"""The JSON form of a schema plan, both ways."""

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
    annotation_document,
    annotation_from_document,
    type_document,
    type_from_document,
)
from omnigraph.model.types import PropertyType


def plan_document(steps: tuple[Step, ...]) -> dict[str, Any]:
    """A plan as plain JSON values: whether it is supported, and its steps."""
    supported = not any(isinstance(step, UnsupportedChange) for step in steps)
    return {"supported": supported, "steps": [step_document(step) for step in steps]}


# Field names of the JSON form that Python or a reader of Python would stumble over.
_JSON_NAMES = {"from_name": "from", "to_name": "to"}


def step_document(step: Step) -> dict[str, Any]:
    """One step as plain JSON values."""
    document: dict[str, Any] = {"kind": step.kind}
    for each in fields(step):
        value = getattr(step, each.name)
        if each.name == "code" and value is None:
            continue
        document[_JSON_NAMES.get(each.name, each.name)] = _value_document(value)
    return document


def _value_document(value: object) -> object:
    match value:
        case PropertyType():
            return type_document(value)
        case Key() | Unique() | Index() | Range() | Check():
            return _tagged(value)
        case tuple():
            return [annotation_document(each) if isinstance(each, Annotation) else each for each in value]
        case StrEnum():
            return value.value
        case _:
            return value


def _tagged(constraint: Constraint) -> dict[str, Any]:
    tag = type(constraint).__name__
    match constraint:
        case Range(name, least, most):
            return {tag: {"property": name, "min": least, "max": most}}
        case Check(name, pattern):
            return {tag: {"property": name, "pattern": pattern}}
        case Key(names) | Unique(names) | Index(names):
            return {tag: list(names)}


def steps_from_document(document: dict[str, Any]) -> tuple[Step, ...]:
    """The steps a plan's JSON form describes.

    Raises:
        FormatError: it is no such form.
    """
    try:
        return tuple(_step(each) for each in document["steps"])
    except (KeyError, TypeError, ValueError, AttributeError) as mistake:
        raise FormatError(f"the schema plan is damaged: {type(mistake).__name__}: {mistake}") from mistake


_STEP_TYPES: dict[str, type[Step]] = {
    each.kind: each
    for each in (
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


def _step(document: dict[str, Any]) -> Step:
    step_type = _STEP_TYPES[document["kind"]]
    values: dict[str, Any] = {}
    for each in fields(step_type):
        name = _JSON_NAMES.get(each.name, each.name)
        if name == "code" and name not in document:
            continue
        read = _READERS.get(each.name)
        values[each.name] = read(document[name]) if read else document[name]
    return step_type(**values)


def _constraint(document: dict[str, Any]) -> Constraint:
    ((tag, content),) = document.items()
    tuples: dict[str, type[Key | Unique | Index]] = {"Key": Key, "Unique": Unique, "Index": Index}
    if tag in tuples:
        return tuples[tag](tuple(content))
    return Range(**content) if tag == "Range" else Check(**content)


_READERS: dict[str, Callable[[Any], object]] = {
    "type_kind": TypeKind,
    "mode": DropMode,
    "property_type": type_from_document,
    "from_type": type_from_document,
    "to_type": type_from_document,
    "constraint": _constraint,
    "annotations": lambda found: tuple(annotation_from_document(each) for each in found),
    "added_values": tuple,
}
