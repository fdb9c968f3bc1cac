"""The constraints of a type: their form, the properties they name, and the types those must have."""

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


def form_problems(source: Source, each: ConstraintSyntax) -> Iterator[ParseError]:
    """What is wrong with the arguments of a constraint, whatever they name."""
    arguments = each.arguments
    if each.name in _TUPLES:
        if not arguments:
            yield parse_error(source, each.span, f"@{each.name} constraint requires at least one property name")
        yield from _not_names(source, arguments)
        return
    second = arguments[1] if len(arguments) == 2 else None
    if second is None:
        usage = {
            "range": "@range requires property name and bounds: @range(prop, min..max)",
            "check": '@check requires property name and pattern: @check(prop, "regex")',
        }
        yield parse_error(source, each.span, usage[each.name])
        return
    yield from _not_names(source, arguments[:1])
    if each.name == "range" and not isinstance(second, Bounds):
        yield parse_error(source, second.span, "expected range bounds (min..max) in @range constraint")
    if each.name == "check" and not (isinstance(second, Literal) and second.kind is LiteralKind.STRING):
        yield parse_error(source, second.span, "expected string argument in constraint")


def _not_names(source: Source, arguments: Sequence[Literal | Bounds]) -> Iterator[ParseError]:
    for each in arguments:
        if not (isinstance(each, Literal) and each.kind is LiteralKind.NAME):
            yield parse_error(source, each.span, "expected property name in constraint")


def edge_problems(source: Source, each: ConstraintSyntax, edge: str) -> Iterator[ParseError]:
    """Why a constraint cannot stand in the body of an edge."""
    if each.name == "key":
        named = {argument.text for argument in each.arguments if isinstance(argument, Literal)}
        if not named.issuperset(ENDPOINTS):
            message = f"@key constraint on edge {edge} must name both src and dst"
            yield parse_error(source, each.span, message, hint="write it like `@key(src, dst)`, with properties behind")
    if each.name in ("range", "check"):
        yield parse_error(source, each.span, f"@{each.name} constraint is not supported on edges (edge {edge})")


def constraint_of(each: ConstraintSyntax) -> Constraint:
    """What a constraint without problems of form says."""
    names = tuple(dict.fromkeys(argument.text for argument in each.arguments if isinstance(argument, Literal)))
    match each.name, each.arguments:
        case "range", (Literal(), Bounds() as bounds):
            return Range(names[0], _plain(bounds.min), _plain(bounds.max))
        case "check", (Literal() as name, Literal() as pattern):
            return Check(name.text, pattern.text)
        case _:
            return _TUPLES[each.name](names)


def own_constraints(each: PropertyShape) -> Iterator[Constraint]:
    """The constraints over one property that it declares itself."""
    for constraint in each.constraints:
        yield _TUPLES[constraint]((each.name,))


@dataclass(frozen=True, slots=True)
class Owner:
    """The type whose constraints are judged, with all its properties by name."""

    kind: TypeKind
    name: str
    properties: Mapping[str, PropertyShape]


def fit_problems(source: Source, span: Span, constraint: Constraint, owner: Owner) -> Iterator[ParseError]:
    """What is wrong with the properties a constraint names."""
    names = constraint.properties if isinstance(constraint, Key | Unique | Index) else (constraint.property,)
    for name in names:
        each = owner.properties.get(name)
        if each is None:
            if owner.kind is TypeKind.EDGE and name in ENDPOINTS:
                continue
            message = f"@{constraint.kind} on {owner.name} references unknown property '{name}'"
            yield parse_error(source, span, message, hint=hints.did_you_mean(name, owner.properties))
            continue
        message = _misfit(constraint, each, f"{owner.name}.{name}")
        if message:
            yield parse_error(source, span, message)


def _misfit(constraint: Constraint, each: PropertyShape, path: str) -> str:
    of = each.type
    match constraint:
        case Key() if of.nullable:
            return f"@key property {path} cannot be nullable"
        case Key() if of.list or of.is_vector or of.is_blob:
            unfit = "list" if of.list else "vector" if of.is_vector else "blob"
            return f"@key is not supported on {unfit} property {path}"
        case Unique() | Index() if of.is_blob:
            return f"@{constraint.kind} is not supported on blob property {path}"
        case Range() if not of.is_numeric:
            return f"@range on {path} requires a numeric type, got {of}"
        case Check() if not of.is_string:
            return f"@check on {path} requires String type, got {of}"
        case _:
            return ""


def in_order(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Each constraint once, in an order that does not depend on the text."""
    once: dict[tuple[object, ...], Constraint] = {}
    for each in constraints:
        once.setdefault(_sort_key(each), each)
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


def _plain(bound: int | float | None) -> int | float | None:
    """The bound with `5.0` as `5`, so that two spellings of one number are one bound."""
    if isinstance(bound, float) and bound.is_integer() and abs(bound) <= _EXACT_INTEGERS:
        return int(bound)
    return bound
