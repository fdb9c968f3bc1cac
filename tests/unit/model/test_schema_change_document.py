"""The JSON form of plans, and what a plan can be asked."""

import json
from dataclasses import fields
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import FormatError, InvalidRequestError
from omnigraph.language.schema import accept
from omnigraph.model.schema import Annotation, Check, Index, Key, Range, TypeKind, Unique
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
    SchemaPlan,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.model.schema_change_document import dump_plan, dump_step, load_steps
from omnigraph.model.types import BASE_SCALARS, PropertyType, enum_of, vector_of

QUICK = settings(derandomize=True)
NAMES = st.text("abcXYZ_", min_size=1, max_size=6)
KINDS = st.sampled_from(TypeKind)
TUPLES = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
BOUNDS = st.none() | st.integers(-9, 9) | st.floats(-9, 9)
TYPES = (
    st.builds(PropertyType, st.sampled_from(BASE_SCALARS), nullable=st.booleans(), list=st.booleans())
    | st.builds(enum_of, TUPLES, nullable=st.booleans())
    | st.builds(vector_of, st.integers(1, 9), nullable=st.booleans())
)
CONSTRAINTS = (
    st.builds(Key, TUPLES)
    | st.builds(Unique, TUPLES)
    | st.builds(Index, TUPLES)
    | st.builds(Range, NAMES, BOUNDS, BOUNDS)
    | st.builds(Check, NAMES, st.text())
)
KWARGS = st.dictionaries(NAMES, st.text(), max_size=2).map(lambda found: tuple(found.items()))
ANNOTATIONS = st.lists(st.builds(Annotation, NAMES, st.none() | st.text(), KWARGS), max_size=2).map(tuple)
MODES = st.sampled_from(DropMode)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(AddType, KINDS, NAMES),
    st.builds(RenameType, KINDS, NAMES, NAMES),
    st.builds(AddProperty, KINDS, NAMES, NAMES, TYPES),
    st.builds(RenameProperty, KINDS, NAMES, NAMES, NAMES),
    st.builds(AddConstraint, KINDS, NAMES, CONSTRAINTS),
    st.builds(ExtendEnum, KINDS, NAMES, NAMES, TUPLES),
    st.builds(UpdateTypeMetadata, KINDS, NAMES, ANNOTATIONS),
    st.builds(UpdatePropertyMetadata, KINDS, NAMES, NAMES, ANNOTATIONS),
    st.builds(DropType, KINDS, NAMES, MODES),
    st.builds(DropProperty, KINDS, NAMES, NAMES, MODES),
    st.builds(FillProperty, KINDS, NAMES, NAMES, TYPES, st.text()),
    st.builds(ChangePropertyType, KINDS, NAMES, NAMES, TYPES, TYPES),
    st.builds(RemoveConstraint, KINDS, NAMES, CONSTRAINTS),
    st.builds(ChangeCardinality, KINDS, NAMES, st.integers(0, 9), st.none() | st.integers(0, 9)),
    st.builds(UnsupportedChange, NAMES, st.text(), st.none() | NAMES),
)


@QUICK
@given(st.lists(STEPS, max_size=5).map(tuple))
def test_steps_survive_their_json_form(steps: tuple[Step, ...]) -> None:
    document = json.loads(json.dumps(dump_plan(steps)))

    assert load_steps(document) == steps
    assert document["supported"] == (not any(isinstance(step, UnsupportedChange) for step in steps))


@QUICK
@given(STEPS)
def test_every_step_says_in_words_what_it_names(step: Step) -> None:
    names = [getattr(step, each.name) for each in fields(step) if each.name.endswith("name")]

    assert all(name in str(step) for name in names)


def test_every_kind_of_step_is_drawn_above() -> None:
    assert len(get_args(Step)) == 15
    assert len({each.kind for each in get_args(Step)}) == 15


@pytest.mark.parametrize(
    ("step", "document"),
    [
        (RenameType(TypeKind.NODE, "A", "B"), {"kind": "rename_type", "type_kind": "node", "from": "A", "to": "B"}),
        (
            AddProperty(TypeKind.EDGE, "E", "v", vector_of(4, nullable=True)),
            {
                "kind": "add_property",
                "type_kind": "edge",
                "type_name": "E",
                "property_name": "v",
                "property_type": {"scalar": {"Vector": 4}, "nullable": True, "list": False, "enum_values": None},
            },
        ),
        (
            AddConstraint(TypeKind.NODE, "A", Index(("p",))),
            {"kind": "add_constraint", "type_kind": "node", "type_name": "A", "constraint": {"Index": ["p"]}},
        ),
        (
            AddConstraint(TypeKind.NODE, "A", Range("p", 0, None)),
            {
                "kind": "add_constraint",
                "type_kind": "node",
                "type_name": "A",
                "constraint": {"Range": {"property": "p", "min": 0, "max": None}},
            },
        ),
        (
            UpdateTypeMetadata(TypeKind.NODE, "A", (Annotation("description", "x"),)),
            {
                "kind": "update_type_metadata",
                "type_kind": "node",
                "name": "A",
                "annotations": [{"name": "description", "value": "x"}],
            },
        ),
        (DropType(TypeKind.NODE, "A"), {"kind": "drop_type", "type_kind": "node", "name": "A", "mode": "soft"}),
        (UnsupportedChange("schema", "why"), {"kind": "unsupported_change", "entity": "schema", "reason": "why"}),
        (
            UnsupportedChange("node:A", "why", "OG-MF-106"),
            {"kind": "unsupported_change", "entity": "node:A", "reason": "why", "code": "OG-MF-106"},
        ),
    ],
)
def test_a_step_has_the_fields_programs_read(step: Step, document: dict[str, Any]) -> None:
    assert dump_step(step) == document


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"steps": [{"kind": "explode"}]},
        {"steps": [{"kind": "add_type", "name": "A"}]},
        {"steps": [{"kind": "add_type", "type_kind": "galaxy", "name": "A"}]},
        {"steps": [{"kind": "add_constraint", "type_kind": "node", "type_name": "A", "constraint": {"Maybe": 1}}]},
        {"steps": 7},
    ],
)
def test_a_damaged_plan_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="the schema plan is damaged"):
        load_steps(document)


def test_allowing_data_loss_makes_every_drop_hard_and_changes_nothing_else() -> None:
    schema = accept("node A {}")
    steps = (AddType(TypeKind.NODE, "B"), DropType(TypeKind.NODE, "A"), DropProperty(TypeKind.NODE, "B", "x"))
    hard = SchemaPlan(steps, schema).with_data_loss()

    assert hard.steps == (
        AddType(TypeKind.NODE, "B"),
        DropType(TypeKind.NODE, "A", DropMode.HARD),
        DropProperty(TypeKind.NODE, "B", "x", DropMode.HARD),
    )
    assert hard.schema is schema


def test_an_unsupported_plan_fails_with_its_first_reason_and_code() -> None:
    steps = (
        AddType(TypeKind.NODE, "B"),
        UnsupportedChange("node:A.x", "first", "OG-MF-103"),
        UnsupportedChange("node:A.y", "second"),
    )
    plan = SchemaPlan(steps, accept("node A {}"))

    assert not plan.supported
    with pytest.raises(InvalidRequestError) as raised:
        plan.require_supported()
    assert str(raised.value) == "[OG-MF-103] first"


def test_a_supported_plan_is_not_refused() -> None:
    plan = SchemaPlan((AddType(TypeKind.NODE, "B"),), accept("node A {}"))

    plan.require_supported()
    assert plan.supported
    assert not plan.is_empty
    assert SchemaPlan((), accept("node A {}")).is_empty
