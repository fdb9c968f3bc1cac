"""Rules for schema changes that are valid only for some data.

The strict rules plan none of them. The validating rules plan them as steps whose data is checked before anything is
written.
"""

from omnigraph.model.schema import (
    AnyType,
    Constraint,
    EdgeType,
    EntityType,
    InterfaceType,
    Key,
    Property,
    PropertyConstraint,
)
from omnigraph.model.schema_change import (
    AddConstraint,
    ChangeCardinality,
    ChangePropertyType,
    FillProperty,
    RemoveConstraint,
    Step,
)
from omnigraph.model.types import PropertyType, Scalar

# Numbers of the left fit into those of the right, every one of them.
_WIDER = {
    Scalar.I32: {Scalar.I64, Scalar.F64},
    Scalar.U32: {Scalar.U64, Scalar.I64, Scalar.F64},
    Scalar.F32: {Scalar.F64},
}


class StrictRules:
    """Strict rules: no steps for changes that depend on data."""

    def cardinality(self, now: EdgeType) -> Step | None:  # noqa: ARG002  (the rules that look at the data do)
        """Return the step to another cardinality."""
        return None

    def required(self, property_: Property, owner: AnyType) -> Step | None:  # noqa: ARG002  (the rules that look at the data do)
        """Return the step that adds a required property."""
        return None

    def property_type(self, was: Property, now: Property, owner: AnyType) -> Step | None:  # noqa: ARG002  (the rules that look at the data do)
        """Return the step to another type of a property."""
        return None

    def added(self, constraint: Constraint, owner: EntityType) -> Step | None:  # noqa: ARG002  (the rules that look at the data do)
        """Return the step that adds a constraint."""
        return None

    def removed(self, constraint: Constraint, owner: EntityType) -> Step | None:  # noqa: ARG002  (the rules that look at the data do)
        """Return the step that removes a constraint."""
        return None

    def by_constraint(self, constraint: PropertyConstraint) -> bool:  # noqa: ARG002  (the rules that look at the data do)
        """True if an inline constraint is planned as a constraint of its type."""
        return False


class ValidatingRules(StrictRules):
    """Rules that plan steps for changes whose data is checked first."""

    def cardinality(self, now: EdgeType) -> Step | None:
        """Allow every cardinality."""
        return ChangeCardinality(now.kind, now.name, now.cardinality.min, now.cardinality.max)

    def required(self, property_: Property, owner: AnyType) -> Step | None:
        """Allow a property with `@default`, which existing entities get; blobs have no defaults."""
        value = property_.default
        if value is None or property_.type.is_blob:
            return None
        return FillProperty(owner.kind, owner.name, property_.name, property_.type, value)

    def property_type(self, was: Property, now: Property, owner: AnyType) -> Step | None:
        """Allow a type that holds every value of the old one, or an enum that existing values may fit."""
        if not can_hold(was.type, now.type) or (_is_key(now, owner) and not _has_same_text(was.type, now.type)):
            return None
        return ChangePropertyType(owner.kind, owner.name, now.name, was.type, now.type)

    def added(self, constraint: Constraint, owner: EntityType) -> Step | None:
        """Allow every constraint but a key: ids are derived from it."""
        return None if isinstance(constraint, Key) else AddConstraint(owner.kind, owner.name, constraint)

    def removed(self, constraint: Constraint, owner: EntityType) -> Step | None:
        """Allow every constraint but a key."""
        return None if isinstance(constraint, Key) else RemoveConstraint(owner.kind, owner.name, constraint)

    def by_constraint(self, constraint: PropertyConstraint) -> bool:
        """True for every constraint but a key."""
        return constraint is not PropertyConstraint.KEY


def can_hold(was: PropertyType, now: PropertyType) -> bool:
    """True if every non-null value of `was` is a value of `now`."""
    if was.list != now.list or was.vector_dim != now.vector_dim:
        return False
    if was.is_string and now.is_string:
        # An enum becomes any text; which texts an enum leaves out is for the data to say.
        return True
    return was.scalar is now.scalar or now.scalar in _WIDER.get(was.scalar, set())


def _is_key(constraint: Property, owner: AnyType) -> bool:
    """True if ids are derived from the property."""
    if isinstance(owner, InterfaceType):
        return PropertyConstraint.KEY in constraint.constraints
    return any(isinstance(rule, Key) and constraint.name in rule.properties for rule in owner.constraints)


def _has_same_text(was: PropertyType, now: PropertyType) -> bool:
    """True if every value has the same text in both types: 0.1 in 32 bits is another number than in 64."""
    return was.scalar is not Scalar.F32 or now.scalar is Scalar.F32
