"""Numbers for types, properties and tables: fresh ones at first, kept ones afterwards.

A declaration is the accepted one of the same kind and name, or the one its `@rename_from` names, or new. Numbers of the
first schema are counted: first types (interfaces, nodes, edges, each by name), then their properties by name, then
tables. Numbers of whatever is added later are derived from what it is (`model/schema_identity.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from omnigraph.errors import InvalidRequestError
from omnigraph.ids import IdSource, UlidSource
from omnigraph.language.schema.check import check
from omnigraph.language.schema.parse import parse
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
from omnigraph.model.schema_identity import derived_number, retired_after

_FIRST_ID = 1


@dataclass(frozen=True, slots=True)
class Resolved:
    """A schema with its numbers, and what is worth knowing about the text it came from."""

    schema: Schema
    diagnostics: tuple[Diagnostic, ...] = ()


def accept(text: str | bytes, name: str = "schema.pg", *, ids: IdSource | None = None) -> Schema:
    """The schema of a new graph.

    Args:
        text: the schema text.
        name: what to call it in messages.
        ids: where the graph's identity domain comes from.

    Returns:
        The schema, every type and property with its first number.

    Raises:
        ParseError: the text is wrong.
        LimitError: it is too long.
    """
    return initial(check(parse(text, name)), ids or UlidSource()).schema


def initial(shape: SchemaShape, ids: IdSource) -> Resolved:
    """Numbers for the first schema of a graph; rename hints mean nothing yet."""
    diagnostics = [
        Diagnostic(
            DiagnosticCode.INERT_RENAME_HINT,
            entity,
            f'@rename_from("{hint}") has no effect: the graph is new',
        )
        for entity, hint in _hints(shape)
    ]
    return Resolved(_numbered(shape, _Counter(ids.new()), _Matches()), tuple(diagnostics))


def against(accepted: Schema, shape: SchemaShape) -> Resolved:
    """Numbers for the next schema of a graph: what was there keeps its own.

    Args:
        accepted: the schema the graph has.
        shape: the one it is to have.

    Returns:
        The next schema.

    Raises:
        InvalidRequestError: a rename hint names nothing, or something it cannot mean.
    """
    matches = _Matches()
    _match_types(accepted, shape, matches)
    for each in shape.types:
        _match_properties(accepted, shape.source, each, matches)
    schema = _numbered(shape, _Deriver(accepted), matches)
    schema = replace(schema, retired=retired_after(accepted, set(schema.numbers)))
    return Resolved(schema, tuple(matches.diagnostics))


@dataclass(slots=True)
class _Matches:
    """Which accepted type and property each desired one is, by type key and by (type key, property name)."""

    types: dict[str, AnyType] = field(default_factory=dict)
    properties: dict[tuple[str, str], Property] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def ignored(self, entity: str, hint: str) -> None:
        message = f'@rename_from("{hint}") has no effect: the name it stands on exists already'
        self.diagnostics.append(Diagnostic(DiagnosticCode.IGNORED_RENAME_HINT, entity, message))


def _hints(shape: SchemaShape) -> Iterator[tuple[str, str]]:
    for each in shape.types:
        if each.rename_from is not None:
            yield each.type_key, each.rename_from
        for part in each.properties:
            if part.rename_from is not None:
                yield f"{each.type_key}.{part.name}", part.rename_from


def _match_types(accepted: Schema, shape: SchemaShape, matches: _Matches) -> None:
    known = {each.type_key: each for each in accepted.types}
    for each in shape.types:
        if each.type_key in known:
            matches.types[each.type_key] = known[each.type_key]
            if each.rename_from is not None:
                matches.ignored(each.type_key, each.rename_from)
    taken = set(matches.types)
    for each in shape.types:
        old = each.rename_from
        if old is None or each.type_key in matches.types:
            continue
        old_key = f"{each.kind}:{old}"
        if old_key in taken:
            message = f"accepted {each.kind} '{old}' is consumed by more than one desired declaration"
            raise _unresolved(shape.source, each.span, message)
        if old_key not in known:
            raise _unresolved(shape.source, each.span, _no_such_type(each, old, known))
        taken.add(old_key)
        matches.types[each.type_key] = known[old_key]


def _no_such_type(each: TypeShape, old: str, known: Mapping[str, AnyType]) -> str:
    if any(f"{kind}:{old}" in known for kind in TypeKind):
        return f"{each.kind} '{each.name}' cannot rename accepted '{old}' across declaration kinds"
    return f"{each.kind} '{each.name}' declares @rename_from(\"{old}\") but no accepted declaration has that name"


def _match_properties(accepted: Schema, source: Source, owner: TypeShape, matches: _Matches) -> None:
    was = matches.types.get(owner.type_key)
    known = {} if was is None else {each.name: each for each in was.properties}
    taken: set[str] = set()
    for each in owner.properties:
        if each.name in known:
            taken.add(each.name)
            matches.properties[owner.type_key, each.name] = known[each.name]
            if each.rename_from is not None:
                matches.ignored(f"{owner.type_key}.{each.name}", each.rename_from)
    for each in owner.properties:
        old = each.rename_from
        if old is None or each.name in known:
            continue
        if old in known and old not in taken:
            taken.add(old)
            matches.properties[owner.type_key, each.name] = known[old]
        elif each.declared_directly:
            # A hint that came with an interface is meant for the types that had the property before, not for others.
            if was is None:
                message = f"new owner '{owner.type_key}' cannot import property identity with @rename_from(\"{old}\")"
            elif old in taken:
                message = f"accepted property '{owner.name}.{old}' is consumed by more than one desired declaration"
            else:
                message = _no_such_property(accepted, owner, each, old)
            raise _unresolved(source, each.span, message)


def _no_such_property(accepted: Schema, owner: TypeShape, each: PropertyShape, old: str) -> str:
    subject = f"property '{owner.name}.{each.name}' declares @rename_from(\"{old}\")"
    if any(known.property_named(old) for known in accepted.types):
        return f"{subject}: property moves across stable owners are not supported"
    return f"{subject}: no accepted property with that name exists under the stable owner"


def _unresolved(source: Source, span: Span, message: str) -> InvalidRequestError:
    line, column = source.position(span.start)
    return InvalidRequestError(
        f"schema identity resolution failed: {message}", line=line, column=column, report=report(source, span)
    )


@dataclass(slots=True)
class _Counter:
    """Gives the numbers of a first schema."""

    domain: str
    next_id: int = _FIRST_ID

    def fresh(self, *_path: str | int) -> int:
        self.next_id += 1
        return self.next_id - 1


class _Deriver:
    """Gives the numbers of what an accepted schema does not have."""

    def __init__(self, accepted: Schema) -> None:
        self.domain = accepted.identity_domain
        self.next_id = accepted.next_id
        self._taken = {*accepted.numbers, *accepted.retired}

    def fresh(self, *path: str | int) -> int:
        found = derived_number(self.domain, path, self._taken)
        self._taken.add(found)
        return found


class _Numbers:
    """Accepted numbers where there are some, fresh ones elsewhere."""

    def __init__(self, shape: SchemaShape, source: _Counter | _Deriver, matches: _Matches) -> None:
        self.types: dict[str, int] = {}
        self.properties: dict[tuple[str, str], int] = {}
        self.tables: dict[str, int] = {}
        for each in shape.types:
            was = matches.types.get(each.type_key)
            self.types[each.type_key] = was.type_id if was else source.fresh("type", each.kind, each.name)
        for each in shape.types:
            for part in each.properties:
                known = matches.properties.get((each.type_key, part.name))
                owner = self.types[each.type_key]
                number = known.property_id if known else source.fresh("property", owner, part.name)
                self.properties[each.type_key, part.name] = number
        for each in (*shape.nodes, *shape.edges):
            was = matches.types.get(each.type_key)
            kept = was.table_id if isinstance(was, NodeType | EdgeType) else None
            number = source.fresh("table", self.types[each.type_key]) if kept is None else kept
            self.tables[each.type_key] = number

    def type_ref(self, kind: TypeKind, name: str) -> TypeRef:
        return TypeRef(self.types[f"{kind}:{name}"], name)

    def property_ref(self, kind: TypeKind, owner: str, name: str) -> PropertyRef:
        type_key = f"{kind}:{owner}"
        return PropertyRef(self.types[type_key], owner, self.properties[type_key, name], name)


def _numbered(shape: SchemaShape, source: _Counter | _Deriver, matches: _Matches) -> Schema:
    numbers = _Numbers(shape, source, matches)
    return Schema(
        identity_domain=source.domain,
        next_id=source.next_id,
        interfaces=tuple(
            InterfaceType(each.name, numbers.types[each.type_key], _properties(each, numbers))
            for each in shape.interfaces
        ),
        nodes=tuple(_node(each, numbers, matches) for each in shape.nodes),
        edges=tuple(_edge(each, numbers, matches) for each in shape.edges),
    )


def _node(each: TypeShape, numbers: _Numbers, matches: _Matches) -> NodeType:
    return NodeType(
        name=each.name,
        type_id=numbers.types[each.type_key],
        table_id=numbers.tables[each.type_key],
        properties=_properties(each, numbers),
        constraints=_constraints(each, matches),
        annotations=each.annotations,
        implements=tuple(numbers.type_ref(TypeKind.INTERFACE, name) for name in each.implements),
    )


def _edge(each: TypeShape, numbers: _Numbers, matches: _Matches) -> EdgeType:
    assert each.ends is not None, "a checked edge has two ends"
    leaves, reaches = each.ends
    return EdgeType(
        name=each.name,
        type_id=numbers.types[each.type_key],
        table_id=numbers.tables[each.type_key],
        from_type=numbers.type_ref(TypeKind.NODE, leaves),
        to_type=numbers.type_ref(TypeKind.NODE, reaches),
        cardinality=each.cardinality,
        properties=_properties(each, numbers),
        constraints=_constraints(each, matches),
        annotations=each.annotations,
    )


def _properties(owner: TypeShape, numbers: _Numbers) -> tuple[Property, ...]:
    return tuple(
        Property(
            name=each.name,
            property_id=numbers.properties[owner.type_key, each.name],
            type=each.type,
            annotations=each.annotations,
            constraints=each.constraints,
            embed=None
            if each.embed is None
            else Embed(numbers.property_ref(owner.kind, owner.name, each.embed.source), each.embed.model),
            declared_directly=each.declared_directly,
            satisfies=tuple(numbers.property_ref(TypeKind.INTERFACE, *link) for link in each.satisfies),
        )
        for each in owner.properties
    )


def _constraints(owner: TypeShape, matches: _Matches) -> tuple[Constraint, ...]:
    def order(name: str) -> tuple[bool, str]:
        # The ends of an edge come first, `src` before `dst`; a property may not be called like one of them.
        return (False, str(ENDPOINTS.index(name))) if name in ENDPOINTS else (True, name)

    was = matches.types.get(owner.type_key)
    ordered: list[Constraint] = []
    for each in owner.constraints:
        if isinstance(each, Key | Unique | Index):
            spelled = Key(tuple(sorted(each.properties, key=order))) if isinstance(each, Key) else each
            if isinstance(was, NodeType | EdgeType):
                spelled = _in_accepted_order(spelled, was, owner, matches)
            ordered.append(spelled)
        else:
            ordered.append(each)
    return tuple(ordered)


def _in_accepted_order(
    each: Key | Unique | Index, was: NodeType | EdgeType, owner: TypeShape, matches: _Matches
) -> Key | Unique | Index:
    """The constraint with its properties as the accepted one over the same properties lists them.

    Of a key the order is part of every id, of others it is only seen in messages: to write it otherwise is no change.
    """
    former = {name: matches.properties.get((owner.type_key, name)) for name in each.properties}
    by_old_name = {found.name if found else name: name for name, found in former.items()}
    for known in was.constraints:
        if type(known) is type(each) and set(known.properties) == by_old_name.keys():
            return type(each)(tuple(by_old_name[name] for name in known.properties))
    return each
