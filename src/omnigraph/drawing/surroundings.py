"""What surrounds a node, drawn."""

from omnigraph.api.neighbourhood import Neighbourhood
from omnigraph.drawing.drawing import Drawing, named


def drawn(found: Neighbourhood) -> Drawing:
    """A neighbourhood.

    Args:
        found (Neighbourhood): its nodes and edges.

    Returns:
        Drawing: of them.
    """
    middle = found.nodes[0]
    drawing = Drawing(f"{middle.type_name} {named(middle.properties, middle.id)}")
    for node in found.nodes:
        label = named(node.properties, node.id)
        drawing.node((node.type_name, node.id), label, node.type_name, details=node.properties, entity=node.id)
    for edge in found.edges:
        drawing.link(drawing.place(edge.source), drawing.place(edge.target), edge.type_name)
    more = ", and there is more" if found.is_cut else ""
    drawing.subtitle = f"{len(drawing.nodes):,} nodes, {len(drawing.links):,} edges{more}"
    return drawing
