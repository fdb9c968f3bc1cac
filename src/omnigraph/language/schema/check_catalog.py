"""Checks across declarations: duplicate names, and the ends of edges."""

from collections.abc import Iterable, Iterator, Mapping

from omnigraph.errors import ParseError
from omnigraph.language.schema import hints
from omnigraph.language.schema.check_annotations import get_kind, list_properties
from omnigraph.language.schema.syntax import Declaration, EdgeSyntax, Name, SchemaSyntax
from omnigraph.language.text import Source, parse_error
from omnigraph.model.schema import TypeKind


def find_catalog_problems(syntax: SchemaSyntax) -> Iterator[ParseError]:
    """Yield duplicate names, and undeclared ends of edges."""
    source = syntax.source
    seen: dict[TypeKind, dict[str, Name]] = {kind: {} for kind in TypeKind}
    for declaration in syntax.declarations:
        kind, name = get_kind(declaration), declaration.name
        if name.text in seen[kind]:
            line, column = source.position(seen[kind][name.text].span.start)
            what = "interface name in schema shape" if kind is TypeKind.INTERFACE else f"{kind} type: {name.text}"
            hint = f"{name.text} is declared first at {line}:{column}"
            yield parse_error(source, name.span, f"duplicate {what}", stage="catalog", hint=hint)
        seen[kind].setdefault(name.text, name)
        yield from _find_duplicate_properties(source, declaration)
    edges = [declaration for declaration in syntax.declarations if isinstance(declaration, EdgeSyntax)]
    for edge in edges:
        for end, which in ((edge.from_type, "source"), (edge.to_type, "target")):
            if end.text not in seen[TypeKind.NODE]:
                message = f"edge {edge.name.text} references unknown {which} type: {end.text}"
                hint = _suggest_end(end.text, seen)
                yield parse_error(source, end.span, message, stage="catalog", hint=hint)
    yield from _find_case_collisions(source, edges)


def _suggest_end(name: str, seen: Mapping[TypeKind, Mapping[str, Name]]) -> str:
    if name in seen[TypeKind.INTERFACE]:
        return f"{name} is an interface; edges connect node types"
    return hints.suggest_word(name, seen[TypeKind.NODE])


def _find_duplicate_properties(source: Source, declaration: Declaration) -> Iterator[ParseError]:
    names: set[str] = set()
    for property_ in list_properties(declaration):
        if property_.name in names:
            message = f"duplicate property in schema shape for '{declaration.name.text}'"
            hint = f"`{property_.name}` is declared more than once"
            yield parse_error(source, property_.name_span, message, stage="catalog", hint=hint)
        names.add(property_.name)


def _find_case_collisions(source: Source, edges: Iterable[EdgeSyntax]) -> Iterator[ParseError]:
    folded: dict[str, str] = {}
    for edge in edges:
        name = edge.name.text
        earlier = folded.setdefault(name.lower(), name)
        if earlier != name:
            message = f"edge name collision after case folding: '{name}' conflicts with '{earlier}'"
            hint = "queries find edges by name whatever its case"
            yield parse_error(source, edge.name.span, message, stage="catalog", hint=hint)
