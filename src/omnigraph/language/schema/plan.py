"""Migration planner: the steps from an accepted schema to a desired schema text.

Order: interfaces, nodes, edges; within a kind by name, dropped types last. Within a type: its name, its interfaces or
ends, its metadata, its properties by name, dropped properties, constraints.
"""

from collections.abc import Iterator

from omnigraph.language.schema.check import check
from omnigraph.language.schema.lint import ADD_REQUIRED_PROPERTY, CHANGE_PROPERTY_TYPE
from omnigraph.language.schema.parse import parse
from omnigraph.language.schema.plan_validated import StrictRules, ValidatingRules
from omnigraph.language.schema.resolve import assign_next_ids
from omnigraph.model.analyzer import ANNOTATION
from omnigraph.model.schema import (
    Annotation,
    AnyType,
    Check,
    Constraint,
    EdgeType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    PropertyConstraint,
    Range,
    Schema,
    TypeKind,
    Unique,
)
from omnigraph.model.schema_change import (
    AddConstraint,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    RemoveConstraint,
    RenameProperty,
    RenameType,
    SchemaPlan,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    format_constraint,
)
from omnigraph.model.schema_document import shape_digest
from omnigraph.model.types import PropertyType

_METADATA = frozenset({"description", "instruction", ANNOTATION})
_V1 = "is not supported in schema migration v1"
_STRICT, _LOOKING = StrictRules(), ValidatingRules()
_OTHER_ANNOTATIONS = f"changing annotations beyond @description/@instruction {_V1}"


def plan(
    accepted: Schema, desired_text: str | bytes, name: str = "schema.pg", *, validated: bool = False
) -> SchemaPlan:
    """Plan the migration from the accepted schema to a schema text.

    Args:
        accepted: current schema of the graph.
        desired_text: text of the desired schema.
        name: what to call the text in messages.
        validated: also plan changes that are valid only for some data.

    Returns:
        Steps, resulting schema and remarks. Without steps the schema is the accepted one.

    Raises:
        ParseError: the text is invalid.
        LimitError: it is too long.
        InvalidRequestError: a rename hint cannot be resolved.
    """
    resolved = assign_next_ids(accepted, check(parse(desired_text, name)))
    steps = plan_steps(accepted, resolved.schema, validated=validated)
    return SchemaPlan(steps, resolved.schema if steps else accepted, resolved.diagnostics)


def plan_steps(accepted: Schema, desired: Schema, *, validated: bool = False) -> tuple[Step, ...]:
    """Return the steps between two schemas of one identity domain; impossible ones are `UnsupportedChange`.

    With `validated`, changes that are valid only for some data are planned too.
    """
    rules = _LOOKING if validated else _STRICT
    steps = [
        *_plan_kind(TypeKind.INTERFACE, accepted.interfaces, desired.interfaces, rules),
        *_plan_kind(TypeKind.NODE, accepted.nodes, desired.nodes, rules),
        *_plan_kind(TypeKind.EDGE, accepted.edges, desired.edges, rules),
    ]
    is_same = accepted.identity_domain == desired.identity_domain and shape_digest(accepted) == shape_digest(desired)
    if not steps and not is_same:
        steps.append(UnsupportedChange("schema", "schema migration contains an unclassified semantic IR change"))
    return tuple(steps)


def _plan_kind(
    kind: TypeKind, accepted: tuple[AnyType, ...], desired: tuple[AnyType, ...], rules: StrictRules
) -> Iterator[Step]:
    before = {type_.type_id: type_ for type_ in accepted}
    for type_ in desired:
        was = before.pop(type_.type_id, None)
        if was is None:
            yield AddType(kind, type_.name)
        else:
            yield from _plan_type(was, type_, rules)
    for gone in before.values():
        if kind is TypeKind.INTERFACE:
            yield UnsupportedChange(gone.type_key, f"removing interface '{gone.name}' {_V1}")
        else:
            yield DropType(kind, gone.name)


