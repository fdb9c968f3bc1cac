"""Check constraints of a type: their form, the properties they name, and the types of those."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.errors import ParseError
from omnigraph.language.schema import hints
from omnigraph.language.schema.shape import PropertyShape
from omnigraph.language.schema.syntax import Bounds, ConstraintSyntax, Literal, LiteralKind
from omnigraph.language.text import Source, Span, parse_error
from omnigraph.model.schema import ENDPOINTS, Check, Constraint, Index, Key, Range, TypeKind, Unique

_TUPLES: Mapping[str, type[Key | Unique | Index]] = {"key": Key, "unique": Unique, "index": Index}
_ORDER = ("key", "unique", "index", "range", "check")
_EXACT_INTEGERS = 2**53


def find_form_problems(source: Source, constraint: ConstraintSyntax) -> Iterator[ParseError]:
    """Yield violations in the form of a constraint's arguments."""
    arguments = constraint.arguments
    if constraint.name in _TUPLES:
        if not arguments:
            yield parse_error(
                source, constraint.span, f"@{constraint.name} constraint requires at least one property name"
            )
        yield from _find_non_names(source, arguments)
        return
    second = arguments[1] if len(arguments) == 2 else None
    if second is None:
        usage = {
            "range": "@range requires property name and bounds: @range(prop, min..max)",
            "check": '@check requires property name and pattern: @check(prop, "regex")',
        }
        yield parse_error(source, constraint.span, usage[constraint.name])
        return
    yield from _find_non_names(source, arguments[:1])
    if constraint.name == "range" and not isinstance(second, Bounds):
        yield parse_error(source, second.span, "expected range bounds (min..max) in @range constraint")
    if constraint.name == "check" and not (isinstance(second, Literal) and second.kind is LiteralKind.STRING):
        yield parse_error(source, second.span, "expected string argument in constraint")


def _find_non_names(source: Source, arguments: Sequence[Literal | Bounds]) -> Iterator[ParseError]:
    for argument in arguments:
        if not (isinstance(argument, Literal) and argument.kind is LiteralKind.NAME):
            yield parse_error(source, argument.span, "expected property name in constraint")


def find_edge_problems(source: Source, constraint: ConstraintSyntax, edge: str) -> Iterator[ParseError]:
    """Yield reasons why a constraint is not allowed in the body of an edge."""
    if constraint.name == "key":
        named = {argument.text for argument in constraint.arguments if isinstance(argument, Literal)}
        if not named.issuperset(ENDPOINTS):
            message = f"@key constraint on edge {edge} must name both src and dst"
            yield parse_error(
                source, constraint.span, message, hint="write it like `@key(src, dst)`, with properties behind"
            )
    if constraint.name in ("range", "check"):
        yield parse_error(
            source, constraint.span, f"@{constraint.name} constraint is not supported on edges (edge {edge})"
        )


def build_constraint(constraint: ConstraintSyntax) -> Constraint:
    """Return the meaning of a well-formed constraint."""
    names = tuple(dict.fromkeys(argument.text for argument in constraint.arguments if isinstance(argument, Literal)))
    match constraint.name, constraint.arguments:
        case "range", (Literal(), Bounds() as bounds):
            return Range(names[0], _normalize_bound(bounds.min), _normalize_bound(bounds.max))
        case "check", (Literal() as name, Literal() as pattern):
            return Check(name.text, pattern.text)
        case _:
            return _TUPLES[constraint.name](names)


def build_inline_constraints(property_: PropertyShape) -> Iterator[Constraint]:
    """Yield the inline constraints of one property."""
    for constraint in property_.constraints:
        yield _TUPLES[constraint]((property_.name,))


@dataclass(frozen=True, slots=True)
class Owner:
    """Type whose constraints are checked, with all its properties by name."""

    kind: TypeKind
    name: str
    properties: Mapping[str, PropertyShape]


def find_fit_problems(source: Source, span: Span, constraint: Constraint, owner: Owner) -> Iterator[ParseError]:
    """Yield violations concerning the properties a constraint names."""
    names = constraint.properties if isinstance(constraint, Key | Unique | Index) else (constraint.property,)
    for name in names:
        property_ = owner.properties.get(name)
        if property_ is None:
            if owner.kind is TypeKind.EDGE and name in ENDPOINTS:
                continue
            message = f"@{constraint.kind} on {owner.name} references unknown property '{name}'"
            yield parse_error(source, span, message, hint=hints.suggest_word(name, owner.properties))
            continue
        message = _explain_misfit(constraint, property_, f"{owner.name}.{name}")
        if message:
            yield parse_error(source, span, message)


def _explain_misfit(constraint: Constraint, property_: PropertyShape, path: str) -> str:
    type_ = property_.type
    match constraint:
        case Key() if type_.nullable:
            return f"@key property {path} cannot be nullable"
        case Key() if type_.list or type_.is_vector or type_.is_blob:
            unfit = "list" if type_.list else "vector" if type_.is_vector else "blob"
            return f"@key is not supported on {unfit} property {path}"
        case Unique() | Index() if type_.is_blob:
            return f"@{constraint.kind} is not supported on blob property {path}"
        case Range() if not type_.is_numeric:
            return f"@range on {path} requires a numeric type, got {type_}"
        case Check() if not type_.is_string:
            return f"@check on {path} requires String type, got {type_}"
        case _:
            return ""


def sort_constraints(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Remove duplicate constraints, and sort them independently of the text."""
    once: dict[tuple[object, ...], Constraint] = {}
    for constraint in constraints:
        once.setdefault(_sort_key(constraint), constraint)
    return tuple(once[key] for key in sorted(once, key=repr))


def _sort_key(constraint: Constraint) -> tuple[object, ...]:
    place = _ORDER.index(constraint.kind)
    match constraint:
        case Range(name, least, most):
            return (place, name, least, most)
        case Check(name, pattern):
            return (place, name, pattern)
        case Key(names) | Unique(names) | Index(names):
            return (place, *sorted(names))


def _normalize_bound(bound: int | float | None) -> int | float | None:
    """Return the bound with `5.0` as `5`, so that equal numbers are equal bounds."""
    if isinstance(bound, float) and bound.is_integer() and abs(bound) <= _EXACT_INTEGERS:
        return int(bound)
    return bound
