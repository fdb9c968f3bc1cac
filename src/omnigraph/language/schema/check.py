"""Semantic checks of a schema text, beyond its grammar.

Order: checks within one declaration, then interfaces, then the constraints over a type's properties (including those
of its interfaces), then checks across declarations.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from omnigraph.errors import ParseError
from omnigraph.language.schema import hints
from omnigraph.language.schema.check_annotations import (
    embed_span,
    header_problems,
    kept,
    kind_of,
    properties_of,
    property_problems,
    property_shape,
    rename_hint,
)
from omnigraph.language.schema.check_catalog import catalog_problems
from omnigraph.language.schema.check_constraints import (
    Owner,
    constraint_of,
    edge_problems,
    fit_problems,
    form_problems,
    in_order,
    own_constraints,
)
from omnigraph.language.schema.expand import Expanded, expand
from omnigraph.language.schema.shape import PropertyShape, SchemaShape, TypeShape
from omnigraph.language.schema.syntax import (
    ConstraintSyntax,
    Declaration,
    EdgeSyntax,
    InterfaceSyntax,
    NodeSyntax,
    SchemaSyntax,
)
from omnigraph.language.text import Source, parse_error
from omnigraph.model.schema import ANY_NUMBER, Cardinality, Constraint, Key, TypeKind


def check(syntax: SchemaSyntax) -> SchemaShape:
    """Validate a schema text and return its types, with interfaces expanded and annotations interpreted.

    Raises:
        ParseError: the first violation; `stage` is `parse` or `catalog`.
    """
    for problem in problems(syntax):
        raise problem
    interfaces = _interfaces(syntax)
    types: dict[TypeKind, list[TypeShape]] = {kind: [] for kind in TypeKind}
    for declaration in syntax.declarations:
        types[kind_of(declaration)].append(
            _shape(declaration, _expanded(syntax.source, declaration, interfaces).properties)
        )
    for shapes in types.values():
        shapes.sort(key=lambda shape: shape.name)
    return SchemaShape(
        interfaces=tuple(types[TypeKind.INTERFACE]),
        nodes=tuple(types[TypeKind.NODE]),
        edges=tuple(types[TypeKind.EDGE]),
        source=syntax.source,
    )


def problems(syntax: SchemaSyntax) -> Iterator[ParseError]:
    """Return every violation in a schema text, as errors that have not been raised.

    An invalid declaration is not checked further, since its meaning is unknown.
    """
    source = syntax.source
    sound: list[Declaration] = []
    for declaration in syntax.declarations:
        found = False
        for problem in _local_problems(source, declaration):
            found = True
            yield problem
        if not found:
            sound.append(declaration)
    interfaces = _interfaces(syntax)
    for declaration in sound:
        expanded = _expanded(source, declaration, interfaces)
        yield from expanded.problems
        yield from _embed_problems(source, declaration, expanded.properties)
        if not isinstance(declaration, InterfaceSyntax):
            yield from _constraint_problems(source, declaration, expanded.properties)
    yield from catalog_problems(syntax)


def _interfaces(syntax: SchemaSyntax) -> dict[str, dict[str, PropertyShape]]:
    interfaces: dict[str, dict[str, PropertyShape]] = {}
    for declaration in syntax.declarations:
        if isinstance(declaration, InterfaceSyntax):
            interfaces.setdefault(declaration.name.text, _own(declaration))
    return interfaces


def _expanded(
    source: Source, declaration: Declaration, interfaces: Mapping[str, Mapping[str, PropertyShape]]
) -> Expanded:
    """Return the properties of a type, including those of its interfaces."""
    own = _own(declaration)
    return expand(source, declaration, own, interfaces) if isinstance(declaration, NodeSyntax) else Expanded(own, ())


def _own(declaration: Declaration) -> dict[str, PropertyShape]:
    own: dict[str, PropertyShape] = {}
    for property_ in properties_of(declaration):
        own.setdefault(property_.name, property_shape(property_))
    return own


def _constraints(declaration: Declaration) -> Iterator[ConstraintSyntax]:
    yield from (member for member in declaration.members if isinstance(member, ConstraintSyntax))


def _local_problems(source: Source, declaration: Declaration) -> Iterator[ParseError]:
    if not isinstance(declaration, InterfaceSyntax):
        yield from header_problems(source, declaration)
    if isinstance(declaration, EdgeSyntax):
        card = declaration.cardinality
        if card is not None and card.max is not None and card.min > card.max:
            yield parse_error(source, card.span, f"cardinality min ({card.min}) exceeds max ({card.max})")
    for property_ in properties_of(declaration):
        yield from property_problems(source, declaration, property_)
    for constraint in _constraints(declaration):
        yield from form_problems(source, constraint)
        if isinstance(declaration, EdgeSyntax):
            yield from edge_problems(source, constraint, declaration.name.text)


def _embed_problems(
    source: Source, declaration: Declaration, properties: Mapping[str, PropertyShape]
) -> Iterator[ParseError]:
    owner = declaration.name.text
    for property_ in properties_of(declaration):
        embed = properties[property_.name].embed
        if embed is None:
            continue
        found = properties.get(embed.source)
        if found is None:
            message = f"@embed on {owner}.{property_.name} references unknown source property {embed.source}"
            hint = hints.did_you_mean(embed.source, properties)
            yield parse_error(source, embed_span(property_), message, hint=hint)
        elif not found.type.is_string:
            message = f"@embed source property {owner}.{embed.source} must be String"
            yield parse_error(source, embed_span(property_), message)


def _constraint_problems(
    source: Source, declaration: NodeSyntax | EdgeSyntax, properties: Mapping[str, PropertyShape]
) -> Iterator[ParseError]:
    owner = Owner(kind_of(declaration), declaration.name.text, properties)
    keys = 0
    for shape in properties.values():
        for constraint in own_constraints(shape):
            keys += isinstance(constraint, Key)
            yield from fit_problems(source, shape.span, constraint, owner)
    for written in _constraints(declaration):
        keys += written.name == "key"
        yield from fit_problems(source, written.span, constraint_of(written), owner)
    if keys > 1:
        message = f"{owner.kind} type {owner.name} has multiple @key constraints; only one is supported"
        hint = "a key over several properties is one constraint: `@key(first, second)`"
        yield parse_error(source, declaration.name.span, message, hint=hint)


def _shape(declaration: Declaration, properties: Mapping[str, PropertyShape]) -> TypeShape:
    name, by_name = declaration.name, tuple(properties[key] for key in sorted(properties))
    if isinstance(declaration, InterfaceSyntax):
        return TypeShape(TypeKind.INTERFACE, name.text, by_name, span=name.span)
    constraints: list[Constraint] = [constraint_of(constraint) for constraint in _constraints(declaration)]
    constraints += [constraint for property_ in by_name for constraint in own_constraints(property_)]
    shape = TypeShape(
        kind_of(declaration),
        name.text,
        by_name,
        constraints=in_order(constraints),
        annotations=kept(declaration.annotations),
        rename_from=rename_hint(declaration.annotations),
        span=name.span,
    )
    if isinstance(declaration, NodeSyntax):
        return replace(shape, implements=tuple(sorted({interface.text for interface in declaration.implements})))
    card = declaration.cardinality
    ends = (declaration.from_type.text, declaration.to_type.text)
    return replace(shape, ends=ends, cardinality=ANY_NUMBER if card is None else Cardinality(card.min, card.max))
