"""The rules of a schema as data: what must hold, of which columns, and the message of a breach.

Nothing here looks at a row. An engine that does, in this process or elsewhere, takes these values and these sentences.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import re2  # type: ignore[import-untyped]  # it comes without types

from omnigraph.model.schema import (
    DST,
    SRC,
    Cardinality,
    Check,
    EdgeType,
    EntityType,
    Key,
    NodeType,
    Range,
    Schema,
    Unique,
)

Number = int | float


@dataclass(frozen=True, slots=True)
class OneOf:
    """An enum: only these values."""

    type_name: str
    column: str
    values: tuple[str, ...]

    def breach(self, value: str) -> str:
        """Return the message for a value outside the enum."""
        return f"invalid enum value '{value}' for {self.type_name}.{self.column} (expected: {', '.join(self.values)})"


@dataclass(frozen=True, slots=True)
class Within:
    """`@range`: inclusive bounds, compared as 64-bit floats; None is open."""

    type_name: str
    column: str
    least: Number | None
    most: Number | None

    def breach(self, value: Number) -> str:
        """What to say of a number outside the bounds, or of one that is none."""
        what = f"@range violation on {self.type_name}.{self.column}:"
        if value != value:  # noqa: PLR0124  (only NaN differs from itself)
            return f"{what} value is NaN"
        if self.least is not None and float(value) < float(self.least):
            return f"{what} value {_number(value)} < min {_number(self.least)}"
        most = self.most if self.most is not None else value
        return f"{what} value {_number(value)} > max {_number(most)}"


@dataclass(frozen=True, slots=True)
class Matches:
    """`@check`: a pattern that must be found somewhere in the string."""

    type_name: str
    column: str
    pattern: str
    fault: str | None = None  # why the pattern is none; nothing can be written to the type then

    def breach(self, value: str) -> str:
        """What to say of a string without the pattern in it."""
        where = f"{self.type_name}.{self.column}"
        return f"@check violation on {where}: value '{value}' does not match pattern '{self.pattern}'"

    @property
    def unusable(self) -> str:
        """What to say where the pattern is none."""
        return f"@check on {self.type_name}.{self.column} has invalid regex '{self.pattern}': {self.fault}"


ValueRule = OneOf | Within | Matches


@dataclass(frozen=True, slots=True)
class Distinct:
    """`@unique` or `@key`: no two entities share this tuple; one with an absent component shares nothing."""

    type_name: str
    columns: tuple[str, ...]

    def breach(self, value: tuple[object, ...], holder: str, other: str) -> str:
        """What to say of two entities with one tuple; `value` as JSON shows it."""
        columns, values = ", ".join(self.columns), ", ".join(_shown(component) for component in value)
        if len(self.columns) > 1:
            columns, values = f"({columns})", f"({values})"
        return f"@unique violation on {self.type_name}.{columns}: value '{values}' held by '{holder}' and '{other}'"


@dataclass(frozen=True, slots=True)
class EndsAt:
    """One end of an edge: the node is there."""

    type_key: str
    column: str  # `src` or `dst`
    node_key: str
    node_name: str  # for messages

    def breach(self, node_id: str) -> str:
        """What to say of an edge to a node that is not there."""
        return f"{self.column} '{node_id}' not found in {self.node_name}"


@dataclass(frozen=True, slots=True)
class Degree:
    """`@card`: how many edges of a type may leave one node; `most` None is any number."""

    type_key: str
    edge_name: str  # for messages
    node_key: str  # the type of the nodes they leave
    least: int  # the fewest a node that ever had one may have
    most: int | None  # upper bound; None is unbounded

    def breach(self, node_id: str, count: int) -> str:
        """What to say of a node with too many or too few."""
        bound = f"max {self.most}" if self.most is not None and count > self.most else f"min {self.least}"
        return f"@card violation on edge {self.edge_name}: source '{node_id}' has {count} edges ({bound})"


@dataclass(frozen=True, slots=True)
class TypeRules:
    """Everything that must hold of one type."""

    type_key: str  # such as `node:Person`
    values: tuple[ValueRule, ...]  # of single rows, in the order they are checked
    key: Distinct | None  # the tuple ids come from; None where ids are free
    distinct: tuple[Distinct, ...]  # tuples that occur once, beside the key
    ends: tuple[EndsAt, ...] = ()  # of an edge type, its two ends; of a node type, nothing
    degree: Degree | None = None  # of an edge type with a cardinality of its own

    @property
    def needs_replaced(self) -> tuple[str, ...]:
        """The columns of replaced rows that checking this type needs."""
        tuples = (column for rule in self.distinct for column in rule.columns)
        return tuple(dict.fromkeys((*(end.column for end in self.ends), *tuples)))

    @property
    def needs_only_ends(self) -> bool:
        """Whether these are the ends of edges and nothing else."""
        return not self.distinct and self.degree is None


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of every type, in the order types are checked: nodes by name, then edges by name."""

    types: Mapping[str, TypeRules]
    arrivals: Mapping[str, tuple[EndsAt, ...]]  # by node type key, the ends of edges that lie there