def _plan_type(was: AnyType, now: AnyType, rules: StrictRules) -> Iterator[Step]:
    if was.name != now.name:
        if isinstance(now, InterfaceType):
            yield UnsupportedChange(now.type_key, f"renaming interfaces {_V1}")
        else:
            yield RenameType(now.kind, was.name, now.name)
    match was, now:
        case NodeType(), NodeType():
            yield from _plan_implements(was, now)
            yield from _plan_metadata(was, now)
        case EdgeType(), EdgeType():
            yield from _plan_edge(was, now, rules)
            yield from _plan_metadata(was, now)
    yield from _plan_properties(was, now, rules)
    if isinstance(was, NodeType | EdgeType) and isinstance(now, NodeType | EdgeType):
        yield from _plan_constraints(was, now, rules)


def _plan_implements(was: NodeType, now: NodeType) -> Iterator[Step]:
    if {interface.type_id for interface in was.implements} != {interface.type_id for interface in now.implements}:
        yield UnsupportedChange(now.type_key, f"changing implemented interfaces on node '{now.name}' {_V1}")


def _plan_edge(was: EdgeType, now: EdgeType, rules: StrictRules) -> Iterator[Step]:
    if (was.from_type.type_id, was.to_type.type_id) != (now.from_type.type_id, now.to_type.type_id):
        yield UnsupportedChange(now.type_key, f"changing edge endpoints on '{now.name}' {_V1}")
    if was.cardinality != now.cardinality:
        yield rules.cardinality(now) or UnsupportedChange(
            now.type_key, f"changing cardinality on edge '{now.name}' {_V1}"
        )


def _plan_metadata(was: NodeType | EdgeType, now: NodeType | EdgeType) -> Iterator[Step]:
    if _select_metadata(was.annotations) != _select_metadata(now.annotations):
        yield UpdateTypeMetadata(now.kind, now.name, _select_metadata(now.annotations))
    if _select_other_annotations(was.annotations) != _select_other_annotations(now.annotations):
        yield UnsupportedChange(now.type_key, _OTHER_ANNOTATIONS)


