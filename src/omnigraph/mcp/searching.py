"""Words looked for in every text of a graph, the best matches first."""

from collections.abc import Callable, Iterator
from typing import Any

from omnigraph import limits
from omnigraph.api.snapshot import Snapshot
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.model.schema import NodeType, Property


def searched(
    at: Snapshot,
    text: str,
    *,
    type_name: str | None,
    property_name: str | None,
    misspelled: bool,
    most: int,
    allowed: QueryLimits = DEFAULT_LIMITS,
    still_wanted: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """The nodes whose texts match some words.

    Args:
        at (Snapshot): where.
        text (str): the words.
        type_name (str | None): only in nodes of this type.
        property_name (str | None): only in this property.
        misspelled (bool): also words that differ by a letter or two.
        most (int): how many to find.
        allowed (QueryLimits): what looking through one property may use.
        still_wanted (Callable[[], None]): is called before each property; it raises where nobody waits any more.

    Returns:
        list[dict[str, Any]]: the type, the id, the property, its text and the score of each, the best first.

    Raises:
        NotFoundError: there is no such type, or no text to look through.
        InvalidRequestError: there are too many.
    """
    if not text.strip():
        raise InvalidRequestError("there is nothing to search for: give one or more words")
    places = list(_places(at, type_name, property_name))
    if not places:
        raise NotFoundError("there is no text to search: no String property fits", code="property_not_found")
    if len(places) > limits.AGENT_SEARCHED_PROPERTIES_MAX:
        raise InvalidRequestError(
            f"{len(places)} properties hold texts, and one search looks through "
            f"{limits.AGENT_SEARCHED_PROPERTIES_MAX} at most: name a type"
        )
    found: list[dict[str, Any]] = []
    for node, each in places:
        still_wanted()
        condition = f"fuzzy($n.{each.name}, $q)" if misspelled else f"search($n.{each.name}, $q)"
        # A misspelled word has no score of its own: rows come as they are.
        score = "" if misspelled else f", bm25($n.{each.name}, $q) as score"
        order = "" if misspelled else f" order {{ bm25($n.{each.name}, $q) }}"
        query = (
            f"query search($q: String) {{ match {{ $n: {node.name} {condition} }} "
            f"return {{ $n as id, $n.{each.name} as text{score} }}{order} limit {most + 1} }}"
        )
        rows = at.query(query, {"q": text}, limits=allowed)
        found += [{"type": node.name, "id": row["id"], "property": each.name, **row} for row in rows]
    found.sort(key=lambda each: (-(each.get("score") or 0.0), each["type"], each["id"], each["property"]))
    return found[: most + 1]


def _places(at: Snapshot, type_name: str | None, property_name: str | None) -> Iterator[tuple[NodeType, Property]]:
    if type_name is not None and at.schema.node(type_name) is None:
        raise NotFoundError(f"there is no node type '{type_name}'", code="type_not_found", type=type_name)
    for node in at.schema.nodes:
        if type_name in (None, node.name):
            for each in node.properties:
                is_text = each.type.is_string and not each.type.is_enum
                if is_text and property_name in (None, each.name):
                    yield node, each
