"""Draw the neighbourhood of a node."""

from omnigraph.api.neighbourhood import Neighbourhood
from omnigraph.drawing.drawing import Drawing, choose_label


def drawn(found: Neighbourhood) -> Drawing:
    """Draw a neighbourhood."""
    middle = found.nodes[0]
    drawing = Drawing(f"{middle.type_name} {choose_label(middle.properties, middle.id)}")
    for node in found.nodes:
        label = choose_label(node.properties, node.id)
        drawing.node((node.type_name, node.id), label, node.type_name, details=node.properties, entity=node.id)
    for edge in found.edges:
        drawing.link(drawing.index(edge.source), drawing.index(edge.target), edge.type_name)
    more = ", and there is more" if found.is_cut else ""
    drawing.subtitle = f"{len(drawing.nodes):,} nodes, {len(drawing.links):,} edges{more}"
    return drawing