def _select_metadata(annotations: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
    return tuple(annotation for annotation in annotations if annotation.name in _METADATA)


def _select_other_annotations(annotations: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
    return tuple(annotation for annotation in annotations if annotation.name not in _METADATA)


def _plan_properties(was: AnyType, now: AnyType, rules: StrictRules) -> Iterator[Step]:
    before = {property_.property_id: property_ for property_ in was.properties}
    for property_ in now.properties:
        known = before.pop(property_.property_id, None)
        if known is not None:
            yield from _plan_property(known, property_, now, rules)
        elif property_.type.nullable:
            yield AddProperty(now.kind, now.name, property_.name, property_.type)
        else:
            yield rules.required(property_, now) or UnsupportedChange(
                f"{now.type_key}.{property_.name}",
                f"adding required property '{now.name}.{property_.name}' requires a backfill and {_V1}",
                ADD_REQUIRED_PROPERTY,
            )
    for gone in before.values():
        yield DropProperty(now.kind, now.name, gone.name)


def _plan_property(was: Property, now: Property, owner: AnyType, rules: StrictRules) -> Iterator[Step]:
    path, entity = f"{owner.name}.{now.name}", f"{owner.type_key}.{now.name}"
    if was.name != now.name:
        yield RenameProperty(owner.kind, owner.name, was.name, now.name)
    if was.type != now.type:
        added = _find_added_values(was.type, now.type)
        if added:
            yield ExtendEnum(owner.kind, owner.name, now.name, added)
        else:
            yield rules.property_type(was, now, owner) or UnsupportedChange(
                entity, f"changing property type for '{path}' {_V1}", CHANGE_PROPERTY_TYPE
            )
    if _embed_identity(was) != _embed_identity(now):
        reason = (
            f"changing @embed source or model for '{path}' {_V1}; rebuild the graph so stored vectors and their "
            "declared embedding space cannot diverge"
        )
        yield UnsupportedChange(entity, reason)
    yield from _plan_inline_constraints(was, now, owner, rules)
    if was.declared_directly != now.declared_directly:
        yield UnsupportedChange(entity, f"changing whether '{path}' is declared by the type itself {_V1}")
    if _interface_links(was) != _interface_links(now):
        yield UnsupportedChange(entity, f"changing which interface properties '{path}' satisfies {_V1}")
    if _select_metadata(was.annotations) != _select_metadata(now.annotations):
        yield UpdatePropertyMetadata(owner.kind, owner.name, now.name, _select_metadata(now.annotations))
    if _select_other_annotations(was.annotations) != _select_other_annotations(now.annotations):
        yield UnsupportedChange(entity, _OTHER_ANNOTATIONS)


def _find_added_values(was: PropertyType, now: PropertyType) -> tuple[str, ...]:
    """Return the values an enum gained, if nothing else about the type changed."""
    if was.enum_values is None or now.enum_values is None or (was.nullable, was.list) != (now.nullable, now.list):
        return ()
    if not set(was.enum_values) < set(now.enum_values):
        return ()
    return tuple(sorted(set(now.enum_values) - set(was.enum_values)))


def _embed_identity(property_: Property) -> tuple[int, str | None] | None:
    return None if property_.embed is None else (property_.embed.source.property_id, property_.embed.model)


def _interface_links(property_: Property) -> set[tuple[int, int]]:
    return {(link.owner_type_id, link.property_id) for link in property_.satisfies}


def _plan_inline_constraints(was: Property, now: Property, owner: AnyType, rules: StrictRules) -> Iterator[Step]:
    path, entity = f"{owner.name}.{now.name}", f"{owner.type_key}.{now.name}"
    # A type with a table lists these among its constraints, and the steps come from there; an interface has no table.
    inherited = isinstance(owner, InterfaceType)
    for constraint in now.constraints:
        if constraint in was.constraints:
            continue
        if constraint is not PropertyConstraint.INDEX and not rules.by_constraint(constraint):
            yield UnsupportedChange(entity, f"adding a property-level @{constraint} constraint to '{path}' {_V1}")
        elif inherited:
            yield AddConstraint(owner.kind, owner.name, _as_type_constraint(constraint, now.name))
    gone = [constraint for constraint in was.constraints if constraint not in now.constraints]
    if any(not rules.by_constraint(constraint) for constraint in gone):
        yield UnsupportedChange(entity, f"removing property constraints from '{path}' {_V1}")
    elif inherited:
        yield from (
            RemoveConstraint(owner.kind, owner.name, _as_type_constraint(constraint, now.name)) for constraint in gone
        )


def _as_type_constraint(constraint: PropertyConstraint, name: str) -> Constraint:
    """Return an inline constraint as a constraint of the type."""
    match constraint:
        case PropertyConstraint.INDEX:
            return Index((name,))
        case PropertyConstraint.UNIQUE:
            return Unique((name,))
        case PropertyConstraint.KEY:
            return Key((name,))


def _plan_constraints(was: NodeType | EdgeType, now: NodeType | EdgeType, rules: StrictRules) -> Iterator[Step]:
    before = {_constraint_identity(constraint, was) for constraint in was.constraints}
    after = {_constraint_identity(constraint, now) for constraint in now.constraints}
    for constraint in now.constraints:
        if _constraint_identity(constraint, now) in before:
            continue
        if isinstance(constraint, Index):
            yield AddConstraint(now.kind, now.name, constraint)
        else:
            reason = f"adding constraint '{format_constraint(constraint)}' to '{now.name}' {_V1}"
            yield rules.added(constraint, now) or UnsupportedChange(now.type_key, reason)
    gone = [constraint for constraint in was.constraints if _constraint_identity(constraint, was) not in after]
    removed = [rules.removed(constraint, now) for constraint in gone]
    if None in removed:
        yield UnsupportedChange(now.type_key, f"removing constraints from '{now.name}' {_V1}")
    else:
        yield from (step for step in removed if step is not None)


def _constraint_identity(constraint: Constraint, owner: NodeType | EdgeType) -> tuple[object, ...]:
    """Return the meaning of a constraint by property ids, so that a rename does not change it."""

    def number(name: str) -> int | str:
        found = owner.property_named(name)
        return name if found is None else found.property_id

    match constraint:
        case Range(name, least, most):
            return (constraint.kind, number(name), least, most)
        case Check(name, pattern):
            return (constraint.kind, number(name), pattern)
        case _:
            return (constraint.kind, frozenset(number(name) for name in constraint.properties))
