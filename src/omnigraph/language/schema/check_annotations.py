"""Which names and annotations may stand where."""

from collections.abc import Iterator, Sequence

from omnigraph.errors import ParseError
from omnigraph.language.schema.shape import EmbedShape, PropertyShape
from omnigraph.language.schema.syntax import (
    AnnotationSyntax,
    Declaration,
    EdgeSyntax,
    InterfaceSyntax,
    NodeSyntax,
    PropertySyntax,
)
from omnigraph.language.text import Source, Span, parse_error
from omnigraph.model.analyzer import ANNOTATION as ANALYZER
from omnigraph.model.analyzer import Analyzer
from omnigraph.model.schema import Annotation, PropertyConstraint, TypeKind

# Annotations that say something about one property; none of them may stand on a declaration.
PROPERTY_ONLY = ("key", "unique", "index", "embed")
_TEXTS = ("description", "instruction")
# What the schema keeps in fields of their own, or not at all.
_STRUCTURAL = frozenset({*PROPERTY_ONLY, "rename_from"})

_STORAGE_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
_SYSTEM_COLUMNS = {
    "id": "every node and edge has an id of its own",
    "src": "it holds the node an edge leaves",
    "dst": "it holds the node an edge reaches",
}
_EDGE_ENDS = {
    "from": "data and mutations write the node an edge leaves under this name",
    "to": "data and mutations write the node an edge reaches under this name",
}


def kind_of(declaration: Declaration) -> TypeKind:
    """Which of the three kinds a declaration is."""
    match declaration:
        case InterfaceSyntax():
            return TypeKind.INTERFACE
        case NodeSyntax():
            return TypeKind.NODE
        case EdgeSyntax():
            return TypeKind.EDGE


def properties_of(declaration: Declaration) -> Iterator[PropertySyntax]:
    """The properties a declaration writes out, in order."""
    yield from (each for each in declaration.members if isinstance(each, PropertySyntax))


def header_problems(source: Source, declaration: NodeSyntax | EdgeSyntax) -> Iterator[ParseError]:
    """What is wrong with the annotations of a declaration itself."""
    name, annotations = declaration.name.text, declaration.annotations
    subject = f"{kind_of(declaration)} {name}"
    for each in annotations:
        if each.name not in PROPERTY_ONLY:
            continue
        if isinstance(declaration, NodeSyntax):
            message = f"@{each.name} is only supported on node properties or as body constraint ({subject})"
        else:
            message = f"@{each.name} is not supported on edges ({subject})"
        yield parse_error(source, each.span, message)
    for each in annotations:
        if each.name == ANALYZER:
            yield parse_error(source, each.span, f"@{ANALYZER} is only supported on String properties ({subject})")
    yield from _text_problems(source, annotations, subject)
    yield from _rename_problems(source, annotations, subject)


def property_problems(source: Source, declaration: Declaration, each: PropertySyntax) -> Iterator[ParseError]:
    """What is wrong with a property's name and annotations."""
    kind, owner = kind_of(declaration), declaration.name.text
    yield from _name_problems(source, each, kind)
    path = f"{owner}.{each.name}"
    subject = f"property {path}"
    seen: set[str] = set()
    for annotation in each.annotations:
        if annotation.name == "instruction":
            message = f"@instruction is only supported on node and edge types ({subject})"
            yield parse_error(source, annotation.span, message)
        if annotation.name not in PROPERTY_ONLY:
            continue
        unfit = _unfit(annotation, each, path, kind, f"edge {path}")
        if unfit:
            yield parse_error(source, annotation.span, unfit)
        elif annotation.name in seen:
            message = f"{subject} declares @{annotation.name} multiple times"
            yield parse_error(source, annotation.span, message)
        elif annotation.name == "embed":
            yield from _embed_problems(source, annotation, path)
        seen.add(annotation.name)
    yield from _analyzer_problems(source, each, subject)
    without_instruction = [annotation for annotation in each.annotations if annotation.name != "instruction"]
    yield from _text_problems(source, without_instruction, subject)
    yield from _rename_problems(source, each.annotations, subject)


def _name_problems(source: Source, each: PropertySyntax, kind: TypeKind) -> Iterator[ParseError]:
    name = each.name
    if name in _STORAGE_COLUMNS:
        message = (
            f"property name '{name}' is reserved for a virtual storage system column; "
            "export the data, rename the property and rebuild the graph"
        )
        yield parse_error(source, each.name_span, message)
    why = _SYSTEM_COLUMNS.get(name) or (_EDGE_ENDS.get(name) if kind is TypeKind.EDGE else None)
    if why:
        where = " on edges" if name in _EDGE_ENDS else ""
        yield parse_error(source, each.name_span, f"property name '{name}' is reserved{where}: {why}")


