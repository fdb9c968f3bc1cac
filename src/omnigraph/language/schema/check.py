"""Semantic checks of a schema text, beyond its grammar.

Order: checks within one declaration, then interfaces, then the constraints over a type's properties (including those
of its interfaces), then checks across declarations.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from omnigraph.errors import ParseError
from omnigraph.language.schema import hints
from omnigraph.language.schema.check_annotations import (
    build_property_shape,
    find_embed_span,
    find_header_problems,
    find_property_problems,
    find_rename_hint,
    get_kind,
    list_properties,
    select_kept,
)
from omnigraph.language.schema.check_catalog import find_catalog_problems
from omnigraph.language.schema.check_constraints import (
    Owner,
    build_constraint,
    build_inline_constraints,
    find_edge_problems,
    find_fit_problems,
    find_form_problems,
    sort_constraints,
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
    for problem in find_problems(syntax):
        raise problem
    interfaces = _expand_interfaces(syntax)
    types: dict[TypeKind, list[TypeShape]] = {kind: [] for kind in TypeKind}
    for declaration in syntax.declarations:
        types[get_kind(declaration)].append(
            _build_shape(declaration, _expand(syntax.source, declaration, interfaces).properties)
        )
    for shapes in types.values():
        shapes.sort(key=lambda shape: shape.name)
    return SchemaShape(
        interfaces=tuple(types[TypeKind.INTERFACE]),
        nodes=tuple(types[TypeKind.NODE]),
        edges=tuple(types[TypeKind.EDGE]),
        source=syntax.source,
    )


def find_problems(syntax: SchemaSyntax) -> Iterator[ParseError]:
    """Return every violation in a schema text, as errors that have not been raised.

    An invalid declaration is not checked further, since its meaning is unknown.
    """
    source = syntax.source
    sound: list[Declaration] = []
    for declaration in syntax.declarations:
        found = False
        for problem in _find_local_problems(source, declaration):
            found = True
            yield problem
        if not found:
            sound.append(declaration)
    interfaces = _expand_interfaces(syntax)
    for declaration in sound:
        expanded = _expand(source, declaration, interfaces)
        yield from expanded.problems
        yield from _find_embed_problems(source, declaration, expanded.properties)
        if not isinstance(declaration, InterfaceSyntax):
            yield from _find_constraint_problems(source, declaration, expanded.properties)
    yield from find_catalog_problems(syntax)


def _expand_interfaces(syntax: SchemaSyntax) -> dict[str, dict[str, PropertyShape]]:
    interfaces: dict[str, dict[str, PropertyShape]] = {}
    for declaration in syntax.declarations:
        if isinstance(declaration, InterfaceSyntax):
            interfaces.setdefault(declaration.name.text, _own_properties(declaration))
    return interfaces


def _expand(
    source: Source, declaration: Declaration, interfaces: Mapping[str, Mapping[str, PropertyShape]]
) -> Expanded:
    """Return the properties of a type, including those of its interfaces."""
    own = _own_properties(declaration)
    return expand(source, declaration, own, interfaces) if isinstance(declaration, NodeSyntax) else Expanded(own, ())


def _own_properties(declaration: Declaration) -> dict[str, PropertyShape]:
    own: dict[str, PropertyShape] = {}
    for property_ in list_properties(declaration):
        own.setdefault(property_.name, build_property_shape(property_))
    return own


def _find_constraints(declaration: Declaration) -> Iterator[ConstraintSyntax]:
    yield from (member for member in declaration.members if isinstance(member, ConstraintSyntax))


def _find_local_problems(source: Source, declaration: Declaration) -> Iterator[ParseError]:
    if not isinstance(declaration, InterfaceSyntax):
        yield from find_header_problems(source, declaration)
    if isinstance(declaration, EdgeSyntax):
        card = declaration.cardinality
        if card is not None and card.max is not None and card.min > card.max:
            yield parse_error(source, card.span, f"cardinality min ({card.min}) exceeds max ({card.max})")
    for property_ in list_properties(declaration):
        yield from find_property_problems(source, declaration, property_)
    for constraint in _find_constraints(declaration):
        yield from find_form_problems(source, constraint)
        if isinstance(declaration, EdgeSyntax):
            yield from find_edge_problems(source, constraint, declaration.name.text)


def _find_embed_problems(
    source: Source, declaration: Declaration, properties: Mapping[str, PropertyShape]
) -> Iterator[ParseError]:
    owner = declaration.name.text
    for property_ in list_properties(declaration):
        embed = properties[property_.name].embed
        if embed is None:
            continue
        found = properties.get(embed.source)
        if found is None:
            message = f"@embed on {owner}.{property_.name} references unknown source property {embed.source}"
            hint = hints.suggest_word(embed.source, properties)
            yield parse_error(source, find_embed_span(property_), message, hint=hint)
        elif not found.type.is_string:
            message = f"@embed source property {owner}.{embed.source} must be String"
            yield parse_error(source, find_embed_span(property_), message)


def _find_constraint_problems(
    source: Source, declaration: NodeSyntax | EdgeSyntax, properties: Mapping[str, PropertyShape]
) -> Iterator[ParseError]:
    owner = Owner(get_kind(declaration), declaration.name.text, properties)
    keys = 0
    for shape in properties.values():
        for constraint in build_inline_constraints(shape):
            keys += isinstance(constraint, Key)
            yield from find_fit_problems(source, shape.span, constraint, owner)
    for written in _find_constraints(declaration):
        keys += written.name == "key"
        yield from find_fit_problems(source, written.span, build_constraint(written), owner)
    if keys > 1:
        message = f"{owner.kind} type {owner.name} has multiple @key constraints; only one is supported"
        hint = "a key over several properties is one constraint: `@key(first, second)`"
        yield parse_error(source, declaration.name.span, message, hint=hint)


def _build_shape(declaration: Declaration, properties: Mapping[str, PropertyShape]) -> TypeShape:
    name, by_name = declaration.name, tuple(properties[key] for key in sorted(properties))
    if isinstance(declaration, InterfaceSyntax):
        return TypeShape(TypeKind.INTERFACE, name.text, by_name, span=name.span)
    constraints: list[Constraint] = [build_constraint(constraint) for constraint in _find_constraints(declaration)]
    constraints += [constraint for property_ in by_name for constraint in build_inline_constraints(property_)]
    shape = TypeShape(
        get_kind(declaration),
        name.text,
        by_name,
        constraints=sort_constraints(constraints),
        annotations=select_kept(declaration.annotations),
        rename_from=find_rename_hint(declaration.annotations),
        span=name.span,
    )
    if isinstance(declaration, NodeSyntax):
        return replace(shape, implements=tuple(sorted({interface.text for interface in declaration.implements})))
    card = declaration.cardinality
    ends = (declaration.from_type.text, declaration.to_type.text)
    return replace(shape, ends=ends, cardinality=ANY_NUMBER if card is None else Cardinality(card.min, card.max))
