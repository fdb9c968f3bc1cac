"""A schema drawn: node types as cards with their properties, edge types between them."""

from omnigraph.api.snapshot import Snapshot
from omnigraph.drawing.drawing import Drawing


def drawn(snapshot: Snapshot) -> Drawing:
    """The types of a state, and how many there are of each."""
    schema, tables = snapshot.schema, snapshot.record.tables
    drawing = Drawing(
        "Schema", f"{len(schema.nodes)} node types, {len(schema.edges)} edge types on {snapshot.record.branch}"
    )
    for node in schema.nodes:
        keys = {each.name for each in node.key}
        lines = [f"{'◆ ' if each.name in keys else ''}{each.name}: {each.type}" for each in node.properties]
        count = tables[node.type_key].rows
        details = {"entities": f"{count:,}", **{each.name: str(each.type) for each in node.properties}}
        drawing.node(node.name, f"{node.name}  {count:,}", node.name, details=details, lines=lines)
    for edge in schema.edges:
        source, target = drawing.place(edge.from_type.type_name), drawing.place(edge.to_type.type_name)
        drawing.link(source, target, f"{edge.name}  {tables[edge.type_key].rows:,}", group=edge.name)
    return drawing
