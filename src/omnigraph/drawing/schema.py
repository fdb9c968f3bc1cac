"""Draw a schema: node types as cards with their properties, edge types between them."""

from omnigraph.api.snapshot import Snapshot
from omnigraph.drawing.drawing import Drawing


def drawn(snapshot: Snapshot) -> Drawing:
    """Draw the types of a state, with their counts of entities."""
    schema, tables = snapshot.schema, snapshot.record.tables
    drawing = Drawing(
        "Schema", f"{len(schema.nodes)} node types, {len(schema.edges)} edge types on {snapshot.record.branch}"
    )
    for node in schema.nodes:
        keys = {property.name for property in node.key}
        lines = [
            f"{'◆ ' if property.name in keys else ''}{property.name}: {property.type}" for property in node.properties
        ]
        count = tables[node.type_key].rows
        details = {"entities": f"{count:,}", **{property.name: str(property.type) for property in node.properties}}
        drawing.node(node.name, f"{node.name}  {count:,}", node.name, details=details, lines=lines)
    for edge in schema.edges:
        source, target = drawing.index(edge.from_type.type_name), drawing.index(edge.to_type.type_name)
        drawing.link(source, target, f"{edge.name}  {tables[edge.type_key].rows:,}", group=edge.name)
    return drawing
