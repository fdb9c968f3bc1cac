"""Assign ids to types, properties and tables: counted in the first schema, kept or derived afterwards.

A declaration is the accepted one of the same kind and name, or the one its `@rename_from` names, or new. Ids of the
first schema are counted: first types (interfaces, nodes, edges, each by name), then their properties by name, then
tables. Later ids are derived from kind, owner and name (`model/schema_identity.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from omnigraph.errors import InvalidRequestError
from omnigraph.ids import IdSource, UlidSource
from omnigraph.language.schema.check import check
from omnigraph.language.schema.parse import parse, property_order
from omnigraph.language.schema.shape import PropertyShape, SchemaShape, TypeShape
from omnigraph.language.text import Source, Span, report
from omnigraph.model.schema import (
    ENDPOINTS,
    AnyType,
    Constraint,
    EdgeType,
    Embed,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    PropertyRef,
    Schema,
    TypeKind,
    TypeRef,
    Unique,
)
from omnigraph.model.schema_change import Diagnostic, DiagnosticCode
from omnigraph.model.schema_identity import derive_schema_id, find_retired

_FIRST_ID = 1


@dataclass(frozen=True, slots=True)
class Resolved:
    """A schema with ids, and remarks about its text."""

    schema: Schema
    diagnostics: tuple[Diagnostic, ...] = ()


def accept(text: str | bytes, name: str = "schema.pg", *, ids: IdSource | None = None) -> Schema:
    """Resolve the first schema of a new graph.

    Args:
        text: schema text.
        name: what to call the text in messages.
        ids: source of the identity domain.

    Raises:
        ParseError: the text is invalid.
        LimitError: it is too long.
    """
    schema = assign_first_ids(check(parse(text, name)), ids or UlidSource()).schema
    return replace(schema, property_order=partial(property_order, text))


def assign_first_ids(shape: SchemaShape, ids: IdSource) -> Resolved:
    """Assign ids to the first schema of a graph; rename hints are ignored."""
    diagnostics = [
        Diagnostic(
            DiagnosticCode.INERT_RENAME_HINT,
            entity,
            f'@rename_from("{hint}") has no effect: the graph is new',
        )
        for entity, hint in _find_rename_hints(shape)
    ]
    return Resolved(_assign_ids(shape, _Counter(ids.new()), _Matches()), tuple(diagnostics))


def assign_next_ids(accepted: Schema, shape: SchemaShape) -> Resolved:
    """Assign ids to the next schema of a graph; existing declarations keep theirs.

    Raises:
        InvalidRequestError: a rename hint cannot be resolved.
    """
    matches = _Matches()
    _match_types(accepted, shape, matches)
    for type_ in shape.types:
        _match_properties(accepted, shape.source, type_, matches)
    schema = _assign_ids(shape, _Deriver(accepted), matches)
    schema = replace(schema, retired=find_retired(accepted, set(schema.numbers)))
    return Resolved(schema, tuple(matches.diagnostics))


@dataclass(slots=True)
class _Matches:
    """Accepted types and properties matched to desired ones, by type key and by (type key, property name)."""

    types: dict[str, AnyType] = field(default_factory=dict)
    properties: dict[tuple[str, str], Property] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def ignored(self, entity: str, hint: str) -> None:
        message = f'@rename_from("{hint}") has no effect: the name it stands on exists already'
        self.diagnostics.append(Diagnostic(DiagnosticCode.IGNORED_RENAME_HINT, entity, message))


def _find_rename_hints(shape: SchemaShape) -> Iterator[tuple[str, str]]:
    for type_ in shape.types:
        if type_.rename_from is not None:
            yield type_.type_key, type_.rename_from
        for property_ in type_.properties:
            if property_.rename_from is not None:
                yield f"{type_.type_key}.{property_.name}", property_.rename_from


def _match_types(accepted: Schema, shape: SchemaShape, matches: _Matches) -> None:
    known = {type_.type_key: type_ for type_ in accepted.types}
    for type_ in shape.types:
        if type_.type_key in known:
            matches.types[type_.type_key] = known[type_.type_key]
            if type_.rename_from is not None:
                matches.ignored(type_.type_key, type_.rename_from)
    taken = set(matches.types)
    for type_ in shape.types:
        old = type_.rename_from
        if old is None or type_.type_key in matches.types:
            continue
        old_key = f"{type_.kind}:{old}"
        if old_key in taken:
            message = f"accepted {type_.kind} '{old}' is consumed by more than one desired declaration"
            raise _resolution_error(shape.source, type_.span, message)
        if old_key not in known:
            raise _resolution_error(shape.source, type_.span, _explain_unknown_type(type_, old, known))
        taken.add(old_key)
        matches.types[type_.type_key] = known[old_key]


def _explain_unknown_type(type_: TypeShape, old: str, known: Mapping[str, AnyType]) -> str:
    if any(f"{kind}:{old}" in known for kind in TypeKind):
        return f"{type_.kind} '{type_.name}' cannot rename accepted '{old}' across declaration kinds"
    return f"{type_.kind} '{type_.name}' declares @rename_from(\"{old}\") but no accepted declaration has that name"


def _match_properties(accepted: Schema, source: Source, owner: TypeShape, matches: _Matches) -> None:
    was = matches.types.get(owner.type_key)
    known = {} if was is None else {property_.name: property_ for property_ in was.properties}
    taken: set[str] = set()
    for property_ in owner.properties:
        if property_.name in known:
            taken.add(property_.name)
            matches.properties[owner.type_key, property_.name] = known[property_.name]
            if property_.rename_from is not None:
                matches.ignored(f"{owner.type_key}.{property_.name}", property_.rename_from)
    for property_ in owner.properties:
        old = property_.rename_from
        if old is None or property_.name in known:
            continue
        if old in known and old not in taken:
            taken.add(old)
            matches.properties[owner.type_key, property_.name] = known[old]
        elif property_.declared_directly:
            # A hint that came with an interface is meant for the types that had the property before, not for others.
            if was is None:
                message = f"new owner '{owner.type_key}' cannot import property identity with @rename_from(\"{old}\")"
            elif old in taken:
                message = f"accepted property '{owner.name}.{old}' is consumed by more than one desired declaration"
            else:
                message = _explain_unknown_property(accepted, owner, property_, old)
            raise _resolution_error(source, property_.span, message)


def _explain_unknown_property(accepted: Schema, owner: TypeShape, property_: PropertyShape, old: str) -> str:
    subject = f"property '{owner.name}.{property_.name}' declares @rename_from(\"{old}\")"
    if any(known.property_named(old) for known in accepted.types):
        return f"{subject}: property moves across stable owners are not supported"
    return f"{subject}: no accepted property with that name exists under the stable owner"


def _resolution_error(source: Source, span: Span, message: str) -> InvalidRequestError:
    line, column = source.position(span.start)
    return InvalidRequestError(
        f"schema identity resolution failed: {message}", line=line, column=column, report=report(source, span)
    )


@dataclass(slots=True)
class _Counter:
    """Source of ids for a first schema."""

    domain: str
    next_id: int = _FIRST_ID

    def fresh(self, *_path: str | int) -> int:
        self.next_id += 1
        return self.next_id - 1


class _Deriver:
    """Source of ids for declarations that an accepted schema does not have."""

    def __init__(self, accepted: Schema) -> None:
        self.domain = accepted.identity_domain
        self.next_id = accepted.next_id
        self._taken = {*accepted.numbers, *accepted.retired}

    def fresh(self, *path: str | int) -> int:
        found = derive_schema_id(self.domain, path, self._taken)
        self._taken.add(found)
        return found


class _Numbers:
    """Accepted ids of matched declarations, fresh ids of new ones."""

    def __init__(self, shape: SchemaShape, source: _Counter | _Deriver, matches: _Matches) -> None:
        self.types: dict[str, int] = {}
        self.properties: dict[tuple[str, str], int] = {}
        self.tables: dict[str, int] = {}
        for type_ in shape.types:
            was = matches.types.get(type_.type_key)
            self.types[type_.type_key] = was.type_id if was else source.fresh("type", type_.kind, type_.name)
        for type_ in shape.types:
            for property_ in type_.properties:
                known = matches.properties.get((type_.type_key, property_.name))
                owner = self.types[type_.type_key]
                number = known.property_id if known else source.fresh("property", owner, property_.name)
                self.properties[type_.type_key, property_.name] = number
        for type_ in (*shape.nodes, *shape.edges):
            was = matches.types.get(type_.type_key)
            kept = was.table_id if isinstance(was, NodeType | EdgeType) else None
            number = source.fresh("table", self.types[type_.type_key]) if kept is None else kept
            self.tables[type_.type_key] = number

    def type_ref(self, kind: TypeKind, name: str) -> TypeRef:
        return TypeRef(self.types[f"{kind}:{name}"], name)

    def property_ref(self, kind: TypeKind, owner: str, name: str) -> PropertyRef:
        type_key = f"{kind}:{owner}"
        return PropertyRef(self.types[type_key], owner, self.properties[type_key, name], name)


def _assign_ids(shape: SchemaShape, source: _Counter | _Deriver, matches: _Matches) -> Schema:
    numbers = _Numbers(shape, source, matches)
    return Schema(
        identity_domain=source.domain,
        next_id=source.next_id,
        interfaces=tuple(
            InterfaceType(interface.name, numbers.types[interface.type_key], _build_properties(interface, numbers))
            for interface in shape.interfaces
        ),
        nodes=tuple(_build_node(node, numbers, matches) for node in shape.nodes),
        edges=tuple(_build_edge(edge, numbers, matches) for edge in shape.edges),
    )


def _build_node(type_: TypeShape, numbers: _Numbers, matches: _Matches) -> NodeType:
    return NodeType(
        name=type_.name,
        type_id=numbers.types[type_.type_key],
        table_id=numbers.tables[type_.type_key],
        properties=_build_properties(type_, numbers),
        constraints=_order_constraints(type_, matches),
        annotations=type_.annotations,
        implements=tuple(numbers.type_ref(TypeKind.INTERFACE, name) for name in type_.implements),
    )


def _build_edge(type_: TypeShape, numbers: _Numbers, matches: _Matches) -> EdgeType:
    assert type_.ends is not None, "a checked edge has two ends"
    leaves, reaches = type_.ends
    return EdgeType(
        name=type_.name,
        type_id=numbers.types[type_.type_key],
        table_id=numbers.tables[type_.type_key],
        from_type=numbers.type_ref(TypeKind.NODE, leaves),
        to_type=numbers.type_ref(TypeKind.NODE, reaches),
        cardinality=type_.cardinality,
        properties=_build_properties(type_, numbers),
        constraints=_order_constraints(type_, matches),
        annotations=type_.annotations,
    )


def _build_properties(owner: TypeShape, numbers: _Numbers) -> tuple[Property, ...]:
    return tuple(
        Property(
            name=property_.name,
            property_id=numbers.properties[owner.type_key, property_.name],
            type=property_.type,
            annotations=property_.annotations,
            constraints=property_.constraints,
            embed=None
            if property_.embed is None
            else Embed(numbers.property_ref(owner.kind, owner.name, property_.embed.source), property_.embed.model),
            declared_directly=property_.declared_directly,
            satisfies=tuple(numbers.property_ref(TypeKind.INTERFACE, *link) for link in property_.satisfies),
        )
        for property_ in owner.properties
    )


def _order_constraints(owner: TypeShape, matches: _Matches) -> tuple[Constraint, ...]:
    def order(name: str) -> tuple[bool, str]:
        # The ends of an edge come first, `src` before `dst`; a property may not be called like one of them.
        return (False, str(ENDPOINTS.index(name))) if name in ENDPOINTS else (True, name)

    was = matches.types.get(owner.type_key)
    ordered: list[Constraint] = []
    for constraint in owner.constraints:
        if isinstance(constraint, Key | Unique | Index):
            spelled = (
                Key(tuple(sorted(constraint.properties, key=order))) if isinstance(constraint, Key) else constraint
            )
            if isinstance(was, NodeType | EdgeType):
                spelled = _in_accepted_order(spelled, was, owner, matches)
            ordered.append(spelled)
        else:
            ordered.append(constraint)
    return tuple(ordered)


def _in_accepted_order(
    constraint: Key | Unique | Index, was: NodeType | EdgeType, owner: TypeShape, matches: _Matches
) -> Key | Unique | Index:
    """Return the constraint with its properties in the order of the equal accepted constraint.

    The order of a key is part of every id; of other constraints it is only visible in
    messages. Reordering changes nothing.
    """
    former = {name: matches.properties.get((owner.type_key, name)) for name in constraint.properties}
    by_old_name = {found.name if found else name: name for name, found in former.items()}
    for known in was.constraints:
        if type(known) is type(constraint) and set(known.properties) == by_old_name.keys():
            return type(constraint)(tuple(by_old_name[name] for name in known.properties))
    return constraint