def _unfit(annotation: AnnotationSyntax, each: PropertySyntax, path: str, kind: TypeKind, edge: str) -> str:
    """Why `@key`, `@unique`, `@index` or `@embed` cannot stand on this property; empty where it can."""
    name, of = annotation.name, each.type.resolved
    if of.list:
        return f"@{name} is not supported on list property {path}"
    if of.is_vector and name in ("key", "unique"):
        return f"@{name} is not supported on vector property {path}"
    if of.is_blob:
        return f"@{name} is not supported on blob property {path}"
    if kind is TypeKind.EDGE and name in ("key", "embed"):
        return f"@{name} is not supported on edge properties ({edge})"
    if name == "embed" and not of.is_vector:
        return f"@embed is only supported on vector properties ({path})"
    return ""


def _embed_problems(source: Source, annotation: AnnotationSyntax, path: str) -> Iterator[ParseError]:
    if annotation.value is None:
        yield parse_error(source, annotation.span, f"@embed on {path} requires a source property name")
    elif not annotation.value.text.strip():
        yield parse_error(source, annotation.span, f"@embed on {path} requires a non-empty source property name")
    for key, literal in annotation.kwargs:
        if key != "model":
            message = f"@embed on {path} has unknown argument '{key}=' (only 'model' is supported)"
            yield parse_error(source, literal.span, message)


def _analyzer_problems(source: Source, each: PropertySyntax, subject: str) -> Iterator[ParseError]:
    found = [annotation for annotation in each.annotations if annotation.name == ANALYZER]
    if len(found) > 1:
        yield parse_error(source, found[1].span, f"{subject} declares @{ANALYZER} multiple times")
    for annotation in found:
        if not each.type.resolved.is_string or each.type.resolved.list:
            yield parse_error(
                source, annotation.span, f"@{ANALYZER} is only supported on String properties ({subject})"
            )
        elif annotation.kwargs or annotation.value is None or annotation.value.text not in set(Analyzer):
            known = ", ".join(Analyzer)
            yield parse_error(source, annotation.span, f"@{ANALYZER} on {subject} takes one of: {known}")


def _text_problems(source: Source, annotations: Sequence[AnnotationSyntax], subject: str) -> Iterator[ParseError]:
    for name in _TEXTS:
        found = [each for each in annotations if each.name == name]
        if len(found) > 1:
            yield parse_error(source, found[1].span, f"{subject} declares @{name} multiple times")
        for each in found:
            if each.value is None or not each.value.text.strip():
                yield parse_error(source, each.span, f"@{name} on {subject} requires a non-empty value")


def _rename_problems(source: Source, annotations: Sequence[AnnotationSyntax], subject: str) -> Iterator[ParseError]:
    found = [each for each in annotations if each.name == "rename_from"]
    if len(found) > 1:
        yield parse_error(source, found[1].span, f"{subject} declares @rename_from multiple times")
    for each in found:
        if each.value is None or not each.value.text.strip():
            message = f"@rename_from on {subject} requires exactly one non-empty positional value"
            yield parse_error(source, each.span, message)
        if each.kwargs:
            message = f"@rename_from on {subject} does not accept keyword arguments"
            yield parse_error(source, each.span, message)


def property_shape(each: PropertySyntax) -> PropertyShape:
    """What a property without problems says."""
    constraints = {annotation.name for annotation in each.annotations} & set(PropertyConstraint)
    return PropertyShape(
        name=each.name,
        type=each.type.resolved,
        annotations=kept(each.annotations),
        constraints=tuple(sorted(PropertyConstraint(name) for name in constraints)),
        embed=_embed(each.annotations),
        rename_from=rename_hint(each.annotations),
        span=each.name_span,
    )


def embed_span(each: PropertySyntax) -> Span:
    """Where a property's `@embed` stands; the property itself where it has none."""
    return next((annotation.span for annotation in each.annotations if annotation.name == "embed"), each.name_span)


def _embed(annotations: Sequence[AnnotationSyntax]) -> EmbedShape | None:
    for each in annotations:
        if each.name == "embed" and each.value is not None:
            return EmbedShape(each.value.text, next((value.text for key, value in each.kwargs if key == "model"), None))
    return None


def rename_hint(annotations: Sequence[AnnotationSyntax]) -> str | None:
    """What `@rename_from` says, if it is there."""
    return next((each.value.text for each in annotations if each.name == "rename_from" and each.value), None)


def kept(annotations: Sequence[AnnotationSyntax]) -> tuple[Annotation, ...]:
    """The annotations the schema keeps as they are, in an order that does not depend on the text."""
    found = [
        Annotation(
            each.name,
            None if each.value is None else each.value.text,
            tuple(sorted({key: value.text for key, value in each.kwargs}.items())),
        )
        for each in annotations
        if each.name not in _STRUCTURAL
    ]
    return tuple(sorted(found, key=lambda each: (each.name, each.value is not None, each.value or "", each.kwargs)))
