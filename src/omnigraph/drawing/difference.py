"""Draw the differences between two states: changed nodes and edges, and the nodes that changed edges connect."""

from typing import Any

from omnigraph.api.graph import Graph
from omnigraph.branch.entity_change import EntityChange, EntityKind, Op
from omnigraph.drawing.drawing import Drawing, choose_label
from omnigraph.model.schema import EdgeType, Schema

_MARKS = {Op.INSERT: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}


def drawn(
    graph: Graph, older: str, newer: str, *, limit: int, merge_base: bool = False, engine: str = "auto"
) -> Drawing:
    """Draw at most `limit` changes between two states; for `merge_base` and `engine` see `Graph.diff`.

    Raises:
        NotFoundError: there is no such state.
    """
    found = graph.diff(older, newer, merge_base=merge_base, engine=engine)
    schemas = [graph.snapshot(commit=commit).schema for commit in (found.to_commit, found.from_commit)]
    drawing = Drawing(f"{newer} since it parted from {older}" if merge_base else f"{older} → {newer}")
    edges = []
    left_out = 0
    for drawn_so_far, change in enumerate(found):
        if drawn_so_far >= limit:
            left_out += 1
        elif change.kind is EntityKind.NODE:
            _draw_node(drawing, change)
        else:
            edges.append(change)
    for change in edges:  # after all nodes
        _draw_edge(drawing, change, schemas)
    stats = list(found.stats.values())
    inserted, updated, deleted = [
        sum(getattr(counts, op) for counts in stats) for op in ("inserted", "updated", "deleted")
    ]
    more = f", {left_out:,} not drawn" if left_out else ""
    drawing.subtitle = f"{inserted:,} inserted, {updated:,} updated, {deleted:,} deleted{more}"
    return drawing


def _draw_node(drawing: Drawing, change: EntityChange) -> None:
    image = change.after or change.before
    properties = dict(image.properties) if image is not None else {}
    details: dict[str, Any] = dict(properties)
    if change.before is not None and change.after is not None:
        for key in {*change.before.properties, *change.after.properties}:
            before, after = change.before.properties.get(key), change.after.properties.get(key)
            if before != after:
                details[key] = {"before": before, "after": after}
    drawing.node(
        (change.type_name, change.id),
        choose_label(properties, change.id),
        change.type_name,
        details=details,
        mark=_MARKS[change.op],
        entity=change.id,
    )


def _draw_edge(drawing: Drawing, change: EntityChange, schemas: list[Schema]) -> None:
    image = change.after or change.before
    edge = _edge_type(change.type_name, schemas)
    if image is None or edge is None or image.source is None or image.target is None:
        return
    ends = []
    for type_name, entity_id in ((edge.from_type.type_name, image.source), (edge.to_type.type_name, image.target)):
        ends.append(drawing.node((type_name, entity_id), entity_id, type_name, mark="unchanged", entity=entity_id))
    drawing.link(ends[0], ends[1], edge.name, mark=_MARKS[change.op])


def _edge_type(name: str, schemas: list[Schema]) -> EdgeType | None:
    return next((found for schema in schemas if (found := schema.edge(name)) is not None), None)
