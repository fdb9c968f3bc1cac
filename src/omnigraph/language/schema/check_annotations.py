"""Check names and annotations of declarations and properties."""

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


def get_kind(declaration: Declaration) -> TypeKind:
    """Return the kind of a declaration."""
    match declaration:
        case InterfaceSyntax():
            return TypeKind.INTERFACE
        case NodeSyntax():
            return TypeKind.NODE
        case EdgeSyntax():
            return TypeKind.EDGE


def list_properties(declaration: Declaration) -> Iterator[PropertySyntax]:
    """Yield the properties a declaration writes out, in order."""
    yield from (member for member in declaration.members if isinstance(member, PropertySyntax))


def find_header_problems(source: Source, declaration: NodeSyntax | EdgeSyntax) -> Iterator[ParseError]:
    """Yield violations in the annotations of a declaration itself."""
    name, annotations = declaration.name.text, declaration.annotations
    subject = f"{get_kind(declaration)} {name}"
    for annotation in annotations:
        if annotation.name not in PROPERTY_ONLY:
            continue
        if isinstance(declaration, NodeSyntax):
            message = f"@{annotation.name} is only supported on node properties or as body constraint ({subject})"
        else:
            message = f"@{annotation.name} is not supported on edges ({subject})"
        yield parse_error(source, annotation.span, message)
    for annotation in annotations:
        if annotation.name == ANALYZER:
            yield parse_error(
                source, annotation.span, f"@{ANALYZER} is only supported on String properties ({subject})"
            )
    yield from _find_text_problems(source, annotations, subject)
    yield from _find_rename_problems(source, annotations, subject)


def find_property_problems(source: Source, declaration: Declaration, property_: PropertySyntax) -> Iterator[ParseError]:
    """Yield violations in a property's name and annotations."""
    kind, owner = get_kind(declaration), declaration.name.text
    yield from _find_name_problems(source, property_, kind)
    path = f"{owner}.{property_.name}"
    subject = f"property {path}"
    seen: set[str] = set()
    for annotation in property_.annotations:
        if annotation.name == "instruction":
            message = f"@instruction is only supported on node and edge types ({subject})"
            yield parse_error(source, annotation.span, message)
        if annotation.name not in PROPERTY_ONLY:
            continue
        unfit = _explain_unfit(annotation, property_, path, kind, f"edge {path}")
        if unfit:
            yield parse_error(source, annotation.span, unfit)
        elif annotation.name in seen:
            message = f"{subject} declares @{annotation.name} multiple times"
            yield parse_error(source, annotation.span, message)
        elif annotation.name == "embed":
            yield from _find_embed_problems(source, annotation, path)
        seen.add(annotation.name)
    yield from _find_analyzer_problems(source, property_, subject)
    without_instruction = [annotation for annotation in property_.annotations if annotation.name != "instruction"]
    yield from _find_text_problems(source, without_instruction, subject)
    yield from _find_rename_problems(source, property_.annotations, subject)


def _find_name_problems(source: Source, property_: PropertySyntax, kind: TypeKind) -> Iterator[ParseError]:
    name = property_.name
    if name in _STORAGE_COLUMNS:
        message = (
            f"property name '{name}' is reserved for a virtual storage system column; "
            "export the data, rename the property and rebuild the graph"
        )
        yield parse_error(source, property_.name_span, message)
    why = _SYSTEM_COLUMNS.get(name) or (_EDGE_ENDS.get(name) if kind is TypeKind.EDGE else None)
    if why:
        where = " on edges" if name in _EDGE_ENDS else ""
        yield parse_error(source, property_.name_span, f"property name '{name}' is reserved{where}: {why}")


def _explain_unfit(
    annotation: AnnotationSyntax, property_: PropertySyntax, path: str, kind: TypeKind, edge: str
) -> str:
    """Explain why `@key`, `@unique`, `@index` or `@embed` is not allowed on this property; empty if it is."""
    name, type_ = annotation.name, property_.type.resolved
    if type_.list:
        return f"@{name} is not supported on list property {path}"
    if type_.is_vector and name in ("key", "unique"):
        return f"@{name} is not supported on vector property {path}"
    if type_.is_blob:
        return f"@{name} is not supported on blob property {path}"
    if kind is TypeKind.EDGE and name in ("key", "embed"):
        return f"@{name} is not supported on edge properties ({edge})"
    if name == "embed" and not type_.is_vector:
        return f"@embed is only supported on vector properties ({path})"
    return ""


