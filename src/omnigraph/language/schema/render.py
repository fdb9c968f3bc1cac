"""A resolved schema as text: for schemas that nobody wrote, such as those that a merge makes."""

from collections.abc import Iterator

from omnigraph.language.schema.format import format_syntax
from omnigraph.language.schema.syntax import (
    AnnotationSyntax,
    Bounds,
    CardinalitySyntax,
    ConstraintSyntax,
    Declaration,
    EdgeSyntax,
    InterfaceSyntax,
    Literal,
    LiteralKind,
    Member,
    Name,
    NodeSyntax,
    PropertySyntax,
    SchemaSyntax,
    TypeSyntax,
)
from omnigraph.language.text import Source
from omnigraph.model.schema import (
    ANY_NUMBER,
    Annotation,
    AnyType,
    Check,
    Constraint,
    EdgeType,
    EntityType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    PropertyConstraint,
    Range,
    Schema,
    Unique,
)


def render(schema: Schema) -> str:
    """Return the text of a schema in its canonical layout; planned against the schema it has no steps."""
    declarations = tuple(_declaration(each) for each in schema.types)
    return format_syntax(SchemaSyntax(declarations, Source("")))


def _declaration(of: AnyType) -> Declaration:
    match of:
        case InterfaceType():
            return InterfaceSyntax(Name(of.name), tuple(_property(each) for each in of.properties))
        case NodeType():
            implements = tuple(Name(each.type_name) for each in of.implements)
            return NodeSyntax(Name(of.name), _annotations(of.annotations), implements, tuple(_members(of)))
        case EdgeType():
            card = of.cardinality
            return EdgeSyntax(
                Name(of.name),
                Name(of.from_type.type_name),
                Name(of.to_type.type_name),
                None if card == ANY_NUMBER else CardinalitySyntax(card.min, card.max),
                _annotations(of.annotations),
                tuple(_members(of)),
            )


def _members(of: EntityType) -> Iterator[Member]:
    """The properties that a type declares itself, then the constraints that no property declares."""
    yield from (_property(each) for each in of.properties if each.declared_directly)
    declared = {(name.value, (each.name,)) for each in of.properties for name in each.constraints}
    for constraint in of.constraints:
        if not isinstance(constraint, Key | Unique | Index) or (constraint.kind, constraint.properties) not in declared:
            yield _constraint(constraint)


def _property(of: Property) -> PropertySyntax:
    own = of.type
    written = TypeSyntax(own.scalar, own.nullable, own.list, own.enum_values, own.vector_dim)
    notes = [AnnotationSyntax(each.value) for each in PropertyConstraint if each in of.constraints]
    if of.embed is not None:
        model = () if of.embed.model is None else (("model", _text(of.embed.model)),)
        notes.append(AnnotationSyntax("embed", _text(of.embed.source.property_name), model))
    return PropertySyntax(of.name, written, (*notes, *_annotations(of.annotations)))


def _annotations(annotations: tuple[Annotation, ...]) -> tuple[AnnotationSyntax, ...]:
    return tuple(
        AnnotationSyntax(
            each.name,
            None if each.value is None else _text(each.value),
            tuple((key, _text(value)) for key, value in each.kwargs),
        )
        for each in annotations
    )


def _constraint(of: Constraint) -> ConstraintSyntax:
    match of:
        case Range(name, least, most):
            return ConstraintSyntax(of.kind, (_name(name), Bounds(least, most)))
        case Check(name, pattern):
            return ConstraintSyntax(of.kind, (_name(name), _text(pattern)))
        case Key(names) | Unique(names) | Index(names):
            return ConstraintSyntax(of.kind, tuple(_name(name) for name in names))


def _name(text: str) -> Literal:
    return Literal(LiteralKind.NAME, text)


def _text(text: str) -> Literal:
    return Literal(LiteralKind.STRING, text)
