"""Generate the text of a resolved schema, for schemas without a text of their own, such as merged ones."""

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
    """Return the canonical text of a schema; planning it against the same schema yields no steps."""
    declarations = tuple(_build_declaration(type_) for type_ in schema.types)
    return format_syntax(SchemaSyntax(declarations, Source("")))


def _build_declaration(type_: AnyType) -> Declaration:
    match type_:
        case InterfaceType():
            return InterfaceSyntax(
                Name(type_.name), tuple(_build_property(property_) for property_ in type_.properties)
            )
        case NodeType():
            implements = tuple(Name(interface.type_name) for interface in type_.implements)
            return NodeSyntax(
                Name(type_.name), _build_annotations(type_.annotations), implements, tuple(_build_members(type_))
            )
        case EdgeType():
            card = type_.cardinality
            return EdgeSyntax(
                Name(type_.name),
                Name(type_.from_type.type_name),
                Name(type_.to_type.type_name),
                None if card == ANY_NUMBER else CardinalitySyntax(card.min, card.max),
                _build_annotations(type_.annotations),
                tuple(_build_members(type_)),
            )


def _build_members(type_: EntityType) -> Iterator[Member]:
    """Yield the properties that a type declares itself, then the constraints that are not inline."""
    yield from (_build_property(property_) for property_ in type_.properties if property_.declared_directly)
    declared = {(name.value, (property_.name,)) for property_ in type_.properties for name in property_.constraints}
    for constraint in type_.constraints:
        if not isinstance(constraint, Key | Unique | Index) or (constraint.kind, constraint.properties) not in declared:
            yield _build_constraint(constraint)


def _build_property(property_: Property) -> PropertySyntax:
    own = property_.type
    written = TypeSyntax(own.scalar, own.nullable, own.list, own.enum_values, own.vector_dim)
    notes = [
        AnnotationSyntax(constraint.value) for constraint in PropertyConstraint if constraint in property_.constraints
    ]
    if property_.embed is not None:
        model = () if property_.embed.model is None else (("model", _text_literal(property_.embed.model)),)
        notes.append(AnnotationSyntax("embed", _text_literal(property_.embed.source.property_name), model))
    return PropertySyntax(property_.name, written, (*notes, *_build_annotations(property_.annotations)))


def _build_annotations(annotations: tuple[Annotation, ...]) -> tuple[AnnotationSyntax, ...]:
    return tuple(
        AnnotationSyntax(
            annotation.name,
            None if annotation.value is None else _text_literal(annotation.value),
            tuple((key, _text_literal(value)) for key, value in annotation.kwargs),
        )
        for annotation in annotations
    )


def _build_constraint(constraint: Constraint) -> ConstraintSyntax:
    match constraint:
        case Range(name, least, most):
            return ConstraintSyntax(constraint.kind, (_name_literal(name), Bounds(least, most)))
        case Check(name, pattern):
            return ConstraintSyntax(constraint.kind, (_name_literal(name), _text_literal(pattern)))
        case Key(names) | Unique(names) | Index(names):
            return ConstraintSyntax(constraint.kind, tuple(_name_literal(name) for name in names))


def _name_literal(text: str) -> Literal:
    return Literal(LiteralKind.NAME, text)


def _text_literal(text: str) -> Literal:
    return Literal(LiteralKind.STRING, text)
