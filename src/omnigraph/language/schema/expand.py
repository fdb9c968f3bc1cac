"""Interface expansion: the properties of a node type, its own and those of its interfaces."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from omnigraph.errors import ParseError
from omnigraph.language.schema import hints
from omnigraph.language.schema.shape import PropertyShape
from omnigraph.language.schema.syntax import NodeSyntax
from omnigraph.language.text import Source, parse_error

Interfaces = Mapping[str, Mapping[str, PropertyShape]]


@dataclass(frozen=True, slots=True)
class Expanded:
    """A node type's properties by name, and problems found while expanding."""

    properties: dict[str, PropertyShape]
    problems: tuple[ParseError, ...]


def expand(source: Source, node: NodeSyntax, own: Mapping[str, PropertyShape], interfaces: Interfaces) -> Expanded:
    """Add the properties of implemented interfaces to a node's own properties.

    A property that the node declares too must have the same type and keeps its own annotations; a property of several
    interfaces must be identical in each.
    """
    properties = dict(own)
    problems: list[ParseError] = []
    for interface in dict.fromkeys(interface.text for interface in node.implements):
        span = next(name.span for name in node.implements if name.text == interface)
        if interface not in interfaces:
            message = f"node {node.name.text} implements unknown interface '{interface}'"
            problems.append(parse_error(source, span, message, hint=hints.suggest_word(interface, interfaces)))
            continue
        for promised in interfaces[interface].values():
            present = properties.get(promised.name)
            link = (interface, promised.name)
            if present is None:
                properties[promised.name] = replace(promised, declared_directly=False, satisfies=(link,))
                continue
            if present.declared_directly:
                problems.extend(_other_type(source, node, present, promised, interface))
            elif promised != interfaces[present.satisfies[0][0]][promised.name]:
                problems.append(_other_meaning(source, node, promised.name, (present.satisfies[0][0], interface)))
            properties[promised.name] = replace(present, satisfies=tuple(sorted((*present.satisfies, link))))
    return Expanded(properties, tuple(problems))


def _other_type(
    source: Source, node: NodeSyntax, present: PropertyShape, promised: PropertyShape, interface: str
) -> Iterator[ParseError]:
    if present.type != promised.type:
        message = (
            f"node {node.name.text} property '{promised.name}' has type {present.type} "
            f"but interface {interface} declares it as {promised.type}"
        )
        yield parse_error(source, present.span, message)


def _other_meaning(source: Source, node: NodeSyntax, name: str, both: tuple[str, str]) -> ParseError:
    message = f"interfaces contributing '{node.name.text}.{name}' have incompatible property semantics"
    hint = f"{both[0]} and {both[1]} declare `{name}` differently"
    return parse_error(source, node.name.span, message, stage="catalog", hint=hint)
