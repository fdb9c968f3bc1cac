"""Changes of a schema that are right only where the data allows them.

The strict rules plan none of them. The looking rules plan them as steps that have the data looked at before anything is
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


class Rules:
    """Which changes have steps beside those that need no look at the data: none."""

    def cardinality(self, now: EdgeType) -> Step | None:  # noqa: ARG002  (the rules that look at the data do)
        """The step to another number of edges."""
        return None

    def required(self, each: Property, owner: AnyType) -> Step | None:  # noqa: ARG002  (the rules that look at the data do)
        """The step that adds a required property."""
        return None

    def property_type(self, was: Property, now: Property, owner: AnyType) -> Step | None:  # noqa: ARG002  (the rules that look at the data do)
        """The step to another type of a property."""
        return None

    def added(self, each: Constraint, owner: EntityType) -> Step | None:  # noqa: ARG002  (the rules that look at the data do)
        """The step that adds a constraint."""
        return None

    def removed(self, each: Constraint, owner: EntityType) -> Step | None:  # noqa: ARG002  (the rules that look at the data do)
        """The step that removes a constraint."""
        return None

    def by_constraint(self, each: PropertyConstraint) -> bool:  # noqa: ARG002  (the rules that look at the data do)
        """Whether what a property declares has a step among the constraints of its type."""
        return False


class LookingRules(Rules):
    """Which changes have steps where the data is looked at."""

    def cardinality(self, now: EdgeType) -> Step | None:
        """Any other number."""
        return ChangeCardinality(now.kind, now.name, now.cardinality.min, now.cardinality.max)

    def required(self, each: Property, owner: AnyType) -> Step | None:
        """With a `@default`, which the entities there are get; bytes are not written into schemas."""
        value = each.default
        if value is None or each.type.is_blob:
            return None
        return FillProperty(owner.kind, owner.name, each.name, each.type, value)

    def property_type(self, was: Property, now: Property, owner: AnyType) -> Step | None:
        """To a type that holds every value of the old one, or to an enum that may hold every one there is."""
        if not holds(was.type, now.type) or (_is_key(now, owner) and not _is_written_alike(was.type, now.type)):
            return None
        return ChangePropertyType(owner.kind, owner.name, now.name, was.type, now.type)

    def added(self, each: Constraint, owner: EntityType) -> Step | None:
        """Anything but a key: ids are made from it."""
        return None if isinstance(each, Key) else AddConstraint(owner.kind, owner.name, each)

    def removed(self, each: Constraint, owner: EntityType) -> Step | None:
        """Anything but a key."""
        return None if isinstance(each, Key) else RemoveConstraint(owner.kind, owner.name, each)

    def by_constraint(self, each: PropertyConstraint) -> bool:
        """What is no key."""
        return each is not PropertyConstraint.KEY


def holds(was: PropertyType, now: PropertyType) -> bool:
    """Whether every value of one type can be one of the other, absent ones aside."""
    if was.list != now.list or was.vector_dim != now.vector_dim:
        return False
    if was.is_string and now.is_string:
        # An enum becomes any text; which texts an enum leaves out is for the data to say.
        return True
    return was.scalar is now.scalar or now.scalar in _WIDER.get(was.scalar, set())


def _is_key(each: Property, owner: AnyType) -> bool:
    """Whether ids are made from a property."""
    if isinstance(owner, InterfaceType):
        return PropertyConstraint.KEY in each.constraints
    return any(isinstance(rule, Key) and each.name in rule.properties for rule in owner.constraints)


def _is_written_alike(was: PropertyType, now: PropertyType) -> bool:
    """Whether every value has the same text in both types: 0.1 in 32 bits is another number than in 64."""
    return was.scalar is not Scalar.F32 or now.scalar is Scalar.F32