def rules_of(schema: Schema) -> Rules:
    """The rules a schema states."""
    types = {entity.type_key: _type_rules(entity) for entity in schema.entities}
    arrivals = {
        node.type_key: tuple(end for rules in types.values() for end in rules.ends if end.node_key == node.type_key)
        for node in schema.nodes
    }
    return Rules(types, arrivals)


def _type_rules(entity: EntityType) -> TypeRules:
    distinct, keys = (
        tuple(Distinct(entity.name, found.properties) for found in entity.constraints if isinstance(found, kind))
        for kind in (Unique, Key)
    )
    values: tuple[ValueRule, ...] = (*_enums(entity), *_constraints(entity, Range), *_constraints(entity, Check))
    if isinstance(entity, NodeType):
        return TypeRules(entity.type_key, values, keys[0] if keys else None, distinct)
    ends = (
        EndsAt(entity.type_key, SRC, f"node:{entity.from_type.type_name}", entity.from_type.type_name),
        EndsAt(entity.type_key, DST, f"node:{entity.to_type.type_name}", entity.to_type.type_name),
    )
    return TypeRules(entity.type_key, values, None, distinct, ends, _degree(entity))


def _degree(edge: EdgeType) -> Degree | None:
    if edge.cardinality == Cardinality():
        return None
    node_key = f"node:{edge.from_type.type_name}"
    return Degree(edge.type_key, edge.name, node_key, edge.cardinality.min, edge.cardinality.max)


def _enums(entity: EntityType) -> Iterator[OneOf]:
    for prop in entity.properties:
        if prop.type.enum_values is not None:
            yield OneOf(entity.name, prop.name, prop.type.enum_values)


def value_rule(entity: EntityType, constraint: Range | Check) -> ValueRule:
    """The rule that a constraint on single rows states."""
    match constraint:
        case Range():
            return Within(entity.name, constraint.property, constraint.min, constraint.max)
        case Check():
            return Matches(entity.name, constraint.property, constraint.pattern, _fault(constraint.pattern))


def _constraints(entity: EntityType, kind: type[Range] | type[Check]) -> Iterator[ValueRule]:
    for constraint in entity.constraints:
        if isinstance(constraint, kind):
            yield value_rule(entity, constraint)


def _fault(pattern: str) -> str | None:
    """Why a text is no pattern; None for one that is."""
    quiet = re2.Options()
    quiet.log_errors = False
    try:
        re2.compile(pattern, quiet)
    except re2.error as fault:
        reason = fault.args[0] if fault.args else "it cannot be read"
        return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    return None


def _number(value: Number) -> str:
    """A number in the fewest digits: `1`, `0.5`."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value) if isinstance(value, float) else str(value)