def _find_embed_problems(source: Source, annotation: AnnotationSyntax, path: str) -> Iterator[ParseError]:
    if annotation.value is None:
        yield parse_error(source, annotation.span, f"@embed on {path} requires a source property name")
    elif not annotation.value.text.strip():
        yield parse_error(source, annotation.span, f"@embed on {path} requires a non-empty source property name")
    for key, literal in annotation.kwargs:
        if key != "model":
            message = f"@embed on {path} has unknown argument '{key}=' (only 'model' is supported)"
            yield parse_error(source, literal.span, message)


def _find_analyzer_problems(source: Source, property_: PropertySyntax, subject: str) -> Iterator[ParseError]:
    found = [annotation for annotation in property_.annotations if annotation.name == ANALYZER]
    if len(found) > 1:
        yield parse_error(source, found[1].span, f"{subject} declares @{ANALYZER} multiple times")
    for annotation in found:
        if not property_.type.resolved.is_string or property_.type.resolved.list:
            yield parse_error(
                source, annotation.span, f"@{ANALYZER} is only supported on String properties ({subject})"
            )
        elif annotation.kwargs or annotation.value is None or annotation.value.text not in set(Analyzer):
            known = ", ".join(Analyzer)
            yield parse_error(source, annotation.span, f"@{ANALYZER} on {subject} takes one of: {known}")


def _find_text_problems(source: Source, annotations: Sequence[AnnotationSyntax], subject: str) -> Iterator[ParseError]:
    for name in _TEXTS:
        found = [annotation for annotation in annotations if annotation.name == name]
        if len(found) > 1:
            yield parse_error(source, found[1].span, f"{subject} declares @{name} multiple times")
        for annotation in found:
            if annotation.value is None or not annotation.value.text.strip():
                yield parse_error(source, annotation.span, f"@{name} on {subject} requires a non-empty value")


def _find_rename_problems(
    source: Source, annotations: Sequence[AnnotationSyntax], subject: str
) -> Iterator[ParseError]:
    found = [annotation for annotation in annotations if annotation.name == "rename_from"]
    if len(found) > 1:
        yield parse_error(source, found[1].span, f"{subject} declares @rename_from multiple times")
    for annotation in found:
        if annotation.value is None or not annotation.value.text.strip():
            message = f"@rename_from on {subject} requires exactly one non-empty positional value"
            yield parse_error(source, annotation.span, message)
        if annotation.kwargs:
            message = f"@rename_from on {subject} does not accept keyword arguments"
            yield parse_error(source, annotation.span, message)


def build_property_shape(property_: PropertySyntax) -> PropertyShape:
    """Return the meaning of a valid property."""
    constraints = {annotation.name for annotation in property_.annotations} & set(PropertyConstraint)
    return PropertyShape(
        name=property_.name,
        type=property_.type.resolved,
        annotations=select_kept(property_.annotations),
        constraints=tuple(sorted(PropertyConstraint(name) for name in constraints)),
        embed=_build_embed(property_.annotations),
        rename_from=find_rename_hint(property_.annotations),
        span=property_.name_span,
    )


def find_embed_span(property_: PropertySyntax) -> Span:
    """Return the span of a property's `@embed`; of the property itself if it has none."""
    return next(
        (annotation.span for annotation in property_.annotations if annotation.name == "embed"), property_.name_span
    )


def _build_embed(annotations: Sequence[AnnotationSyntax]) -> EmbedShape | None:
    for annotation in annotations:
        if annotation.name == "embed" and annotation.value is not None:
            return EmbedShape(
                annotation.value.text, next((value.text for key, value in annotation.kwargs if key == "model"), None)
            )
    return None


def find_rename_hint(annotations: Sequence[AnnotationSyntax]) -> str | None:
    """Return the value of `@rename_from`, if present."""
    return next(
        (annotation.value.text for annotation in annotations if annotation.name == "rename_from" and annotation.value),
        None,
    )


def select_kept(annotations: Sequence[AnnotationSyntax]) -> tuple[Annotation, ...]:
    """Return the annotations the schema keeps, in an order that does not depend on the text."""
    found = [
        Annotation(
            annotation.name,
            None if annotation.value is None else annotation.value.text,
            tuple(sorted({key: value.text for key, value in annotation.kwargs}.items())),
        )
        for annotation in annotations
        if annotation.name not in _STRUCTURAL
    ]
    return tuple(
        sorted(
            found,
            key=lambda annotation: (
                annotation.name,
                annotation.value is not None,
                annotation.value or "",
                annotation.kwargs,
            ),
        )
    )
